// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"fmt"
	"time"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// deliver plans the step under way and hands out its rows from the place on.
// Afterwards the place is the step's after-state.
func (f *follower) deliver(ctx context.Context, l *look, send func(item) error) error {
	s := f.place.Step
	if f.conf.Changelog() {
		// Replays of refused batches may overtake later ones; a step's changes must not meet those of the next.
		if err := f.barrier(ctx, send); err != nil {
			return err
		}
	}
	f.reportStep(s)
	if s.Kind == lineage.Truncate {
		s.Digest = string(lineage.Truncate)
		if err := f.announce(ctx, s); err != nil {
			return err
		}
		f.unsettled = true
		return send(f.advance(s, truncation(f.conf, s)))
	}
	started := time.Now()
	rows, err := f.plan(ctx, l, s)
	if err != nil {
		return f.unfinished(s, err)
	}
	f.metrics.planned(started)
	if rows != nil {
		f.resume(s, rows.digest)
		if err := f.read(ctx, s, rows, send); err != nil {
			return f.unfinished(s, err) // names the snapshot
		}
	}
	if f.place.Step == nil {
		return nil
	}
	f.finish(s) // no row carried the end of the step
	return send(item{place: f.place})
}

// announce stores that a step of a changelog is under way, before its first
// message leaves. Otherwise a process that is killed could go on from the state
// before it to one where the step never was, and what was delivered of it would
// stay with the reader.
func (f *follower) announce(ctx context.Context, s *step) error {
	if !f.conf.Changelog() || s.Begun {
		return nil
	}
	if err := f.storeStart(ctx, f.place); err != nil {
		return fmt.Errorf("storing that snapshot %d is under way: %w", s.After.SnapshotID, err)
	}
	s.Begun = true
	return nil
}

// barrier waits until all that was sent is acknowledged.
func (f *follower) barrier(ctx context.Context, send func(item) error) error {
	if !f.unsettled {
		return nil
	}
	if err := f.awaitAcks(ctx, send); err != nil {
		return err
	}
	f.unsettled = false
	return nil
}

// finish moves the place behind a step.
func (f *follower) finish(s *step) {
	f.stand(s.After, s.Commit)
	f.place.Ordinal = s.Ordinal
	f.metrics.steps.Incr(1, f.metrics.table, s.FoundBy)
}

// resume checks that the ordinal of the next row means the same under this
// plan as when it was stored. It does not when the columns or the program's
// order changed: then the step begins anew, which only costs duplicates.
func (f *follower) resume(s *step, digest string) {
	if s.Digest != "" && s.Digest != digest && s.Row > 0 {
		f.log.Warnf("The plan of snapshot %d is another one than before the restart, as after a change of columns: delivering the whole step again, %d rows of it a second time", s.After.SnapshotID, s.Row)
		s.Row = 0
	}
	s.Digest = digest
}

// tableFor finds the metadata to read a state with: the head's where it knows
// the state's schema, otherwise the file that names the state.
func (f *follower) tableFor(ctx context.Context, l *look, s catalog.State) (*catalog.Table, error) {
	if l != nil && l.table.Schema(s.SchemaID) != nil {
		return l.table, nil
	}
	return f.loadTable(ctx, l, s)
}

// loadTable reads the metadata file that names a state.
func (f *follower) loadTable(ctx context.Context, l *look, s catalog.State) (*catalog.Table, error) {
	if l != nil {
		return l.history.Table(ctx, s.MetadataLocation)
	}
	return catalog.LoadTable(ctx, f.storage.FS(), s.MetadataLocation, s.ContentID)
}

// read hands out the rows of a step.
func (f *follower) read(ctx context.Context, s *step, rows *rowSource, send func(item) error) error {
	messages := newStepMessage(f.conf, s, rows.schema)
	batches, err := newBatches(f.conf, f.res, messages)
	if err != nil {
		return err
	}
	defer batches.close(ctx)
	started, inserting := time.Now(), false
	for b, err := range rows.read(ctx, f.readOptions(s.Row)) {
		if err != nil {
			return err
		}
		f.metrics.read.Timing(time.Since(started).Nanoseconds(), f.metrics.table)
		if err := f.announce(ctx, s); err != nil {
			return err
		}
		if rows.parted && !inserting && b.Operation == scan.OperationInsert {
			inserting = true
			if err := f.barrier(ctx, send); err != nil {
				return err
			}
		}
		for made := range batches.add(ctx, b) {
			if made.err != nil {
				return made.err
			}
			f.unsettled = true
			if err := send(f.advance(s, made)); err != nil {
				return err
			}
		}
		started = time.Now()
	}
	return nil
}

func (f *follower) readOptions(from int64) scan.ReadOptions {
	return scan.ReadOptions{
		From: from, Format: f.conf.Format, BatchRows: f.conf.BatchRows, BatchBytes: f.conf.BatchBytes,
		Parallelism: f.conf.Parallelism, Memory: f.conf.Memory,
	}
}

// advance moves the place behind a batch and wraps the batch as an item.
func (f *follower) advance(s *step, made madeBatch) item {
	s.Row = made.next
	if made.last {
		f.finish(s)
	}
	f.metrics.delivered(made.rows, made.bytes, made.last)
	at := f.place
	if at.Step != nil {
		held := *at.Step
		at.Step = &held
	}
	return item{batch: made.messages, again: made.again, rows: made.rows, bytes: made.bytes, place: at, completes: made.last}
}

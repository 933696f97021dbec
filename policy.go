// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"errors"
	"fmt"
	"time"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// RemovedRowsError stops an append pipeline at a snapshot that removes rows, or
// at a bridge that does.
type RemovedRowsError struct {
	SnapshotID int64
	// From is the snapshot that a bridge starts from, nil for a snapshot alone.
	From  *int64
	Kind  scan.Kind
	Field string
}

func (e *RemovedRowsError) Error() string {
	options := niFieldOnDelete + ": " + onRemovedSkip
	if e.Field == niFieldOnOverwrite {
		options = niFieldOnOverwrite + ": " + onRemovedAddedRows + " or " + onRemovedSkip
	}
	return fmt.Sprintf("%s removes rows (%s), which messages of added rows cannot express: set %s to go past such snapshots, or %s: %s to be told of every change",
		spanOf(e.From, e.SnapshotID), e.Kind, options, niFieldChanges, changesChangelog)
}

// UnfinishedError stops a changelog at a step that was partly delivered, and of
// which a file is gone by now. No way around it leads from what the reader has
// to the table.
type UnfinishedError struct {
	SnapshotID int64
	Err        error
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("%v. Changes of snapshot %d may have been delivered already, so that only this snapshot can complete them: restore the file, or empty what the output has and begin with another %s",
		e.Err, e.SnapshotID, niFieldCacheKey)
}

func (e *UnfinishedError) Unwrap() error { return e.Err }

// unfinished says what a missing file means for a step that was begun.
func (f *follower) unfinished(s *step, err error) error {
	if _, missing := errors.AsType[*scan.MissingFileError](err); missing && s.Begun && f.conf.Changelog() {
		return &UnfinishedError{SnapshotID: s.After.SnapshotID, Err: err}
	}
	return err
}

// withOptions adds to an error what the user can do about it.
func withOptions(err error) error {
	if _, missing := errors.AsType[*catalog.MissingMetadataError](err); missing {
		return fmt.Errorf("%w. Restore the file, or let the branch name one that exists, by a commit or by assigning it to an earlier one; %s: name@hash reads an earlier commit meanwhile",
			err, niFieldBranch)
	}
	if _, full := errors.AsType[*scan.SpillError](err); full {
		return fmt.Errorf("%w. Make room there, let TMPDIR name another folder, or raise %s", err, niFieldMemory)
	}
	_, missing := errors.AsType[*scan.MissingFileError](err)
	if _, unfinished := errors.AsType[*UnfinishedError](err); !missing || unfinished {
		return err
	}
	return fmt.Errorf("%w. Restore the file, or let the table drop it, after which the input goes on; to go on without these rows, use another %s with %s: %s or a later %s",
		err, niFieldCacheKey, niFieldStartFrom, startFromLatest, niFieldStartSnapshot)
}

// reportLost warns of what a lost lineage skips or repeats.
func (f *follower) reportLost(lost *lineage.Lost) {
	if lost == nil {
		return
	}
	f.metrics.lostLineage.Incr(1, f.metrics.table, string(lost.Policy))
	f.log.Warnf("The lineage between the checkpoint and the head of %s is lost: %v", f.conf.Ref, lost)
}

// reportLag tells how far the place is behind the head.
func (f *follower) reportLag(steps []resolved) {
	newest := f.place.CommitTimeMs
	if n := len(steps); n > 0 {
		newest = steps[n-1].commit.TimeMs
	}
	f.lag(f.place.Ordinal+int64(len(steps)), newest)
}

func describeStart(p place) string {
	switch {
	case p.Step == nil && p.State.Empty():
		return "the empty table"
	case p.Step == nil:
		return fmt.Sprintf("snapshot %d, whose rows are not delivered", p.State.SnapshotID)
	case p.Step.Kind == lineage.TableScan:
		return fmt.Sprintf("the whole table as of snapshot %d", p.Step.After.SnapshotID)
	default:
		return fmt.Sprintf("snapshot %d", p.Step.After.SnapshotID)
	}
}

// describeResume says where a checkpoint stands.
func describeResume(p place) string {
	switch s := p.Step; {
	case s == nil:
		return "behind " + nameOf(p.State.SnapshotID)
	case s.Before == nil:
		return fmt.Sprintf("in the whole table as of %s, from row ordinal %d on", nameOf(s.After.SnapshotID), s.Row)
	default:
		return fmt.Sprintf("behind %s, in %s, from row ordinal %d on", nameOf(s.Before.SnapshotID), nameOf(s.After.SnapshotID), s.Row)
	}
}

// reportStartToCome warns of a start time in the future: what the table holds
// is not delivered, and what comes is not held against the time any more.
func (f *follower) reportStartToCome(found bool) {
	at := f.conf.Lineage.StartTime
	if at == nil || found || !at.After(time.Now()) || f.conf.Lineage.StartSnapshotID != nil {
		return
	}
	f.log.Warnf("%s: %s lies in the future, and no snapshot is that new: following from %s on, and delivering every later snapshot, whatever its time",
		niFieldStartFrom, at.UTC().Format(time.RFC3339), nameOf(f.place.State.SnapshotID))
}

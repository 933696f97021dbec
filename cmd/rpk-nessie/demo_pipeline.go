// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	checkpointCache = "checkpoints"
	checkpointKey   = "orders"
	stopTimeout     = 15 * time.Second
	checkpointLook  = 20 * time.Millisecond
)

// pipeline is the demo's Benthos pipeline. Each start builds it anew, as a new process would.
type pipeline struct {
	stage       *venue
	checkpoints string
	say         *narrator
}

// yaml is the pipeline as a file for `rpk-nessie run`. The demo takes the messages itself where the file has stdout, to
// show and compare them.
func (p pipeline) yaml() string {
	input := strings.ReplaceAll(strings.TrimSpace(p.input()), "\n", "\n  ")
	return "input:\n  " + input + "\n\n" + strings.TrimSpace(p.resources()) + "\n\noutput:\n  stdout: {}\n"
}

func (p pipeline) input() string {
	return fmt.Sprintf(`
nessie:
  base_url: %s
  branch: %s
  namespace: shop
  table: orders
  poll_interval: 250ms
  incremental_by_snapshot: true
  start_from: earliest
  checkpoint_cache: %s
  checkpoint_cache_key: %s
%s  storage:
%s`, p.stage.nessie, p.stage.branch, checkpointCache, checkpointKey, p.stage.auth(), p.stage.storage())
}

func (p pipeline) resources() string {
	return fmt.Sprintf(`
cache_resources:
  - label: %s
    nessie_durable_file:
      directory: %q
`, checkpointCache, p.checkpoints)
}

func (p pipeline) start() (*running, error) {
	r := &running{say: p.say, changed: make(chan struct{}), ended: make(chan struct{})}
	builder := service.NewStreamBuilder()
	builder.SetEnvVarLookupFunc(p.stage.lookup)
	if err := errors.Join(
		builder.AddInputYAML(p.input()),
		builder.AddResourcesYAML(p.resources()),
		builder.SetLoggerYAML("level: WARN"),
		builder.AddBatchConsumerFunc(r.take),
	); err != nil {
		return nil, fmt.Errorf("reading the pipeline: %w", err)
	}
	stream, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("building the pipeline: %w", err)
	}
	r.stream = stream
	go func() {
		defer close(r.ended)
		// Stopping is stop's work: it gives the checkpoint its last write, which a cancelled context would not.
		r.err = stream.Run(context.Background())
	}()
	return r, nil
}

// running is a pipeline that runs, and what it has delivered.
type running struct {
	say    *narrator
	stream *service.Stream
	ended  chan struct{} // closed when the stream has ended; err is set by then
	err    error
	once   sync.Once

	mu      sync.Mutex
	rows    []delivery
	changed chan struct{} // closed and replaced when rows come
}

// take is the pipeline's output: a batch is acknowledged when its rows are on the terminal.
func (r *running) take(_ context.Context, batch service.MessageBatch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, msg := range batch {
		body, err := msg.AsBytes()
		if err != nil {
			return err
		}
		snapshot, _ := msg.MetaGet("snapshot_id")
		operation, _ := msg.MetaGet("operation")
		r.say.row(snapshot, operation, string(body))
		r.rows = append(r.rows, delivery{snapshot, string(body)})
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

func (r *running) received() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.rows)
}

// await returns when all rows of the table's current snapshot came and its checkpoint is stored.
func (r *running) await(ctx context.Context, o *orders) error {
	if err := r.awaitRows(ctx, o.current, o.sizes[o.current]); err != nil {
		return fmt.Errorf("waiting for the rows of snapshot %s: %w", o.current, err)
	}
	if err := r.awaitCheckpoint(ctx, o.current); err != nil {
		return fmt.Errorf("waiting for the checkpoint of snapshot %s: %w", o.current, err)
	}
	return nil
}

func (r *running) awaitRows(ctx context.Context, snapshot string, want int) error {
	for {
		r.mu.Lock()
		changed, got := r.changed, 0
		for _, row := range r.rows {
			if row.snapshot == snapshot {
				got++
			}
		}
		r.mu.Unlock()
		if got >= want {
			return nil
		}
		select {
		case <-changed:
		case <-r.ended:
			return errors.Join(errors.New("the pipeline ended"), r.err)
		case <-ctx.Done():
			return fmt.Errorf("%d of %d came: %w", got, want, context.Cause(ctx))
		}
	}
}

// awaitCheckpoint looks into the pipeline's cache until the snapshot is there. Caches tell nobody that they changed.
func (r *running) awaitCheckpoint(ctx context.Context, snapshot string) error {
	look := time.NewTicker(checkpointLook)
	defer look.Stop()
	for {
		stored, err := r.checkpoint(ctx)
		if err != nil {
			return err
		}
		if stored.Snapshot == snapshot {
			r.say.checkpoint(fmt.Sprintf("lastAckedSnapshotID %s, lastAckedSnapshotSequence %d", stored.Snapshot, stored.Sequence))
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("it is at %q: %w", stored.Snapshot, context.Cause(ctx))
		}
	}
}

// storedCheckpoint is the part of the checkpoint that the demo shows.
type storedCheckpoint struct {
	Snapshot string `json:"lastAckedSnapshotID"`
	Sequence int64  `json:"lastAckedSnapshotSequence"`
}

func (r *running) checkpoint(ctx context.Context) (stored storedCheckpoint, err error) {
	var value []byte
	var getErr error
	if err := r.stream.Resources().AccessCache(ctx, checkpointCache, func(c service.Cache) {
		value, getErr = c.Get(ctx, checkpointKey)
	}); err != nil {
		return stored, err
	}
	if errors.Is(getErr, service.ErrKeyNotFound) {
		return stored, nil
	}
	if getErr != nil {
		return stored, getErr
	}
	return stored, json.Unmarshal(value, &stored)
}

// stop ends the pipeline and waits for it. Later calls do nothing.
func (r *running) stop() (err error) {
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		// A stream that has just been started can't be stopped yet, and would go on writing behind the demo's back.
		for {
			if err = r.stream.Stop(ctx); err == nil {
				<-r.ended
				return
			}
			select {
			case <-r.ended:
				return
			case <-ctx.Done():
				err = fmt.Errorf("stopping the pipeline: %w", err)
				return
			case <-time.After(checkpointLook):
			}
		}
	})
	return err
}

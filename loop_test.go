// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errRefused = errors.New("the output is down")

// neverAhead holds every write of the checkpoint to what the output had
// accepted by then. snapshots are in chain order, with their numbers of rows;
// the first is the first to be delivered.
func neverAhead(t *testing.T, writes []kept, snapshots []string, rows map[string]int64) {
	t.Helper()
	for i, w := range writes {
		reached := -1
		for j, s := range snapshots {
			if w.value.Stage == "" && w.value.Snapshot != nil && *w.value.Snapshot == s {
				reached = j
			}
		}
		for _, s := range snapshots[:reached+1] {
			assert.Equal(t, rows[s], w.accepted[s], "write %d stands behind snapshot %s", i, s)
		}
		if p := w.value.Position; p != nil {
			assert.LessOrEqual(t, p.Row, w.accepted[p.To.Snapshot], "write %d stands in snapshot %s", i, p.To.Snapshot)
		}
	}
}

func TestAnOutputThatFailsForAWhileLosesNothing(t *testing.T) {
	for _, inFlight := range []int{1, 8} {
		for _, limit := range []int{1, 3, 65536} {
			t.Run(fmt.Sprintf("%d in flight, limit %d", inFlight, limit), func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				a, b := s.add(span(1, 10)...), s.add(span(11, 20)...)
				r := newRig(t)
				var calls atomic.Int64
				r.out.decide(func(context.Context, service.MessageBatch) error {
					if n := calls.Add(1); n > 2 && n < 7 || n == 10 {
						return errRefused
					}
					return nil
				})
				fields := s.increments("start_from: earliest", "batch_rows: 2", fmt.Sprintf("checkpoint_limit: %d", limit))
				l := r.startYAML(pipelineInFlight(fields, inFlight))
				r.eventually(func() bool { return r.cache.at(snapshotOf(b)) }, "the checkpoint at the head")
				l.stop()

				assert.ElementsMatch(t, orders(span(1, 20)...), r.out.bodies())
				if limit == 1 {
					assert.Equal(t, orders(span(1, 20)...), r.out.bodies(), "one batch at a time keeps the order through retries")
				}
				rows := map[string]int64{snapshotOf(a): 10, snapshotOf(b): 10}
				neverAhead(t, r.cache.writes(), []string{snapshotOf(a), snapshotOf(b)}, rows)
				assert.Positive(t, r.numbers.of("nessie_rows_redelivered"))
				assert.Equal(t, int64(20), r.numbers.of("nessie_rows_acked"))
				assert.Zero(t, r.numbers.of("nessie_rows_in_flight"))
				assert.Zero(t, r.numbers.of("nessie_rows_dropped"))
			})
		}
	}
}

func pipelineInFlight(fields []string, n int) string {
	return replaceOnce(pipeline(fields), "outlet: {}", fmt.Sprintf("outlet: { max_in_flight: %d }", n))
}

func TestTheLimitBoundsRowsInFlight(t *testing.T) {
	s := newShop(t)
	s.add(span(1, 20)...)
	r := newRig(t)
	var (
		mu     sync.Mutex
		now    int
		most   int
		opened = make(chan struct{})
	)
	r.out.decide(func(_ context.Context, batch service.MessageBatch) error {
		mu.Lock()
		now += len(batch)
		most = max(most, now)
		mu.Unlock()
		<-opened
		mu.Lock()
		now -= len(batch)
		mu.Unlock()
		return nil
	})
	l := r.startYAML(pipelineInFlight(s.increments("batch_rows: 2", "checkpoint_limit: 6"), 20))
	r.eventually(func() bool { mu.Lock(); defer mu.Unlock(); return now == 6 }, "6 rows in flight")
	assert.Equal(t, int64(6), r.numbers.of("nessie_rows_in_flight"))
	close(opened)
	r.delivered(20)
	l.stop()
	assert.Equal(t, 6, most)
}

func TestDroppedRowsAreCountedAndFailABoundedRun(t *testing.T) {
	s := newShop(t)
	a := s.add(span(1, 6)...)
	r := newRig(t)
	var calls atomic.Int64
	r.out.decide(func(context.Context, service.MessageBatch) error {
		if calls.Add(1) == 2 {
			return errRefused
		}
		return nil
	})
	l := r.run(s.increments("batch_rows: 2", "auto_replay_nacks: false"))
	assert.Equal(t, orders(1, 2, 5, 6), r.out.bodies())
	assert.True(t, r.cache.at(snapshotOf(a)), "dropped by the user's wish is done with")
	assert.Equal(t, int64(2), r.numbers.of("nessie_rows_dropped"))
	assert.Equal(t, int64(4), r.numbers.of("nessie_rows_acked"))
	require.Len(t, l.reported(), 1)
	assert.EqualError(t, l.reported()[0], "2 rows were dropped, because the output refused them and auto_replay_nacks is false")
	assert.Contains(t, r.logs.at(slog.LevelWarn), "The output refused rows, which are dropped because of auto_replay_nacks: false; 2 until now, the last because of: the output is down")
}

func TestDropsAreWarnedOfOnceASecond(t *testing.T) {
	s := newShop(t)
	s.add(span(1, 50)...)
	r := newRig(t)
	r.out.decide(func(context.Context, service.MessageBatch) error { return errRefused })
	r.run(s.increments("batch_rows: 1", "auto_replay_nacks: false"))
	assert.Equal(t, int64(50), r.numbers.of("nessie_rows_dropped"))
	warnings := 0
	for _, line := range r.logs.at(slog.LevelWarn) {
		if len(line) > 23 && line[:23] == "The output refused rows" {
			warnings++
		}
	}
	assert.GreaterOrEqual(t, warnings, 1)
	assert.Less(t, warnings, 10)
}

// Every end that leaves a batch boundary behind is tried: the output accepts n
// batches and then takes no more until the next life.
func TestARestartAtEachBatchBoundaryGoesOnExactly(t *testing.T) {
	s := newShop(t)
	s.add(span(1, 5)...)
	s.add(span(6, 9)...)
	last := s.add(span(10, 11)...)
	const batches = 3 + 2 + 1
	for n := range batches {
		t.Run(fmt.Sprintf("after %d batches", n), func(t *testing.T) {
			r := newRig(t)
			var taken atomic.Int64
			full := make(chan struct{})
			r.out.decide(func(ctx context.Context, _ service.MessageBatch) error {
				if taken.Add(1) == int64(n)+1 {
					close(full)
				}
				if taken.Load() > int64(n) {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
			fields := s.increments("start_from: earliest", "batch_rows: 2")
			l := r.start(fields)
			<-full
			r.eventually(func() bool { return r.cache.place().covered() == int64(len(r.out.bodies())) }, "the checkpoint of what was accepted")
			l.kill()
			r.out.decide(nil)
			r.run(fields)
			assert.Equal(t, orders(span(1, 11)...), r.out.bodies(), "none lost, none twice")
			assert.True(t, r.cache.at(snapshotOf(last)))
		})
	}
}

// covered is how many rows of the table of the test above a place stands
// behind.
func (p storedPlace) covered() int64 {
	whole := map[int64]int64{0: 0, 1: 5, 2: 9, 3: 11}
	n := whole[p.Step]
	if p.Position != nil {
		n += p.Position.Row
	}
	return n
}

func TestTheEndOfABoundedRunWaitsForTheOutput(t *testing.T) {
	for _, incremental := range []bool{true, false} {
		t.Run(fmt.Sprintf("incremental %v", incremental), func(t *testing.T) {
			s := newShop(t)
			s.add(1, 2)
			r := newRig(t)
			var calls atomic.Int64
			r.out.decide(func(context.Context, service.MessageBatch) error {
				if calls.Add(1) < 4 {
					return errRefused
				}
				return nil
			})
			fields := s.fields()
			if incremental {
				fields = s.increments()
			}
			l := r.run(fields)
			assert.Equal(t, orders(1, 2), r.out.bodies())
			assert.Empty(t, l.reported())
			assert.Empty(t, onlyOurs(r.logs.at(slog.LevelError)))
		})
	}
}

// Full scans wait for acknowledgements between them.
func TestFullScansDeliverTheTableAgainAtEachPoll(t *testing.T) {
	s := newShop(t)
	s.add(1)
	s.add(2)
	r := newRig(t)
	held := make(chan struct{}, 100)
	release := make(chan struct{})
	r.out.decide(func(context.Context, service.MessageBatch) error {
		held <- struct{}{}
		<-release
		return nil
	})
	before := s.Server.Counts()["content"]
	l := r.startYAML(pipelineInFlight(s.fields("poll_interval: 1ms"), 10))
	<-held
	r.eventually(func() bool { return r.numbers.of("nessie_rows_in_flight") == 2 }, "all rows of the first scan in flight")
	assert.Never(t, func() bool { return s.Server.Counts()["content"] > before+1 }, 50*time.Millisecond, glance, "no second scan while the first is in flight")
	close(release)
	r.delivered(6)
	l.stop()
	assert.Contains(t, r.logs.at(slog.LevelWarn), "incremental_by_snapshot is false: the whole table is delivered again at each poll")
	rows := r.out.all()
	steps := map[any]int{}
	for _, row := range rows {
		steps[row.meta["step"]]++
	}
	assert.Equal(t, 2, steps[int64(1)])
	assert.Equal(t, 2, steps[int64(2)])
	assert.Empty(t, r.cache.writes())
}

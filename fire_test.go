// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cache that fails half of the time costs nothing but attempts: what is stored is never ahead of what the output
// accepted, never older than what was stored before, and at the head in the end.
func TestACacheThatFailsHalfOfTheTime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	r := newRig(t)
	l := r.start(s.increments("start_from: earliest", "poll_interval: 1ms", "batch_rows: 2"))
	r.eventually(func() bool { return len(r.cache.writes()) >= 2 }, "the claim and the start")
	fails := false
	r.cache.fail(nil, func() error {
		if fails = !fails; fails {
			return errors.New("the store is down for a moment")
		}
		return nil
	})
	const commits, rows = 15, 5
	var chain []string
	counts := map[string]int64{}
	for n := range commits {
		id := snapshotOf(s.add(span(n*rows+1, n*rows+rows)...))
		chain, counts[id] = append(chain, id), rows
	}
	r.delivered(commits * rows)
	r.eventually(func() bool { return r.numbers.of("nessie_checkpoint_writes", "result=failed") > 0 }, "a failed write")
	r.cache.fail(nil, nil)
	l.stop()
	assert.True(t, r.cache.at(chain[commits-1]), "closing tries once more")
	assert.Equal(t, orders(span(1, commits*rows)...), r.out.bodies(), "each row once")
	writes := r.cache.writes()
	neverAhead(t, writes, chain, counts)
	assert.True(t, slices.IsSortedFunc(writes, func(a, b kept) int { return a.value.compare(b.value) }), "never backwards")
}

// compare orders places by step, then by row.
func (p storedPlace) compare(other storedPlace) int {
	row := func(p storedPlace) int64 {
		if p.Position == nil {
			return 0
		}
		return p.Position.Row
	}
	switch {
	case p.Step != other.Step:
		return int(p.Step - other.Step)
	default:
		return int(row(p) - row(other))
	}
}

// A cache that takes for ever to store a value holds nothing but the stored value: rows go on until checkpoint_limit of
// them are in flight, and all that was acknowledged meanwhile is one more write.
func TestASlowCacheDoesNotHoldDelivery(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	r := newRig(t)
	l := r.startYAML(pipelineInFlight(s.increments("start_from: earliest", "poll_interval: 1ms", "batch_rows: 1", "checkpoint_limit: 4"), 20))
	r.eventually(func() bool { return len(r.cache.writes()) >= 2 }, "the claim and the start")
	before := len(r.cache.writes())
	storing, stored := make(chan struct{}, 1), make(chan struct{})
	r.cache.fail(nil, func() error {
		select {
		case storing <- struct{}{}:
		default:
		}
		<-stored
		return nil
	})
	first := s.add(1)
	<-storing
	s.add(span(2, 30)...)
	r.delivered(30)

	held := make(chan struct{})
	r.out.decide(func(context.Context, service.MessageBatch) error { <-held; return nil })
	last := s.add(span(31, 40)...)
	r.eventually(func() bool { return r.numbers.of("nessie_rows_in_flight") == 4 }, "as much in flight as checkpoint_limit allows")
	close(held)
	r.delivered(40)
	r.eventually(func() bool { return r.numbers.of("nessie_rows_in_flight") == 0 }, "all acknowledged")
	close(stored)
	r.eventually(func() bool { return r.cache.at(snapshotOf(last)) }, "the checkpoint at the head")
	l.stop()
	assert.ElementsMatch(t, orders(span(1, 40)...), r.out.bodies())
	writes := r.cache.writes()[before:]
	require.Len(t, writes, 2, "what hung, and what came meanwhile")
	assert.Equal(t, int64(1), writes[0].value.Step)
	assert.Equal(t, snapshotOf(first), *writes[0].value.Snapshot)
}

// holdAfter lets the output accept so many rows and then take no batch until release is closed. held is closed when the
// first batch waits.
func (r *rig) holdAfter(rows int) (held <-chan struct{}, release chan<- struct{}) {
	waits, opened := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.out.decide(func(ctx context.Context, _ service.MessageBatch) error {
		if r.out.count() < rows {
			return nil
		}
		once.Do(func() { close(waits) })
		select {
		case <-opened:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return waits, opened
}

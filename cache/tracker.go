// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"
)

// Limits bound what a Tracker lets be in flight.
type Limits struct {
	Rows  int64 // rows beyond the acknowledged prefix; at least 1
	Bytes int64 // bytes of batches that are not acknowledged; 0 is no bound
}

// Tracker knows which of the delivered batches are acknowledged, and how far
// everything is: the newest place P such that each batch tracked up to it is
// acknowledged.
//
// Invariant: entries holds, in the order of tracking, what is not yet part of
// the acknowledged prefix; its first entry is never resolved; rows is the sum
// of their rows, and bytes that of the unresolved ones. Rows are counted until
// the prefix passes them, because until then a restart delivers them again:
// Limits.Rows bounds duplicates. Bytes are counted until the batch itself is
// acknowledged, because then its memory is free.
//
// All methods can be called concurrently. The order of places is the order in
// which Track and Mark return, so one goroutine should call these two.
type Tracker[P any] struct {
	limits  Limits
	advance func(P)

	mu      sync.Mutex
	entries []*entry[P]
	rows    int64
	bytes   int64
	tracked uint64        // entries ever appended
	changed chan struct{} // closed when anything was resolved; nil if nobody waits
}

type entry[P any] struct {
	place    P
	rows     int64
	bytes    int64
	resolved bool
}

// NewTracker returns a tracker that calls advance with every new place of the
// acknowledged prefix: one call at a time, in the order of tracking, places
// that were passed at once left out. The call is made under the tracker's
// lock, so it must neither block nor call the tracker.
func NewTracker[P any](limits Limits, advance func(P)) *Tracker[P] {
	return &Tracker[P]{limits: limits, advance: advance}
}

// Track waits until there is room for a batch, and then tracks it: place is
// where the input stands once it, and all before it, is acknowledged. A batch
// larger than a limit waits until nothing else is in flight and goes alone.
// The returned function marks the batch as acknowledged; it can be called at
// any time, from any goroutine, and again without effect. When ctx ends first
// its error is returned and nothing is tracked.
func (t *Tracker[P]) Track(ctx context.Context, rows int, bytes int64, place P) (resolve func(), err error) {
	e := &entry[P]{place: place, rows: int64(rows), bytes: bytes}
	admit := func() bool {
		if !t.fits(e) {
			return false
		}
		t.append(e)
		return true
	}
	if err := t.await(ctx, admit); err != nil {
		return nil, err
	}
	return func() { t.resolve(e) }, nil
}

// Mark tracks a place that has no rows of its own, such as the end of a step
// without rows. It never waits: the place is reached together with what was
// tracked before it, which is at once if that is all acknowledged. Any number
// of marks in a row takes the memory of one.
func (t *Tracker[P]) Mark(place P) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.entries); n > 0 && t.entries[n-1].resolved {
		t.entries[n-1].place = place
		return
	}
	t.append(&entry[P]{place: place, resolved: true})
	t.pass()
}

// Wait returns once everything that was tracked before the call is
// acknowledged and advance was called for it, or with the error of ctx.
func (t *Tracker[P]) Wait(ctx context.Context) error {
	t.mu.Lock()
	until := t.tracked
	t.mu.Unlock()
	return t.await(ctx, func() bool { return t.tracked-uint64(len(t.entries)) >= until })
}

// InFlight returns the rows beyond the acknowledged prefix and the bytes of
// batches that are not acknowledged.
func (t *Tracker[P]) InFlight() (rows, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows, t.bytes
}

func (t *Tracker[P]) resolve(e *entry[P]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.resolved {
		return
	}
	e.resolved = true
	t.bytes -= e.bytes
	t.pass()
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// pass moves the prefix over all resolved entries at the front.
func (t *Tracker[P]) pass() {
	passed := 0
	for passed < len(t.entries) && t.entries[passed].resolved {
		t.rows -= t.entries[passed].rows
		passed++
	}
	if passed == 0 {
		return
	}
	place := t.entries[passed-1].place
	clear(t.entries[:passed])
	t.entries = t.entries[passed:]
	t.advance(place)
}

func (t *Tracker[P]) fits(e *entry[P]) bool {
	rowsFit := t.rows == 0 || t.rows+e.rows <= t.limits.Rows
	bytesFit := t.bytes == 0 || t.limits.Bytes <= 0 || t.bytes+e.bytes <= t.limits.Bytes
	return rowsFit && bytesFit
}

func (t *Tracker[P]) append(e *entry[P]) {
	t.entries = append(t.entries, e)
	t.tracked++
	t.rows += e.rows
	t.bytes += e.bytes
}

// await calls condition under the lock, first at once and then whenever
// something was resolved, until it returns true or ctx ends.
func (t *Tracker[P]) await(ctx context.Context, condition func() bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.mu.Lock()
		if condition() {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

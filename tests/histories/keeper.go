// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Mood is how a Keeper behaves.
type Mood string

// The moods.
const (
	Healthy Mood = "healthy"
	Failing Mood = "failing"
	Halting Mood = "failing half of the time"
	Slow    Mood = "slow" // calls wait until the mood changes
)

var errCache = errors.New("the cache is down")

// Keeper is a checkpoint cache that outlives the lives of the input.
type Keeper struct {
	mu    sync.Mutex
	onSet func(value []byte)
	value []byte
	mood  Mood
	moved chan struct{} // closed when the mood changes
	calls int
	// unwell is true once a call has failed or waited.
	unwell bool
}

// NewKeeper is a healthy cache without a value. onSet sees each write before it is done, one at a time.
func NewKeeper(onSet func(value []byte)) *Keeper {
	return &Keeper{onSet: onSet, mood: Healthy, moved: make(chan struct{})}
}

// Turn changes the mood.
func (k *Keeper) Turn(m Mood) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mood = m
	close(k.moved)
	k.moved = make(chan struct{})
}

// WasUnwell tells whether any call failed or waited.
func (k *Keeper) WasUnwell() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unwell
}

// IsIll tells whether any call failed or waited, and the mood is not healthy.
func (k *Keeper) IsIll() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mood != Healthy && k.unwell
}

// Forget empties the cache.
func (k *Keeper) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value = nil
}

// Stored is the value, nil where there is none.
func (k *Keeper) Stored() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.value)
}

// hold is the keeper as one life sees it. A cut one reaches nothing any more, as a process that was killed.
type hold struct {
	*Keeper
	isCut bool
	gone  chan struct{}
}

func (k *Keeper) hold() *hold { return &hold{Keeper: k, gone: make(chan struct{})} }

func (h *hold) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isCut {
		h.isCut = true
		close(h.gone)
	}
}

// enter waits while the cache is slow, and returns with the lock held.
func (h *hold) enter(ctx context.Context) error {
	for {
		h.mu.Lock()
		h.calls++
		switch {
		case h.isCut:
			return errCache
		case h.mood == Failing, h.mood == Halting && h.calls%2 == 0:
			h.unwell = true
			return errCache
		case h.mood != Slow:
			return nil
		}
		h.unwell = true
		moved := h.moved
		h.mu.Unlock()
		select {
		case <-moved:
		case <-h.gone:
		case <-ctx.Done():
			h.mu.Lock()
			return ctx.Err()
		}
	}
}

func (h *hold) Get(ctx context.Context, _ string) ([]byte, error) {
	err := h.enter(ctx)
	defer h.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case h.value == nil:
		return nil, service.ErrKeyNotFound
	}
	return slices.Clone(h.value), nil
}

func (h *hold) Set(ctx context.Context, _ string, value []byte, _ *time.Duration) error {
	err := h.enter(ctx)
	defer h.mu.Unlock()
	if err != nil {
		return err
	}
	h.onSet(value)
	h.value = slices.Clone(value)
	return nil
}

func (h *hold) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("nobody adds")
}
func (h *hold) Delete(context.Context, string) error { return errors.New("nobody deletes") }
func (h *hold) Close(context.Context) error          { return nil }

// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// mood is how a cache behaves.
type mood string

const (
	healthy mood = "healthy"
	failing mood = "failing"
	halting mood = "failing half of the time"
	slow    mood = "slow" // calls wait until the mood changes
)

var errCache = errors.New("the cache is down")

// keeper is a checkpoint cache that outlives the lives of the input, and shows
// each write to the ledger.
type keeper struct {
	mu    sync.Mutex
	value []byte
	mood  mood
	moved chan struct{} // closed when the mood changes
	calls int
	// unwell is true once a call has failed or waited.
	unwell bool
	// onSet holds a write to the rules; it is called under the lock.
	onSet func(value []byte)
}

func newKeeper() *keeper { return &keeper{mood: healthy, moved: make(chan struct{})} }

func (k *keeper) set(m mood) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mood = m
	close(k.moved)
	k.moved = make(chan struct{})
}

func (k *keeper) wasUnwell() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unwell
}

// forget empties the cache.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value = nil
}

func (k *keeper) stored() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.value)
}

// handle is the keeper as one life sees it. A cut handle reaches nothing any
// more, as a process that was killed.
type handle struct {
	*keeper
	isCut bool
	gone  chan struct{}
}

func (k *keeper) handle() *handle { return &handle{keeper: k, gone: make(chan struct{})} }

func (h *handle) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isCut {
		h.isCut = true
		close(h.gone)
	}
}

// enter waits while the cache is slow, and returns with the lock held.
func (h *handle) enter(ctx context.Context) error {
	for {
		h.mu.Lock()
		h.calls++
		switch {
		case h.isCut:
			return errCache
		case h.mood == failing, h.mood == halting && h.calls%2 == 0:
			h.unwell = true
			return errCache
		case h.mood != slow:
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

func (h *handle) Get(ctx context.Context, _ string) ([]byte, error) {
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

func (h *handle) Set(ctx context.Context, _ string, value []byte, _ *time.Duration) error {
	err := h.enter(ctx)
	defer h.mu.Unlock()
	if err != nil {
		return err
	}
	h.onSet(value)
	h.value = slices.Clone(value)
	return nil
}

func (h *handle) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("nobody adds")
}
func (h *handle) Delete(context.Context, string) error { return errors.New("nobody deletes") }
func (h *handle) Close(context.Context) error          { return nil }

// parts are what the components of a life find by its number: Benthos makes
// them from configuration alone.
var parts sync.Map

func part(conf *service.ParsedConfig) (*life, error) {
	id, err := conf.FieldInt("life")
	if err != nil {
		return nil, err
	}
	found, ok := parts.Load(id)
	if !ok {
		return nil, fmt.Errorf("there is no life %d", id)
	}
	return found.(*life), nil
}

func init() {
	spec := service.NewConfigSpec().Field(service.NewIntField("life"))
	err := service.RegisterCache("model_keeper", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		l, err := part(conf)
		if err != nil {
			return nil, err
		}
		return l.handle, nil
	})
	if err != nil {
		panic(err)
	}
	err = service.RegisterMetricsExporter("model_pulse", spec, func(conf *service.ParsedConfig, _ *service.Logger) (service.MetricsExporter, error) {
		l, err := part(conf)
		if err != nil {
			return nil, err
		}
		return pulse{l}, nil
	})
	if err != nil {
		panic(err)
	}
}

// pulse is a metrics exporter that tells a life of its input's polls.
type pulse struct{ l *life }

type beat func(n int64)

func (b beat) Incr(n int64) { b(n) }
func (b beat) Set(int64)    {}
func (b beat) Timing(int64) {}

func (p pulse) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	at := slices.Index(labels, "result")
	return func(values ...string) service.MetricsExporterCounter {
		switch {
		case name == "nessie_polls" && values[at] == "unchanged":
			return beat(func(int64) { p.l.count(&p.l.polls, 1) })
		case name == "nessie_rows_read":
			return beat(func(n int64) { p.l.count(&p.l.under, n) })
		case name == "nessie_rows_acked":
			return beat(func(n int64) { p.l.count(&p.l.under, -n) })
		}
		return beat(func(int64) {})
	}
}

func (p pulse) NewGaugeCtor(string, ...string) service.MetricsExporterGaugeCtor {
	return func(...string) service.MetricsExporterGauge { return beat(func(int64) {}) }
}

func (p pulse) NewTimerCtor(string, ...string) service.MetricsExporterTimerCtor {
	return func(...string) service.MetricsExporterTimer { return beat(func(int64) {}) }
}

func (p pulse) Close(context.Context) error { return nil }

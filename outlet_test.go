// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// accepted is one row (or in other formats one message) that the output took.
type accepted struct {
	body     string
	snapshot string
	ordinal  int64 // in the step
	meta     map[string]any
}

// outlet is the end of a pipeline. It keeps what it accepts.
type outlet struct {
	mu   sync.Mutex
	rows []accepted
	// sizes are the batches' in order.
	sizes []int
	// before decides whether a batch is accepted; nil accepts all.
	before func(ctx context.Context, batch service.MessageBatch) error
	// byOrdinal is which rows of which snapshot were accepted.
	byOrdinal map[string]map[int64]bool
}

func newOutlet() *outlet { return &outlet{byOrdinal: map[string]map[int64]bool{}} }

func (o *outlet) Connect(context.Context) error { return nil }
func (o *outlet) Close(context.Context) error   { return nil }

func (o *outlet) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	o.mu.Lock()
	before := o.before
	o.mu.Unlock()
	if before != nil {
		if err := before(ctx, batch); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sizes = append(o.sizes, len(batch))
	for i, m := range batch {
		row, err := accept(m, int64(i))
		if err != nil {
			return err
		}
		o.rows = append(o.rows, row)
		if o.byOrdinal[row.snapshot] == nil {
			o.byOrdinal[row.snapshot] = map[int64]bool{}
		}
		o.byOrdinal[row.snapshot][row.ordinal] = true
	}
	return nil
}

func accept(m *service.Message, index int64) (accepted, error) {
	body, err := m.AsBytes()
	if err != nil {
		return accepted{}, err
	}
	row := accepted{body: string(body), meta: map[string]any{}}
	if err := m.MetaWalkMut(func(key string, value any) error {
		row.meta[key] = value
		return nil
	}); err != nil {
		return accepted{}, err
	}
	row.snapshot, _ = row.meta[metaSnapshotID].(string)
	first, _ := row.meta[metaFirstRow].(int64)
	row.ordinal = first + index
	return row, nil
}

// decide changes what happens to batches from now on.
func (o *outlet) decide(before func(ctx context.Context, batch service.MessageBatch) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.before = before
}

// forget empties what was kept, for the next life.
func (o *outlet) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows, o.sizes = nil, nil
}

func (o *outlet) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.rows)
}

func (o *outlet) bodies() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]string, len(o.rows))
	for i, row := range o.rows {
		all[i] = row.body
	}
	return all
}

func (o *outlet) all() []accepted {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.rows)
}

func (o *outlet) batches() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.sizes)
}

// prefixes is how many rows of each snapshot are accepted without a gap.
func (o *outlet) prefixes() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := map[string]int64{}
	for snapshot, rows := range o.byOrdinal {
		n := int64(0)
		for rows[n] {
			n++
		}
		found[snapshot] = n
	}
	return found
}

// keeper is a cache in memory that remembers each write together with what the
// output had accepted by then.
type keeper struct {
	out *outlet

	mu     sync.Mutex
	values map[string][]byte
	sets   []kept
	onGet  func() error
	onSet  func() error
}

type kept struct {
	value    storedPlace
	accepted map[string]int64
}

// storedPlace is what the tests look at in a checkpoint.
type storedPlace struct {
	Snapshot  *string `json:"lastAckedSnapshotID"`
	Sequence  int64   `json:"lastAckedSnapshotSequence"`
	Branch    string  `json:"branch"`
	Namespace string  `json:"namespace"`
	Table     string  `json:"table"`
	Stage     string  `json:"stage"`
	Step      int64   `json:"step"`
	Position  *struct {
		To struct {
			Snapshot string `json:"snapshotID"`
		} `json:"to"`
		Row int64 `json:"row"`
	} `json:"position"`
}

func (k *keeper) Get(_ context.Context, key string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.onGet != nil {
		if err := k.onGet(); err != nil {
			return nil, err
		}
	}
	value, ok := k.values[key]
	if !ok {
		return nil, service.ErrKeyNotFound
	}
	return slices.Clone(value), nil
}

func (k *keeper) Set(_ context.Context, key string, value []byte, _ *time.Duration) error {
	had := k.out.prefixes()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.onSet != nil {
		if err := k.onSet(); err != nil {
			return err
		}
	}
	var place storedPlace
	if err := json.Unmarshal(value, &place); err != nil {
		return err
	}
	k.values[key] = slices.Clone(value)
	k.sets = append(k.sets, kept{place, had})
	return nil
}

func (k *keeper) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("nobody adds")
}
func (k *keeper) Delete(context.Context, string) error { return errors.New("nobody deletes") }
func (k *keeper) Close(context.Context) error          { return nil }

func (k *keeper) raw(key string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.values[key])
}

func (k *keeper) put(key, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[key] = []byte(value)
}

func (k *keeper) fail(onGet, onSet func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onGet, k.onSet = onGet, onSet
}

func (k *keeper) writes() []kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.sets)
}

// place is the stored checkpoint.
func (k *keeper) place() storedPlace {
	var p storedPlace
	if raw := k.raw("place"); len(raw) > 0 {
		if err := json.Unmarshal(raw, &p); err != nil {
			panic(err)
		}
	}
	return p
}

// at tells whether the stored checkpoint stands behind a whole snapshot.
func (k *keeper) at(snapshot string) bool {
	p := k.place()
	return p.Snapshot != nil && *p.Snapshot == snapshot && p.Position == nil
}

// numbers is a metrics exporter that keeps all it is told.
type numbers struct {
	mu     sync.Mutex
	values map[string]int64 // by name{label=value,…}
	timers map[string]int
}

func newNumbers() *numbers { return &numbers{values: map[string]int64{}, timers: map[string]int{}} }

// of is the value of a metric, summed over the labels that are not given.
func (n *numbers) of(name string, labels ...string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := int64(0)
	for key, value := range n.values {
		if base, rest, _ := strings.Cut(key, "{"); base == name && containsAll(rest, labels) {
			sum += value
		}
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func (n *numbers) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, key := range slices.Concat(slices.Collect(maps.Keys(n.values)), slices.Collect(maps.Keys(n.timers))) {
		name, _, _ := strings.Cut(key, "{")
		if strings.HasPrefix(name, "nessie_") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func labelled(name string, keys, values []string) string {
	pairs := make([]string, len(keys))
	for i := range keys {
		pairs[i] = keys[i] + "=" + values[i]
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

type number struct {
	n   *numbers
	key string
}

func (c number) Incr(by int64) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.values[c.key] += by
}

func (c number) Set(to int64) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.values[c.key] = to
}

func (c number) Timing(int64) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.timers[c.key]++
}

func (n *numbers) NewCounterCtor(name string, keys ...string) service.MetricsExporterCounterCtor {
	return func(values ...string) service.MetricsExporterCounter {
		return number{n, labelled(name, keys, values)}
	}
}

func (n *numbers) NewGaugeCtor(name string, keys ...string) service.MetricsExporterGaugeCtor {
	return func(values ...string) service.MetricsExporterGauge {
		return number{n, labelled(name, keys, values)}
	}
}

func (n *numbers) NewTimerCtor(name string, keys ...string) service.MetricsExporterTimerCtor {
	return func(values ...string) service.MetricsExporterTimer {
		return number{n, labelled(name, keys, values)}
	}
}

func (n *numbers) Close(context.Context) error { return nil }

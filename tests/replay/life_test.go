// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// patience is for what can only fail to happen. After some errors in a row the
// input waits a minute before it connects again.
const patience = 3 * time.Minute

// setting is what of the input's configuration differs between histories.
type setting struct {
	start, lost, payload, format string
	limit, batch                 int
	memory                       string
	named                        bool // identifier_fields
	ordinals                     bool
	bounded                      bool
}

func (s setting) yaml(w *world) string {
	poll, identifiers := "3ms", "[]"
	if s.bounded {
		poll = "0s"
	}
	if s.named {
		identifiers = "[ id ]"
	}
	return fmt.Sprintf(`
label: input
nessie:
  base_url: %s
  namespace: shop
  table: orders
  storage: { local_root: %q }
  incremental_by_snapshot: true
  changes: changelog
  identifier_fields: %s
  delete_payload: %s
  checkpoint_cache: progress
  checkpoint_cache_key: place
  checkpoint_write_timeout: 2s
  poll_interval: %s
  max_retries: 0
  read_parallelism: 1
  read_memory: %s
  start_from: %s
  on_lost_lineage: %s
  on_table_replaced: restart
  checkpoint_limit: %d
  batch_rows: %d
  format: %s
  row_ordinals: %v
`, w.server.URL, w.warehouse(), identifiers, s.payload, poll, s.memory, s.start, s.lost, s.limit, s.batch, s.format, s.ordinals)
}

// delivery is a batch that the input handed out.
type delivery struct {
	batch service.MessageBatch
	ack   service.AckFunc
}

func (d delivery) text(key string) string {
	text, _ := d.batch[0].MetaGet(key)
	return text
}

// life is one run of the input, from its start to its end or death.
type life struct {
	rt   failer
	id   int
	keep *hold
	stop func(context.Context) error

	got   chan delivery
	ended chan struct{} // closed when the input has ended
	stir  chan struct{} // holds a token when something changed

	mu      sync.Mutex
	polls   int64 // that found nothing new
	under   int64 // rows between the table and their acknowledgement
	refused []string
}

var lastLife atomic.Int64

func begin(w *world, k *keeper, s setting) *life {
	l := &life{
		rt: w.rt, id: int(lastLife.Add(1)), keep: &hold{keeper: k},
		got: make(chan delivery), ended: make(chan struct{}), stir: make(chan struct{}, 1),
	}
	parts.Store(l.id, l)
	b := service.NewResourceBuilder()
	b.DisableLinting()
	b.SetLogger(slog.New(&ear{l}))
	check(w.rt, b.SetMetricsYAML(fmt.Sprintf("replay_pulse: { life: %d }", l.id)))
	check(w.rt, b.AddCacheYAML(fmt.Sprintf("{ label: progress, replay_keeper: { life: %d } }", l.id)))
	check(w.rt, b.AddInputYAML(s.yaml(w)))
	b.OnResourceInit(func(res *service.Resources) error {
		res.SetGeneric(nessie.FailureKey{}, func(err error) { l.refuse(err.Error()) })
		return nil
	})
	res, stop, err := b.Build()
	check(w.rt, err)
	l.stop = stop
	var in *service.ResourceInput
	check(w.rt, res.AccessInput(w.ctx, "input", func(i *service.ResourceInput) { in = i }))
	go l.pump(in)
	return l
}

// pump hands over what the input delivers, until it ends.
func (l *life) pump(in *service.ResourceInput) {
	defer close(l.ended)
	for {
		batch, ack, err := in.ReadBatch(context.Background())
		if err != nil {
			return
		}
		l.got <- delivery{batch, ack}
	}
}

// end stops the life. What comes meanwhile goes to take, which acknowledges it.
func (l *life) end(take func(delivery)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop(ctx) }()
	for {
		select {
		case d := <-l.got:
			take(d)
		case <-l.ended:
			if err := <-stopped; err != nil {
				l.rt.Fatalf("the input does not stop: %v", err)
			}
			parts.Delete(l.id)
			return
		case <-ctx.Done():
			l.rt.Fatalf("the input does not end")
		}
	}
}

// kill abandons the life: its cache is out of reach from here on. What it has
// handed out is acknowledged only so that its goroutines end; nothing that it
// does any more counts.
func (l *life) kill(flying []*flight) {
	l.keep.cut()
	for _, f := range flying {
		_ = f.d.ack(context.Background(), nil)
	}
	l.end(func(d delivery) { _ = d.ack(context.Background(), nil) })
}

func (l *life) count(what *int64, n int64) {
	l.mu.Lock()
	*what += n
	l.mu.Unlock()
	l.wake()
}

func (l *life) wake() {
	select {
	case l.stir <- struct{}{}:
	default:
	}
}

func (l *life) refuse(why string) {
	l.mu.Lock()
	l.refused = append(l.refused, why)
	l.mu.Unlock()
	l.wake()
}

// seen is how many polls found nothing new, how many rows are under way, and
// what was refused.
func (l *life) seen() (polls, under int64, refused []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.polls, l.under, slices.Clone(l.refused)
}

// ear is the log of a life.
type ear struct{ l *life }

func (e *ear) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (e *ear) WithAttrs([]slog.Attr) slog.Handler               { return e }
func (e *ear) WithGroup(string) slog.Handler                    { return e }

func (e *ear) Handle(_ context.Context, rec slog.Record) error {
	if why, ok := strings.CutPrefix(strings.TrimSpace(rec.Message), "Failed to connect to nessie: "); ok {
		e.l.refuse(why)
	}
	return nil
}

var errRefused = errors.New("the output is down")

// keeper is a checkpoint cache that outlives the lives of the input.
type keeper struct {
	mu    sync.Mutex
	value []byte
}

func (k *keeper) stored() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.value)
}

// hold is a life's hold of the keeper. A cut one reaches nothing any more, as a
// process that was killed.
type hold struct {
	*keeper
	gone bool
}

func (h *hold) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
}

var errGone = errors.New("the process was killed")

func (h *hold) Get(context.Context, string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.gone:
		return nil, errGone
	case h.value == nil:
		return nil, service.ErrKeyNotFound
	}
	return slices.Clone(h.value), nil
}

func (h *hold) Set(_ context.Context, _ string, value []byte, _ *time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return errGone
	}
	h.value = slices.Clone(value)
	return nil
}

func (h *hold) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("nobody adds")
}
func (h *hold) Delete(context.Context, string) error { return errors.New("nobody deletes") }
func (h *hold) Close(context.Context) error          { return nil }

// parts are what the components of a life find by its number: Benthos makes
// them from configuration alone.
var parts sync.Map

func partOf(conf *service.ParsedConfig) (*life, error) {
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
	err := service.RegisterCache("replay_keeper", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		l, err := partOf(conf)
		if err != nil {
			return nil, err
		}
		return l.keep, nil
	})
	if err != nil {
		panic(err)
	}
	err = service.RegisterMetricsExporter("replay_pulse", spec, func(conf *service.ParsedConfig, _ *service.Logger) (service.MetricsExporter, error) {
		l, err := partOf(conf)
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

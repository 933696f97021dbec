// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// readerHeader tells the input's requests from the writer's.
const readerHeader = "X-Reader"

// policies are what a configuration can say about the bad day.
type policies struct {
	start, lost, replaced string
	overwrite, del        string // where messages of added rows can't say what a snapshot does
	limit, batch          int
	bounded, changelog    bool
}

// onRemoved is the policy for snapshots that remove rows, by their kind.
func (p policies) onRemoved(kind string) string {
	if kind == "overwrite" {
		return p.overwrite
	}
	return p.del
}

// changes are the fields that say which changes of rows are told.
func (p policies) changes() string {
	if p.changelog {
		return "changes: changelog"
	}
	return fmt.Sprintf("on_overwrite: %s\n  on_delete: %s", p.overwrite, p.del)
}

func (p policies) yaml(w *world) string {
	poll := "3ms"
	if p.bounded {
		poll = "0s"
	}
	return fmt.Sprintf(`
label: input
nessie:
  base_url: %s
  namespace: shop
  table: %s
  storage: %s
  incremental_by_snapshot: true
  checkpoint_cache: progress
  checkpoint_cache_key: place
  checkpoint_write_timeout: 2s
  poll_interval: %s
  max_retries: 0
  headers: { %s: input }
  read_parallelism: 1
  start_from: %s
  on_lost_lineage: %s
  on_table_replaced: %s
  %s
  checkpoint_limit: %d
  batch_rows: %d
`, w.server.URL, w.key.Name(), w.storage, poll, readerHeader, p.start, p.lost, p.replaced, p.changes(), p.limit, p.batch)
}

// delivery is a batch that the input handed out.
type delivery struct {
	batch service.MessageBatch
	ack   service.AckFunc
}

// life is one run of the input, from its start to its end or death.
type life struct {
	rt     failer
	id     int
	pol    policies
	handle *handle
	ledger *ledger
	stop   func(context.Context) error

	got   chan delivery
	ended chan struct{} // closed when the input has ended
	stir  chan struct{} // holds a token when something changed

	mu      sync.Mutex
	polls   int64 // that found nothing new
	under   int64 // rows between the table and their acknowledgement
	refused []string
}

var lastLife atomic.Int64

func begin(w *world, k *keeper, led *ledger, pol policies) *life {
	l := &life{
		rt: w.rt, id: int(lastLife.Add(1)), pol: pol, handle: k.handle(), ledger: led,
		got: make(chan delivery), ended: make(chan struct{}), stir: make(chan struct{}, 1),
	}
	parts.Store(l.id, l)
	b := service.NewResourceBuilder()
	b.DisableLinting()
	b.SetLogger(slog.New(&ear{l}))
	check(w.rt, b.SetMetricsYAML(fmt.Sprintf("model_pulse: { life: %d }", l.id)))
	check(w.rt, b.AddCacheYAML(fmt.Sprintf("{ label: progress, model_keeper: { life: %d } }", l.id)))
	check(w.rt, b.AddInputYAML(pol.yaml(w)))
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

// end stops the life as SIGTERM does: everything handed out is acknowledged.
func (l *life) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop(ctx) }()
	for {
		select {
		case d := <-l.got:
			l.ledger.accept(l.ledger.deliver(d))
		case <-l.ended:
			if err := <-stopped; err != nil {
				l.rt.Fatalf("the input does not stop: %v", err)
			}
			parts.Delete(l.id)
			return
		}
	}
}

// kill abandons the life: its cache is out of reach from here on. What it has
// handed out is acknowledged only so that its goroutines end; nothing that it
// does any more counts.
func (l *life) kill() {
	l.handle.cut()
	l.ledger.silence()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop(ctx) }()
	for _, f := range l.ledger.held() {
		_ = f.d.ack(ctx, nil)
	}
	for {
		select {
		case d := <-l.got:
			_ = d.ack(ctx, nil)
		case <-l.ended:
			if err := <-stopped; err != nil {
				l.rt.Fatalf("the input does not die: %v", err)
			}
			parts.Delete(l.id)
			return
		}
	}
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
	return l.polls, l.under, append([]string(nil), l.refused...)
}

// ear is the log of a life.
type ear struct{ l *life }

func (e *ear) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelDebug }
func (e *ear) WithAttrs([]slog.Attr) slog.Handler               { return e }
func (e *ear) WithGroup(string) slog.Handler                    { return e }

const connecting = "Failed to connect to nessie: "

func (e *ear) Handle(_ context.Context, rec slog.Record) error {
	line := strings.TrimSpace(rec.Message)
	e.l.ledger.heard(line)
	if why, ok := strings.CutPrefix(line, connecting); ok {
		e.l.refuse(why)
	}
	return nil
}

var errRefused = errors.New("the output is down")

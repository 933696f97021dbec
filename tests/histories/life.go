// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redpanda-data/benthos/v4/public/service"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// ErrRefused is what an output says of a batch that it does not take.
var ErrRefused = errors.New("the output is down")

// Delivery is a batch that the input handed out.
type Delivery struct {
	Batch service.MessageBatch
	Ack   service.AckFunc
}

// Life is one run of the input, from its start to its end or death.
type Life struct {
	Got   <-chan Delivery
	Ended <-chan struct{} // closed when the input has ended
	Stir  <-chan struct{} // holds a token when something changed

	t     Failer
	id    int
	hold  *hold
	heard func(line string)
	stop  func(context.Context) error
	stir  chan<- struct{}

	mu      sync.Mutex
	polls   int64 // that found nothing new
	under   int64 // rows between the table and their acknowledgement
	refused []string
}

var lastLife atomic.Int64

// Begin starts an input, whose YAML labels it input and names the cache progress. Each line of its log goes to heard.
func Begin(ctx context.Context, t Failer, k *Keeper, input string, heard func(line string)) *Life {
	got, ended, stir := make(chan Delivery), make(chan struct{}), make(chan struct{}, 1)
	l := &Life{Got: got, Ended: ended, Stir: stir, t: t, id: int(lastLife.Add(1)), hold: k.hold(), heard: heard, stir: stir}
	parts.Store(l.id, l)
	b := service.NewResourceBuilder()
	b.DisableLinting()
	b.SetLogger(slog.New(&ear{l}))
	Check(t, b.SetMetricsYAML(fmt.Sprintf("histories_pulse: { life: %d }", l.id)))
	Check(t, b.AddCacheYAML(fmt.Sprintf("{ label: progress, histories_keeper: { life: %d } }", l.id)))
	Check(t, b.AddInputYAML(input))
	b.OnResourceInit(func(res *service.Resources) error {
		res.SetGeneric(nessie.FailureKey{}, func(err error) { l.refuse(err.Error()) })
		return nil
	})
	res, stop, err := b.Build()
	Check(t, err)
	l.stop = stop
	var in *service.ResourceInput
	Check(t, res.AccessInput(ctx, "input", func(i *service.ResourceInput) { in = i }))
	go pump(in, got, ended)
	return l
}

// pump hands over what the input delivers, until it ends.
func pump(in *service.ResourceInput, got chan<- Delivery, ended chan<- struct{}) {
	defer close(ended)
	for {
		batch, ack, err := in.ReadBatch(context.Background())
		if err != nil {
			return
		}
		got <- Delivery{batch, ack}
	}
}

// End stops the life as SIGTERM does. What comes meanwhile goes to take, which acknowledges it.
func (l *Life) End(take func(Delivery)) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop(ctx) }()
	for {
		select {
		case d := <-l.Got:
			take(d)
		case <-l.Ended:
			if err := <-stopped; err != nil {
				l.t.Fatalf("the input does not stop: %v", err)
			}
			parts.Delete(l.id)
			return
		case <-ctx.Done():
			l.t.Fatalf("the input does not end")
		}
	}
}

// Cut puts the cache out of the life's reach.
func (l *Life) Cut() { l.hold.cut() }

// Kill abandons the life: its cache is out of reach from here on. What it has handed out is acknowledged only so that its
// goroutines end; nothing that it does any more counts.
func (l *Life) Kill(held []Delivery) {
	l.Cut()
	ack := func(d Delivery) { _ = d.Ack(context.Background(), nil) }
	for _, d := range held {
		ack(d)
	}
	l.End(ack)
}

func (l *Life) count(what *int64, n int64) {
	l.mu.Lock()
	*what += n
	l.mu.Unlock()
	l.wake()
}

func (l *Life) wake() {
	select {
	case l.stir <- struct{}{}:
	default:
	}
}

func (l *Life) refuse(why string) {
	l.mu.Lock()
	l.refused = append(l.refused, why)
	l.mu.Unlock()
	l.wake()
}

// Seen is how many polls found nothing new, how many rows are under way, and what was refused.
func (l *Life) Seen() (polls, under int64, refused []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.polls, l.under, slices.Clone(l.refused)
}

// ear is the log of a life.
type ear struct{ l *Life }

func (e *ear) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelDebug }
func (e *ear) WithAttrs([]slog.Attr) slog.Handler               { return e }
func (e *ear) WithGroup(string) slog.Handler                    { return e }

func (e *ear) Handle(_ context.Context, rec slog.Record) error {
	line := strings.TrimSpace(rec.Message)
	e.l.heard(line)
	if why, ok := strings.CutPrefix(line, "Failed to connect to nessie: "); ok {
		e.l.refuse(why)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// replaying is an input that sends refused batches again, before others.
type replaying struct {
	*input
	replays *replays

	// reads is the life of the goroutine that asks the input while ReadBatch
	// looks after what is refused. Only Connect and ReadBatch touch the rest.
	reads   context.Context
	stop    context.CancelFunc
	fresh   chan freshItem
	reading bool
	ended   bool
}

type freshItem struct {
	item item
	ack  service.AckFunc
	err  error
}

func newReplaying(in *input) *replaying {
	reads, stop := context.WithCancel(context.Background())
	return &replaying{input: in, replays: newReplays(in.conf, in.metrics), reads: reads, stop: stop, fresh: make(chan freshItem, 1)}
}

// Connect keeps the input open for what is in flight when it has come to its end.
func (in *replaying) Connect(ctx context.Context) error {
	err := in.input.Connect(ctx)
	if errors.Is(err, service.ErrEndOfInput) && !in.replays.done() {
		in.ended = true
		return nil
	}
	return err
}

func (in *replaying) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	for {
		if batch, ack, err := in.replays.next(ctx); batch != nil || err != nil {
			return batch, ack, err
		}
		if in.ended && in.replays.done() {
			return nil, nil, service.ErrEndOfInput
		}
		if !in.ended && !in.reading {
			in.reading = true
			go func() {
				var f freshItem
				f.item, f.ack, f.err = in.read(in.reads)
				in.fresh <- f
			}()
		}
		select {
		case <-in.replays.ready:
		case f := <-in.fresh:
			in.reading = false
			switch {
			case errors.Is(f.err, service.ErrEndOfInput):
				in.ended = true
			case f.err != nil:
				return nil, nil, f.err
			default:
				batch, ack := in.replays.send(f.item, f.ack)
				return batch, ack, nil
			}
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (in *replaying) Close(ctx context.Context) error {
	in.stop()
	return in.input.Close(ctx)
}

// replays sends what the output refuses again, until it is taken. Benthos has a
// wrapper for that, which believes the output: of a batch refused in part it
// sends the rest no more. Processors that part or join messages leave such
// reports wrong, and the wrapper counts them wrongly at the second refusal, so
// that rows get lost. Here a row counts as delivered only once everything that
// it was sent with was taken.
//
// A batch that was refused in part comes again in smaller ones, so that a row
// that nothing takes soon stands alone. Where order matters it comes again as it
// was.
type replays struct {
	metrics *metrics
	// whole is set where the rows of a batch must stay together, in order.
	whole bool

	mu      sync.Mutex
	refused []*delivery
	// inFlight counts the batches that are sent and not wholly taken.
	inFlight int
	// ready holds a token while refused is not empty, and when nothing is in
	// flight any more.
	ready chan struct{}
}

func newReplays(conf *Config, m *metrics) *replays {
	return &replays{metrics: m, whole: conf.Changelog() || conf.CheckpointLimit == 1, ready: make(chan struct{}, 1)}
}

// delivery is a batch, or a part of one, on its way to the output.
type delivery struct {
	// batch makes the whole batch anew, with marks of its own.
	batch func() service.MessageBatch
	// rows are the messages of it that are sent, by index; nil: all.
	rows []int
	// taken is called once, when the output has taken all of them.
	taken    func(context.Context) error
	refusals int
}

// send gives the messages of a first delivery their acknowledgement.
func (r *replays) send(it item, ack service.AckFunc) (service.MessageBatch, service.AckFunc) {
	r.mu.Lock()
	r.inFlight++
	r.mu.Unlock()
	d := &delivery{batch: it.again, taken: func(ctx context.Context) error {
		err := ack(ctx, nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inFlight--
		r.signal()
		return err
	}}
	return it.batch, r.acknowledge(d, it.batch)
}

// done tells that everything that was sent is taken.
func (r *replays) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inFlight == 0
}

// next takes the refused delivery that has waited longest, if there is one, and
// lets it wait a little longer the more often it was refused.
func (r *replays) next(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	d := r.take()
	if d == nil {
		return nil, nil, nil
	}
	if err := wait(ctx, pauseAfter(d.refusals)); err != nil {
		r.put(d)
		return nil, nil, err
	}
	batch := d.batch()
	if d.rows != nil {
		some := make(service.MessageBatch, len(d.rows))
		for i, row := range d.rows {
			some[i] = batch[row]
		}
		batch = some
	}
	return batch, r.acknowledge(d, batch), nil
}

const maxReplayPause = time.Second

// pauseAfter is nothing for the first refusals, which another attempt may well
// mend.
func pauseAfter(refusals int) time.Duration {
	if refusals <= 2 {
		return 0
	}
	return min(time.Millisecond<<min(refusals-3, 20), maxReplayPause)
}

func (r *replays) acknowledge(d *delivery, batch service.MessageBatch) service.AckFunc {
	var rows *markedBatch // nil: they stay together
	if !r.whole && len(batch) > 1 {
		rows = batchOf(batch[0])
	}
	var once sync.Once
	return func(ctx context.Context, refusal error) (err error) {
		once.Do(func() {
			if refusal == nil {
				err = d.taken(ctx)
				return
			}
			r.metrics.rowsRedelivered.Incr(rowsOf(batch), r.metrics.table)
			d.refusals++
			r.put(d.parts(len(batch), rows.refused(refusal))...)
		})
		return err
	}
}

// fewer is into how many parts a batch comes apart.
const fewer = 8

// parts is the delivery of n messages itself, or the smaller ones that it comes
// apart into: what the error names of the whole batch, and what it does not,
// which may be refused as well.
func (d *delivery) parts(n int, named []bool) []*delivery {
	if named == nil {
		return []*delivery{d}
	}
	var fine, bad []int
	for i := range n {
		row := i
		if d.rows != nil {
			row = d.rows[i]
		}
		if named[row] {
			bad = append(bad, row)
		} else {
			fine = append(fine, row)
		}
	}
	groups := cut(fine, fewer)
	if len(fine) == 0 {
		groups = cut(bad, fewer)
	} else if len(bad) > 0 {
		groups = append(groups, bad)
	}
	var mu sync.Mutex
	left := len(groups)
	taken := func(ctx context.Context) error {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			return d.taken(ctx)
		}
		return nil
	}
	parts := make([]*delivery, len(groups))
	for i, rows := range groups {
		parts[i] = &delivery{batch: d.batch, rows: rows, taken: taken, refusals: d.refusals}
	}
	return parts
}

// cut makes at most n groups of rows, in order and of about equal size.
func cut(rows []int, n int) [][]int {
	var groups [][]int
	for n = min(n, len(rows)); n > 0; n-- {
		size := (len(rows) + n - 1) / n
		groups = append(groups, rows[:size])
		rows = rows[size:]
	}
	return groups
}

func (r *replays) put(d ...*delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, d...)
	r.signal()
}

func (r *replays) take() *delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refused) == 0 {
		return nil
	}
	d := r.refused[0]
	r.refused = r.refused[1:]
	r.signal()
	return d
}

// signal puts the token where there is something to look at.
func (r *replays) signal() {
	if len(r.refused) == 0 && r.inFlight > 0 {
		select {
		case <-r.ready:
		default:
		}
		return
	}
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"sync"
	"sync/atomic"
)

// flow carries pieces from the workers, which take tasks in order and decode and encode them, to the one consumer, which
// wants them in order. It bounds the bytes between: a worker waits before it begins a file and before it hands a piece
// over, unless the consumer waits for that very file and has nothing of it; so the file in front never stands still, and
// no wait can be a deadlock.
type flow struct {
	ctx   context.Context
	limit int64

	mu      sync.Mutex
	moved   sync.Cond
	used    int64
	head    int // the task that the consumer is at
	end     int // one past the last task
	waiting map[int]*lane
}

// lane is what waits of one task.
type lane struct {
	pieces []piece
	done   bool
	err    error
}

// newFlow is a flow of the tasks first ≤ i < end. Its waits end when ctx does, until unhook is called.
func newFlow(ctx context.Context, limit int64, first, end int) (f *flow, unhook func() bool) {
	f = &flow{ctx: ctx, limit: limit, head: first, end: end, waiting: map[int]*lane{}}
	f.moved.L = &f.mu
	return f, context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.moved.Broadcast()
	})
}

// start runs the workers over the tasks from first on, leaving out skip rows of the first. stop ends them, waits for them
// and drops what they made.
func (p *Plan) start(ctx context.Context, opts ReadOptions, first int, skip int64) (f *flow, stop func(), err error) {
	var encoder *Encoder
	if opts.Format != FormatArrow {
		if encoder, err = NewEncoder(p.Schema); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	f, unhook := newFlow(ctx, opts.held(), first, len(p.Tasks))
	fetching := fetchAhead(ctx, p.source.FS, p.Tasks, first)
	positions := p.positions()
	var next atomic.Int64
	next.Store(int64(first))
	var workers sync.WaitGroup
	for range min(opts.Parallelism, len(p.Tasks)-first) {
		w := &worker{plan: p, opts: opts, flow: f, ahead: fetching, positions: positions}
		w.buffers.most = int(opts.held() / int64(4*opts.Parallelism))
		if encoder != nil {
			w.encoder = encoder.Clone()
		}
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(p.Tasks) {
					return
				}
				from := int64(0)
				if i == first {
					from = skip
				}
				f.finish(i, w.run(ctx, i, from))
			}
		})
	}
	return f, func() {
		cancel()
		unhook()
		workers.Wait()
		fetching.close()
		f.drop()
	}, nil
}

// admit waits until n more bytes fit, or the consumer waits for task i. It returns the context's cause when that ends.
func (f *flow) admit(i int, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.used+n > f.limit && (i != f.head || len(f.lane(i).pieces) > 0) {
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		f.moved.Wait()
	}
	f.used += n
	return nil
}

// release gives bytes back.
func (f *flow) release(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= n
	f.moved.Broadcast()
}

// put hands a piece of task i over. The flow owns it from then on, also on an error.
func (f *flow) put(i int, p piece) error {
	if err := f.admit(i, p.weight()); err != nil {
		p.drop()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lane(i)
	l.pieces = append(l.pieces, p)
	f.moved.Broadcast()
	return nil
}

// finish says that task i has no more pieces, or why.
func (f *flow) finish(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lane(i)
	l.done, l.err = true, err
	f.moved.Broadcast()
}

// next waits for the next piece in order; !ok after the last. Its weight stays counted until release.
func (f *flow) next() (p piece, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.head < f.end {
		l := f.lane(f.head)
		switch {
		case len(l.pieces) > 0:
			p, l.pieces = l.pieces[0], l.pieces[1:]
			f.moved.Broadcast()
			return p, true, nil
		case l.err != nil:
			return piece{}, false, l.err
		case l.done:
			delete(f.waiting, f.head)
			f.head++
			f.moved.Broadcast()
		case f.ctx.Err() != nil:
			return piece{}, false, context.Cause(f.ctx)
		default:
			f.moved.Wait()
		}
	}
	return piece{}, false, nil
}

func (f *flow) lane(i int) *lane {
	l := f.waiting[i]
	if l == nil {
		l = &lane{}
		f.waiting[i] = l
	}
	return l
}

func (f *flow) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.waiting {
		for _, p := range l.pieces {
			p.drop()
		}
	}
	clear(f.waiting)
}

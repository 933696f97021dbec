// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"slices"
	"sync"
)

// flow carries pieces from the workers, which take lanes in order and decode and encode their rows, to the one consumer,
// which wants them in order. It bounds the bytes between: a worker waits before it begins a lane and before it hands a
// piece over, unless the consumer waits for that very lane and has nothing of it; so the lane in front never stands still,
// and no wait can be a deadlock: whoever ends the lane in front takes the next one, if nobody has.
type flow struct {
	ctx   context.Context
	limit int64

	mu    sync.Mutex
	moved sync.Cond
	used  int64
	lanes []*lane // begun or cut off, and not passed by the consumer; in order
	task  int     // the first without a lane
	skip  int64   // rows of that task, which are not wanted
	end   int     // one past the last task
}

// lane is what one worker reads at a time, a task or a stretch of one, and what of it waits for the consumer.
type lane struct {
	task    int
	stretch *stretch // nil: the task is not cut
	skip    int64    // rows of the task that are not wanted, where it is not cut
	taken   bool     // by a worker

	pieces []piece
	done   bool
	err    error
}

// newFlow is a flow of the tasks first ≤ i < end. Its waits end when ctx does, until unhook is called.
func newFlow(ctx context.Context, limit int64, first, end int) (f *flow, unhook func() bool) {
	f = &flow{ctx: ctx, limit: limit, task: first, end: end}
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
	f.skip = skip
	fetching := fetchAhead(ctx, p.source.FS, p.Tasks, first)
	positions := p.positions()
	var workers sync.WaitGroup
	for range p.workers(opts, first) {
		w := &worker{plan: p, opts: opts, flow: f, ahead: fetching, positions: positions}
		w.buffers.most = int(opts.held() / int64(4*opts.Parallelism))
		if encoder != nil {
			w.encoder = encoder.Clone()
		}
		workers.Go(func() {
			for l := f.take(); l != nil; l = f.take() {
				f.finish(l, w.run(ctx, l))
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

// workers is how many there is work for: a task is cut into no more stretches than its bytes allow.
func (p *Plan) workers(opts ReadOptions, first int) int {
	n := 0
	for _, t := range p.Tasks[first:] {
		if n += 1 + int(max(t.File.Data.FileSizeBytes(), 0)/opts.stretch); n >= opts.Parallelism {
			return opts.Parallelism
		}
	}
	return n
}

// take is the next lane to read. It waits while lanes may come of a task that another worker has begun; nil: there are no
// more, or ctx has ended.
func (f *flow) take() *lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.ctx.Err() == nil {
		mayBeCut := false
		for _, l := range f.lanes {
			if !l.taken {
				l.taken = true
				return l
			}
			mayBeCut = mayBeCut || (l.stretch == nil && !l.done)
		}
		if f.task < f.end {
			l := &lane{task: f.task, skip: f.skip, taken: true}
			f.task, f.skip = f.task+1, 0
			f.lanes = append(f.lanes, l)
			return l
		}
		if !mayBeCut {
			return nil
		}
		f.moved.Wait()
	}
	return nil
}

// cut makes the first stretch of its task what a lane stands for, and lanes behind it of the others.
func (f *flow) cut(l *lane, all []*stretch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var others []*lane
	for _, s := range all[1:] {
		others = append(others, &lane{task: l.task, stretch: s})
	}
	l.stretch = all[0]
	f.lanes = slices.Insert(f.lanes, slices.Index(f.lanes, l)+1, others...)
	f.moved.Broadcast()
}

// join makes one lane of those of a file that nobody has taken.
func (f *flow) join(file *directFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *lane
	f.lanes = slices.DeleteFunc(f.lanes, func(l *lane) bool {
		if l.taken || l.stretch.file != file {
			return false
		}
		if first == nil {
			first = l
			return false
		}
		first.stretch.append(l.stretch)
		file.leave()
		return true
	})
}

// admit waits until n more bytes fit, or the consumer waits for the lane. It returns the context's cause when that ends.
func (f *flow) admit(l *lane, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.used+n > f.limit && (l != f.lanes[0] || len(l.pieces) > 0) {
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

// put hands a piece of a lane over. The flow owns it from then on, also on an error.
func (f *flow) put(l *lane, p piece) error {
	if err := f.admit(l, p.weight()); err != nil {
		p.drop()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l.pieces = append(l.pieces, p)
	f.moved.Broadcast()
	return nil
}

// finish says that a lane has no more pieces, or why.
func (f *flow) finish(l *lane, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.done, l.err = true, err
	f.moved.Broadcast()
}

// next waits for the next piece in order; !ok after the last. Its weight stays counted until release.
func (f *flow) next() (p piece, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		l := &lane{} // as if one were on its way
		if len(f.lanes) > 0 {
			l = f.lanes[0]
		} else if f.task == f.end {
			return piece{}, false, nil
		}
		switch {
		case len(l.pieces) > 0:
			p, l.pieces[0] = l.pieces[0], piece{} // what was taken must not stay reachable
			l.pieces = l.pieces[1:]
			f.moved.Broadcast()
			return p, true, nil
		case l.err != nil:
			return piece{}, false, l.err
		case l.done:
			f.lanes = slices.Delete(f.lanes, 0, 1)
			f.moved.Broadcast()
		case f.ctx.Err() != nil:
			return piece{}, false, context.Cause(f.ctx)
		default:
			f.moved.Wait()
		}
	}
}

// drop gives up what nobody takes any more, when the workers have ended.
func (f *flow) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lanes {
		for _, p := range l.pieces {
			p.drop()
		}
		if !l.taken {
			l.stretch.file.leave()
		}
	}
	f.lanes = nil
}

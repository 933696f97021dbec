// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Results of a write, as OnWrite reports them.
const (
	ResultWritten = "written"
	ResultFailed  = "failed"
	ResultTaken   = "taken"
)

const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
	// A cache that ends its calls with the context does so well within this.
	stuckAfter = time.Second
)

// ErrClosed is returned for what was not stored before the writer was closed.
var ErrClosed = errors.New("the checkpoint writer is closed")

// WriterConfig holds the bound of each write and the callbacks of a Writer.
// Callbacks may be nil. They run one after another on the writer's goroutine
// and must not call the writer; only OnError may also be called from others.
type WriterConfig struct {
	Timeout time.Duration // of each write, comparison of the owner included, and of Close as a whole
	OnWrite func(result string)
	OnError func(error)       // a write failed and is retried, or something was put that goes backwards
	OnTaken func(*TakenError) // a newer owner claimed the key; nothing is written any more
}

// Writer stores checkpoints on a goroutine of its own, so that whoever puts
// them never waits for the cache. It writes the newest only, one write at a
// time, and retries for ever.
//
// Invariant: what is stored was put, and nothing older is written after
// something newer. Order is that of Checkpoint.Order.
type Writer struct {
	store     *Store
	cfg       WriterConfig
	ctx       context.Context // of all writes; ended when Close gives up
	cancel    context.CancelFunc
	done      chan struct{} // closed when the goroutine has ended
	wake      chan struct{} // holds a token after a Put
	interrupt chan struct{} // closed by the first Close

	mu      sync.Mutex
	newest  *Checkpoint
	put     uint64 // how often newest was set
	written uint64 // the put that is stored
	err     error  // why nothing will be written any more
	closing bool
	stored  chan struct{} // closed when written or err changes
}

// NewWriter starts the writer of a store whose key was claimed. claimed is what
// Claim returned; nothing before it is ever written. Close ends the writer.
func NewWriter(store *Store, claimed *Checkpoint, cfg WriterConfig) *Writer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{
		store: store, cfg: cfg, ctx: ctx, cancel: cancel, newest: claimed,
		done: make(chan struct{}), wake: make(chan struct{}, 1), interrupt: make(chan struct{}), stored: make(chan struct{}),
	}
	go w.run()
	return w
}

// Put makes c the checkpoint to be stored, in place of one that still waits.
// It never blocks. A checkpoint that comes before the newest is reported and
// dropped. After Close or a lost claim Put has no effect.
func (w *Writer) Put(c *Checkpoint) {
	if _, err := w.accept(c); err != nil && w.cfg.OnError != nil {
		w.cfg.OnError(err)
	}
}

// PutSync puts c and returns once it, or something newer, is stored. It
// returns the error of ctx when that ends first (c is still written later), a
// *TakenError, or ErrClosed.
func (w *Writer) PutSync(ctx context.Context, c *Checkpoint) error {
	put, err := w.accept(c)
	if err != nil {
		return err
	}
	return w.await(ctx, put)
}

// Flush returns once everything that was put before the call is stored, with
// errors as PutSync.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	put := w.put
	w.mu.Unlock()
	return w.await(ctx, put)
}

// Close stores what is not stored yet, trying once more if the last write
// failed, and ends the writer. It returns within the timeout, or earlier with
// ctx, even if the cache does not return; the error says that the last
// checkpoint is not stored, and why. Nothing is written after Close returned,
// except by a call that the cache had taken before.
func (w *Writer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	w.mu.Lock()
	if !w.closing {
		w.closing = true
		close(w.interrupt)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		w.fail(fmt.Errorf("closing the checkpoint writer: %w: the last checkpoint is not stored: %w", ErrClosed, ctx.Err()))
	}
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.put == w.written {
		return nil
	}
	return w.err
}

func (w *Writer) accept(c *Checkpoint) (put uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil || w.closing:
		return w.put + 1, nil // await tells why it never comes
	case c.Order().Compare(w.newest.Order()) < 0:
		return 0, fmt.Errorf("checkpoint %+v comes before %+v: it was dropped", c.Order(), w.newest.Order())
	}
	w.newest = c
	w.put++
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return w.put, nil
}

func (w *Writer) await(ctx context.Context, put uint64) error {
	for {
		w.mu.Lock()
		written, err, stored := w.written, w.err, w.stored
		w.mu.Unlock()
		if written >= put {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-stored:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Writer) run() {
	defer close(w.done)
	pause := shortestPause
	for {
		c, put, last := w.next()
		if c == nil {
			w.fail(ErrClosed)
			return
		}
		err := w.attempt(c)
		w.report(put, err)
		switch taken := new(TakenError); {
		case err == nil:
			pause = shortestPause
		case errors.As(err, &taken):
			return
		case last:
			w.fail(fmt.Errorf("%w: the last checkpoint is not stored: %w", ErrClosed, err))
			return
		default:
			w.sleep(pause)
			pause = min(2*pause, longestPause)
		}
	}
}

// next waits for a checkpoint that is not stored. last means that there is one
// attempt left. There is no checkpoint when the writer is to end.
func (w *Writer) next() (c *Checkpoint, put uint64, last bool) {
	for {
		w.mu.Lock()
		c, put, last = w.newest, w.put, w.closing
		pending, ended := w.put > w.written, w.err != nil
		w.mu.Unlock()
		switch {
		case ended, last && !pending:
			return nil, 0, true
		case pending:
			return c, put, last
		}
		select {
		case <-w.wake:
		case <-w.interrupt:
		}
	}
}

func (w *Writer) attempt(c *Checkpoint) error {
	ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Timeout)
	defer cancel()
	// A call that does not end with its context can't be abandoned: it could
	// still store its value after a newer one. It can only be reported.
	stuck := time.AfterFunc(w.cfg.Timeout+stuckAfter, func() {
		if w.cfg.OnError != nil {
			w.cfg.OnError(fmt.Errorf("the cache does not return from the checkpoint under key %q", w.store.key))
		}
	})
	defer stuck.Stop()
	return w.store.write(ctx, c)
}

func (w *Writer) report(put uint64, err error) {
	result, taken := ResultWritten, new(TakenError)
	switch {
	case err == nil:
		w.mu.Lock()
		w.written = put
		w.signal()
		w.mu.Unlock()
	case errors.As(err, &taken):
		result = ResultTaken
		w.fail(err)
	default:
		result = ResultFailed
	}
	if w.cfg.OnWrite != nil {
		w.cfg.OnWrite(result)
	}
	if result == ResultFailed && w.cfg.OnError != nil {
		w.cfg.OnError(err)
	}
	if result == ResultTaken && w.cfg.OnTaken != nil {
		w.cfg.OnTaken(taken)
	}
}

// fail ends the writer's work for the first reason that is given.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		w.signal()
	}
}

func (w *Writer) signal() {
	close(w.stored)
	w.stored = make(chan struct{})
}

// sleep pauses between half of d and one and a half of it, or until Close.
func (w *Writer) sleep(d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.interrupt:
	}
}

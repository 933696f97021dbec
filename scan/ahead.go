// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
	"golang.org/x/sync/semaphore"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// A request to an object store takes as long as decoding a hundred kilobytes. Files that are not much larger are therefore
// fetched whole before a worker gets to them, many at once.
const (
	aheadLargest = 1 << 20  // bytes of a file that is fetched ahead
	aheadBytes   = 16 << 20 // bytes of all files that are fetched and not taken yet
	aheadLeast   = 64 << 10 // what a file counts at least, so that no more than 256 requests are under way
)

// ahead fetches the small ones among a plan's data files in task order. Safe for concurrent use.
type ahead struct {
	ctx   context.Context
	fs    iceio.IO
	tasks []Task

	mu    sync.Mutex
	files map[int]*fetched
	taken map[int]bool // tasks whose file a worker has asked for
	room  *semaphore.Weighted
	done  sync.WaitGroup
}

// fetched is a small file, or why it could not be fetched, once ready is closed.
type fetched struct {
	path  string
	size  int64 // that it counts
	ready chan struct{}
	body  []byte
	err   error
}

// fetchAhead begins with the task first. It ends with ctx; close waits for that.
func fetchAhead(ctx context.Context, files iceio.IO, tasks []Task, first int) *ahead {
	a := &ahead{ctx: ctx, fs: files, tasks: tasks, files: map[int]*fetched{}, taken: map[int]bool{}, room: semaphore.NewWeighted(aheadBytes)}
	a.done.Go(func() {
		asked := make(chan *fetched)
		defer close(asked)
		for i := first; i < len(tasks); i++ {
			size := tasks[i].File.Data.FileSizeBytes()
			if size > aheadLargest {
				continue
			}
			size = max(size, aheadLeast)
			if a.room.Acquire(ctx, size) != nil {
				return
			}
			f := a.reserve(i, size)
			if f == nil {
				continue
			}
			select {
			case asked <- f:
			default: // nobody is idle
				a.done.Go(func() {
					a.fetch(f)
					for f := range asked {
						a.fetch(f)
					}
				})
			}
		}
	})
	return a
}

// reserve makes place for the file of task i; nil where a worker has asked for it already.
func (a *ahead) reserve(i int, size int64) *fetched {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken[i] {
		a.room.Release(size)
		return nil
	}
	f := &fetched{path: a.tasks[i].File.path, size: size, ready: make(chan struct{})}
	a.files[i] = f
	return f
}

// fetch is called by few goroutines again and again: the stacks that a request needs are deep, and grow once in each.
func (a *ahead) fetch(f *fetched) {
	defer close(f.ready)
	f.body, f.err = a.whole(f.path)
}

// prefixIO is a file IO that reads the first bytes of a file in one request, without opening it.
type prefixIO interface {
	ReadPrefix(location string, n int64) ([]byte, error)
}

// whole reads all of a file.
func (a *ahead) whole(path string) ([]byte, error) {
	files := catalog.Within(a.ctx, a.fs)
	if store, ok := files.(prefixIO); ok {
		body, err := store.ReadPrefix(path, aheadLargest+1)
		if err != nil {
			return nil, err
		}
		if len(body) > aheadLargest {
			return nil, errLargerThanSaid
		}
		return body, nil
	}
	f, err := watch(a.ctx, files).Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > aheadLargest {
		return nil, errLargerThanSaid
	}
	body := make([]byte, info.Size())
	if n, err := f.ReadAt(body, 0); n < len(body) {
		return nil, err
	}
	return body, nil
}

// errLargerThanSaid sends a file to its reader, who looks at that.
var errLargerThanSaid = errors.New("the file is larger than its manifest says")

// fileIO is the source's file IO for the worker of task i.
func (a *ahead) fileIO(i int) iceio.IO {
	a.mu.Lock()
	a.taken[i] = true
	f, ok := a.files[i]
	delete(a.files, i)
	a.mu.Unlock()
	if !ok {
		return a.fs
	}
	<-f.ready
	a.room.Release(f.size)
	return &lent{a.fs, f}
}

// close waits until nothing is fetched any more. ctx must have ended.
func (a *ahead) close() { a.done.Wait() }

// lent knows one file that was fetched, and opens every other itself.
type lent struct {
	iceio.IO
	*fetched
}

func (l *lent) Open(name string) (iceio.File, error) {
	if name == l.path && l.err == nil {
		return memoryFile{bytes.NewReader(l.body), name}, nil
	}
	return l.IO.Open(name) // again where fetching failed, so that the reader meets the error itself
}

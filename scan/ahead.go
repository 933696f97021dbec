// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
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
	fs    iceio.IO
	bound iceio.IO // fs, whose reads end with the context
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
	file  iceio.File
	err   error
}

// fetchAhead begins with the task first. It ends with ctx; close waits for that.
func fetchAhead(ctx context.Context, files iceio.IO, tasks []Task, first int) *ahead {
	a := &ahead{fs: files, bound: watch(ctx, catalog.Within(ctx, files)), tasks: tasks, files: map[int]*fetched{}, taken: map[int]bool{}, room: semaphore.NewWeighted(aheadBytes)}
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
	f.file, f.err = whole(a.bound, f.path)
}

// whole opens a file and reads all of it.
func whole(files iceio.IO, path string) (iceio.File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > aheadLargest {
		return nil, errors.New("the file is larger than its manifest says") // its reader looks at that
	}
	body := make([]byte, info.Size())
	if n, err := f.ReadAt(body, 0); n < len(body) {
		return nil, err
	}
	return &wholeFile{Reader: bytes.NewReader(body), info: info}, nil
}

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
	return &lent{IO: a.fs, path: a.tasks[i].File.path, first: f}
}

// close waits until nothing is fetched any more. ctx must have ended.
func (a *ahead) close() { a.done.Wait() }

// lent gives one fetched file away, and opens every other itself.
type lent struct {
	iceio.IO
	path string

	mu    sync.Mutex
	first *fetched
}

func (l *lent) Open(name string) (iceio.File, error) {
	l.mu.Lock()
	first := l.first
	if name == l.path {
		l.first = nil
	}
	l.mu.Unlock()
	if name == l.path && first != nil && first.err == nil {
		return first.file, nil
	}
	return l.IO.Open(name) // again where fetching failed, so that the reader meets the error itself
}

// wholeFile is a file that was read.
type wholeFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *wholeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *wholeFile) Close() error               { return nil }

var _ io.ReaderAt = (*wholeFile)(nil)

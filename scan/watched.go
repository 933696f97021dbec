// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
)

// watchedIO lends files of another IO to a decoder and remembers what went wrong underneath it: decoders wrap, replace
// or drop I/O errors, and only storage can tell a file that is gone from one that is corrupt. Its reads fail once ctx is
// done, so that cancelling stops a decoder that never looks at a context. Safe for concurrent use.
type watchedIO struct {
	ctx context.Context
	fs  iceio.IO

	mu   sync.Mutex
	last string // the file that was opened last
	path string // the file of err
	err  error  // the first I/O error
}

func watch(ctx context.Context, fs iceio.IO) *watchedIO { return &watchedIO{ctx: ctx, fs: fs} }

func (w *watchedIO) Open(name string) (iceio.File, error) {
	w.mu.Lock()
	w.last = name
	w.mu.Unlock()
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	f, err := w.fs.Open(name)
	if err != nil {
		return nil, w.note(name, err)
	}
	return &watchedFile{File: f, io: w, name: name}, nil
}

func (w *watchedIO) Remove(name string) error {
	return fmt.Errorf("removing %s: %w", name, fs.ErrPermission)
}

func (w *watchedIO) note(name string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.path, w.err = name, err
	}
	return err
}

// failed reports whether an I/O error happened.
func (w *watchedIO) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// explain types what a decoder returned for a snapshot's file. kind tells what a path is.
func (w *watchedIO) explain(err error, snapshot int64, kind func(path string) FileKind) error {
	if err == nil {
		return nil
	}
	if ctxErr := w.ctx.Err(); ctxErr != nil {
		return context.Cause(w.ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(w.err, fs.ErrNotExist):
		return &MissingFileError{Snapshot: snapshot, Path: w.path, Kind: kind(w.path)}
	case w.err != nil:
		return fmt.Errorf("reading %s %s: %w", kind(w.path), w.path, w.err)
	default:
		path := w.last
		if broken, ok := errors.AsType[*brokenFileError](err); ok {
			path = broken.path
		}
		return undecodable(kind(path), path, err)
	}
}

type watchedFile struct {
	iceio.File
	io   *watchedIO
	name string
}

func (f *watchedFile) Read(p []byte) (int, error) {
	if err := f.io.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.File.Read(p)
	return n, f.io.note(f.name, err)
}

func (f *watchedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.io.ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 { // a decoder's, who has it from the file: no fault of storage
		return 0, fmt.Errorf("reading at offset %d", off)
	}
	n, err := f.File.ReadAt(p, off)
	return n, f.io.note(f.name, err)
}

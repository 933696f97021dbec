// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// resumable reads the bytes from off to end of an object. A body that breaks off (connection reset, early end, nothing
// for too long) is opened again where it stopped; requests themselves are repeated by the S3 client, so that an error
// of open is final. It is used by one goroutine at a time.
type resumable struct {
	ctx  context.Context // of the file IO that the object was opened with
	open func(off int64) (io.ReadCloser, error)
	// body, if set, is positioned at off.
	body     io.ReadCloser
	off, end int64
	location string
	reads
	cuts int // in a row
}

func (r *resumable) Read(p []byte) (int, error) {
	for {
		if r.off >= r.end {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		if r.body == nil {
			body, err := r.open(r.off)
			if err != nil {
				return 0, err
			}
			r.body = body
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.off)])
		r.off += int64(n)
		if n > 0 {
			// An error beside bytes comes again with the next read.
			r.cuts = 0
			r.count(int64(n))
			return n, nil
		}
		if err == nil {
			continue
		}
		if err := r.cut(err); err != nil {
			return 0, err
		}
	}
}

// cut gives a broken body up and waits before the next attempt; it answers the error to stop with.
func (r *resumable) cut(err error) error {
	_ = r.body.Close()
	r.body = nil
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if ctxErr := r.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if r.cuts++; r.cuts >= r.attempts {
		return err
	}
	r.retried(r.location, err)
	return pause(r.ctx, r.cuts)
}

// all reads to the end and closes.
func (r *resumable) all() ([]byte, error) {
	bytes := make([]byte, r.end-r.off)
	_, err := io.ReadFull(r, bytes)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return bytes, nil
}

// Close lets the connection be used again where little is left to read from it.
func (r *resumable) Close() error {
	if r.body == nil {
		return nil
	}
	if left := r.end - r.off; left > 0 && left <= 64<<10 {
		_, _ = io.CopyN(io.Discard, r.body, left)
	}
	err := r.body.Close()
	r.body = nil
	return err
}

// pause waits 50 ms, 100 ms, 200 ms… with jitter before a further attempt.
func pause(ctx context.Context, attempt int) error {
	wait := 50 * time.Millisecond << min(attempt-1, 6)
	timer := time.NewTimer(wait/2 + rand.N(wait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
)

// objectStore is a store of objects by location. Its errors satisfy errors.Is for fs.ErrNotExist where an object is
// missing, fs.ErrPermission, and errRange.
type objectStore interface {
	// get asks for a piece of the object, rng being the value of a Range header, "" for all of it.
	get(ctx context.Context, location, rng string) (part, error)
	stat(ctx context.Context, location string) (fs.FileInfo, error)
	// list answers the locations that start with prefix, in order, folders left out.
	list(ctx context.Context, prefix string) ([]string, error)
}

// objectFiles reads the objects of a store as files.
type objectFiles struct {
	objectStore
	reads
}

// reads is what holds for all reads of a Storage.
type reads struct {
	count func(int64)
	// attempts is how many times in a row a read may stop without a single byte before it counts as failed.
	attempts int
	// retried hears of a read that goes on after it was cut off.
	retried func(location string, err error)
}

const (
	// connectTimeout bounds connecting to a store.
	connectTimeout = 10 * time.Second
	// defaultReadTimeout and defaultReadAttempts hold where a StorageConfig says nothing.
	defaultReadTimeout  = 60 * time.Second
	defaultReadAttempts = 5
)

// open asks for the file's tail if its readers start there, else for all of it.
func (f *objectFiles) open(ctx context.Context, location string) (iceio.File, error) {
	rng := ""
	if readFromTheEnd(location) {
		rng = "bytes=-" + strconv.Itoa(tailBytes)
	}
	p, err := f.get(ctx, location, rng)
	if errors.Is(err, errRange) {
		// Nothing to take a tail of: the object is empty, or the store refuses a tail longer than the object.
		p, err = f.get(ctx, location, "")
	}
	if err != nil {
		return nil, err
	}
	o := &object{ctx: ctx, location: location, files: f, size: p.size, modified: p.modified}
	body := f.between(ctx, location, p.off, p.off+p.n, p.body)
	if !readFromTheEnd(location) || p.n > tailBytes {
		o.stream = body
		return o, nil
	}
	if o.tail, err = body.all(); err != nil {
		return nil, err
	}
	return o, nil
}

func (f *objectFiles) prefix(ctx context.Context, location string, n int64) ([]byte, error) {
	rng := ""
	if n >= 0 {
		rng = rangeOf(0, n)
	}
	p, err := f.get(ctx, location, rng)
	if errors.Is(err, errRange) {
		return nil, nil // the object is empty
	}
	if err != nil {
		return nil, err
	}
	end := p.n
	if n >= 0 {
		end = min(end, n)
	}
	return f.between(ctx, location, 0, end, p.body).all()
}

// between reads the bytes of an object from off to end; body, if there, is already positioned at off.
func (f *objectFiles) between(ctx context.Context, location string, off, end int64, body io.ReadCloser) *resumable {
	return &resumable{ctx: ctx, off: off, end: end, body: body, reads: f.reads, location: location, open: func(off int64) (io.ReadCloser, error) {
		p, err := f.get(ctx, location, rangeOf(off, end-off))
		if err != nil {
			return nil, err
		}
		if p.off != off {
			return nil, errors.Join(errors.New("the store ignores the Range header"), p.body.Close())
		}
		return p.body, nil
	}}
}

// rangeOf is the value of a Range header for n bytes from off.
func rangeOf(off, n int64) string {
	text := strconv.AppendInt([]byte("bytes="), off, 10)
	return string(strconv.AppendInt(append(text, '-'), off+n-1, 10))
}

// errRange says that the asked range lies outside the object.
var errRange = errors.New("range lies outside the object")

// as says which range of the object p is, by the headers of an answer: length is nil or negative, and contentRange "",
// where they are missing. It closes the body on an error.
func (p part) as(length *int64, contentRange string) (_ part, err error) {
	if contentRange != "" {
		var last int64
		if p.off, last, p.size, err = parseContentRange(contentRange); err != nil {
			return part{}, errors.Join(err, p.body.Close())
		}
		p.n = last + 1 - p.off
		return p, nil
	}
	if length == nil || *length < 0 {
		return part{}, errors.Join(errors.New("the store does not say how long the object is"), p.body.Close())
	}
	p.n, p.size = *length, *length
	return p, nil
}

// parseContentRange reads "bytes 5-9/20" (RFC 9110, section 14.4).
func parseContentRange(text string) (first, last, size int64, err error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, to, ok2 := strings.Cut(span, "-")
	numbers := [3]int64{}
	for i, text := range []string{from, to, total} {
		if err == nil {
			numbers[i], err = strconv.ParseInt(text, 10, 64)
		}
	}
	first, last, size = numbers[0], numbers[1], numbers[2]
	if !ok || !ok2 || err != nil || first > last || last >= size {
		return 0, 0, 0, fmt.Errorf("the store answered the Content-Range %q", text)
	}
	return first, last, size, nil
}

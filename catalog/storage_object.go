// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
)

// tailBytes is what opening a file that is read from its end (Parquet, Puffin) fetches: its size and, mostly, its footer
// in one request; small files come whole.
const tailBytes = 64 << 10

// part is a piece of an object as a request answered it.
type part struct {
	body io.ReadCloser
	// off is where body starts, n how much it holds, size how large the whole object is.
	off, n, size int64
	modified     time.Time
}

// object is a file in an object store. ReadAt may be called from many goroutines at once, the rest from one at a time.
type object struct {
	ctx      context.Context // of the file IO that it was opened with
	location string
	files    *objectFiles
	size     int64
	modified time.Time

	// tail are the last bytes, if they came with opening.
	tail []byte
	// stream reads on from pos where the last Read ended.
	stream *resumable
	pos    int64
}

var _ iceio.File = (*object)(nil)

// readFromTheEnd tells whether a file is one whose readers start at its end.
func readFromTheEnd(location string) bool {
	switch path.Ext(location) {
	case ".parquet", ".puffin", ".orc":
		return true
	}
	return false
}

// between reads the bytes from off to end.
func (o *object) between(off, end int64) *resumable {
	return o.files.between(o.ctx, o.location, off, end, nil)
}

func (o *object) Read(p []byte) (int, error) {
	if o.pos >= o.size {
		return 0, io.EOF
	}
	if n := o.fromTail(p, o.pos); n > 0 {
		o.pos += int64(n)
		return n, nil
	}
	if o.stream == nil || o.stream.off != o.pos {
		o.closeStream()
		o.stream = o.between(o.pos, o.size-int64(len(o.tail)))
	}
	n, err := o.stream.Read(p)
	o.pos += int64(n)
	if errors.Is(err, io.EOF) && o.pos < o.size {
		return n, nil // the tail goes on from here
	}
	return n, o.failed(err)
}

// fromTail copies what the tail holds at off; 0 where off lies before it.
func (o *object) fromTail(p []byte, off int64) int {
	if start := o.size - int64(len(o.tail)); off >= start {
		return copy(p, o.tail[off-start:])
	}
	return 0
}

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, o.failed(fs.ErrInvalid)
	}
	if off >= o.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.size-off)]
	n := o.fromTail(want, off)
	if n == 0 && len(want) > 0 {
		body := o.between(off, off+int64(len(want)))
		var err error
		n, err = io.ReadFull(body, want)
		if err = errors.Join(err, body.Close()); err != nil {
			return n, o.failed(err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.pos
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, o.failed(fs.ErrInvalid)
	}
	o.pos = offset
	return offset, nil
}

func (o *object) Close() error {
	o.closeStream()
	return nil
}

func (o *object) closeStream() {
	if o.stream != nil {
		// A connection that does not close well is no fault of the file.
		_ = o.stream.Close()
		o.stream = nil
	}
}

// failed makes err name the file.
func (o *object) failed(err error) error {
	if err == nil || err == io.EOF { // io.EOF is returned bare by contract
		return err
	}
	return &fs.PathError{Op: "read", Path: o.location, Err: err}
}

func (o *object) Stat() (fs.FileInfo, error) {
	return objectInfo{name: baseName(o.location), size: o.size, modified: o.modified}, nil
}

type objectInfo struct {
	name     string
	size     int64
	modified time.Time
}

func (i objectInfo) Name() string       { return i.name }
func (i objectInfo) Size() int64        { return i.size }
func (i objectInfo) Mode() fs.FileMode  { return 0 }
func (i objectInfo) ModTime() time.Time { return i.modified }
func (i objectInfo) IsDir() bool        { return false }
func (i objectInfo) Sys() any           { return nil }

// baseName is what follows the last slash of a location.
func baseName(location string) string { return location[strings.LastIndexByte(location, '/')+1:] }

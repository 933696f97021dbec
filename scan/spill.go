// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// SpillError is a temporary file that rows which did not fit into memory could not be written to or read from: the disk is
// full, or the folder is not writable. Another folder gets past it, or more memory.
type SpillError struct {
	Dir string
	Err error
}

func (e *SpillError) Error() string {
	return fmt.Sprintf("keeping rows that do not fit into memory in %s: %v", e.Dir, e.Err)
}

func (e *SpillError) Unwrap() error { return e.Err }

// spillFolder is a folder of temporary files, made when the first is needed. What a killed process leaves behind is never
// read again; the next folder in the same place removes it. It is not safe for concurrent use.
type spillFolder struct {
	parent string // "": the system's
	path   string
	owner  *os.File // nil where none can be kept
	files  []*os.File
	count  int
}

// newSpillFolder names where the folder will be made.
func newSpillFolder(parent string) *spillFolder {
	if parent == "" {
		parent = os.TempDir()
	}
	return &spillFolder{parent: parent}
}

func (f *spillFolder) fail(err error) error {
	if err == nil {
		return nil
	}
	return &SpillError{Dir: f.parent, Err: err}
}

// open makes a temporary file.
func (f *spillFolder) open() (*os.File, error) {
	if f.path == "" {
		sweep(f.parent)
		path, err := os.MkdirTemp(f.parent, spillPrefix)
		if err != nil {
			return nil, f.fail(err)
		}
		f.path, f.owner = path, own(path)
	}
	f.count++
	file, err := os.OpenFile(fmt.Sprintf("%s/%d", f.path, f.count), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, f.fail(err)
	}
	f.files = append(f.files, file)
	return file, nil
}

// remove closes and removes everything.
func (f *spillFolder) remove() error {
	if f.path == "" {
		return nil
	}
	for _, file := range f.files {
		_ = file.Close() // twice for those that are done with
	}
	err := os.RemoveAll(f.path)
	if f.owner != nil {
		_ = f.owner.Close()
	}
	return f.fail(err)
}

// spillBuffer is how large the buffer of one of many open files may be.
func spillBuffer(memory int64) int { return int(min(max(memory/(8*spread), 512), 64<<10)) }

// spillFile holds the rows of one partition in the order in which they came.
type spillFile struct {
	folder *spillFolder
	file   *os.File
	w      *bufio.Writer
	head   []byte
}

func (f *spillFolder) create(buffer int) (*spillFile, error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	return &spillFile{folder: f, file: file, w: bufio.NewWriterSize(file, buffer)}, nil
}

func (s *spillFile) write(o order, row, carried []byte) error {
	s.head = appendRowHead(s.head[:0], o, len(row), len(carried))
	for _, part := range [][]byte{s.head, row, carried} {
		if _, err := s.w.Write(part); err != nil {
			return s.folder.fail(err)
		}
	}
	return nil
}

func appendRowHead(b []byte, o order, row, carried int) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(o))
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(row)), uint64(carried))
}

// drain hands every row to add, which keeps neither slice, and removes the file.
func (s *spillFile) drain(add func(o order, row, carried []byte) error) error {
	if err := s.w.Flush(); err != nil {
		return s.folder.fail(err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return s.folder.fail(err)
	}
	r := &rowReader{r: bufio.NewReaderSize(s.file, max(s.w.Size(), 32<<10))}
	for {
		o, row, carried, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s.folder.fail(err)
		}
		if err := add(o, row, carried); err != nil {
			return err
		}
	}
	return s.folder.fail(errors.Join(s.file.Close(), os.Remove(s.file.Name())))
}

// rowReader reads rows as write wrote them. The slices are valid until the next call.
type rowReader struct {
	r   *bufio.Reader
	buf []byte
}

// next is io.EOF at the end, and io.ErrUnexpectedEOF where a row ends early.
func (r *rowReader) next() (o order, row, carried []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, nil, err
	}
	sizeOfRow, err := binary.ReadUvarint(r.r)
	if err != nil {
		return 0, nil, nil, noEOF(err)
	}
	sizeOfCarried, err := binary.ReadUvarint(r.r)
	if err != nil {
		return 0, nil, nil, noEOF(err)
	}
	size := int(sizeOfRow + sizeOfCarried)
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return 0, nil, nil, noEOF(err)
	}
	return order(binary.BigEndian.Uint64(head[:])), r.buf[:sizeOfRow], r.buf[sizeOfRow:], nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

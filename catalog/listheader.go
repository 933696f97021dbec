// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	iceio "github.com/apache/iceberg-go/io"
)

// ListHeader is what the Avro header of a manifest list says of its snapshot (Iceberg spec, "Manifest lists"; the keys
// are written by the Java, Python, Go and Rust libraries, and are there when the metadata is gone or tells less). The
// spec asks for none of it, and DuckDB writes none.
type ListHeader struct {
	// SnapshotID is 0 where the header leaves it out.
	SnapshotID int64
	// ParentID is nil where the header says that there is no parent, and where it says nothing (NamesParent).
	ParentID *int64
	// NamesParent is false for a list whose writer left the parent out: then nil is no proof of a root.
	NamesParent bool
	// Sequence is 0 in format version 1.
	Sequence int64
	// FormatVersion is 0 where the header leaves it out.
	FormatVersion int
}

const (
	// The header holds the schema of a manifest list as text, about 5 KB.
	firstHeaderRead = 64 << 10
	// A header beyond this is none.
	maxHeaderBytes = 16 << 20
)

// errShort says that a header goes on beyond the bytes at hand.
var errShort = errors.New("ends inside its header")

// ReadListHeader reads the header of the manifest list at location and nothing else of it: one ranged read of 64 KiB.
// A missing list satisfies errors.Is(err, fs.ErrNotExist); a file that is no manifest list is a *CorruptError.
func ReadListHeader(ctx context.Context, fsys iceio.IO, location string) (ListHeader, error) {
	for size := int64(firstHeaderRead); ; size *= 8 {
		prefix, err := readPrefix(ctx, fsys, location, size)
		if err != nil {
			return ListHeader{}, fmt.Errorf("reading manifest list %s: %w", location, err)
		}
		meta, err := avroHeader(prefix)
		if errors.Is(err, errShort) && int64(len(prefix)) == size && size < maxHeaderBytes {
			continue
		}
		var header ListHeader
		if err == nil {
			header, err = parseListHeader(meta)
		}
		if err != nil {
			err = &CorruptError{Kind: "manifest list", Location: location, Err: err}
			return ListHeader{}, fmt.Errorf("reading manifest list: %w", err)
		}
		return header, nil
	}
}

func parseListHeader(meta map[string][]byte) (ListHeader, error) {
	var h ListHeader
	var err error
	if id, ok := meta["snapshot-id"]; ok {
		if h.SnapshotID, err = strconv.ParseInt(string(id), 10, 64); err != nil {
			return h, fmt.Errorf("snapshot-id in its header: %w", err)
		}
	}
	if text, ok := meta["parent-snapshot-id"]; ok {
		h.NamesParent = true
		if string(text) != "null" {
			parent, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				return h, fmt.Errorf("parent-snapshot-id in its header: %w", err)
			}
			if parent != NoSnapshot {
				h.ParentID = &parent
			}
		}
	}
	if text, ok := meta["sequence-number"]; ok {
		if h.Sequence, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return h, fmt.Errorf("sequence-number in its header: %w", err)
		}
	}
	if text, ok := meta["format-version"]; ok {
		if h.FormatVersion, err = strconv.Atoi(string(text)); err != nil {
			return h, fmt.Errorf("format-version in its header: %w", err)
		}
	}
	return h, nil
}

// avroHeader parses the metadata map of an Avro object container file: four magic bytes, then blocks of string keys and
// byte values, ended by an empty block (Avro spec, "Object container files").
func avroHeader(b []byte) (map[string][]byte, error) {
	magic := []byte{'O', 'b', 'j', 1}
	if len(b) < len(magic) && bytes.HasPrefix(magic, b) {
		return nil, errShort
	}
	if !bytes.HasPrefix(b, magic) {
		return nil, errors.New("not an Avro file")
	}
	r := avroReader{rest: b[len(magic):]}
	meta := map[string][]byte{}
	for {
		n, err := r.long()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return meta, nil
		}
		if n < 0 {
			// A negative count is followed by the block's size in bytes, for readers that skip it.
			if _, err := r.long(); err != nil {
				return nil, err
			}
			n = -n
		}
		for ; n > 0; n-- {
			key, err := r.bytes()
			if err != nil {
				return nil, err
			}
			if meta[string(key)], err = r.bytes(); err != nil {
				return nil, err
			}
		}
	}
}

type avroReader struct{ rest []byte }

func (r *avroReader) long() (int64, error) {
	n, size := binary.Varint(r.rest)
	if size == 0 {
		return 0, errShort
	}
	if size < 0 {
		return 0, errors.New("number in its header is too long")
	}
	r.rest = r.rest[size:]
	return n, nil
}

func (r *avroReader) bytes() ([]byte, error) {
	n, err := r.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxHeaderBytes {
		return nil, fmt.Errorf("length %d in its header", n)
	}
	if int64(len(r.rest)) < n {
		return nil, errShort
	}
	value := r.rest[:n]
	r.rest = r.rest[n:]
	return value, nil
}

// prefixIO is implemented by a file IO that reads the first bytes of a file without opening the rest of it.
type prefixIO interface {
	ReadPrefix(location string, n int64) ([]byte, error)
}

// readPrefix reads up to n bytes from the start of a file.
func readPrefix(ctx context.Context, fsys iceio.IO, location string, n int64) (_ []byte, err error) {
	fsys = Within(ctx, fsys)
	if p, ok := fsys.(prefixIO); ok {
		return p.ReadPrefix(location, n)
	}
	f, err := fsys.Open(location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, n))
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/compress"
	iceio "github.com/apache/iceberg-go/io"
)

// arrow-go trusts much of what a Parquet file says of itself: it allocates the bytes that a column chunk is said to have,
// and takes for granted that a page header describes the kind of page that it names. iceberg-go lets it decode in
// goroutines of their own, where a panic ends the process. So the files that iceberg-go opens are looked over as their
// bytes come by: the footer when it is read, and the page headers of a column chunk, which arrow-go reads at once. Bodies
// of pages are not touched, save for the levels of columns inside of lists and maps (workaround_levels.go).

// guardedIO lends iceberg-go files that answer an error where what was read would make arrow-go panic.
type guardedIO struct {
	iceio.IO
	wanted []int // field ids of the columns that are read; nil: whoever reads catches panics, and only wants its memory kept
}

func (g guardedIO) Open(name string) (iceio.File, error) {
	file, err := g.IO.Open(name)
	if err != nil {
		return nil, err
	}
	return &guardedFile{File: file, path: name, wanted: g.wanted, footer: -1}, nil
}

// panicsInto, deferred, makes an error of a panic over the task's file.
func (t Task) panicsInto(err *error) {
	if cause := recover(); cause != nil {
		*err = t.panicked(cause)
	}
}

// brokenFileError is what a guarded file answers.
type brokenFileError struct {
	path string
	err  error
}

func (e *brokenFileError) Error() string { return e.err.Error() }

func (e *brokenFileError) Unwrap() error { return e.err }

// guardedFile notices the reads of arrow-go's file reader: the end, of which it asks the size first, then the footer, and
// then column chunks, by several goroutines.
type guardedFile struct {
	iceio.File
	path   string
	wanted []int
	size   int64
	footer int64           // where it begins; -1: not known yet
	chunks map[int64]chunk // by where they begin
	shapes shapes
}

func (f *guardedFile) Seek(offset int64, whence int) (int64, error) {
	at, err := f.File.Seek(offset, whence)
	if whence == io.SeekEnd && offset == 0 && err == nil {
		f.size = at
	}
	return at, err
}

const parquetTail = 8 // bytes: the footer's length and "PAR1"

func (f *guardedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if n < len(p) {
		return n, err
	}
	if broken := f.look(p, off); broken != nil {
		return 0, &brokenFileError{f.path, broken}
	}
	return n, err
}

func (f *guardedFile) look(p []byte, off int64) error {
	switch end := off + int64(len(p)); {
	case f.chunks != nil:
		if c, ok := f.chunks[off]; ok && int64(len(p)) >= c.length {
			return c.check(p, &f.shapes)
		}
	case end == f.size && len(p) == parquetTail:
		f.footer = off - int64(binary.LittleEndian.Uint32(p))
	case end == f.size-parquetTail && off == f.footer:
		chunks, err := chunksOf(p, f.footer, f.wanted)
		if f.wanted != nil {
			f.chunks = chunks
		}
		return err
	}
	return nil
}

// chunk is a column chunk as the footer describes it.
type chunk struct {
	start, length int64
	values, rows  int64
	group         int
	codec         int64
	dictionary    int64 // where its dictionary begins; 0: it is not said
	encrypted     bool
	leafLevels
}

// chunksOf are a footer's column chunks, which must lie before limit. The footer does not name an Arrow schema any more.
func chunksOf(data []byte, limit int64, wanted []int) (map[int64]chunk, error) {
	r := &thriftReader{data: data}
	var leaves []leafLevels
	chunks, group := map[int64]chunk{}, 0
	var broken error
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 2 && kind == thriftList:
			from := r.data
			elements := r.schema()
			if leaves, broken = leavesOf(elements); broken == nil && wanted != nil {
				broken = cmp.Or(distinctIDs(elements, wanted), trySchema(from[:len(from)-len(r.data)]))
			}
		case id == 4 && kind == thriftList:
			r.eachStruct(func() {
				for i, c := range r.rowGroup() {
					if i < len(leaves) {
						c.leafLevels = leaves[i]
					}
					if broken == nil {
						broken = c.within(limit)
					}
					c.group = group
					chunks[c.start] = c
				}
				group++
			})
		case id == 5 && kind == thriftList:
			r.eachStruct(r.withholdArrowSchema)
		default:
			r.skip(kind, 0)
		}
	})
	if r.bad {
		return nil, errThrift
	}
	return chunks, broken
}

// withholdArrowSchema reads a KeyValue, and spells its key otherwise where it is that of the Arrow schema. What a table's
// column is, the table says, and arrow-go allocates what lengths in there say.
func (r *thriftReader) withholdArrowSchema() {
	r.each(func(id int16, kind thriftKind) {
		if id != 1 || kind != thriftBytes {
			r.skip(kind, 0)
			return
		}
		if key := r.take(r.unsigned()); string(key) == arrowSchemaKey {
			key[0] = 'a'
		}
	})
}

func (c chunk) within(limit int64) error {
	if c.start < 0 || c.length < 0 || c.values < 0 || c.start > limit || c.length > limit-c.start {
		return fmt.Errorf("a column chunk of %d values at byte %d is said to have %d bytes; the file has %d before its footer", c.values, c.start, c.length, limit)
	}
	if c.maxRep == 0 && c.values != c.rows && !c.encrypted {
		return fmt.Errorf("a column chunk at byte %d is said to have %d values and its row group %d rows", c.start, c.values, c.rows)
	}
	return nil
}

// eachStruct visits the elements of a list that are structs.
func (r *thriftReader) eachStruct(visit func()) {
	r.eachElement(func(kind thriftKind) {
		if kind == thriftStruct {
			visit()
		} else {
			r.skip(kind, 0)
		}
	})
}

// rowGroup reads a RowGroup (parquet.thrift).
func (r *thriftReader) rowGroup() (chunks []chunk) {
	var rows int64
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 1 && kind == thriftList:
			r.eachStruct(func() { chunks = append(chunks, r.chunk()) })
		case id == 3 && kind == thriftInt64:
			rows = r.signed()
		default:
			r.skip(kind, 0)
		}
	})
	for i := range chunks {
		chunks[i].rows = rows
	}
	return chunks
}

// chunk reads a ColumnChunk.
func (r *thriftReader) chunk() (c chunk) {
	meta := map[int16]*int64{4: &c.codec, 5: &c.values, 7: &c.length, 9: &c.start, 11: &c.dictionary}
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 3 && kind == thriftStruct:
			r.numbers(meta)
		case id == 8:
			c.encrypted = true
			r.skip(kind, 0)
		default:
			r.skip(kind, 0)
		}
	})
	if c.dictionary > 0 && c.dictionary < c.start {
		c.start = c.dictionary
	}
	return c
}

// numbers reads the integers of a struct that are wanted, by their ids, and reports whether a field is false.
func (r *thriftReader) numbers(wanted map[int16]*int64) (deny bool) {
	r.each(func(id int16, kind thriftKind) {
		if to := wanted[id]; to != nil && (kind == thriftInt32 || kind == thriftInt64) {
			*to = r.signed()
		} else {
			deny = deny || kind == thriftFalse
			r.skip(kind, 0)
		}
	})
	return deny
}

// Kinds of pages (PageType of parquet.thrift).
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// pageHeader is what is needed of a PageHeader.
type pageHeader struct {
	kind, uncompressed, compressed int64
	described                      int64 // the kind that there are fields of
	values, rows                   int64
	encoding                       int64
	// Of the levels: their encoding in the first version of data pages, their bytes in the second, where they are never
	// compressed and the values may not be.
	defEncoding, repEncoding int64
	defBytes, repBytes       int64
	stored                   bool
}

func (r *thriftReader) pageHeader() pageHeader {
	h := pageHeader{kind: -1, described: -1}
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 5 && kind == thriftStruct:
			h.described = dataPage
			r.numbers(map[int16]*int64{1: &h.values, 2: &h.encoding, 3: &h.defEncoding, 4: &h.repEncoding})
		case id == 7 && kind == thriftStruct:
			h.described = dictionaryPage
			r.numbers(map[int16]*int64{1: &h.values, 2: &h.encoding})
		case id == 8 && kind == thriftStruct:
			h.described = dataPageV2
			h.stored = r.numbers(map[int16]*int64{1: &h.values, 3: &h.rows, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes})
		case id == 1 && kind == thriftInt32:
			h.kind = r.signed()
		case id == 2 && kind == thriftInt32:
			h.uncompressed = r.signed()
		case id == 3 && kind == thriftInt32:
			h.compressed = r.signed()
		default:
			r.skip(kind, 0)
		}
	})
	return h
}

// decodable are the encodings that arrow-go has decoders for, by physical type. For others its decoders panic, or it
// answers an error of its own.
var decodable = map[int64][]int64{
	0: {encodingPlain, encodingRLE},
	1: {encodingPlain, encodingPlainDictionary, encodingDeltaPacked, encodingDictionary, encodingSplit},
	2: {encodingPlain, encodingPlainDictionary, encodingDeltaPacked, encodingDictionary, encodingSplit},
	3: {encodingPlain, encodingPlainDictionary, encodingDictionary},
	4: {encodingPlain, encodingPlainDictionary, encodingDictionary, encodingSplit},
	5: {encodingPlain, encodingPlainDictionary, encodingDictionary, encodingSplit},
	6: {encodingPlain, encodingPlainDictionary, encodingDeltaLength, encodingDeltaBytes, encodingDictionary},
	7: {encodingPlain, encodingPlainDictionary, encodingDictionary, encodingSplit},
}

// Encodings (parquet.thrift).
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDeltaPacked     = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

var errPageHeader = errors.New("a page header is not in Thrift's compact protocol")

// check walks a chunk's page headers as far as arrow-go does.
func (c chunk) check(data []byte, shapes *shapes) error {
	if c.encrypted {
		return nil
	}
	levels := c.levelsOf(shapes)
	r := &thriftReader{data: data}
	var values int64
	for seen := int64(0); seen < c.values && len(r.data) > 0; {
		at := len(data) - len(r.data)
		h := r.pageHeader()
		if r.bad {
			return errPageHeader
		}
		if err := c.checkPage(h, int64(len(r.data))); err != nil {
			return fmt.Errorf("the page at byte %d: %w", c.start+int64(at), err)
		}
		body := r.take(uint64(h.compressed))
		if err := c.checkSnappy(h, body); err != nil {
			return fmt.Errorf("the page at byte %d: %w", c.start+int64(at), err)
		}
		if h.kind == dictionaryPage {
			continue
		}
		if err := levels.page(h, body); err != nil {
			return fmt.Errorf("the page at byte %d: %w", c.start+int64(at), err)
		}
		values += h.values
		if seen += h.values; h.kind == dataPageV2 {
			seen += h.rows - h.values
		}
	}
	if values != c.values {
		return fmt.Errorf("the pages of the column chunk at byte %d have %d values and its footer says %d", c.start, values, c.values)
	}
	return levels.end()
}

// checkPage checks what a header says, behind which the chunk has left bytes.
func (c chunk) checkPage(h pageHeader, left int64) error {
	switch {
	case h.kind != dataPage && h.kind != dictionaryPage && h.kind != dataPageV2:
		return fmt.Errorf("its kind %d is unknown", h.kind)
	case h.described != h.kind:
		return fmt.Errorf("its header does not describe a page of its kind, %d", h.kind)
	case h.compressed < 0 || h.uncompressed < 0 || h.compressed > left:
		return fmt.Errorf("it is said to have %d bytes; its column chunk has %d more", h.compressed, left)
	case h.repBytes < 0 || h.defBytes < 0 || h.repBytes+h.defBytes > min(h.compressed, h.uncompressed):
		return errLevels
	case h.values < 0 || h.rows < 0:
		return fmt.Errorf("it is said to have %d values in %d rows", h.values, h.rows)
	case !slices.Contains(decodable[c.physical], h.encoding), c.physical == 0 && h.kind == dictionaryPage:
		return fmt.Errorf("its encoding %d is none for the physical type %d", h.encoding, c.physical)
	case c.dictionary > c.start && (h.encoding == encodingDictionary || h.encoding == encodingPlainDictionary):
		return fmt.Errorf("its dictionary is said to begin at byte %d, behind it", c.dictionary)
	}
	return nil
}

// checkSnappy checks the length that a Snappy block begins with, which arrow-go allocates.
func (c chunk) checkSnappy(h pageHeader, body []byte) error {
	if c.codec != int64(compress.Codecs.Snappy) || h.stored {
		return nil
	}
	block := body[h.repBytes+h.defBytes:]
	if length, n := binary.Uvarint(block); n > 0 && length != uint64(h.uncompressed-h.repBytes-h.defBytes) {
		return fmt.Errorf("it is said to have %d bytes uncompressed and has %d", h.uncompressed, length)
	}
	return nil
}

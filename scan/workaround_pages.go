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
	wanted []int // field ids of the columns that are read
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
		return f.lookAtFooter(p)
	}
	return nil
}

func (f *guardedFile) lookAtFooter(p []byte) error {
	says, err := footerFactsOf(p, f.footer, &knownSchema{}, func(all []byte, elements []schemaElement) error {
		return cmp.Or(distinctIDs(elements, f.wanted), trySchema(all))
	})
	f.chunks = map[int64]chunk{}
	for _, g := range says.groups {
		for _, c := range g.chunks {
			f.chunks[c.start] = c
		}
	}
	return err
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
	encodingBitPacked       = 4
	encodingDeltaPacked     = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// deltaOfFixed is what workaround_delta.go reads where the column has no other encoding.
const deltaOfFixed = "a column that has values of a fixed length in DELTA_BYTE_ARRAY beside other encodings"

var errPageHeader = errors.New("a page header is not in Thrift's compact protocol")

// check walks a chunk's page headers as far as arrow-go does.
func (c *chunk) check(data []byte, shapes *shapes) error {
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
		if err := c.checkSnappy(h, body[h.repBytes+h.defBytes:]); err != nil {
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
func (c *chunk) checkPage(h pageHeader, left int64) error {
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
	case h.encoding == encodingDeltaBytes && c.physical == 7:
		return &UnsupportedError{What: deltaOfFixed}
	case !slices.Contains(decodable[c.physical], h.encoding), c.physical == 0 && h.kind == dictionaryPage:
		return fmt.Errorf("its encoding %d is none for the physical type %d", h.encoding, c.physical)
	case c.dictionary > c.start && (h.encoding == encodingDictionary || h.encoding == encodingPlainDictionary):
		return fmt.Errorf("its dictionary is said to begin at byte %d, behind it", c.dictionary)
	}
	return nil
}

// checkSnappy checks the length that a page's Snappy block begins with, which arrow-go allocates.
func (c *chunk) checkSnappy(h pageHeader, block []byte) error {
	if c.codec != int64(compress.Codecs.Snappy) || h.stored {
		return nil
	}
	if length, n := binary.Uvarint(block); n > 0 && length != uint64(h.uncompressed-h.repBytes-h.defBytes) {
		return fmt.Errorf("it is said to have %d bytes uncompressed and has %d", h.uncompressed, length)
	}
	return nil
}

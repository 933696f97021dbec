// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	iceio "github.com/apache/iceberg-go/io"
)

// What a Parquet file says of itself, in its footer and in front of each page, as far as it is needed: to read pages
// directly, and to refuse what would make another decoder panic (parquet.thrift).

// footerFacts are a footer's.
type footerFacts struct {
	schema []byte // its elements, as stored
	rows   int64
	groups []rowGroupFacts
	// encrypted says that columns are.
	encrypted bool
}

type rowGroupFacts struct {
	rows   int64
	chunks []chunk
}

// chunk is a column chunk as the footer describes it.
type chunk struct {
	start, length int64
	values, rows  int64
	group         int
	codec         int64
	dictionary    int64 // where its dictionary begins; 0: it is not said
	decompressed  int64 // bytes
	encodings     encodingSet
	plainPages    bool // some data pages are PLAIN, by statistics that not all writers keep
	encrypted     bool
	leafLevels
}

// encodingSet is a set of encodings. All that no version of the format has are one.
type encodingSet uint32

func encodingsOf(all ...parquet.Encoding) (s encodingSet) {
	for _, e := range all {
		s = s.with(int64(e))
	}
	return s
}

func (s encodingSet) with(encoding int64) encodingSet {
	if encoding < 0 || encoding > 31 {
		encoding = 31
	}
	return s | 1<<encoding
}

// parquetTail is bytes: the footer's length and parquetMagic.
const (
	parquetTail  = 8
	parquetMagic = "PAR1"
)

// footerOf reads a file's footer, which begins at start.
func footerOf(f iceio.File) (data []byte, start, size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, 0, err
	}
	var tail [parquetTail]byte
	if size < int64(len(tail)+len(parquetMagic)) {
		return nil, 0, 0, errThrift
	}
	if _, err := f.ReadAt(tail[:], size-parquetTail); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, 0, err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if start = size - parquetTail - length; string(tail[4:]) != parquetMagic || start < int64(len(parquetMagic)) {
		return nil, 0, 0, errThrift
	}
	data = make([]byte, length)
	if n, err := f.ReadAt(data, start); n < len(data) {
		return nil, 0, 0, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	return data, start, size, nil
}

// knownSchema is a schema's columns. Files of one table mostly have one schema.
type knownSchema struct {
	elements []byte
	leaves   []leafLevels
	schema   *schema.Schema // arrow-go's, if somebody has asked for it
}

// footerFactsOf are what a footer says, whose column chunks must lie before limit. check, if it is not nil, looks at the schema
// where it is not the one that is known. The footer does not name an Arrow schema any more.
func footerFactsOf(data []byte, limit int64, known *knownSchema, check func(all []byte, elements []schemaElement) error) (footerFacts, error) {
	r := &thriftReader{data: data}
	f := footerFacts{}
	var broken error
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 2 && kind == thriftList:
			from := r.data
			r.skip(kind, 0)
			if f.schema = from[:len(from)-len(r.data)]; !r.bad && broken == nil && !bytes.Equal(f.schema, known.elements) {
				broken = known.learn(f.schema, check)
			}
		case id == 3 && kind == thriftInt64:
			f.rows = r.signed()
		case id == 4 && kind == thriftList:
			r.eachStruct(func() {
				group := r.rowGroup()
				for i := range group.chunks {
					c := &group.chunks[i]
					if c.group = len(f.groups); i < len(known.leaves) {
						c.leafLevels = known.leaves[i]
					}
					if broken == nil {
						broken = c.within(limit)
					}
					f.encrypted = f.encrypted || c.encrypted
				}
				f.groups = append(f.groups, group)
			})
		case id == 5 && kind == thriftList:
			r.eachStruct(r.withholdArrowSchema)
		default:
			r.skip(kind, 0)
		}
	})
	if r.bad {
		return footerFacts{}, errThrift
	}
	return f, broken
}

func (k *knownSchema) learn(elements []byte, check func([]byte, []schemaElement) error) (err error) {
	*k = knownSchema{}
	r := &thriftReader{data: elements}
	parsed := r.schema()
	if r.bad {
		return errThrift
	}
	if k.leaves, err = leavesOf(parsed); err != nil {
		return err
	}
	if check != nil {
		err = check(elements, parsed)
	}
	k.elements = bytes.Clone(elements)
	return err
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

func (c *chunk) within(limit int64) error {
	if c.start < 0 || c.length < 0 || c.values < 0 || c.start > limit || c.length > limit-c.start {
		return fmt.Errorf("a column chunk of %d values at byte %d is said to have %d bytes; the file has %d before its footer", c.values, c.start, c.length, limit)
	}
	if c.maxRep == 0 && c.values != c.rows && !c.encrypted {
		return fmt.Errorf("a column chunk at byte %d is said to have %d values and its row group %d rows", c.start, c.values, c.rows)
	}
	return nil
}

// rowGroup reads a RowGroup.
func (r *thriftReader) rowGroup() (g rowGroupFacts) {
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 1 && kind == thriftList:
			r.eachStruct(func() { g.chunks = append(g.chunks, r.chunk()) })
		case id == 3 && kind == thriftInt64:
			g.rows = r.signed()
		default:
			r.skip(kind, 0)
		}
	})
	for i := range g.chunks {
		g.chunks[i].rows = g.rows
	}
	return g
}

// chunk reads a ColumnChunk.
func (r *thriftReader) chunk() (c chunk) {
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 3 && kind == thriftStruct:
			r.columnMeta(&c)
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

// columnMeta reads a ColumnMetaData.
func (r *thriftReader) columnMeta(c *chunk) {
	numbers := [...]*int64{4: &c.codec, 5: &c.values, 6: &c.decompressed, 7: &c.length, 9: &c.start, 11: &c.dictionary}
	r.each(func(id int16, kind thriftKind) {
		switch {
		case id == 2 && kind == thriftList:
			r.eachElement(func(kind thriftKind) {
				if kind != thriftInt32 {
					r.skip(kind, 0)
					return
				}
				c.encodings = c.encodings.with(r.signed())
			})
		case id == 13 && kind == thriftList:
			r.eachStruct(func() {
				page, encoding := int64(-1), int64(-1)
				r.numbers([]*int64{1: &page, 2: &encoding})
				c.plainPages = c.plainPages || (page == dataPage && encoding == encodingPlain)
			})
		default:
			r.number(id, kind, numbers[:])
		}
	})
}

// numbers reads the integers of a struct that are wanted, by their ids, and reports whether a field is false.
func (r *thriftReader) numbers(wanted []*int64) (deny bool) {
	r.each(func(id int16, kind thriftKind) {
		deny = deny || kind == thriftFalse
		r.number(id, kind, wanted)
	})
	return deny
}

// number reads a field if it is a wanted integer, and else skips it.
func (r *thriftReader) number(id int16, kind thriftKind, wanted []*int64) {
	if id >= 0 && int(id) < len(wanted) && wanted[id] != nil && (kind == thriftInt32 || kind == thriftInt64) {
		*wanted[id] = r.signed()
	} else {
		r.skip(kind, 0)
	}
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
			r.numbers([]*int64{1: &h.values, 2: &h.encoding, 3: &h.defEncoding, 4: &h.repEncoding})
		case id == 7 && kind == thriftStruct:
			h.described = dictionaryPage
			r.numbers([]*int64{1: &h.values, 2: &h.encoding})
		case id == 8 && kind == thriftStruct:
			h.described = dataPageV2
			h.stored = r.numbers([]*int64{1: &h.values, 3: &h.rows, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes})
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

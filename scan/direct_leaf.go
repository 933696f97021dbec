// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// errIndirect says that only the general decoder reads this.
var errIndirect = errors.New("not readable directly")

// leaf is one column of a Parquet file while rows are written. Its pages come one after another. A window is a run of
// rows whose levels are decoded and whose values are ready.
type leaf struct {
	index          int   // in the file
	maxDef, maxRep uint8 // levels of a value that is there

	plain   pageValues
	indexed indexed
	runs    pageValues // of booleans; nil otherwise

	pages  file.PageReader
	unread int64 // entries (values or what stands for a missing one) in pages that were not begun
	total  int64 // entries of the chunk
	full   bool  // all pages use the dictionary: it did not grow too large

	// The page. A leaf without repetition decodes its levels window by window: entries counts what is left of it. One
	// with repetition decodes them as a whole, behind those of a row that the page before did not end.
	values  pageValues
	levels  hybrid
	entries int
	// carried are the values of that row, which lie in no page any more; written counts those that are written.
	carried encodedValues
	written int

	// The window.
	defs, reps []uint8 // of its entries; nil defs: all of them have a value
	room       []uint8
	pending    []uint8 // levels of the entries that no window has had; reps likewise
	pendingRep []uint8
	at, end    int // entry
	out        appender
	k          int // value
}

// begin starts a column chunk.
func (l *leaf) begin(pages file.PageReader, chunk *metadata.ColumnChunkMetaData) {
	l.pages, l.unread, l.total, l.full = pages, chunk.NumValues(), chunk.NumValues(), true
	for _, s := range chunk.EncodingStats() {
		if s.Encoding == parquet.Encodings.Plain && s.PageType == file.PageTypeDataPage {
			l.full = false
		}
	}
	l.values, l.indexed.out = nil, nil
	l.entries, l.pending, l.pendingRep = 0, l.pending[:0], l.pendingRep[:0]
	l.carried.reset()
	l.written = 0
}

// available is how many whole rows can be taken, at least one; an error at the end of the chunk.
func (l *leaf) available() (int, error) {
	if l.maxRep == 0 {
		for l.entries == 0 {
			if err := l.nextPage(); err != nil {
				return 0, err
			}
		}
		return l.entries, nil
	}
	for {
		rows := 0
		for _, r := range l.pendingRep {
			if r == 0 {
				rows++
			}
		}
		if l.unread > 0 {
			rows-- // the last row may go on in the next page
		}
		if rows > 0 {
			return rows, nil
		}
		if err := l.carry(); err != nil {
			return 0, err
		}
		if err := l.nextPage(); err != nil {
			return 0, err
		}
	}
}

// carry encodes what is left of the page, before the next page takes its memory.
func (l *leaf) carry() error {
	if l.written == len(l.carried.ends) {
		l.carried.reset()
		l.written = 0
	}
	if n := l.present(l.pending) - l.carriedValues(); n > 0 {
		return l.carried.encode(l.values, n)
	}
	return nil
}

func (l *leaf) carriedValues() int { return len(l.carried.ends) - l.written }

// window takes the next n rows.
func (l *leaf) window(n int) (err error) {
	l.at, l.k = 0, 0
	if l.maxRep == 0 {
		l.entries -= n
		l.end = n
		present := n
		l.defs = nil
		if l.maxDef > 0 && !l.levels.all(uint32(l.maxDef), n) {
			l.room = slices.Grow(l.room[:0], n)[:n]
			if err := l.levels.small(l.room); err != nil {
				return err
			}
			if present = l.present(l.room); present < n {
				l.defs = l.room
			}
		}
		l.out, err = l.values.ready(present)
		return err
	}
	return l.repeatedWindow(n)
}

func (l *leaf) repeatedWindow(n int) (err error) {
	// What the last window had is at the front.
	end := 0
	for rows := 0; end < len(l.pendingRep); end++ {
		if l.pendingRep[end] == 0 {
			if rows++; rows > n {
				break
			}
		}
	}
	l.defs, l.reps = l.pending[:end], l.pendingRep[:end]
	l.pending, l.pendingRep = l.pending[end:], l.pendingRep[end:]
	l.end = end
	l.out, err = l.values.ready(l.present(l.defs) - l.carriedValues())
	return err
}

func (l *leaf) present(defs []uint8) int {
	n := 0
	for _, d := range defs {
		if d == l.maxDef {
			n++
		}
	}
	return n
}

// append writes the next entry, of which the ancestors know that it stands for a value of this leaf or a missing one.
func (l *leaf) append(b []byte) []byte {
	if l.defs != nil {
		d := l.def()
		l.at++
		if d != l.maxDef {
			return appendNull(b)
		}
	}
	if l.written < len(l.carried.ends) {
		l.written++
		return l.carried.append(b, l.written-1)
	}
	k := l.k
	l.k++
	return l.out.append(b, k)
}

// skip passes an entry that stands for a missing ancestor.
func (l *leaf) skip() { l.at++ }

// def is the definition level of the next entry: 0 behind the window, where only levels that contradict those of another
// leaf lead; see check.
func (l *leaf) def() uint8 {
	if l.defs == nil {
		return l.maxDef
	}
	if l.at >= len(l.defs) {
		return 0
	}
	return l.defs[l.at]
}

// check reports whether all of the window was written and nothing else.
func (l *leaf) check() error {
	if l.defs != nil && l.at != l.end {
		return fmt.Errorf("column %d has %d entries where others have %d", l.index, l.end, l.at)
	}
	return nil
}

// nextPage loads a data page, and the dictionary before it.
func (l *leaf) nextPage() error {
	for l.unread > 0 && l.pages.Next() {
		var levels pageLevels
		page := l.pages.Page()
		switch p := page.(type) {
		case *file.DictionaryPage:
			if err := l.setDictionary(p); err != nil {
				return err
			}
			continue
		case *file.DataPageV1:
			levels = pageLevels{rest: p.Data(), prefixed: true}
			if (l.maxDef > 0 && p.DefinitionLevelEncoding() != parquet.Encodings.RLE) ||
				(l.maxRep > 0 && p.RepetitionLevelEncoding() != parquet.Encodings.RLE) {
				return errIndirect
			}
		case *file.DataPageV2:
			levels = pageLevels{rest: p.Data(), repSize: int(p.RepetitionLevelByteLen()), defSize: int(p.DefinitionLevelByteLen())}
		default:
			continue
		}
		l.unread -= int64(page.NumValues())
		return l.setPage(levels, int(page.NumValues()), parquet.Encoding(page.Encoding()))
	}
	if err := l.pages.Err(); err != nil {
		return err
	}
	return fmt.Errorf("column %d ends before its rows", l.index)
}

func (l *leaf) setDictionary(p *file.DictionaryPage) error {
	n := int(p.NumValues())
	return l.indexed.dictionary(p.Data(), n, l.full && int64(n)*reuse <= l.total)
}

func (l *leaf) setPage(levels pageLevels, n int, encoding parquet.Encoding) error {
	reps, err := levels.rep(l.maxRep)
	if err != nil {
		return err
	}
	defs, err := levels.def(l.maxDef)
	if err != nil {
		return err
	}
	switch encoding {
	case parquet.Encodings.Plain:
		l.values = l.plain
	case parquet.Encodings.RLEDict, parquet.Encodings.PlainDict:
		l.values = &l.indexed
	case parquet.Encodings.RLE:
		l.values = l.runs
	default:
		l.values = nil
	}
	if l.values == nil {
		return errIndirect
	}
	l.values.page(levels.rest, n)
	if l.maxRep == 0 {
		l.levels, l.entries = defs, n
		return nil
	}
	if l.pending, err = appendLevels(l.pending, &defs, n); err != nil {
		return err
	}
	l.pendingRep, err = appendLevels(l.pendingRep, &reps, n)
	return err
}

// appendLevels moves what is left to the buffer's front and decodes n levels behind it.
func appendLevels(left []uint8, from *hybrid, n int) ([]uint8, error) {
	old := len(left)
	left = slices.Grow(left, n)[:old+n]
	return left, from.small(left[old:])
}

// pageLevels splits a page into its levels and its values.
type pageLevels struct {
	rest             []byte
	prefixed         bool // each kind of levels is behind its size
	repSize, defSize int
}

func (p *pageLevels) rep(most uint8) (hybrid, error) { return p.take(most, p.repSize) }
func (p *pageLevels) def(most uint8) (hybrid, error) { return p.take(most, p.defSize) }

func (p *pageLevels) take(most uint8, size int) (hybrid, error) {
	if p.prefixed {
		if most == 0 {
			return hybrid{}, nil
		}
		if len(p.rest) < 4 {
			return hybrid{}, errShortPage
		}
		size = int(binary.LittleEndian.Uint32(p.rest))
		p.rest = p.rest[4:]
	}
	if size < 0 || size > len(p.rest) {
		return hybrid{}, errShortPage
	}
	h := newHybrid(p.rest[:size], bits.Len8(most))
	p.rest = p.rest[size:]
	return h, nil
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
)

// leaf is one column of a Parquet file while rows are written. Its pages come one after another. A window is a run of
// rows whose levels are decoded and whose values are ready.
type leaf struct {
	index          int   // in the file
	maxDef, maxRep uint8 // levels of a value that is there

	plain   pageValues
	indexed indexed
	runs    pageValues // of booleans; nil otherwise

	pages  chunkPages
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
func (l *leaf) begin(chunk *chunk) {
	l.unread, l.total, l.full = chunk.values, chunk.values, !chunk.plainPages
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
	for l.unread > 0 {
		p, err := l.pages.next()
		if err != nil {
			return fmt.Errorf("column %d: %w", l.index, err)
		}
		if p.kind == dictionaryPage {
			if err := l.setDictionary(p); err != nil {
				return err
			}
			continue
		}
		l.unread -= p.pageHeader.values
		return l.setPage(p)
	}
	return fmt.Errorf("column %d ends before its rows", l.index)
}

func (l *leaf) setDictionary(p page) error {
	n := p.pageHeader.values
	return l.indexed.dictionary(p.values, int(n), l.full && n*reuse <= l.total)
}

func (l *leaf) setPage(p page) (err error) {
	values := p.values
	if p.kind == dataPage {
		if (l.maxRep > 0 && p.repEncoding != encodingRLE) || (l.maxDef > 0 && p.defEncoding != encodingRLE) {
			return errIndirect
		}
		if l.maxRep > 0 {
			if p.reps, values, err = lengthPrefixed(values); err != nil {
				return err
			}
		}
		if l.maxDef > 0 {
			if p.defs, values, err = lengthPrefixed(values); err != nil {
				return err
			}
		}
	}
	if l.values = l.decoder(p.encoding); l.values == nil {
		return errIndirect
	}
	n := int(p.pageHeader.values)
	l.values.page(values, n)
	defs := newHybrid(p.defs, bits.Len8(l.maxDef))
	if l.maxRep == 0 {
		l.levels, l.entries = defs, n
		return nil
	}
	reps := newHybrid(p.reps, bits.Len8(l.maxRep))
	if l.pending, err = appendLevels(l.pending, &defs, n); err != nil {
		return err
	}
	l.pendingRep, err = appendLevels(l.pendingRep, &reps, n)
	return err
}

// decoder is what reads values of an encoding; nil where only the general decoder does.
func (l *leaf) decoder(encoding int64) pageValues {
	switch encoding {
	case encodingPlain:
		return l.plain
	case encodingDictionary, encodingPlainDictionary:
		return &l.indexed
	case encodingRLE:
		return l.runs
	}
	return nil
}

// readable are the encodings that a column chunk may have to be read directly. The last is said of levels that are not
// there.
var readable = encodingsOf(parquet.Encodings.Plain, parquet.Encodings.RLE, parquet.Encodings.RLEDict, parquet.Encodings.PlainDict, parquet.Encodings.BitPacked)

// appendLevels moves what is left to the buffer's front and decodes n levels behind it.
func appendLevels(left []uint8, from *hybrid, n int) ([]uint8, error) {
	old := len(left)
	left = slices.Grow(left, n)[:old+n]
	return left, from.small(left[old:])
}

// lengthPrefixed takes bytes behind their length.
func lengthPrefixed(data []byte) (taken, rest []byte, err error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, nil, errLevels
	}
	n := 4 + int(binary.LittleEndian.Uint32(data))
	return data[4:n], data[n:], nil
}

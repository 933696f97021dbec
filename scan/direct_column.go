// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
)

// fileColumn is a column of a Parquet file while its pages are gone through, one after another. It makes windows of its
// leaves: runs of rows whose levels are decoded and whose values are ready. It is for one goroutine; the window that it
// gave last, which another may write meanwhile, stays as it is while the next is made, where both is set.
type fileColumn struct {
	index          int   // in the file
	maxDef, maxRep uint8 // levels of a value that is there
	both           bool

	plain   pageValues
	indexed indexed
	runs    pageValues // of booleans; nil otherwise

	pages  chunkPages
	unread int64 // entries (values or what stands for a missing one) in pages that were not begun
	total  int64 // entries of the chunk
	full   bool  // all pages use the dictionary: it did not grow too large

	// The page. A column without repetition decodes its levels window by window: entries counts what is left of it. One
	// with repetition decodes them as a whole, behind those of a row that the page before did not end.
	values  pageValues
	levels  hybrid
	entries int
	taken   bool // a window has values of it
	// Levels of the entries that no window has had, and the values among them that lie in no page any more.
	pending    []uint8
	pendingRep []uint8
	carried    encodedValues
}

// begin starts a column chunk.
func (c *fileColumn) begin(chunk *chunk, source *blockFile, both bool) error {
	c.both, c.unread, c.total, c.full = both, chunk.values, chunk.values, !chunk.plainPages
	c.values, c.indexed.outs = nil, [2]appender{}
	c.entries, c.taken, c.pending, c.pendingRep = 0, false, c.pending[:0], c.pendingRep[:0]
	c.carried.reset()
	return c.pages.open(chunk, source)
}

// available is how many whole rows can be taken, at least one; an error at the end of the chunk. side is that of the
// window that they are for.
func (c *fileColumn) available(side int) (int, error) {
	if c.maxRep == 0 {
		for c.entries == 0 {
			if err := c.nextPage(); err != nil {
				return 0, err
			}
		}
		return c.entries, nil
	}
	for {
		rows := 0
		for _, r := range c.pendingRep {
			if r == 0 {
				rows++
			}
		}
		if c.unread > 0 {
			rows-- // the last row may go on in the next page
		}
		if rows > 0 {
			return rows, nil
		}
		if err := c.carry(side); err != nil {
			return 0, err
		}
		if err := c.nextPage(); err != nil {
			return 0, err
		}
	}
}

// carry encodes what is left of the page, before the next page takes its memory.
func (c *fileColumn) carry(side int) error {
	if n := c.present(c.pending) - len(c.carried.ends); n > 0 {
		return c.carried.encode(c.values, n, side)
	}
	return nil
}

// window gives the next n rows to a leaf.
func (c *fileColumn) window(n int, l *leaf) (err error) {
	l.at, l.k, l.written = 0, 0, 0
	c.taken = true
	if c.maxRep > 0 {
		return c.repeatedWindow(n, l)
	}
	c.entries -= n
	l.end, l.defs = n, nil
	present := n
	if c.maxDef > 0 && !c.levels.all(uint32(c.maxDef), n) {
		l.room = slices.Grow(l.room[:0], n)[:n]
		if err := c.levels.small(l.room); err != nil {
			return err
		}
		if present = c.present(l.room); present < n {
			l.defs = l.room
		}
	}
	l.out, err = c.values.ready(present, l.side)
	return err
}

func (c *fileColumn) repeatedWindow(n int, l *leaf) (err error) {
	end := 0
	for rows := 0; end < len(c.pendingRep); end++ {
		if c.pendingRep[end] == 0 {
			if rows++; rows > n {
				break
			}
		}
	}
	l.defs, l.reps = c.pending[:end], c.pendingRep[:end]
	c.pending, c.pendingRep = c.pending[end:], c.pendingRep[end:]
	l.end = end
	l.carried, c.carried = c.carried, l.carried
	c.carried.reset()
	l.out, err = c.values.ready(c.present(l.defs)-len(l.carried.ends), l.side)
	return err
}

func (c *fileColumn) present(defs []uint8) int {
	n := 0
	for _, d := range defs {
		if d == c.maxDef {
			n++
		}
	}
	return n
}

// nextPage loads a data page, and the dictionary before it.
func (c *fileColumn) nextPage() error {
	for c.unread > 0 {
		p, err := c.pages.next(c.both && c.taken)
		if err != nil {
			return fmt.Errorf("column %d: %w", c.index, err)
		}
		if p.kind == dictionaryPage {
			if err := c.setDictionary(p); err != nil {
				return err
			}
			continue
		}
		c.taken = false
		c.unread -= p.pageHeader.values
		return c.setPage(p)
	}
	return fmt.Errorf("column %d ends before its rows", c.index)
}

func (c *fileColumn) setDictionary(p page) error {
	n := p.pageHeader.values
	return c.indexed.dictionary(p.values, int(n), c.full && n*reuse <= c.total, c.both)
}

func (c *fileColumn) setPage(p page) (err error) {
	values := p.values
	if p.kind == dataPage {
		if (c.maxRep > 0 && p.repEncoding != encodingRLE) || (c.maxDef > 0 && p.defEncoding != encodingRLE) {
			return errIndirect
		}
		if c.maxRep > 0 {
			if p.reps, values, err = lengthPrefixed(values); err != nil {
				return err
			}
		}
		if c.maxDef > 0 {
			if p.defs, values, err = lengthPrefixed(values); err != nil {
				return err
			}
		}
	}
	if c.values = c.decoder(p.encoding); c.values == nil {
		return errIndirect
	}
	n := int(p.pageHeader.values)
	c.values.page(values, n)
	defs := newHybrid(p.defs, bits.Len8(c.maxDef))
	if c.maxRep == 0 {
		c.levels, c.entries = defs, n
		return nil
	}
	reps := newHybrid(p.reps, bits.Len8(c.maxRep))
	if c.pending, err = appendLevels(c.pending, &defs, n); err != nil {
		return err
	}
	c.pendingRep, err = appendLevels(c.pendingRep, &reps, n)
	return err
}

// decoder is what reads values of an encoding; nil where only the general decoder does.
func (c *fileColumn) decoder(encoding int64) pageValues {
	switch encoding {
	case encodingPlain:
		return c.plain
	case encodingDictionary, encodingPlainDictionary:
		return &c.indexed
	case encodingRLE:
		return c.runs
	}
	return nil
}

// readable are the encodings that a column chunk may have to be read directly. The last is said of levels that are not
// there.
var readable = encodingsOf(parquet.Encodings.Plain, parquet.Encodings.RLE, parquet.Encodings.RLEDict, parquet.Encodings.PlainDict, parquet.Encodings.BitPacked)

// appendLevels decodes n levels behind what is left.
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

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// The rows of a column inside of lists or maps are what its repetition levels say, and what several columns of one list
// say of it must agree. Where they do not, arrow-go panics while it puts its arrays together. Levels are few bytes; in
// pages of the first version they are compressed with the values, which are decompressed once more for them.

// leafLevels is what a column's levels can be, and of what physical type its values are.
type leafLevels struct {
	physical       int64
	maxDef, maxRep int
	shared         []sharedNode
}

// sharedNode is a group inside of a list or map, or one of these, that several columns have levels for.
type sharedNode struct {
	node           int
	maxDef, maxRep int
}

// shapes are what the levels of the columns of a file that were read so far say of the nodes that they share: a hash for
// each node in each row group. Safe for concurrent use.
type shapes struct {
	mu    sync.Mutex
	known map[shapeKey]uint64
}

type shapeKey struct{ group, node int }

// agree reports whether the shape is the one that is known, if any is.
func (s *shapes) agree(key shapeKey, shape uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[shapeKey]uint64{}
	}
	known, ok := s.known[key]
	if !ok {
		s.known[key] = shape
	}
	return !ok || known == shape
}

// levelCheck goes through the levels of a column chunk. nil: the column is in no list or map.
type levelCheck struct {
	chunk
	shapes  *shapes
	codec   compress.Codec
	rows    int64
	hashes  []uint64 // of the shared nodes
	unknown bool     // levels of pages that this does not know to read
	body    []byte
	room    [2][windowRows]uint8
}

// mostLevels is far beyond what a schema nests.
const mostLevels = 255

func (c *chunk) levelsOf(shapes *shapes) *levelCheck {
	if c.maxRep == 0 || c.maxDef > mostLevels {
		return nil
	}
	l := &levelCheck{chunk: *c, shapes: shapes, hashes: make([]uint64, len(c.shared))}
	var err error
	if l.codec, err = compress.GetCodec(compress.Compression(c.codec)); err != nil {
		l.unknown = true
	}
	return l
}

var errLevels = errors.New("its levels are longer than it")

// page counts a data page's levels.
func (l *levelCheck) page(h pageHeader, body []byte) (err error) {
	if l == nil || l.unknown {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil { // of the decompressor
			err = fmt.Errorf("decompressing panicked: %v", cause)
		}
	}()
	var reps, defs []byte
	if h.kind == dataPageV2 {
		reps, defs = body[:h.repBytes], body[h.repBytes:h.repBytes+h.defBytes]
	} else {
		if h.repEncoding != encodingRLE || (l.maxDef > 0 && h.defEncoding != encodingRLE) {
			l.unknown = true
			return nil
		}
		if body, err = l.decompress(h, body); err != nil {
			return err
		}
		if reps, body, err = lengthPrefixed(body); err != nil {
			return err
		}
		if defs, _, err = lengthPrefixed(body); err != nil {
			return err
		}
	}
	return l.count(newHybrid(reps, bits.Len(uint(l.maxRep))), newHybrid(defs, bits.Len(uint(l.maxDef))), h.values)
}

// mostPage is what arrow-go allows a page to have.
const mostPage = 256 << 20

func (l *levelCheck) decompress(h pageHeader, body []byte) ([]byte, error) {
	if l.chunk.codec == int64(compress.Codecs.Uncompressed) {
		return body, nil
	}
	if h.uncompressed > mostPage {
		return nil, fmt.Errorf("it is said to have %d bytes uncompressed", h.uncompressed)
	}
	if int64(cap(l.body)) < h.uncompressed {
		l.body = make([]byte, h.uncompressed)
	}
	out := l.codec.Decode(l.body[:h.uncompressed], body)
	if int64(len(out)) != h.uncompressed {
		return nil, fmt.Errorf("it is said to have %d bytes uncompressed and has %d", h.uncompressed, len(out))
	}
	return out, nil
}

// count goes through n entries.
func (l *levelCheck) count(reps, defs hybrid, n int64) error {
	for n > 0 {
		k := min(n, windowRows)
		n -= k
		rep, def := l.room[0][:k], l.room[1][:k]
		if err := reps.small(rep); err != nil {
			return err
		}
		if err := defs.small(def); err != nil {
			return err
		}
		for i, r := range rep {
			if r == 0 {
				l.rows++
			}
			if int(r) > l.maxRep || int(def[i]) > l.maxDef {
				return fmt.Errorf("it has the levels %d and %d where there are %d and %d", r, def[i], l.maxRep, l.maxDef)
			}
		}
		for j, node := range l.shared {
			l.hashes[j] = node.hash(l.hashes[j], rep, def)
		}
	}
	return nil
}

// hash goes on with what the levels say of the node.
func (s sharedNode) hash(h uint64, rep, def []uint8) uint64 {
	for i, r := range rep {
		if int(r) <= s.maxRep {
			h = (h ^ uint64(r) ^ uint64(min(int(def[i]), s.maxDef))<<8) * 0x9E3779B97F4A7C15
			h ^= h >> 32
		}
	}
	return h
}

func (l *levelCheck) end() error {
	if l == nil || l.unknown {
		return nil
	}
	if l.rows != l.chunk.rows {
		return fmt.Errorf("the column chunk at byte %d has %d rows and its row group %d", l.start, l.rows, l.chunk.rows)
	}
	for i, node := range l.shared {
		if !l.shapes.agree(shapeKey{l.group, node.node}, l.hashes[i]) {
			return fmt.Errorf("the column chunk at byte %d has other lists than the one beside it", l.start)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// chunkPages goes through the pages of a column chunk, which lie one behind another.
type chunkPages struct {
	chunk  *chunk
	source *blockFile
	codec  compress.Codec // nil: pages are stored as they are
	at     int64          // where the next page begins

	// rooms hold what was decompressed: the page that was given last, and the one that is read ahead of being asked for.
	rooms      [2][]byte
	last       int
	dictionary []byte

	// A page is read ahead once the pages are put into wanted, and comes through ahead. nil: each is read when asked for.
	wanted chan<- *chunkPages
	ahead  chan pageOrError
}

// page is a page's levels and values. They stay as they are until the next page is asked for, a dictionary's until the end
// of its column chunk.
type page struct {
	pageHeader
	reps, defs []byte // of the second version of data pages; those of the first are in front of the values
	values     []byte
}

type pageOrError struct {
	page page
	err  error
}

// openPages begins at the front of a row group's column chunks. ahead says whether the next page of each is read and
// decompressed by a goroutine of its own while rows are written. close ends that, and gives the memory of pages back.
func (t Task) openPages(group *rowGroupFacts, leaves []*leaf, source *blockFile, ahead bool) (closePages func(), err error) {
	for _, l := range leaves {
		l.begin(&group.chunks[l.index])
		if err := l.pages.open(&group.chunks[l.index], source); err != nil {
			return func() {}, err
		}
	}
	if !ahead {
		return func() { release(leaves) }, nil
	}
	wanted, ended := make(chan *chunkPages, len(leaves)), make(chan struct{})
	go func() {
		defer close(ended)
		for p := range wanted {
			var next pageOrError
			next.err = t.catching(func() (err error) {
				next.page, err = p.read()
				return err
			})
			p.ahead <- next
		}
	}()
	for _, l := range leaves {
		l.pages.readAhead(wanted)
	}
	return func() {
		close(wanted)
		<-ended
		release(leaves)
	}, nil
}

func release(leaves []*leaf) {
	for _, l := range leaves {
		l.pages.close()
	}
}

func (p *chunkPages) open(c *chunk, source *blockFile) (err error) {
	*p = chunkPages{chunk: c, source: source, at: c.start}
	if codec := compress.Compression(c.codec); codec != compress.Codecs.Uncompressed {
		p.codec, err = compress.GetCodec(codec)
	}
	return err
}

func (p *chunkPages) readAhead(wanted chan<- *chunkPages) {
	p.wanted, p.ahead = wanted, make(chan pageOrError, 1)
	wanted <- p
}

func (p *chunkPages) close() {
	for _, b := range [][]byte{p.rooms[0], p.rooms[1], p.dictionary} {
		p.source.buffer.put(b)
	}
	*p = chunkPages{}
}

// next is the next page.
func (p *chunkPages) next() (page, error) {
	if p.wanted == nil {
		return p.read()
	}
	next := <-p.ahead
	if next.err == nil {
		p.wanted <- p // there is room for each column once
	} else {
		p.ahead <- next
	}
	return next.page, next.err
}

// read reads the next page. The one before may still be in use where pages are read ahead.
func (p *chunkPages) read() (page, error) {
	h, size, err := p.header()
	if err != nil {
		return page{}, err
	}
	end := p.chunk.start + p.chunk.length
	if err := p.chunk.checkPage(h, end-p.at-size); err != nil {
		return page{}, fmt.Errorf("the page at byte %d: %w", p.at, err)
	}
	if h.kind == dictionaryPage && p.at > p.chunk.start {
		return page{}, fmt.Errorf("the page at byte %d: it is a dictionary behind other pages", p.at)
	}
	body, err := p.source.view(p.at+size, h.compressed)
	if err != nil {
		return page{}, err
	}
	out, err := p.decompress(h, body)
	if err != nil {
		return page{}, fmt.Errorf("the page at byte %d: %w", p.at, err)
	}
	p.at += size + h.compressed
	return out, nil
}

// mostHeader is more than a header with the largest statistics has.
const mostHeader = 16 << 20

var errNoMorePages = errors.New("the column chunk ends before its values")

// header reads the header of the next page, and says how many bytes it has.
func (p *chunkPages) header() (h pageHeader, size int64, err error) {
	left := p.chunk.start + p.chunk.length - p.at
	if left <= 0 {
		return h, 0, errNoMorePages
	}
	for n := min(left, 256); ; n = min(left, 8*n) {
		view, err := p.source.view(p.at, n)
		if err != nil {
			return h, 0, err
		}
		r := &thriftReader{data: view}
		if h = r.pageHeader(); !r.bad {
			return h, int64(len(view) - len(r.data)), nil
		}
		if n == left || n > mostHeader {
			return h, 0, errPageHeader
		}
	}
}

// decompress makes a page of a body. Levels of the second version are never compressed.
func (p *chunkPages) decompress(h pageHeader, body []byte) (page, error) {
	levels := h.repBytes + h.defBytes
	if h.uncompressed > max(mostPage, p.chunk.decompressed) {
		return page{}, fmt.Errorf("it is said to have %d bytes uncompressed", h.uncompressed)
	}
	if err := p.chunk.checkSnappy(h, body[levels:]); err != nil {
		return page{}, err
	}
	out := page{pageHeader: h}
	whole, values := body, body[levels:]
	switch stored := p.codec == nil || h.stored; {
	case stored && !p.source.moves(p.at):
	case stored:
		whole = append(p.room(h.kind, int64(len(body)))[:0], body...)
		values = whole[levels:]
	default:
		whole = p.room(h.kind, h.uncompressed)
		copy(whole, body[:levels])
		if len(values) == 0 && h.uncompressed == levels {
			break // there is nothing to make nothing of
		}
		var err error
		if values, err = compress.Decode(p.codec, whole[levels:], values); err != nil {
			return page{}, err
		}
		if n := h.uncompressed - levels; int64(len(values)) != n {
			return page{}, fmt.Errorf("it is said to have %d bytes uncompressed and has %d", n, len(values))
		}
	}
	out.reps, out.defs, out.values = whole[:h.repBytes], whole[h.repBytes:levels], values
	return out, nil
}

// roomBehind is how many bytes behind a page the zstd decoder wants to write to.
const roomBehind = 64

// room is memory for n bytes.
func (p *chunkPages) room(kind, n int64) []byte {
	room := &p.dictionary
	if kind != dictionaryPage {
		if p.wanted != nil {
			p.last = 1 - p.last
		}
		room = &p.rooms[p.last]
	}
	if int64(cap(*room)) < n+roomBehind {
		p.source.buffer.put(*room)
		*room = p.source.buffer.get(int(n + roomBehind))
	}
	return (*room)[:n]
}

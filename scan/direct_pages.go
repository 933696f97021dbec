// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// chunkPages goes through the pages of a column chunk, which lie one behind another. It is for one goroutine.
type chunkPages struct {
	chunk  *chunk
	source *blockFile
	codec  compress.Codec // nil: pages are stored as they are
	at     int64          // where the next page begins

	// rooms hold what was decompressed: the page that was given last, and the one before where somebody still has it.
	rooms      [2][]byte
	last       int
	dictionary []byte
}

// page is a page's levels and values, which stay as they are until the next page is read; see chunkPages.next.
type page struct {
	pageHeader
	reps, defs []byte // of the second version of data pages; those of the first are in front of the values
	values     []byte
}

// roomBehind is how many bytes behind a page the zstd decoder wants to write to.
const roomBehind = 64

// open begins at the front of a column chunk.
func (p *chunkPages) open(c *chunk, source *blockFile) (err error) {
	p.chunk, p.source, p.at, p.codec = c, source, c.start, nil
	if codec := compress.Compression(c.codec); codec != compress.Codecs.Uncompressed {
		p.codec, err = compress.GetCodec(codec)
	}
	return err
}

// close gives the memory of pages back.
func (p *chunkPages) close() {
	if p.source == nil {
		return
	}
	for _, b := range [][]byte{p.rooms[0], p.rooms[1], p.dictionary} {
		p.source.buffer.put(b)
	}
	p.rooms, p.dictionary, p.source = [2][]byte{}, nil, nil
}

// next reads the next page. What it gave before may be written to, a dictionary excepted, and the page before where it is
// to be kept.
func (p *chunkPages) next(keep bool) (page, error) {
	h, size, err := p.header()
	if err != nil {
		return page{}, err
	}
	end := p.chunk.start + p.chunk.length
	if err := p.chunk.checkPage(h, end-p.at-size); err != nil {
		return page{}, fmt.Errorf("the page at byte %d: %w", p.at, err)
	}
	body, err := p.source.view(p.at+size, h.compressed)
	if err != nil {
		return page{}, err
	}
	out := page{pageHeader: h}
	if h.kind == dataPageV2 {
		out.reps, body = body[:h.repBytes], body[h.repBytes:]
		out.defs, body = body[:h.defBytes], body[h.defBytes:]
	}
	if out.values, err = p.values(out, body, keep); err != nil {
		return page{}, fmt.Errorf("the page at byte %d: %w", p.at, err)
	}
	p.at += size + h.compressed
	return out, nil
}

// mostHeader is more than a header with the largest statistics has.
const mostHeader = 16 << 20

// header reads the header of the next page, and says how many bytes it has.
func (p *chunkPages) header() (h pageHeader, size int64, err error) {
	left := p.chunk.start + p.chunk.length - p.at
	if left <= 0 {
		return h, 0, errors.New("the column chunk ends before its values")
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

// values are what a page's body holds behind the levels of the second version, decompressed.
func (p *chunkPages) values(of page, body []byte, keep bool) ([]byte, error) {
	n := of.uncompressed - of.repBytes - of.defBytes
	if n == 0 && len(body) == 0 {
		return nil, nil
	}
	if n > max(mostPage, p.chunk.decompressed) {
		return nil, fmt.Errorf("it is said to have %d bytes uncompressed", of.uncompressed)
	}
	if err := p.chunk.checkSnappy(of.pageHeader, body); err != nil {
		return nil, err
	}
	stored := p.codec == nil || of.stored
	if stored && !p.source.moves(p.at) {
		return body, nil
	}
	room := p.room(of.kind, n, keep)
	if stored {
		return append(room[:0], body...), nil
	}
	out, err := compress.Decode(p.codec, room, body)
	if err == nil && int64(len(out)) != n {
		err = fmt.Errorf("it is said to have %d bytes uncompressed and has %d", n, len(out))
	}
	return out, err
}

// room is memory for n bytes.
func (p *chunkPages) room(kind, n int64, keep bool) []byte {
	room := &p.dictionary
	if kind != dictionaryPage {
		if keep {
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

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"

	iceio "github.com/apache/iceberg-go/io"
)

// blockFile reads the column chunks of a row group in blocks: a chunk that is larger than a block is held in part only,
// and small chunks beside each other come in one read. It is for one goroutine.
type blockFile struct {
	iceio.File
	size   int64 // of a block
	ranges []blockRange
	buffer *recycler
}

// blockRange is a part of the file and the block of it that is held.
type blockRange struct {
	beg, end int64
	block    []byte
	at       int64 // where block begins
}

// maxGap is how many bytes that nobody wants are read to save a request.
const maxGap = 64 << 10

// useGroup says which columns of which row group are read next.
func (f *blockFile) useGroup(group *rowGroupFacts, leaves []*leaf) {
	f.release()
	for _, l := range leaves {
		chunk := &group.chunks[l.index]
		f.ranges = append(f.ranges, blockRange{beg: chunk.start, end: chunk.start + chunk.length})
	}
	slices.SortFunc(f.ranges, func(a, b blockRange) int { return cmp.Compare(a.beg, b.beg) })
	joined := f.ranges[:0]
	for _, r := range f.ranges {
		if n := len(joined); n > 0 {
			last := &joined[n-1]
			if r.beg-last.end <= maxGap && r.end-last.beg <= f.size {
				last.end = max(last.end, r.end)
				continue
			}
		}
		joined = append(joined, r)
	}
	f.ranges = joined
}

// view is n bytes of the chunks. They may change when others of the same chunk are viewed; see moves.
func (f *blockFile) view(off, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	r, err := f.rangeAt(off)
	if err != nil {
		return nil, err
	}
	if off+n > r.end {
		return nil, io.ErrUnexpectedEOF
	}
	if off < r.at || off+n > r.at+int64(len(r.block)) {
		if err := f.load(r, off, n); err != nil {
			return nil, err
		}
	}
	return r.block[off-r.at:][:n:n], nil
}

// moves reports whether what is viewed at off may change.
func (f *blockFile) moves(off int64) bool {
	r, err := f.rangeAt(off)
	return err != nil || r.end-r.beg > f.size
}

func (f *blockFile) rangeAt(off int64) (*blockRange, error) {
	i := sort.Search(len(f.ranges), func(i int) bool { return f.ranges[i].end > off })
	if i == len(f.ranges) || off < f.ranges[i].beg {
		return nil, fmt.Errorf("byte %d is of no column chunk that is read", off)
	}
	return &f.ranges[i], nil
}

// load makes the block begin at off and have n bytes at least, or all of a range that is no larger than a block. What the
// block holds of it stays, and a block's bytes are read behind that.
func (f *blockFile) load(r *blockRange, off, n int64) error {
	if r.end-r.beg <= f.size {
		off = r.beg
	}
	var kept []byte
	if off >= r.at && off < r.at+int64(len(r.block)) {
		kept = r.block[off-r.at:]
	}
	size := min(max(f.size+int64(len(kept)), n), r.end-off)
	block := r.block
	if int64(cap(block)) < size {
		block = f.buffer.get(int(size))
	}
	have := copy(block[:size], kept)
	if int64(cap(r.block)) < size {
		f.buffer.put(r.block)
	}
	r.block, r.at = block[:size], off
	read, err := f.ReadAt(r.block[have:], off+int64(have))
	if read == len(r.block)-have {
		return nil
	}
	r.block = r.block[:0]
	return cmp.Or(err, io.ErrUnexpectedEOF)
}

// release gives the blocks back.
func (f *blockFile) release() {
	for _, r := range f.ranges {
		f.buffer.put(r.block)
	}
	f.ranges = f.ranges[:0]
}

// recycler keeps buffers from file to file: without it most of what reading allocates, and clears, is buffers of the same
// few sizes. It is for one goroutine.
type recycler struct {
	free [][]byte // by capacity
	held int      // bytes in free
	most int      // bytes to hold
}

// get gives a buffer whose content is anything.
func (r *recycler) get(size int) []byte {
	i := sort.Search(len(r.free), func(i int) bool { return cap(r.free[i]) >= size })
	// A buffer that is far too large is left to those who need it.
	if i == len(r.free) || cap(r.free[i]) > 2*size+64<<10 {
		return make([]byte, size)
	}
	b := r.free[i]
	r.free = slices.Delete(r.free, i, i+1)
	r.held -= cap(b)
	return b[:size]
}

func (r *recycler) put(b []byte) {
	if cap(b) == 0 || r.held+cap(b) > r.most {
		return
	}
	i := sort.Search(len(r.free), func(i int) bool { return cap(r.free[i]) >= cap(b) })
	r.free = slices.Insert(r.free, i, b)
	r.held += cap(b)
}

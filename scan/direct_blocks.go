// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"io"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/parquet/file"
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
func (f *blockFile) useGroup(group *file.RowGroupReader, leaves []*leaf) error {
	f.release()
	var chunks []blockRange
	for _, l := range leaves {
		c, err := group.MetaData().ColumnChunk(l.index)
		if err != nil {
			return err
		}
		beg := c.DataPageOffset()
		if d := c.DictionaryPageOffset(); c.HasDictionaryPage() && d > 0 && d < beg {
			beg = d
		}
		chunks = append(chunks, blockRange{beg: beg, end: beg + c.TotalCompressedSize()})
	}
	slices.SortFunc(chunks, func(a, b blockRange) int { return cmp.Compare(a.beg, b.beg) })
	for _, c := range chunks {
		if n := len(f.ranges); n > 0 {
			last := &f.ranges[n-1]
			if c.beg-last.end <= maxGap && c.end-last.beg <= f.size {
				last.end = max(last.end, c.end)
				continue
			}
		}
		f.ranges = append(f.ranges, c)
	}
	return nil
}

func (f *blockFile) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(f.ranges), func(i int) bool { return f.ranges[i].end > off })
	if i == len(f.ranges) || off < f.ranges[i].beg || off+int64(len(p)) > f.ranges[i].end || int64(len(p)) > f.size {
		return f.File.ReadAt(p, off)
	}
	r := &f.ranges[i]
	n := r.copy(p, off)
	if n < len(p) {
		if err := f.load(r, off+int64(n)); err != nil {
			return n, err
		}
		n += r.copy(p[n:], off+int64(n))
	}
	return n, nil
}

func (r *blockRange) copy(p []byte, off int64) int {
	if off < r.at || off >= r.at+int64(len(r.block)) {
		return 0
	}
	return copy(p, r.block[off-r.at:])
}

// load reads the block that begins at off, or all of a range that is no larger than a block.
func (f *blockFile) load(r *blockRange, off int64) error {
	if r.end-r.beg <= f.size {
		off = r.beg
	}
	size := min(f.size, r.end-off)
	if int64(cap(r.block)) < size {
		f.buffer.put(r.block)
		r.block = f.buffer.get(int(size))
	}
	r.block, r.at = r.block[:size], off
	n, err := f.File.ReadAt(r.block, off)
	if n == len(r.block) {
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
// few sizes. It is an Arrow allocator for one goroutine.
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

func (r *recycler) Allocate(size int) []byte { return r.get(size) }
func (r *recycler) Free(b []byte)            { r.put(b) }

func (r *recycler) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := r.get(size)
	copy(out, b)
	r.put(b)
	return out
}

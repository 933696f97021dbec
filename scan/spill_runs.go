// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
)

// runFile holds sorted runs of groups, one behind the other, in one file: there can be thousands.
type runFile struct {
	folder *spillFolder
	file   *os.File
	w      *bufio.Writer
	ends   []int64
	size   int64
	head   []byte
}

func (f *spillFolder) runs() (*runFile, error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	return &runFile{folder: f, file: file, w: bufio.NewWriterSize(file, 64<<10)}, nil
}

// write appends a run: groups in order.
func (r *runFile) write(groups []cluster) error {
	if len(groups) == 0 {
		return nil
	}
	for _, g := range groups {
		r.head = binary.AppendUvarint(r.head[:0], uint64(len(g)))
		for _, s := range g {
			r.head = appendRowHead(r.head, s.order, len(s.row), len(s.carried))
			for _, part := range []string{string(r.head), s.row, s.carried} {
				n, err := r.w.WriteString(part)
				r.size += int64(n)
				if err != nil {
					return r.folder.fail(err)
				}
			}
			r.head = r.head[:0]
		}
	}
	r.ends = append(r.ends, r.size)
	return nil
}

// merge yields the groups of all runs in order. memory bounds the buffers.
func (r *runFile) merge(memory int64) iter.Seq2[cluster, error] {
	return func(yield func(cluster, error) bool) {
		if err := r.w.Flush(); err != nil {
			yield(nil, r.folder.fail(err))
			return
		}
		buffer := int(min(max(memory/int64(2*len(r.ends)+1), 4<<10), 256<<10))
		var open runHeap
		var start int64
		for _, end := range r.ends {
			run := &run{rows: rowReader{r: bufio.NewReaderSize(io.NewSectionReader(r.file, start, end-start), buffer)}}
			start = end
			if err := run.next(); err != nil { // no run is empty
				yield(nil, r.folder.fail(noEOF(err)))
				return
			}
			open = append(open, run)
		}
		heap.Init(&open)
		for len(open) > 0 {
			first := open[0]
			if !yield(first.group, nil) {
				return
			}
			switch err := first.next(); {
			case err == nil:
				heap.Fix(&open, 0)
			case errors.Is(err, io.EOF):
				heap.Pop(&open)
			default:
				yield(nil, r.folder.fail(err))
				return
			}
		}
	}
}

// run is a run that is being read.
type run struct {
	rows  rowReader
	group cluster
}

// next reads the next group; io.EOF at the end.
func (r *run) next() error {
	count, err := binary.ReadUvarint(r.rows.r)
	if err != nil {
		return err
	}
	r.group = make(cluster, count)
	for i := range r.group {
		o, row, carried, err := r.rows.next()
		if err != nil {
			return noEOF(err)
		}
		r.group[i] = survivor{order: o, row: string(row), carried: string(carried)}
	}
	return nil
}

// runHeap has the run with the lowest group on top.
type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].group[0].order < h[j].group[0].order }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

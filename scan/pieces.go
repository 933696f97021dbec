// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// piece is consecutive rows of one task, within the limits of a batch. One of messages, body and records is set, by
// format.
type piece struct {
	rows     int
	held     int64 // bytes
	messages [][]byte
	body     []byte
	records  []arrow.RecordBatch
}

// weight is how many bytes it takes while it waits: its messages are slices of one buffer, and each has a header.
func (p piece) weight() int64 { return p.held + int64(len(p.messages))*int64(unsafe.Sizeof([]byte{})) }

func (p piece) drop() {
	for _, r := range p.records {
		r.Release()
	}
}

// nextRows is how many rows to encode before looking at the size again: what room is left for, one when nothing is known.
func nextRows(limits ReadOptions, rows int, size int64, left int) int {
	n := min(limits.BatchRows-rows, left)
	if rows == 0 {
		return min(n, 1)
	}
	room := (limits.BatchBytes - size) / max(size/int64(rows), 1)
	return int(min(int64(n), max(room, 1)))
}

// rowPacker encodes rows as JSON objects: a message each, or the lines of one body.
type rowPacker struct {
	limits ReadOptions
	put    func(piece) error
	encode func(buf []byte, ends []int, batch arrow.RecordBatch, from, to int) ([]byte, []int, error)
	// closing ends each row.
	closing string

	buf  []byte
	ends []int // of the rows in buf
	// rowBytes is the mean size of the rows that were cut last, and expected how many rows come at most; 0: not known.
	rowBytes int
	expected int64
}

func (p *rowPacker) add(batch arrow.RecordBatch, from, to int) (err error) {
	for from < to {
		n := nextRows(p.limits, len(p.ends), int64(len(p.buf)), to-from)
		if p.buf, p.ends, err = p.encode(p.buf, p.ends, batch, from, from+n); err != nil {
			return err
		}
		from += n
		if err := p.cutFull(); err != nil {
			return err
		}
	}
	return nil
}

// cutFull hands over what is full.
func (p *rowPacker) cutFull() error {
	for len(p.ends) == p.limits.BatchRows || (len(p.ends) > 0 && int64(len(p.buf)) > p.limits.BatchBytes) {
		if err := p.cut(p.fitting()); err != nil {
			return err
		}
	}
	return nil
}

// addRows adds n rows that write appends one after another, in as many calls as it takes.
func (p *rowPacker) addRows(n int, write func(buf []byte, ends []int, n int, closing string) ([]byte, []int)) error {
	for n > 0 {
		some := nextRows(p.limits, len(p.ends), int64(len(p.buf)), n)
		if p.buf == nil && p.rowBytes > 0 {
			p.buf = make([]byte, 0, min(p.most()*int64(p.rowBytes), p.limits.BatchBytes)+spare)
		}
		p.buf, p.ends = write(p.buf, p.ends, some, p.closing)
		n -= some
		if err := p.cutFull(); err != nil {
			return err
		}
	}
	return nil
}

// most is how many rows a piece may have.
func (p *rowPacker) most() int64 {
	if p.expected > 0 {
		return min(p.expected, int64(p.limits.BatchRows))
	}
	return int64(p.limits.BatchRows)
}

// fitting is how many of the rows fit into a batch, at least one.
func (p *rowPacker) fitting() int {
	n := len(p.ends)
	for n > 1 && int64(p.ends[n-1]) > p.limits.BatchBytes {
		n--
	}
	return n
}

// cut hands the first n rows over and moves the others to a buffer of their own.
func (p *rowPacker) cut(n int) error {
	end := p.ends[n-1]
	out := piece{rows: n, held: int64(end)}
	if p.limits.Format == FormatNDJSON {
		out.body = p.buf[:end:end]
	} else {
		out.messages = slice(p.buf, p.ends[:n])
	}
	// One 64th more than the mean: rows of one table are alike.
	p.rowBytes = end/n + end/n/64 + 1
	p.buf = append([]byte(nil), p.buf[end:]...)
	p.ends = p.ends[:copy(p.ends, p.ends[n:])]
	for i := range p.ends {
		p.ends[i] -= end
	}
	return p.put(out)
}

// slice cuts a buffer at the ends, so that appending to one part can't reach into the next.
func slice(buf []byte, ends []int) [][]byte {
	parts := make([][]byte, len(ends))
	start := 0
	for i, end := range ends {
		parts[i] = buf[start:end:end]
		start = end
	}
	return parts
}

func (p *rowPacker) flush() error {
	if len(p.ends) == 0 {
		return nil
	}
	return p.cut(len(p.ends))
}

func (p *rowPacker) drop() {}

// arrowPacker hands decoded batches on without encoding.
type arrowPacker struct {
	limits ReadOptions
	put    func(piece) error

	pending piece
}

func (p *arrowPacker) add(batch arrow.RecordBatch, from, to int) error {
	for from < to {
		n := p.fitting(batch, from, to)
		if n == 0 {
			if err := p.flush(); err != nil {
				return err
			}
			continue
		}
		p.pending.records = append(p.pending.records, batch.NewSlice(int64(from), int64(from+n)))
		p.pending.rows += n
		p.pending.held += streamBytes(batch, from, from+n)
		from += n
	}
	return nil
}

// fitting is how many of a batch's rows go into the pending piece: as many as fit, at least one into an empty one.
func (p *arrowPacker) fitting(batch arrow.RecordBatch, from, to int) int {
	most := min(to-from, p.limits.BatchRows-p.pending.rows)
	room := p.limits.BatchBytes - p.pending.held
	n := sort.Search(most, func(k int) bool { return streamBytes(batch, from, from+k+1) > room })
	if p.pending.rows == 0 {
		n = max(n, 1)
	}
	return n
}

func (p *arrowPacker) flush() error {
	if p.pending.rows == 0 {
		return nil
	}
	out := p.pending
	p.pending = piece{}
	return p.put(out)
}

func (p *arrowPacker) drop() {
	p.pending.drop()
	p.pending = piece{}
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/schema"
)

// direct writes rows as JSON right from a Parquet file's pages: no Arrow arrays in between, strings copied once, from the
// page into the row, and each value of a dictionary encoded once. It is a second way to the same bytes and knows only the
// plain cases: a whole file, columns found by field id in the types that Iceberg writers use.
// Whatever else it meets it leaves to the general decoder, with errIndirect.
type direct struct {
	task     Task
	in       *schema.Schema
	complete bool // the file has all columns
	cells    []directCell
	leaves   []*leaf
	gone     deletedRows
}

// windowRows is the most rows of which levels and indices are held decoded.
const windowRows = 4096

// readsDirectly reports whether a task is one that direct may know how to read.
func (t Task) readsDirectly(opts ReadOptions) bool {
	equality := len(t.Deletes.Equality) > 0
	return t.part == (part{}) && (!equality || t.File.Data.FileSizeBytes() >= opts.equality)
}

// readDirect writes a stretch's live rows without the first skip of them. On errIndirect the first done of them are
// written or were to be skipped, and the rest is not.
func (w *worker) readDirect(s *stretch, pack *rowPacker) (done int64, err error) {
	err = s.file.guard(func() error {
		done, err = w.readGroups(s, pack)
		return err
	})
	return done, err
}

// panicked is what is told of a file that made its decoder panic.
func (t Task) panicked(cause any) error {
	return &CorruptFileError{Kind: DataFileKind, Path: t.File.path, Err: fmt.Errorf("decoding panicked: %v", cause)}
}

// errIndirect says that only the general decoder reads this.
var errIndirect = errors.New("not readable directly")

// finalError is an error that no other decoder gets past.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// readGroups is readDirect without a judgement of its errors.
func (w *worker) readGroups(s *stretch, pack *rowPacker) (done int64, err error) {
	source := &blockFile{File: s.file.opened, size: w.blockSize(), buffer: &w.buffers}
	defer source.release()
	d, err := w.layOut(s.file.task, s.file.schema)
	if err != nil {
		return 0, err
	}
	d.gone = deletedRows{positions: s.file.gone, at: uint64(s.first)}
	for g := s.from; g < s.to; g++ {
		group := &s.file.says.groups[g]
		skip := max(s.skip-done, 0)
		if live := group.rows - d.gone.among(group.rows); skip >= live {
			done += live
			d.gone.pass(group.rows)
			continue
		}
		source.useGroup(group, d.leaves)
		n, err := d.readRowGroup(group, source, w.opts.Parallelism > 1 && group.rows >= w.opts.ahead, skip, pack)
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// layOut finds the task's columns in its file. Files of one table mostly have one schema, so the last answer is kept.
func (w *worker) layOut(t Task, in *schema.Schema) (*direct, error) {
	rows, err := withPartitionValues(w.plan.Schema, w.plan.source.Meta, t.File)
	if err != nil {
		return nil, err
	}
	if d := w.last; d != nil && d.complete && (d.in == in || d.in.Root().Equals(in.Root())) {
		d.task = t
		return d, nil
	}
	l := layout{file: in}
	d := &direct{task: t, in: in}
	if d.cells, err = l.cells(rows.Fields(), in.Root(), 0, 0); err != nil {
		return nil, err
	}
	if d.leaves = l.leaves; len(d.leaves) == 0 {
		return nil, errIndirect
	}
	d.complete = !l.absent
	w.last = d
	return d, nil
}

// blockSize is how much of a column chunk is read at once: a worker's blocks take at most a quarter of its share of the
// memory, between what is worth a request and what gains nothing more.
func (w *worker) blockSize() int64 {
	share := w.opts.held() / int64(4*w.opts.Parallelism*len(w.plan.leafIDs()))
	return min(max(share, 128<<10), 4<<20)
}

// readRowGroup writes the live rows of a row group, and says how many of them it wrote or skipped.
func (d *direct) readRowGroup(group *rowGroupFacts, source *blockFile, ahead bool, skip int64, pack *rowPacker) (done int64, err error) {
	closePages, err := d.task.openPages(group, d.leaves, source, ahead)
	defer closePages()
	if err != nil {
		return 0, err
	}
	for left := group.rows; left > 0; {
		n, err := d.window(left)
		if err != nil {
			return done, err
		}
		left -= int64(n)
		live := n - d.gone.take(n)
		if err := d.writeWindow(live, int(min(max(skip-done, 0), int64(live))), pack); err != nil {
			return done, err
		}
		done += int64(live)
	}
	return done, nil
}

// window takes as many rows as all leaves have ready, at most limit.
func (d *direct) window(limit int64) (int, error) {
	n := int(min(limit, windowRows))
	for _, l := range d.leaves {
		available, err := l.available()
		if err != nil {
			return 0, err
		}
		n = min(n, available)
	}
	for _, l := range d.leaves {
		if err := l.window(n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// writeWindow hands the window's live rows over, without the first skip.
func (d *direct) writeWindow(live, skip int, pack *rowPacker) error {
	if skip > 0 {
		d.write(nil, nil, skip, "")
	}
	if err := pack.addRows(live-skip, d.write); err != nil {
		return &finalError{err}
	}
	for d.gone.next() {
		d.row(nil)
	}
	for _, l := range d.leaves {
		if err := l.check(); err != nil {
			return &finalError{&CorruptFileError{Kind: DataFileKind, Path: d.task.File.path, Err: err}} // too late for another decoder
		}
	}
	return nil
}

// write appends the next n live rows to buf and their ends to ends.
func (d *direct) write(buf []byte, ends []int, n int, closing string) ([]byte, []int) {
	for range n {
		for d.gone.next() {
			buf = d.row(buf)[:len(buf)]
		}
		buf = append(d.row(buf), closing...)
		ends = append(ends, len(buf))
	}
	return buf, ends
}

// row appends the next row, live or not.
func (d *direct) row(buf []byte) []byte {
	for i := range d.cells {
		c := &d.cells[i]
		buf = c.node.append(c.label.append(buf))
	}
	return buf
}

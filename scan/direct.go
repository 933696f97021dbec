// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/parquet/schema"
)

// direct writes rows as JSON right from a Parquet file's pages: no Arrow arrays in between, strings copied once, from the
// page into the row, and each value of a dictionary encoded once. It is a second way to the same bytes and knows only the
// plain cases: a whole file without equality deletes, columns found by field id in the types that Iceberg writers use.
// Whatever else it meets it leaves to the general decoder, with errIndirect.
type direct struct {
	task     Task
	in       *schema.Schema
	complete bool // the file has all columns
	columns  []*fileColumn
	windows  [2]*rowWindow
	gone     deletedRows
}

// windowRows is the most rows of which levels and indices are held decoded.
const windowRows = 4096

// readsDirectly reports whether a task is one that direct may know how to read.
func (t Task) readsDirectly() bool { return len(t.Deletes.Equality) == 0 && t.part == (part{}) }

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
		source.useGroup(group, d.columns)
		n, err := d.readRowGroup(group, source, w.opts.Parallelism > 1 && group.rows >= w.opts.beside, skip, pack)
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
	d := &direct{task: t, in: in}
	for side := range d.windows {
		l := layout{file: in, columns: d.columns, side: side}
		cells, err := l.cells(rows.Fields(), in.Root(), 0, 0)
		if err != nil {
			return nil, err
		}
		d.columns, d.complete = l.columns, !l.absent
		d.windows[side] = &rowWindow{side: side, cells: cells, leaves: l.leaves, gone: &d.gone}
	}
	if len(d.columns) == 0 {
		return nil, errIndirect
	}
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
func (d *direct) readRowGroup(group *rowGroupFacts, source *blockFile, beside bool, skip int64, pack *rowPacker) (done int64, err error) {
	defer func() {
		for _, c := range d.columns {
			c.pages.close()
		}
	}()
	for _, c := range d.columns {
		if err := c.begin(&group.chunks[c.index], source, beside); err != nil {
			return 0, err
		}
	}
	decoded := d.inTurn(group.rows)
	if beside {
		decoded = d.beside(group.rows)
	}
	for w, err := range decoded {
		if err != nil {
			return done, err
		}
		live := w.rows - d.gone.take(w.rows)
		if err := d.writeWindow(w, live, int(min(max(skip-done, 0), int64(live))), pack); err != nil {
			return done, err
		}
		done += int64(live)
	}
	return done, nil
}

// inTurn decodes one window after another, each when the one before is written.
func (d *direct) inTurn(rows int64) iter.Seq2[*rowWindow, error] {
	return func(yield func(*rowWindow, error) bool) {
		for w := d.windows[0]; rows > 0; rows -= int64(w.rows) {
			if err := d.decode(w, rows); err != nil {
				yield(nil, err)
				return
			}
			if !yield(w, nil) {
				return
			}
		}
	}
}

// beside decodes the next window while one is written.
func (d *direct) beside(rows int64) iter.Seq2[*rowWindow, error] {
	type decoded struct {
		window *rowWindow
		err    error
	}
	return func(yield func(*rowWindow, error) bool) {
		free := make(chan *rowWindow, len(d.windows))
		ready := make(chan decoded, len(d.windows))
		for _, w := range d.windows {
			free <- w
		}
		go func() {
			defer close(ready)
			for w := range free {
				err := d.task.catching(func() error { return d.decode(w, rows) })
				ready <- decoded{w, err}
				if rows -= int64(w.rows); err != nil || rows <= 0 {
					return
				}
			}
		}()
		defer func() {
			close(free)
			for range ready { //nolint:revive // until it has ended
			}
		}()
		for next := range ready {
			if !yield(next.window, next.err) || next.err != nil {
				return
			}
			free <- next.window
		}
	}
}

// decode makes a window of as many rows as all columns have ready, at most limit.
func (d *direct) decode(w *rowWindow, limit int64) error {
	n := int(min(limit, windowRows))
	for _, c := range d.columns {
		available, err := c.available(w.side)
		if err != nil {
			return err
		}
		n = min(n, available)
	}
	for i, c := range d.columns {
		if err := c.window(n, w.leaves[i]); err != nil {
			return err
		}
	}
	w.rows = n
	return nil
}

// writeWindow hands a window's live rows over, without the first skip.
func (d *direct) writeWindow(w *rowWindow, live, skip int, pack *rowPacker) error {
	if skip > 0 {
		w.write(nil, nil, skip, "")
	}
	if err := pack.addRows(live-skip, w.write); err != nil {
		return &finalError{err}
	}
	for d.gone.next() {
		w.row(nil)
	}
	for _, l := range w.leaves {
		if err := l.check(); err != nil {
			return &finalError{&CorruptFileError{Kind: DataFileKind, Path: d.task.File.path, Err: err}} // too late for another decoder
		}
	}
	return nil
}

// rowWindow is a run of rows whose levels are decoded and whose values are ready to be written, in order and once.
type rowWindow struct {
	side   int
	cells  []directCell
	leaves []*leaf // in the order of the columns
	rows   int
	gone   *deletedRows
}

// write appends the next n live rows to buf and their ends to ends.
func (w *rowWindow) write(buf []byte, ends []int, n int, closing string) ([]byte, []int) {
	for range n {
		for w.gone.next() {
			buf = w.row(buf)[:len(buf)]
		}
		buf = append(w.row(buf), closing...)
		ends = append(ends, len(buf))
	}
	return buf, ends
}

// row appends the next row, live or not.
func (w *rowWindow) row(buf []byte) []byte {
	for i := range w.cells {
		c := &w.cells[i]
		buf = c.node.append(c.label.append(buf))
	}
	return buf
}

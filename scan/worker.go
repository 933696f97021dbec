// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// defaultDecodeRows is how many rows a decoded batch has where rows are small: measured, larger ones gain little.
const defaultDecodeRows = 32 << 10

// decodedBatches is how many decoded batches of one file the decoder may hold at once, the one in use included.
const decodedBatches = 4

// worker decodes one lane after another and cuts its rows into encoded pieces.
type worker struct {
	plan    *Plan
	opts    ReadOptions
	flow    *flow
	encoder *Encoder // nil for Arrow
	ahead   *ahead
	// positions of deleted rows; shared by all workers.
	positions *positionReader

	buffers recycler
	known   knownSchema // of the last file
	last    *direct     // the layout of the last file
	// rowBytes is the mean size of the rows of the last lane.
	rowBytes int
}

// run reads a lane.
func (w *worker) run(ctx context.Context, l *lane) error {
	task := w.plan.Tasks[l.task]
	plan := *w.plan
	plan.source.FS = w.ahead.fileIO(l.task)
	w.plan = &plan
	pack := w.packer(func(p piece) error { return w.flow.put(l, p) })
	defer pack.drop()
	wanted := rowSpan{skip: l.skip, rows: -1}
	if rows, ok := pack.(*rowPacker); ok && w.plan.filter == nil && task.readsDirectly(w.opts) {
		rows.rowBytes = w.rowBytes
		defer func() { w.rowBytes = rows.rowBytes }()
		left, err := w.runDirect(ctx, l, task, rows)
		switch {
		case err == nil:
			return pack.flush()
		case !errors.Is(err, errIndirect):
			return err
		}
		wanted = left
	}
	return w.runGeneral(ctx, l, task, wanted, pack)
}

// rowSpan is what is wanted of a task's live rows.
type rowSpan struct {
	skip int64 // rows before it
	rows int64 // -1: all that come
}

// runDirect reads a lane directly, after cutting its task where that is not done yet. On errIndirect it says what the
// general decoder has to read.
func (w *worker) runDirect(ctx context.Context, l *lane, t Task, pack *rowPacker) (left rowSpan, err error) {
	if l.stretch != nil {
		defer l.stretch.file.leave()
		if err := w.flow.admit(l, l.stretch.weight); err != nil {
			return rowSpan{}, err
		}
		defer w.flow.release(l.stretch.weight)
		return w.runStretch(l.stretch, pack)
	}
	weight := w.directWeight(t)
	if err := w.flow.admit(l, weight); err != nil {
		return rowSpan{}, err
	}
	defer w.flow.release(weight)
	all, err := w.openDirect(ctx, t, l.skip)
	if err != nil {
		return rowSpan{skip: l.skip, rows: -1}, err
	}
	w.flow.cut(l, all)
	defer l.stretch.file.leave()
	return w.runStretch(l.stretch, pack)
}

// runStretch is runDirect of a stretch, when there is room for it.
func (w *worker) runStretch(s *stretch, pack *rowPacker) (left rowSpan, err error) {
	pack.expected = s.live - s.skip
	done, err := w.readDirect(s, pack)
	done = max(done, s.skip)
	if errors.Is(err, errIndirect) {
		w.flow.join(s.file) // the others fare no better, and each reads the file from its beginning
	}
	return rowSpan{skip: s.before + done, rows: s.live - done}, err
}

// runGeneral hands over what iceberg-go decodes.
func (w *worker) runGeneral(ctx context.Context, l *lane, t Task, wanted rowSpan, pack packer) error {
	rows, weight := w.size(t)
	if err := w.flow.admit(l, weight); err != nil {
		return err
	}
	defer w.flow.release(weight)
	for batch, err := range w.plan.delivered(ctx, t, rows) {
		if err != nil {
			return err
		}
		from := min(wanted.skip, batch.NumRows())
		n := batch.NumRows() - from
		if wanted.rows >= 0 {
			n = min(n, wanted.rows)
			wanted.rows -= n
		}
		wanted.skip -= from
		err = pack.add(batch, int(from), int(from+n))
		batch.Release()
		if err != nil {
			return err
		}
		if wanted.rows == 0 {
			break
		}
	}
	if wanted.rows > 0 {
		return &CorruptFileError{Kind: DataFileKind, Path: t.File.path, Err: fmt.Errorf("it ends %d rows before its footer says", wanted.rows)}
	}
	return pack.flush()
}

// growth is how many times larger decoded values are taken to be than stored ones.
const growth = 3

// directWeight estimates the bytes that reading a task directly holds: what its columns do, and one piece.
func (w *worker) directWeight(t Task) int64 {
	stored := t.File.Data.ColumnSizes()
	columns := int64(0)
	for _, id := range w.plan.leafIDs() {
		size, ok := stored[id]
		if !ok {
			size = math.MaxInt64 / growth
		}
		columns += w.columnWeight(size)
	}
	return min(columns, growth*largestRowGroup(t)) + w.pieceWeight(t)
}

// columnWeight estimates the bytes that are held of a column of so many stored ones: a block as stored, and two pages and
// their dictionary as they were before, or all of a small column.
func (w *worker) columnWeight(stored int64) int64 {
	const pages = 9 << 18
	return min(w.blockSize()+pages, growth*stored)
}

// pieceWeight estimates the bytes of one of a task's pieces.
func (w *worker) pieceWeight(t Task) int64 {
	rows := t.File.Data.Count()
	perRow := growth*t.File.Data.FileSizeBytes()/max(rows, 1) + 1
	return min(w.opts.BatchBytes, perRow*min(int64(w.opts.BatchRows), rows))
}

// size estimates, from what the manifest says, how many rows to decode at once and how many bytes the work on the task
// holds: a row group as stored, the decoder's batches, and one piece.
func (w *worker) size(t Task) (rows int, weight int64) {
	data := t.File.Data
	expected := max(data.FileSizeBytes(), 1) * growth
	perRow := max(expected/max(data.Count(), 1), 1)
	share := w.opts.held() / int64(2*decodedBatches*w.opts.Parallelism)
	target := min(max(share, 64<<10), 4<<20)
	rows = int(min(max(target/perRow, 1), defaultDecodeRows))
	decoded := min(int64(rows)*perRow*decodedBatches, expected)
	return rows, largestRowGroup(t) + decoded + min(w.opts.BatchBytes, expected)
}

// largestRowGroup is the number of stored bytes of the file's largest row group; the whole file where its manifest does
// not say where row groups begin.
func largestRowGroup(t Task) int64 {
	size := t.File.Data.FileSizeBytes()
	offsets := t.File.Data.SplitOffsets()
	var largest int64
	for i, offset := range offsets {
		end := size
		if i+1 < len(offsets) {
			end = offsets[i+1]
		}
		largest = max(largest, end-offset)
	}
	if largest <= 0 || largest > size {
		return size
	}
	return largest
}

// packer cuts rows into pieces within the limits of a batch and hands each over as soon as it is full.
type packer interface {
	add(batch arrow.RecordBatch, from, to int) error
	flush() error // hands over what is left
	drop()        // releases what was not handed over
}

func (w *worker) packer(put func(piece) error) packer {
	switch w.opts.Format {
	case FormatArrow:
		return &arrowPacker{limits: w.opts, put: put}
	case FormatNDJSON:
		return &rowPacker{limits: w.opts, put: put, encode: w.encoder.AppendLines, closing: "}\n"}
	}
	return &rowPacker{limits: w.opts, put: put, encode: w.encoder.Append, closing: "}"}
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
)

// defaultDecodeRows is how many rows a decoded batch has where rows are small: measured, larger ones gain little.
const defaultDecodeRows = 32 << 10

// decodedBatches is how many decoded batches of one file the decoder may hold at once, the one in use included.
const decodedBatches = 4

// worker decodes one task after another and cuts its rows into encoded pieces.
type worker struct {
	plan    *Plan
	opts    ReadOptions
	flow    *flow
	encoder *Encoder // nil for Arrow
	ahead   *ahead
	// positions of deleted rows; shared by all workers.
	positions *positionReader

	buffers recycler
	last    *direct // the layout of the last file
}

// run reads task i without its first skip rows.
func (w *worker) run(ctx context.Context, i int, skip int64) error {
	task := w.plan.Tasks[i]
	plan := *w.plan
	plan.source.FS = w.ahead.fileIO(i)
	w.plan = &plan
	rows, weight := w.size(task)
	pack := w.packer(func(p piece) error { return w.flow.put(i, p) })
	defer pack.drop()
	if rows, ok := pack.(*rowPacker); ok && w.plan.filter == nil && task.readsDirectly() {
		done, err := w.admitted(i, w.directWeight(task), func() (int64, error) { return w.readDirect(ctx, task, skip, rows) })
		switch {
		case err == nil:
			return pack.flush()
		case !errors.Is(err, errIndirect):
			return err
		}
		skip = max(skip, done)
	}
	if err := w.flow.admit(i, weight); err != nil {
		return err
	}
	defer w.flow.release(weight)
	for batch, err := range w.plan.delivered(ctx, task, rows) {
		if err != nil {
			return err
		}
		from := min(skip, batch.NumRows())
		skip -= from
		err = pack.add(batch, int(from), int(batch.NumRows()))
		batch.Release()
		if err != nil {
			return err
		}
	}
	return pack.flush()
}

// admitted runs f on task i once there is room for so many bytes.
func (w *worker) admitted(i int, weight int64, f func() (int64, error)) (int64, error) {
	if err := w.flow.admit(i, weight); err != nil {
		return 0, err
	}
	defer w.flow.release(weight)
	return f()
}

// directWeight estimates the bytes that reading a task directly holds: for each column a block as stored and a page and
// its dictionary as they were before, or all of a small column; and one piece.
func (w *worker) directWeight(t Task) int64 {
	const pages, growth = 5 << 18, 3
	data := t.File.Data
	stored := data.ColumnSizes()
	columns := int64(0)
	for _, id := range w.plan.leafIDs() {
		most := w.blockSize() + pages
		if size, ok := stored[id]; ok {
			most = min(most, growth*size)
		}
		columns += most
	}
	perRow := growth*data.FileSizeBytes()/max(data.Count(), 1) + 1
	return min(columns, growth*largestRowGroup(t)) + min(w.opts.BatchBytes, perRow*min(int64(w.opts.BatchRows), data.Count()))
}

// size estimates, from what the manifest says, how many rows to decode at once and how many bytes the work on the task
// holds: a row group as stored, the decoder's batches, and one piece.
func (w *worker) size(t Task) (rows int, weight int64) {
	const growth = 3 // decoded against stored bytes
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

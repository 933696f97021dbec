// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// deletedRows goes through a file's rows in order and tells which of them deletes remove. A deleted row is written like
// any other, as its values have to be passed, and taken back.
type deletedRows struct {
	positions *roaring64.Bitmap // nil: none
	at        uint64            // the row behind those that were taken
	// window are the deleted ones among the rows taken last, from the first of them; row is the next one's number.
	window []uint32
	row    uint32
}

// deletedPositions are the positions of a file's rows that deletes remove; nil: it has no deletes.
func (w *worker) deletedPositions(f *directFile) (gone *roaring64.Bitmap, err error) {
	deletes := f.task.Deletes
	if deletes.None() {
		return nil, nil
	}
	if gone, err = w.positions.of(f.files.ctx, f.task.File, deletes, w.plan.after.SnapshotID); err != nil {
		return nil, err
	}
	if len(deletes.Equality) > 0 {
		err = w.plan.addEqual(f.files.ctx, gone, f.task)
	}
	return gone, err
}

// addEqual adds the positions of the rows of a task's file that its equality deletes remove. Only the columns that are
// compared are read for that.
func (p *Plan) addEqual(ctx context.Context, gone *roaring64.Bitmap, t Task) error {
	var compared []string
	for _, id := range comparedIDs(t.Deletes.Equality) {
		if name, ok := p.schema.FindColumnName(id); ok {
			compared = append(compared, name)
		}
	}
	if len(compared) == 0 {
		compared = countColumns(p.schema) // and beside them what has left the schema
	}
	e, err := p.equalityOf(t, compared)
	if err != nil {
		return err
	}
	if e == nil {
		return errIndirect
	}
	equality := t.Deletes.Equality
	t.Deletes = Deletes{} // a row's place among all of them is its position
	at := uint64(0)
	for batch, err := range e.compare(ctx, t, equality, defaultDecodeRows) {
		if err != nil {
			return err
		}
		batch.Release()
		for i, deleted := range batch.gone {
			if deleted {
				gone.Add(at + uint64(i))
			}
		}
		at += uint64(len(batch.gone))
	}
	return nil
}

// among counts the deleted ones among the next n rows.
func (r *deletedRows) among(n int64) int64 {
	if r.positions == nil {
		return 0
	}
	return int64(rankBelow(r.positions, r.at+uint64(n)) - rankBelow(r.positions, r.at))
}

// pass leaves the next n rows out.
func (r *deletedRows) pass(n int64) { r.at += uint64(n) }

// take goes on to the next n rows and counts the deleted ones.
func (r *deletedRows) take(n int) int {
	r.window, r.row = r.window[:0], 0
	if r.positions == nil {
		return 0
	}
	end := r.at + uint64(n)
	all := r.positions.Iterator()
	for all.AdvanceIfNeeded(r.at); all.HasNext() && all.PeekNext() < end; {
		r.window = append(r.window, uint32(all.Next()-r.at))
	}
	r.at = end
	return len(r.window)
}

// next moves on by a row of those taken and reports whether it is deleted; a row that is not stays to be written, which
// moves on too.
func (r *deletedRows) next() bool {
	if len(r.window) == 0 {
		return false
	}
	deleted := r.window[0] == r.row
	r.row++
	if deleted {
		r.window = r.window[1:]
	}
	return deleted
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
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

// deletedPositions reads the position deletes or the vector of a file; nil: it has none.
func (w *worker) deletedPositions(f *directFile) (*roaring64.Bitmap, error) {
	if f.task.Deletes.None() {
		return nil, nil
	}
	return w.positions.of(f.files.ctx, f.task.File, f.task.Deletes, w.plan.after.SnapshotID)
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

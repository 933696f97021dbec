// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"sync"
	"sync/atomic"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// RunKey is the key of a func() (finished func()) among the generic resources.
// Where a program has put one, an input that is to read what is there and end
// calls it when it begins, and calls what it returns once it came to its end and
// all that it delivered is acknowledged. So the program can tell, when a signal
// stops it, that something was left. An input that is closed before its end, by a
// signal or by what it was built into, never finishes.
type RunKey struct{}

// bounded is the run of an input that ends by itself.
type bounded struct {
	res      *service.Resources
	begun    sync.Once
	finished func() // nil where nobody wants to know
	atEnd    atomic.Bool
}

// begin tells the program, if it has said by now that it wants to know: the
// inputs among the resources are made before it can.
func (b *bounded) begin() {
	told, ok := b.res.GetGeneric(RunKey{})
	if begin, is := told.(func() func()); ok && is {
		b.begun.Do(func() { b.finished = begin() })
	}
}

// close is called when nothing is read and nothing is acknowledged any more.
func (b *bounded) close(rowsLeft int64) {
	b.begin()
	if b.atEnd.Load() && rowsLeft == 0 && b.finished != nil {
		b.finished()
	}
}

// reportEnd says once that the configured end can't be met as things stand: it
// lies behind the place, or the head's history does not lead to it. The latter
// is no error, as it may come yet.
func (f *follower) reportEnd(l *look, res lineage.Resolution) {
	end := f.conf.Lineage.EndSnapshotID
	if end == nil || f.endTold || l.state.Empty() {
		return
	}
	without, past := "the input follows the table until it comes", "unless the branch returns to it, the input goes on past every other"
	if f.conf.Bounded() {
		without, past = "the input ends at the head, without it", "the input ends at the head, without it"
	}
	switch _, listed := l.table.State(*end); {
	case res.Ended && len(res.Steps) == 0 && f.place.Started && f.place.State.SnapshotID != *end:
		f.log.Warnf("%s %d lies behind the checkpoint's snapshot %d: nothing is delivered any more", niFieldEndSnapshot, *end, f.place.State.SnapshotID)
	case res.Ended, res.Pending != "":
		return
	case listed:
		f.log.Warnf("%s %d is a snapshot of the table, but not on the way to the head's snapshot %d (it was rolled back, or belongs to another branch): %s", niFieldEndSnapshot, *end, l.state.SnapshotID, past)
	default:
		f.log.Warnf("%s %d is not in the table's history up to the head's snapshot %d: %s", niFieldEndSnapshot, *end, l.state.SnapshotID, without)
	}
	f.endTold = true
}

// reportReached says that nothing more is read, where that is what was asked
// for. An end that lies behind the place was told as a warning.
func (f *follower) reportReached() {
	if end := f.conf.Lineage.EndSnapshotID; end != nil && f.place.State.SnapshotID == *end {
		f.log.Infof("%s %d is reached: all up to it is read, and the input ends", niFieldEndSnapshot, *end)
	}
}

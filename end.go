// SPDX-License-Identifier: Apache-2.0

package nessie

import "github.com/rpk-nessie/rpk-nessie/lineage"

// reportEnd says once that the configured end can't be met as things stand: it
// lies behind the place, or the head's history does not lead to it. The latter
// is no error, as it may come yet.
func (f *follower) reportEnd(l *look, res lineage.Resolution) {
	end := f.conf.Lineage.EndSnapshotID
	if end == nil || f.endTold || l.state.Empty() {
		return
	}
	switch _, listed := l.table.State(*end); {
	case res.Ended && len(res.Steps) == 0 && f.place.Started && f.place.State.SnapshotID != *end:
		f.log.Warnf("%s %d lies behind the checkpoint's snapshot %d: nothing is delivered any more", niFieldEndSnapshot, *end, f.place.State.SnapshotID)
	case res.Ended, res.Pending != "":
		return
	case listed:
		f.log.Warnf("%s %d is a snapshot of the table, but not on the way to the head's snapshot %d (it was rolled back, or belongs to another branch): unless the branch returns to it, the input goes on past every other", niFieldEndSnapshot, *end, l.state.SnapshotID)
	default:
		f.log.Warnf("%s %d is not in the table's history up to the head's snapshot %d: the input follows the table until it comes", niFieldEndSnapshot, *end, l.state.SnapshotID)
	}
	f.endTold = true
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// reportStep says how a step was found. Those that lead across a hole are rare,
// and told without being asked.
func (f *follower) reportStep(s *step) {
	tell := f.log.Debugf
	if bridgedFrom(s) != nil {
		tell = f.log.Infof
	}
	before := "nothing"
	if s.Before != nil {
		before = nameOf(s.Before.SnapshotID)
	}
	tell("Step %d (%s, found by %s) leads from %s to %s; its rows are delivered from ordinal %d on", s.Ordinal, s.Kind, s.FoundBy, before, nameOf(s.After.SnapshotID), s.Row)
}

// reportStand says that the place moves without a step.
func (f *follower) reportStand(s catalog.State, v lineage.Verdict) {
	f.log.Debugf("Standing at %s without a step (%s)", nameOf(s.SnapshotID), v)
}

// reportVerdict says what a look at the history found out of the ordinary, lost
// lineage aside.
func (f *follower) reportVerdict(res lineage.Resolution) {
	switch {
	case res.Verdict == lineage.Replaced:
		f.log.Warnf("Reading starts over because of %s: %s: %s", niFieldOnReplaced, f.conf.Lineage.OnReplaced, res.Reason)
	case res.Verdict == lineage.Hole && res.Lost == nil:
		f.log.Warnf("A part of the history is gone, and rows that came and went in it are not delivered: %s", res.Reason)
	}
}

// spanOf names a snapshot, or the difference that a bridge to it delivers.
func spanOf(from *int64, to int64) string {
	if from == nil {
		return nameOf(to)
	}
	return fmt.Sprintf("the difference from %s to %s", nameOf(*from), nameOf(to))
}

func nameOf(snapshot int64) string {
	if snapshot == catalog.NoSnapshot {
		return "the empty table"
	}
	return fmt.Sprintf("snapshot %d", snapshot)
}

// bridgedFrom is the snapshot that a step starts from where others lay between.
func bridgedFrom(s *step) *int64 {
	if s.Before == nil || (s.Kind != lineage.Bridge && s.Kind != lineage.CatchUp) {
		return nil
	}
	return &s.Before.SnapshotID
}

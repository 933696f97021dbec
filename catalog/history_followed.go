// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
)

// followed answers what the branch held before the commit that brought s, for a snapshot of which nothing names the
// parent: writers need not, and the REST catalog keeps no more than the current snapshot. why is the reason to give
// where the log does not tell either.
//
// A rollback puts an older snapshot again. Sequence numbers tell it from a commit that brings one: what s was built on has
// a lower one. Where the branch held no snapshot before, a snapshot with the first sequence number is a root.
func (h *History) followed(ctx context.Context, s State, why string) (Link, error) {
	unknown := Link{Unknown: true, Why: why}
	brought := false
	for i := h.behind(s.SnapshotID); ; i++ {
		c, ok, err := h.commit(ctx, i)
		if err != nil {
			return Link{}, fmt.Errorf("finding what the branch held before snapshot %d: %w", s.SnapshotID, err)
		}
		switch {
		case !ok || brought && c.Op == Put && c.Content.SnapshotID == NoSnapshot:
			if brought && s.Sequence == 1 {
				return Link{Root: true, By: "log"}, nil
			}
			return unknown, nil
		case c.Op != Put:
			continue
		case c.Content.SnapshotID == s.SnapshotID:
			brought = true
			continue
		case !brought:
			continue
		}
		before, err := h.Find(ctx, c.Content.SnapshotID, s)
		if err != nil {
			return Link{}, err
		}
		if !before.OK {
			return unknown, nil
		}
		if s.Sequence == 0 || before.State.Sequence < s.Sequence {
			h.followedAt = i
			return Link{ParentID: before.State.SnapshotID, Followed: true, By: "log"}, nil
		}
	}
}

// behind is where on the first-parent log to look for the commit of a snapshot: a walk goes from newer to older ones.
func (h *History) behind(snapshot int64) int {
	if at := h.followedAt; at < len(h.log.main.commits) && h.log.main.commits[at].Content.SnapshotID == snapshot {
		return at
	}
	return 0
}

// commit answers the commit at index i of the table's first-parent log, newest first; !ok behind the table's first.
func (h *History) commit(ctx context.Context, i int) (c TableCommit, ok bool, err error) {
	for i >= len(h.log.main.commits) && !h.log.main.done() {
		if err := h.log.advanceMain(ctx); err != nil {
			return TableCommit{}, false, err
		}
	}
	if i >= len(h.log.main.commits) {
		return TableCommit{}, false, nil
	}
	return h.log.main.commits[i], true, nil
}

// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"slices"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Attribute says which commit each step belongs to: the first commit on the first-parent log that contains the step's
// after-state, which is the first whose snapshot is that state or a later one of the steps. Commits of snapshots that are
// not among the steps (before a rollback or reset, say) contain none of them. Table scans and truncations, and steps
// that no commit contains, belong to the head's commit.
//
// commits are the table's, newest first, back to the commit of the state before the first step, or to the root: what
// History.Commits gives. That oldest commit counts as well: a commit of several snapshots can be reached half way. beyond
// is Resolution.Beyond, snapshots that follow the last step.
func Attribute(steps []Step, commits []catalog.TableCommit, head catalog.TableCommit, beyond ...int64) []catalog.TableCommit {
	if len(steps) == 0 {
		return nil
	}
	order := make(map[int64]int, len(steps)+len(beyond))
	for _, id := range beyond {
		order[id] = len(steps) - 1 // contains the last step, as that step's own commits do
	}
	for i, s := range steps {
		if s.Kind != Truncate {
			order[s.After.SnapshotID] = i
		}
	}
	out := make([]catalog.TableCommit, len(steps))
	next := 0 // the first step that no commit so far contains
	for _, c := range slices.Backward(commits) {
		if c.Op != catalog.Put {
			continue
		}
		last, ok := order[c.Content.SnapshotID]
		if !ok || !sameContent(c, steps[last].After) {
			continue
		}
		for ; next <= last; next++ {
			out[next] = c
		}
	}
	for i, s := range steps {
		if i >= next || s.Kind == TableScan || s.Kind == Truncate {
			out[i] = head
		}
	}
	return out
}

func sameContent(c catalog.TableCommit, s catalog.State) bool {
	return c.Content.ID == "" || s.ContentID == "" || c.Content.ID == s.ContentID
}

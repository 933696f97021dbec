// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResolveEnd(t *testing.T) {
	end := func(id int64, lost OnLost) Policy { return Policy{EndSnapshotID: &id, OnLost: lost} }
	ended := func(want bool) func(*testing.T, Resolution) {
		return func(t *testing.T, res Resolution) { t.Helper(); assert.Equal(t, want, res.Ended) }
	}
	runResolve(t, []resolveCase{
		{name: "steps after the end are cut", model: chain(1, 2, 3, 4), place: 1, head: 4, policy: end(3, ""), verdict: Continuous, steps: []string{"snapshot 1>2", "snapshot 2>3"}, check: ended(true)},
		{name: "the place is at the end", model: chain(1, 2, 3), place: 2, head: 3, policy: end(2, ""), verdict: Unchanged, stands: 2, check: ended(true)},
		{name: "the place is at the end and the caller knew it ahead", model: chain(1, 2, 3), place: 2, head: 3, policy: Policy{EndSnapshotID: new(int64(2)), EndAhead: true}, verdict: Unchanged, stands: 2, check: ended(true)},
		{name: "the end lies behind the place", model: chain(1, 2, 3), place: 2, head: 3, policy: end(1, ""), verdict: Unchanged, stands: 2, check: ended(true)},
		{name: "an end that nobody knows is waited for", model: chain(1, 2, 3), place: 2, head: 3, policy: end(9, ""), verdict: Continuous, steps: []string{"snapshot 2>3"}, check: ended(false)},
		{name: "an end that is not reached at an unchanged head", model: chain(1, 2), place: 2, head: 2, policy: end(9, ""), verdict: Unchanged, stands: 2, check: ended(false)},
		{name: "an end on another line is waited for", model: reset(), place: 2, head: 4, policy: end(14, ""), verdict: Continuous, steps: []string{"snapshot 2>3", "snapshot 3>4"}, check: ended(false)},
		{name: "lost: start stands at the end", model: reset(), place: 4, head: 15, policy: end(14, LostStart), verdict: Diverged, stands: 14, check: ended(true)},
		{name: "lost: ancestor is cut", model: reset(), place: 4, head: 15, policy: end(13, LostAncestor), verdict: Diverged, steps: []string{"snapshot 2>13"}, check: ended(true)},
		{name: "lost: bridge leads to the end", model: reset(), place: 4, head: 15, policy: end(14, LostBridge), verdict: Diverged, steps: []string{"bridge 4>14"}, check: ended(true)},
		{name: "lost: the end is scanned", model: reset(), place: 4, head: 15, policy: end(14, LostTableScan), verdict: Diverged, steps: []string{"table_scan ->14"}, check: ended(true)},
		{
			name: "a hole that holds the end is not crossed", model: chain(1, 2, 3, 4), place: 1, head: 4, verdict: Hole, steps: []string{"snapshot 1>2"},
			policy: Policy{EndSnapshotID: new(int64(3)), Gone: map[int64]string{3: "x"}}, reason: []string{"end_snapshot_id"}, check: ended(false),
		},
	})
	t.Run("a caller that knows the end ahead saves the walk", func(t *testing.T) {
		m := chain(1, 2, 3, 4, 5)
		_, err := Resolve(t.Context(), m.place(4), m.state(5), m, Policy{EndSnapshotID: new(int64(9)), EndAhead: true})
		require.NoError(t, err)
		assert.Equal(t, 1, m.parents)
		assert.Zero(t, m.finds)
	})
}

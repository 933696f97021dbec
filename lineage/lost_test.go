// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// reset is a branch that was moved back to 2 and got other snapshots with equal sequence numbers.
func reset() *model {
	m := chain(1, 2, 3, 4)
	for i, id := range []int64{13, 14, 15} {
		m.add(id, []int64{2, 13, 14}[i])
		m.edit(id, func(s *catalog.State) { s.Sequence = id - 10 })
	}
	return m
}

func withoutSequences(m *model) *model {
	for id := range m.states {
		m.edit(id, func(s *catalog.State) { s.Sequence = 0 })
	}
	return m
}

func TestResolveDivergence(t *testing.T) {
	replaced := func() *model { m := chain(1, 2); m.add(3, none); return m }
	lost := func(ancestor, skipped, retracted int64) func(*testing.T, Resolution) {
		return func(t *testing.T, res Resolution) {
			t.Helper()
			require.NotNil(t, res.Lost)
			if ancestor == 0 {
				assert.Nil(t, res.Lost.Ancestor)
			} else {
				require.NotNil(t, res.Lost.Ancestor)
				assert.Equal(t, ancestor, res.Lost.Ancestor.SnapshotID)
			}
			assert.Equal(t, int(skipped), res.Lost.Skipped, "skipped")
			assert.Equal(t, int(retracted), res.Lost.Retracted, "retracted")
			assert.Contains(t, res.Lost.String(), res.Reason)
		}
	}
	away := []string{"4", "15", "that both descend from is 2"}
	runResolve(t, []resolveCase{
		{
			name: "start stands at the head", model: reset(), place: 4, head: 15, policy: Policy{OnLost: LostStart},
			verdict: Diverged, stands: 15, reason: away, check: lost(2, 3, 2),
		},
		{
			name: "start goes on from a start snapshot that is reachable", model: reset(), place: 4, head: 15,
			policy: Policy{OnLost: LostStart, StartSnapshotID: new(int64(14))}, verdict: Diverged,
			steps: []string{"snapshot 13>14", "snapshot 14>15"}, foundBy: []string{FoundByStart, FoundByMetadata}, check: lost(2, 1, 2),
		},
		{
			name: "start ignores a start snapshot that is not reachable", model: reset(), place: 4, head: 15,
			policy: Policy{OnLost: LostStart, StartSnapshotID: new(int64(3))}, verdict: Diverged, stands: 15, check: lost(2, 3, 2),
		},
		{
			name: "ancestor delivers what follows the newest common ancestor", model: reset(), place: 4, head: 15,
			policy: Policy{OnLost: LostAncestor}, verdict: Diverged,
			steps: []string{"snapshot 2>13", "snapshot 13>14", "snapshot 14>15"}, check: lost(2, 0, 2),
		},
		{
			name: "ancestor without sequence numbers", model: withoutSequences(reset()), place: 4, head: 15,
			policy: Policy{OnLost: LostAncestor}, verdict: Diverged,
			steps: []string{"snapshot 2>13", "snapshot 13>14", "snapshot 14>15"}, check: lost(2, 0, 2),
		},
		{
			name: "bridge compares the place and the head", model: reset(), place: 4, head: 15, policy: Policy{OnLost: LostBridge},
			verdict: Diverged, steps: []string{"bridge 4>15"}, foundBy: []string{FoundByBridge}, check: lost(2, 0, 2),
		},
		{
			name: "table scan", model: reset(), place: 4, head: 15, policy: Policy{OnLost: LostTableScan},
			verdict: Diverged, steps: []string{"table_scan ->15"}, foundBy: []string{FoundByScan}, check: lost(2, 0, 2),
		},
		{
			name: "a changelog truncates before a table scan", model: reset(), place: 4, head: 15,
			policy: Policy{OnLost: LostTableScan, Changelog: true}, verdict: Diverged,
			steps: []string{"truncate 4>-1", "table_scan ->15"}, foundBy: []string{FoundByStart, FoundByScan},
		},
		{
			name: "a rollback leaves nothing to deliver", model: chain(1, 2, 3, 4), place: 4, head: 2,
			policy: Policy{OnLost: LostAncestor}, verdict: Diverged, stands: 2, reason: []string{"went back", "4", "2"}, check: lost(2, 0, 2),
		},
		{
			name: "a rollback without sequence numbers", model: withoutSequences(chain(1, 2, 3, 4)), place: 4, head: 2,
			policy: Policy{OnLost: LostStart}, verdict: Diverged, stands: 2, check: lost(2, 0, 2),
		},
		{
			name: "a replaced table begins at a root", model: replaced(), place: 2, head: 3, policy: Policy{OnLost: LostAncestor},
			verdict: Diverged, steps: []string{"snapshot -1>3"}, reason: []string{"2", "begins at snapshot 3"}, check: lost(0, 0, -1),
		},
		{
			name: "two disjoint lines are counted", model: withoutSequences(replaced()), place: 2, head: 3,
			policy: Policy{OnLost: LostStart}, verdict: Diverged, stands: 3, check: lost(0, 1, 2),
		},
		{
			name: "the place's line may be lost too", policy: Policy{OnLost: LostAncestor}, place: 4, head: 15,
			model: func() *model { m := reset(); m.forgotten[3] = true; return m }(), verdict: Diverged,
			steps:  []string{"snapshot -1>1", "snapshot 1>2", "snapshot 2>13", "snapshot 13>14", "snapshot 14>15"},
			reason: []string{"could be followed back to snapshot 4 only"}, check: lost(0, 0, -1),
		},
		{
			name: "an empty head has left every snapshot", model: chain(1, 2), place: 2, head: none, policy: Policy{OnLost: LostStart},
			verdict: Diverged, stands: none, reason: []string{"2", "no snapshot"}, check: lost(none, 0, -1),
		},
		{
			name: "an empty head has nothing after the ancestor", model: chain(1, 2), place: 2, head: none,
			policy: Policy{OnLost: LostAncestor}, verdict: Diverged, stands: none,
		},
		{
			name: "an empty head is bridged to", model: chain(1, 2), place: 2, head: none, policy: Policy{OnLost: LostBridge},
			verdict: Diverged, steps: []string{"bridge 2>-1"},
		},
		{
			name: "an empty head needs no scan", model: chain(1, 2), place: 2, head: none, policy: Policy{OnLost: LostTableScan},
			verdict: Diverged, stands: none,
		},
		{
			name: "an empty head still truncates a changelog", model: chain(1, 2), place: 2, head: none,
			policy: Policy{OnLost: LostTableScan, Changelog: true}, verdict: Diverged, steps: []string{"truncate 2>-1"},
		},
	})
}

func TestPoliciesThatCannotBeFollowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  *model
		policy Policy
		says   string
	}{
		{"bridge whose place is gone", func() *model { m := reset(); m.expired[4] = true; return m }(), Policy{OnLost: LostBridge}, "snapshot 4 is gone"},
		{"bridge whose place was found gone", reset(), Policy{OnLost: LostBridge, Gone: map[int64]string{4: "x"}}, "snapshot 4 is gone"},
		{"bridge that planning refused", reset(), Policy{OnLost: LostBridge, Refused: map[Edge]string{{4, 15}: "it removes rows"}}, "it removes rows"},
		{"bridge to a head that is gone", reset(), Policy{OnLost: LostBridge, Gone: map[int64]string{15: "x"}}, "snapshot 15 is gone"},
		{"scan of a head that is gone", reset(), Policy{OnLost: LostTableScan, Gone: map[int64]string{15: "d.parquet is gone"}}, "d.parquet is gone"},
		{"ancestor with nothing readable after it", reset(), Policy{OnLost: LostAncestor, Gone: map[int64]string{13: "x", 14: "x", 15: "x"}}, "no later snapshot can be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Resolve(t.Context(), c.model.place(4), c.model.state(15), c.model, c.policy)
			var lost *LostError
			require.ErrorAs(t, err, &lost)
			assert.Contains(t, lost.Problem, c.says)
			assert.Equal(t, c.policy.OnLost, lost.Policy)
		})
	}
}

func TestResolveReplaced(t *testing.T) {
	recreated := chain(1, 2)
	recreated.add(8, none)
	recreated.add(9, 8)
	for _, id := range []int64{8, 9} {
		recreated.edit(id, func(s *catalog.State) { s.TableUUID, s.ContentID = "u2", "c2" })
	}
	for name, edit := range map[string]func(*catalog.State){
		"another content id": func(s *catalog.State) { s.ContentID = "c0" },
		"another table uuid": func(s *catalog.State) { s.TableUUID = "u0" },
	} {
		t.Run(name+" fails", func(t *testing.T) {
			m := chain(1, 2)
			place := m.place(1)
			edit(&place.State)
			_, err := Resolve(t.Context(), place, m.state(2), m, Policy{OnLost: LostStart})
			var replaced *ReplacedError
			require.ErrorAs(t, err, &replaced)
			assert.Zero(t, m.parents+m.finds+m.logs)
		})
	}
	restart := Policy{OnReplaced: ReplacedRestart}
	runResolve(t, []resolveCase{
		{
			name: "restart is a first run", model: recreated, place: 2, head: 9, policy: restart, verdict: Replaced,
			steps: []string{"table_scan ->9"}, reason: []string{"u1", "u2", "c1", "c2", "2", "9"},
		},
		{
			name: "restart as start_from says", model: recreated, place: 2, head: 9, verdict: Replaced,
			policy: Policy{OnReplaced: ReplacedRestart, StartFrom: StartEarliest}, steps: []string{"snapshot -1>8", "snapshot 8>9"},
		},
		{
			name: "a changelog truncates first", model: recreated, place: 2, head: 9, verdict: Replaced,
			policy: Policy{OnReplaced: ReplacedRestart, Changelog: true}, steps: []string{"truncate 2>-1", "table_scan ->9"},
			check: func(t *testing.T, res Resolution) {
				assert.Equal(t, "u2", res.Steps[0].After.TableUUID, "a reader stopped here goes on in the new table")
			},
		},
		{
			name: "a changelog that goes on from a snapshot stands at its parent", model: recreated, place: 2, head: 9, verdict: Replaced,
			policy: Policy{OnReplaced: ReplacedRestart, Changelog: true, StartSnapshotID: new(int64(9))},
			steps:  []string{"truncate 2>8", "snapshot 8>9"},
		},
		{
			name: "a changelog that has nothing to deliver stands at the head", model: recreated, place: 2, head: 9, verdict: Replaced,
			policy: Policy{OnReplaced: ReplacedRestart, Changelog: true, StartFrom: StartLatest}, steps: []string{"truncate 2>9"},
		},
		{
			name: "a parent of another table is not a parent", model: func() *model {
				m := chain(1, 2, 3)
				m.edit(2, func(s *catalog.State) { s.TableUUID = "u9" })
				return m.commit("k1", 1)
			}(), place: 1, head: 3, verdict: Hole, steps: []string{"bridge 1>3"}, reason: []string{"table u9"},
		},
	})
	t.Run("a start that is impossible in the new table stops", func(t *testing.T) {
		p := restart
		p.StartSnapshotID = new(int64(2))
		_, err := Resolve(t.Context(), recreated.place(2), recreated.state(9), recreated, p)
		var start *StartError
		require.ErrorAs(t, err, &start)
	})
}

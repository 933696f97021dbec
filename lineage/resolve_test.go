// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func ptr(id int64) *int64 { return &id }

// resolveCase is one sentence of what Resolve promises.
type resolveCase struct {
	name    string
	model   *model
	place   int64
	head    int64
	edit    func(*Place)
	policy  Policy
	verdict Verdict
	steps   []string
	stands  int64 // where Place must be when there are no steps
	foundBy []string
	reason  []string // parts of Reason
	check   func(*testing.T, Resolution)
}

func (c resolveCase) run(t *testing.T) {
	t.Helper()
	place := c.model.place(c.place)
	if c.edit != nil {
		c.edit(&place)
	}
	res, err := Resolve(t.Context(), place, c.model.state(c.head), c.model, c.policy)
	require.NoError(t, err)
	assert.Equal(t, c.verdict, res.Verdict)
	assert.Equal(t, c.steps, show(res.Steps))
	if c.steps == nil {
		require.NotNil(t, res.Place)
		assert.Equal(t, c.stands, res.Place.SnapshotID)
	} else {
		assert.Nil(t, res.Place)
	}
	if c.foundBy != nil {
		assert.Equal(t, c.foundBy, foundBys(res.Steps))
	}
	for _, part := range c.reason {
		assert.Contains(t, res.Reason, part)
	}
	if res.Verdict == Unchanged || res.Verdict == Continuous {
		assert.Empty(t, res.Reason)
	} else {
		assert.NotEmpty(t, res.Reason)
	}
	if c.check != nil {
		c.check(t, res)
	}
}

func runResolve(t *testing.T, cases []resolveCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func TestResolveContinuous(t *testing.T) {
	rest := chain(1, 2, 3, 4)
	for id := range rest.states {
		rest.silent[id], rest.logged[id] = true, id != 4
	}
	hidden := chain(1, 2, 3, 4)
	hidden.silent[4], hidden.hidden[3] = true, true
	v1 := chain(1, 2, 3)
	for id := range v1.states {
		v1.edit(id, func(s *catalog.State) { s.Sequence = 0 })
	}
	replaced := chain(1, 2)
	replaced.add(3, none)
	runResolve(t, []resolveCase{
		{
			name: "the same snapshot is unchanged and takes the head's metadata location", model: chain(1, 2), place: 2, head: 2,
			edit:    func(p *Place) { p.State.MetadataLocation, p.State.Records = "older.json", 20 },
			verdict: Unchanged, stands: 2,
			check: func(t *testing.T, res Resolution) { assert.Equal(t, "m2.json", res.Place.MetadataLocation) },
		},
		{
			name: "an unchanged place keeps what the head does not know", place: 2, head: 2, verdict: Unchanged, stands: 2,
			model: chain(1, 2).edit(2, func(s *catalog.State) { s.Records, s.ManifestList = -1, "" }),
			edit:  func(p *Place) { p.State.Records, p.State.ManifestList = 20, "snap-2.avro" },
			check: func(t *testing.T, res Resolution) {
				assert.Equal(t, int64(20), res.Place.Records)
				assert.Equal(t, "snap-2.avro", res.Place.ManifestList)
			},
		},
		{name: "no snapshot stays no snapshot", model: newModel(), place: none, head: none, verdict: Unchanged, stands: none},
		{
			name: "every snapshot between is a step", model: chain(1, 2, 3, 4), place: 1, head: 4, verdict: Continuous,
			steps:   []string{"snapshot 1>2", "snapshot 2>3", "snapshot 3>4"},
			foundBy: []string{FoundByMetadata, FoundByMetadata, FoundByMetadata},
		},
		{
			name: "the log and headers prove what truncated metadata does not say", model: rest, place: 2, head: 4,
			verdict: Continuous, steps: []string{"snapshot 2>3", "snapshot 3>4"}, foundBy: []string{FoundByLog, FoundByHeader},
		},
		{
			name: "a hidden snapshot is found by listing", model: hidden, place: 2, head: 4, verdict: Continuous,
			steps: []string{"snapshot 2>3", "snapshot 3>4"}, foundBy: []string{FoundByListing, FoundByHeader},
		},
		{
			name: "tables without sequence numbers", model: v1, place: 1, head: 3, verdict: Continuous,
			steps: []string{"snapshot 1>2", "snapshot 2>3"},
		},
		{
			name: "a root after no snapshot", model: chain(1, 2), place: none, head: 2, verdict: Continuous,
			steps: []string{"snapshot -1>1", "snapshot 1>2"},
		},
		{
			name: "a new root after a replacement without rows", model: replaced, place: none, head: 3, verdict: Continuous,
			steps: []string{"snapshot -1>3"},
		},
		{
			name: "continuity needs no commit", model: chain(1, 2), place: 1, head: 2, verdict: Continuous,
			edit: func(p *Place) { p.Commit = "" }, steps: []string{"snapshot 1>2"},
		},
		{
			name: "the place's own files are not needed", verdict: Continuous, place: 1, head: 2,
			model: func() *model { m := chain(1, 2); m.expired[1], m.forgotten[1] = true, true; return m }(),
			steps: []string{"snapshot 1>2"},
		},
	})
}

func TestResolveIsLazy(t *testing.T) {
	m := newModel()
	parent := none
	for id := int64(1); id <= 1000; id++ {
		m.add(id, parent)
		parent = id
	}
	res, err := Resolve(t.Context(), m.place(997), m.state(1000), m, Policy{})
	require.NoError(t, err)
	assert.Equal(t, []int64{998, 999, 1000}, ids(res.Steps))
	assert.Equal(t, 3, m.parents, "one parent a step")
	assert.Equal(t, 2, m.finds, "the place itself is not looked for")
	assert.Zero(t, m.reads)
	assert.Zero(t, m.logs)

	*m = model{states: m.states, parent: m.parent}
	_, err = Resolve(t.Context(), m.place(1000), m.state(1000), m, Policy{})
	require.NoError(t, err)
	assert.Zero(t, m.parents+m.finds+m.reads+m.logs, "an unchanged head asks nothing")
}

func TestSequenceNumbersSaveTheWalkToTheRoot(t *testing.T) {
	m := newModel()
	parent := none
	for id := int64(1); id <= 1000; id++ {
		m.add(id, parent)
		parent = id
	}
	m.add(2001, 998)
	m.edit(2001, func(s *catalog.State) { s.Sequence = 999 })
	res, err := Resolve(t.Context(), m.place(1000), m.state(2001), m, Policy{OnLost: LostAncestor})
	require.NoError(t, err)
	assert.Equal(t, Diverged, res.Verdict)
	assert.Equal(t, []string{"snapshot 998>2001"}, show(res.Steps))
	assert.LessOrEqual(t, m.parents+m.finds, 8)
}

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
			policy: Policy{OnLost: LostStart, StartSnapshotID: ptr(14)}, verdict: Diverged,
			steps: []string{"snapshot 13>14", "snapshot 14>15"}, foundBy: []string{FoundByStart, FoundByMetadata}, check: lost(2, 1, 2),
		},
		{
			name: "start ignores a start snapshot that is not reachable", model: reset(), place: 4, head: 15,
			policy: Policy{OnLost: LostStart, StartSnapshotID: ptr(3)}, verdict: Diverged, stands: 15, check: lost(2, 3, 2),
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

// lossy is a chain of six whose middle is in no metadata file and whose lists are gone.
func lossy(gone ...int64) *model {
	m := chain(1, 2, 3, 4, 5, 6)
	for _, id := range gone {
		m.expired[id], m.forgotten[id] = true, true
	}
	return m.commit("k1", 1).commit("k2", 2).commit("k6", 6)
}

func TestResolveHoles(t *testing.T) {
	noHeader := chain(1, 2, 3, 4)
	noHeader.silent[3], noHeader.expired[3] = true, true
	noHeader.commit("k1", 1)
	collected := chain(1, 2, 3, 4, 5, 6, 7).commit("k1", 1)
	collected.expired[3], collected.expired[4] = true, true
	hidden := chain(1, 2, 3).commit("k1", 1)
	hidden.hidden[2], hidden.noListing = true, true
	runResolve(t, []resolveCase{
		{
			name: "a parent that was not found is bridged from the place", model: lossy(3, 4), place: 2, head: 6, verdict: Hole,
			steps: []string{"bridge 2>5", "snapshot 5>6"}, foundBy: []string{FoundByBridge, FoundByMetadata}, reason: []string{"2", "5", "4 was not found"},
		},
		{
			name: "several holes: the newest decides", model: lossy(3, 5), place: 1, head: 6, verdict: Hole,
			steps: []string{"bridge 1>6"}, reason: []string{"1", "6", "5"},
		},
		{
			name: "a hole above no snapshot", model: lossy(1, 2, 3), place: none, head: 6, verdict: Hole,
			edit:  func(p *Place) { p.Commit = "k1" },
			steps: []string{"bridge -1>4", "snapshot 4>5", "snapshot 5>6"},
		},
		{
			name: "a state without readable header is in the hole itself", model: noHeader, place: 1, head: 4, verdict: Hole,
			steps: []string{"bridge 1>4"}, reason: []string{"1", "4", "the parent of snapshot 3 can't be told", "snap-3.avro does not exist"},
		},
		{
			name: "a hidden snapshot without list permission", model: hidden, place: 1, head: 3, verdict: Hole,
			steps: []string{"bridge 1>3"}, reason: []string{"listing was refused"},
		},
		{
			name: "files that planning missed: both sides are known, only the middle is bridged", model: collected, place: 1, head: 7,
			policy: Policy{Gone: map[int64]string{3: "snap-3.avro is gone"}}, verdict: Hole,
			steps:  []string{"snapshot 1>2", "bridge 2>5", "snapshot 5>6", "snapshot 6>7"},
			reason: []string{"between snapshot 2 and snapshot 5", "snap-3.avro is gone"},
		},
		{
			name: "several states gone, each bridged alone", model: chain(1, 2, 3, 4, 5), place: 1, head: 5, edit: func(p *Place) { p.Commit = "" },
			policy: Policy{Gone: map[int64]string{2: "x", 4: "y"}}, verdict: Hole, steps: []string{"bridge 1>3", "bridge 3>5"},
		},
		{
			name: "catch up when the place's manifest list is gone", model: func() *model { m := lossy(3); m.expired[2] = true; return m }(),
			place: 2, head: 6, verdict: Hole, steps: []string{"catch_up 2>4", "snapshot 4>5", "snapshot 5>6"},
			foundBy: []string{FoundByCatchUp, FoundByMetadata, FoundByMetadata},
		},
		{
			name: "catch up when planning missed the place's manifest list", model: chain(1, 2, 3), place: 1, head: 3,
			policy: Policy{Gone: map[int64]string{1: "snap-1.avro is gone"}}, verdict: Hole,
			steps: []string{"catch_up 1>2", "snapshot 2>3"}, reason: []string{"the files of 1 itself are gone"},
		},
		{
			name: "what can be proved comes before the hole that can't be closed", model: chain(1, 2, 3, 4), place: 1, head: 4,
			policy:  Policy{Gone: map[int64]string{3: "gone"}, Refused: map[Edge]string{{2, 4}: "it removes data files"}, OnLost: LostStart},
			verdict: Hole, steps: []string{"snapshot 1>2"}, reason: []string{"it removes data files"},
			check: func(t *testing.T, res Resolution) { assert.NotEmpty(t, res.Pending); assert.Nil(t, res.Lost) },
		},
		{
			name: "and then is lost lineage", model: chain(1, 2, 3, 4), place: 2, head: 4,
			policy:  Policy{Gone: map[int64]string{3: "gone"}, Refused: map[Edge]string{{2, 4}: "it removes data files"}, OnLost: LostStart},
			verdict: Hole, stands: 4, reason: []string{"it removes data files", "3"},
			check: func(t *testing.T, res Resolution) {
				assert.Equal(t, 2, res.Lost.Skipped)
				assert.Zero(t, res.Lost.Retracted)
			},
		},
		{
			name: "a rollback seen through the place's line is no hole", place: 5, head: 7, verdict: Diverged,
			model: func() *model {
				m := chain(1, 2, 3, 4, 5).commit("k5", 5)
				m.add(7, 3)
				m.forgotten[2] = true
				return m
			}(),
			policy: Policy{OnLost: LostAncestor}, steps: []string{"snapshot 3>7"}, reason: []string{"5", "7", "3"},
		},
		{
			name: "the place's line is followed from below a hole too", place: 5, head: 3, verdict: Diverged,
			model:  func() *model { m := withoutSequences(chain(1, 2, 3, 4, 5)); m.forgotten[2] = true; return m }(),
			policy: Policy{OnLost: LostAncestor}, stands: 3,
		},
	})
}

func TestHolesThatAreNotClosedAreLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  *model
		edit   func(*Place)
		policy Policy
		says   []string
	}{
		{name: "commit is no ancestor", model: lossy(3), edit: func(p *Place) { p.Commit = "elsewhere" }, says: []string{"commit elsewhere", "not an ancestor"}},
		{name: "commit is unknown", model: lossy(3), edit: func(p *Place) { p.Commit = "" }, says: []string{"commit of the checkpoint is unknown"}},
		{name: "planning refused the bridge", model: lossy(3), policy: Policy{Refused: map[Edge]string{{2, 4}: "2 data files are removed"}}, says: []string{"2 data files are removed"}},
		{name: "no sequence number to catch up by", model: withoutSequences(func() *model { m := lossy(3); m.expired[2] = true; return m }()), says: []string{"no sequence number"}},
		{name: "no record count to catch up by", model: func() *model { m := lossy(3); m.expired[2] = true; return m }(), edit: func(p *Place) { p.State.Records = -1 }, says: []string{"how many rows it held is unknown"}},
		{name: "nothing above can be read", model: func() *model {
			m := lossy(3)
			m.expired[4], m.expired[5], m.expired[6] = true, true, true
			return m
		}(), says: []string{"no later snapshot can be read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := c.model.place(2)
			if c.edit != nil {
				c.edit(&place)
			}
			c.policy.OnLost = LostFail
			_, err := Resolve(t.Context(), place, c.model.state(6), c.model, c.policy)
			var lost *LostError
			require.ErrorAs(t, err, &lost)
			var hole *HoleError
			require.ErrorAs(t, err, &hole)
			assert.Equal(t, int64(2), hole.Place)
			assert.Equal(t, -1, lost.Skipped)
			for _, part := range append(c.says, "2", "3") {
				require.ErrorContains(t, err, part)
			}

			c.policy.OnLost = LostAncestor
			_, err = Resolve(t.Context(), place, c.model.state(6), c.model, c.policy)
			require.ErrorAs(t, err, &lost)
			require.ErrorContains(t, err, "no common ancestor is proved")

			c.policy.OnLost = LostStart
			res, err := Resolve(t.Context(), place, c.model.state(6), c.model, c.policy)
			require.NoError(t, err)
			assert.Equal(t, Hole, res.Verdict)
			assert.Equal(t, int64(6), res.Place.SnapshotID)
			assert.Equal(t, -1, res.Lost.Skipped)

			c.policy.OnLost = LostTableScan
			res, err = Resolve(t.Context(), place, c.model.state(6), c.model, c.policy)
			require.NoError(t, err)
			assert.Equal(t, []string{"table_scan ->6"}, show(res.Steps))
		})
	}
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
			policy: Policy{OnReplaced: ReplacedRestart, Changelog: true, StartSnapshotID: ptr(9)},
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
		p.StartSnapshotID = ptr(2)
		_, err := Resolve(t.Context(), recreated.place(2), recreated.state(9), recreated, p)
		var start *StartError
		require.ErrorAs(t, err, &start)
	})
}

func TestResolvePlacesOfNamesOnly(t *testing.T) {
	names := func(p *Place) {
		p.Names, p.Commit = true, ""
		p.State = catalog.State{SnapshotID: p.State.SnapshotID, Sequence: p.State.Sequence, Records: -1}
	}
	logged := func() *model {
		m := chain(1, 2, 3)
		m.logged[1], m.logged[2] = true, true
		return m.commit("k1", 1).commit("k2", 2).commit("k3", 3)
	}
	runResolve(t, []resolveCase{
		{
			name: "found in metadata or the log", model: logged(), place: 1, head: 3, edit: names, verdict: Continuous,
			steps: []string{"snapshot 1>2", "snapshot 2>3"},
			check: func(t *testing.T, res Resolution) {
				assert.Equal(t, "k1", res.From.Commit)
				assert.Equal(t, "snap-1.avro", res.From.State.ManifestList)
				assert.False(t, res.From.Names)
			},
		},
		{name: "at the head", model: logged(), place: 3, head: 3, edit: names, verdict: Unchanged, stands: 3},
		{name: "no snapshot", model: logged(), place: none, head: 1, edit: names, verdict: Continuous, steps: []string{"snapshot -1>1"}},
		{name: "empty ids are names only", model: logged(), place: 2, head: 3, edit: func(p *Place) { names(p); p.Names = false }, verdict: Continuous, steps: []string{"snapshot 2>3"}},
		{
			name: "its commit lets holes be closed", model: func() *model { m := logged(); m.forgotten[2] = true; return m }(), place: 1, head: 3,
			edit: names, verdict: Hole, steps: []string{"bridge 1>3"},
		},
		{
			name: "no hit is lost", model: func() *model { m := chain(1, 2, 3).commit("k3", 3); m.forgotten[1] = true; return m }(), place: 1, head: 3,
			edit: names, policy: Policy{OnLost: LostStart}, verdict: Diverged, stands: 3, reason: []string{"1", "3", "neither in the metadata"},
		},
		{
			name: "no hit, every snapshot from the root", model: func() *model { m := chain(2, 3); m.add(9, none); m.forgotten[9] = true; return m }(),
			place: 9, head: 3, edit: names, policy: Policy{OnLost: LostAncestor}, verdict: Diverged, steps: []string{"snapshot -1>2", "snapshot 2>3"},
		},
		{
			name: "no hit and an empty head", model: func() *model { m := chain(9); m.forgotten[9] = true; return m }(),
			place: 9, head: none, edit: names, policy: Policy{OnLost: LostAncestor}, verdict: Diverged, stands: none,
		},
	})
	t.Run("no hit fails", func(t *testing.T) {
		m := chain(1, 2)
		m.forgotten[1] = true
		place := m.place(1)
		names(&place)
		for _, p := range []OnLost{LostFail, LostBridge} {
			_, err := Resolve(t.Context(), place, m.state(2), m, Policy{OnLost: p})
			var lost *LostError
			require.ErrorAs(t, err, &lost)
		}
	})
	t.Run("a hit of another table is replaced", func(t *testing.T) {
		m := chain(1, 2, 3)
		m.edit(1, func(s *catalog.State) { s.TableUUID, s.ContentID = "u0", "c0" })
		m.commit("k1", 1).commit("k3", 3)
		place := m.place(1)
		names(&place)
		var replaced *ReplacedError
		_, err := Resolve(t.Context(), place, m.state(3), m, Policy{})
		require.ErrorAs(t, err, &replaced)
		m.forgotten[1] = true // the log alone tells
		_, err = Resolve(t.Context(), place, m.state(3), m, Policy{})
		require.ErrorAs(t, err, &replaced)
	})
}

func TestResolveEnd(t *testing.T) {
	end := func(id int64, lost OnLost) Policy { return Policy{EndSnapshotID: &id, OnLost: lost} }
	ended := func(want bool) func(*testing.T, Resolution) {
		return func(t *testing.T, res Resolution) { t.Helper(); assert.Equal(t, want, res.Ended) }
	}
	runResolve(t, []resolveCase{
		{name: "steps after the end are cut", model: chain(1, 2, 3, 4), place: 1, head: 4, policy: end(3, ""), verdict: Continuous, steps: []string{"snapshot 1>2", "snapshot 2>3"}, check: ended(true)},
		{name: "the place is at the end", model: chain(1, 2, 3), place: 2, head: 3, policy: end(2, ""), verdict: Unchanged, stands: 2, check: ended(true)},
		{name: "the place is at the end and the caller knew it ahead", model: chain(1, 2, 3), place: 2, head: 3, policy: Policy{EndSnapshotID: ptr(2), EndAhead: true}, verdict: Unchanged, stands: 2, check: ended(true)},
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
			policy: Policy{EndSnapshotID: ptr(3), Gone: map[int64]string{3: "x"}}, reason: []string{"end_snapshot_id"}, check: ended(false),
		},
	})
	t.Run("a caller that knows the end ahead saves the walk", func(t *testing.T) {
		m := chain(1, 2, 3, 4, 5)
		_, err := Resolve(t.Context(), m.place(4), m.state(5), m, Policy{EndSnapshotID: ptr(9), EndAhead: true})
		require.NoError(t, err)
		assert.Equal(t, 1, m.parents)
		assert.Zero(t, m.finds)
	})
}

func TestHistoriesThatContradictThemselves(t *testing.T) {
	t.Run("cycle", func(t *testing.T) {
		m := chain(1, 2, 3)
		m.parent[1] = 3
		m.add(7, none)
		_, err := Resolve(t.Context(), m.place(7), m.state(3), m, Policy{OnLost: LostStart})
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
		assert.ErrorContains(t, err, "snapshot 1 names 3")
	})
	t.Run("its own parent", func(t *testing.T) {
		m := chain(1)
		m.parent[1] = 1
		m.add(7, none)
		_, err := Start(t.Context(), m.state(1), m, Policy{StartFrom: StartEarliest})
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
	})
	t.Run("cycle on the place's line", func(t *testing.T) {
		m := withoutSequences(chain(1, 2))
		m.parent[1] = 2
		m.add(7, none)
		_, err := Resolve(t.Context(), m.place(2), m.state(7), m, Policy{OnLost: LostStart})
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
	})
	t.Run("endless chain", func(t *testing.T) {
		m := chain(1, 2, 3, 4, 5)
		l := newLine(m, m.state(5))
		l.limit = 3
		err := l.descendWhile(t.Context(), always)
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
		assert.Equal(t, 3, cycle.Length)
	})
	for name, place := range map[string]int64{"among the head's ancestors": 1, "at the place": 2} {
		t.Run("sequence numbers increase toward parents "+name, func(t *testing.T) {
			m := chain(1, 2, 3)
			m.edit(2, func(s *catalog.State) { s.Sequence = 9 })
			m.edit(3, func(s *catalog.State) { s.Sequence = 3 })
			p := m.place(place)
			_, err := Resolve(t.Context(), p, m.state(3), m, Policy{OnLost: LostStart})
			var sequence *SequenceError
			require.ErrorAs(t, err, &sequence)
			assert.Equal(t, SequenceError{Child: 3, ChildSequence: 3, Parent: 2, ParentSequence: 9}, *sequence)
		})
	}
}

var errStore = errors.New("store is down")

// failing is a model whose store breaks at one kind of call.
type failing struct {
	*model
	call string
}

func (f failing) Parent(ctx context.Context, s catalog.State) (catalog.Link, error) {
	if f.call == "Parent" {
		return catalog.Link{}, errStore
	}
	return f.model.Parent(ctx, s)
}

func (f failing) Find(ctx context.Context, id int64, child catalog.State) (catalog.Found, error) {
	if f.call == "Find" {
		return catalog.Found{}, errStore
	}
	return f.model.Find(ctx, id, child)
}

func (f failing) Readable(ctx context.Context, s catalog.State) (bool, error) {
	if f.call == "Readable" {
		return false, errStore
	}
	return f.model.Readable(ctx, s)
}

func (f failing) Commits(ctx context.Context, stop func(catalog.TableCommit) bool) ([]catalog.TableCommit, error) {
	if f.call == "Commits" {
		return nil, errStore
	}
	return f.model.Commits(ctx, stop)
}

func (f failing) IsAncestor(ctx context.Context, commit string) (bool, error) {
	if f.call == "IsAncestor" {
		return false, errStore
	}
	return f.model.IsAncestor(ctx, commit)
}

func TestAnErrorOfTheHistoryIsNoVerdict(t *testing.T) {
	for _, call := range []string{"Parent", "Find", "Readable", "Commits", "IsAncestor"} {
		t.Run(call, func(t *testing.T) {
			m := lossy(3)
			place := m.place(2)
			place.Names = call == "Commits"
			for _, policy := range []OnLost{LostStart, LostAncestor, LostTableScan, LostBridge, LostFail} {
				_, err := Resolve(t.Context(), place, m.state(6), failing{m, call}, Policy{OnLost: policy})
				require.ErrorIs(t, err, errStore)
				var lost *LostError
				assert.NotErrorAs(t, err, &lost)
			}
		})
	}
}

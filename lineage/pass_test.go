// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func TestWhatFollowedWithoutANameIsCompared(t *testing.T) {
	unnamed := func() *model {
		m := chain(1, 2, 3, 4).commit("k1", 1).commit("k2", 2).commit("k3", 3).commit("k4", 4)
		m.unnamed = map[int64]bool{1: true, 2: true, 3: true, 4: true}
		return m
	}
	before := unnamed()
	before.ancestors["k-1"] = true
	runResolve(t, []resolveCase{
		{
			name: "each commit is a bridge of its own", model: unnamed(), place: 1, head: 4, verdict: Continuous,
			steps: []string{"bridge 1>2", "bridge 2>3", "bridge 3>4"}, foundBy: []string{FoundByBridge, FoundByBridge, FoundByBridge},
		},
		{
			name: "from no snapshot", model: before, place: none, head: 2, verdict: Hole, edit: func(p *Place) { p.Commit = "k-1" },
			steps: []string{"bridge -1>1", "bridge 1>2"}, reason: []string{"nothing names one"},
		},
		{
			name: "one that planning refuses is lost lineage", model: unnamed(), place: 3, head: 4, verdict: Hole, stands: 4,
			policy: Policy{Refused: map[Edge]string{{3, 4}: "it removes rows"}, OnLost: LostStart}, reason: []string{"nothing names the parent of snapshot 4", "it removes rows"},
		},
		{
			name: "the branch went back", model: unnamed(), place: 4, head: 2, verdict: Diverged,
			policy: Policy{OnLost: LostStart}, stands: 2, reason: []string{"went back"},
		},
	})
	res, err := Start(t.Context(), unnamed().state(3), unnamed(), Policy{StartFrom: StartEarliest})
	require.NoError(t, err)
	assert.Equal(t, []string{"table_scan ->1", "bridge 1>2", "bridge 2>3"}, show(res.Steps))
	from := int64(2)
	res, err = Start(t.Context(), unnamed().state(3), unnamed(), Policy{StartSnapshotID: &from})
	require.NoError(t, err)
	assert.Equal(t, []string{"bridge 1>2", "bridge 2>3"}, show(res.Steps))
}

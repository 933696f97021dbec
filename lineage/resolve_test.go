// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

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
		m.commits, m.former = m.commits[:1], m.commits[1:] // and only of the name, not of the table
		_, err = Resolve(t.Context(), place, m.state(3), m, Policy{})
		require.ErrorAs(t, err, &replaced)
	})
}

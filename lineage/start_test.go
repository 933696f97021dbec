// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// at is the moment at which the model made a snapshot.
func at(id int64) *time.Time {
	t := time.UnixMilli(id * 1_000_000)
	return &t
}

func after(id int64) *time.Time {
	t := at(id).Add(time.Millisecond)
	return &t
}

func TestStart(t *testing.T) {
	change := func(m *model, change func(*model)) *model { change(m); return m }
	expired := func(ids ...int64) *model {
		return change(chain(1, 2, 3, 4), func(m *model) {
			for _, id := range ids {
				m.expired[id] = true
			}
		})
	}
	forgotten := func(id int64) *model {
		return change(chain(1, 2, 3, 4), func(m *model) { m.forgotten[id] = true })
	}
	earliest := Policy{StartFrom: StartEarliest}
	for _, c := range []struct {
		name   string
		model  *model
		head   int64
		policy Policy
		steps  []string
		stands int64
		by     string // FoundBy of the first step
		ended  bool
	}{
		{name: "the zero policy scans the table", model: chain(1, 2), head: 2, steps: []string{"table_scan ->2"}, by: FoundByScan},
		{name: "table_scan", model: chain(1, 2), head: 2, policy: Policy{StartFrom: StartTableScan}, steps: []string{"table_scan ->2"}},
		{name: "table_scan of an empty table", model: newModel(), head: none, stands: none},
		{name: "latest", model: chain(1, 2), head: 2, policy: Policy{StartFrom: StartLatest}, stands: 2},
		{name: "latest of an empty table", model: newModel(), head: none, policy: Policy{StartFrom: StartLatest}, stands: none},
		{name: "earliest of an empty table", model: newModel(), head: none, policy: earliest, stands: none},
		{name: "earliest from a root is every snapshot", model: chain(1, 2, 3), head: 3, policy: earliest, steps: []string{"snapshot -1>1", "snapshot 1>2", "snapshot 2>3"}, by: FoundByMetadata},
		{name: "earliest from a state whose parent is not found is that state whole", model: forgotten(2), head: 4, policy: earliest, steps: []string{"table_scan ->3", "snapshot 3>4"}},
		{name: "earliest skips states whose manifest lists are gone", model: expired(1, 2), head: 4, policy: earliest, steps: []string{"table_scan ->3", "snapshot 3>4"}},
		{name: "earliest skips states that planning found gone", model: chain(1, 2, 3), head: 3, policy: Policy{StartFrom: StartEarliest, Gone: map[int64]string{1: "x"}}, steps: []string{"table_scan ->2", "snapshot 2>3"}},
		{name: "earliest bridges what is gone in between", model: chain(1, 2, 3), head: 3, policy: Policy{StartFrom: StartEarliest, Gone: map[int64]string{2: "x"}}, steps: []string{"snapshot -1>1", "bridge 1>3"}},
		{name: "earliest without headers", model: change(chain(1, 2, 3), func(m *model) { m.silent[2], m.expired[2] = true, true }), head: 3, policy: earliest, steps: []string{"table_scan ->3"}},

		{name: "start_snapshot_id is inclusive", model: chain(1, 2, 3, 4), head: 4, policy: Policy{StartSnapshotID: new(int64(3))}, steps: []string{"snapshot 2>3", "snapshot 3>4"}, by: FoundByStart},
		{name: "start_snapshot_id of a root", model: chain(1, 2), head: 2, policy: Policy{StartSnapshotID: new(int64(1))}, steps: []string{"snapshot -1>1", "snapshot 1>2"}},
		{name: "start_snapshot_id of the head", model: chain(1, 2), head: 2, policy: Policy{StartSnapshotID: new(int64(2))}, steps: []string{"snapshot 1>2"}},
		{name: "start_snapshot_id needs its parent's id only", model: forgotten(2), head: 4, policy: Policy{StartSnapshotID: new(int64(3))}, steps: []string{"snapshot 2>3", "snapshot 3>4"}},
		{name: "start_snapshot_id goes before start_from", model: chain(1, 2), head: 2, policy: Policy{StartSnapshotID: new(int64(2)), StartFrom: StartLatest}, steps: []string{"snapshot 1>2"}},

		{name: "a moment is inclusive", model: chain(1, 2, 3, 4), head: 4, policy: Policy{StartTime: at(3)}, steps: []string{"snapshot 2>3", "snapshot 3>4"}},
		{name: "a moment between two snapshots", model: chain(1, 2, 3, 4), head: 4, policy: Policy{StartTime: after(2)}, steps: []string{"snapshot 2>3", "snapshot 3>4"}},
		{name: "a moment before the root", model: chain(1, 2), head: 2, policy: Policy{StartTime: at(0)}, steps: []string{"snapshot -1>1", "snapshot 1>2"}},
		{name: "a moment to come", model: chain(1, 2), head: 2, policy: Policy{StartTime: after(2)}, stands: 2},
		{name: "a moment beyond a hole is the oldest state whole", model: forgotten(2), head: 4, policy: Policy{StartTime: at(1)}, steps: []string{"table_scan ->3", "snapshot 3>4"}},
		{name: "a moment just above a hole", model: forgotten(2), head: 4, policy: Policy{StartTime: at(4)}, steps: []string{"snapshot 3>4"}},
		{name: "a moment whose snapshot is gone is bridged from its parent", model: expired(3), head: 4, policy: Policy{StartTime: at(3)}, steps: []string{"bridge 2>4"}},
		{name: "a moment whose snapshot and parent are gone", model: change(expired(2, 3), func(m *model) { m.edit(2, func(s *catalog.State) { s.Records = -1 }) }), head: 4, policy: Policy{StartTime: at(3)}, steps: []string{"table_scan ->4"}},
		{name: "clocks of writers differ", model: change(chain(1, 2, 3, 4), func(m *model) {
			m.edit(3, func(s *catalog.State) { s.TimestampMs = m.states[2].TimestampMs - 50_000 })
		}), head: 4, policy: Policy{StartTime: at(2)}, steps: []string{"snapshot 1>2", "snapshot 2>3", "snapshot 3>4"}},

		{name: "until the end", model: chain(1, 2, 3), head: 3, policy: Policy{StartFrom: StartEarliest, EndSnapshotID: new(int64(2))}, steps: []string{"snapshot -1>1", "snapshot 1>2"}, ended: true},
		{name: "one snapshot", model: chain(1, 2, 3), head: 3, policy: Policy{StartSnapshotID: new(int64(2)), EndSnapshotID: new(int64(2))}, steps: []string{"snapshot 1>2"}, ended: true},
		{name: "table_scan of the end", model: chain(1, 2, 3), head: 3, policy: Policy{EndSnapshotID: new(int64(2))}, steps: []string{"table_scan ->2"}, ended: true},
		{name: "latest with an end that is reached", model: chain(1, 2, 3), head: 3, policy: Policy{StartFrom: StartLatest, EndSnapshotID: new(int64(2))}, stands: 2, ended: true},
		{name: "an end to come", model: chain(1, 2, 3), head: 3, policy: Policy{EndSnapshotID: new(int64(9))}, steps: []string{"table_scan ->3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := Start(t.Context(), c.model.state(c.head), c.model, c.policy)
			require.NoError(t, err)
			assert.Equal(t, Started, res.Verdict)
			assert.Equal(t, c.steps, show(res.Steps))
			assert.Equal(t, c.ended, res.Ended)
			assert.Equal(t, c.steps == nil, res.Place != nil)
			if c.steps == nil {
				assert.Equal(t, c.stands, res.Place.SnapshotID)
			}
			if c.by != "" {
				assert.Equal(t, c.by, res.Steps[0].FoundBy)
			}
		})
	}
}

func expiredAt(m *model, id int64) *model {
	m.expired[id] = true
	return m
}

func TestStartIsImpossible(t *testing.T) {
	lostHeader := chain(1, 2, 3)
	lostHeader.silent[2], lostHeader.expired[2] = true, true
	forgotten := chain(1, 2, 3)
	forgotten.forgotten[2] = true
	dead := chain(1, 2)
	dead.expired[1], dead.expired[2] = true, true
	for _, c := range []struct {
		name   string
		model  *model
		head   int64
		policy Policy
		says   []string
	}{
		{"an unknown snapshot", chain(1, 2, 3), 3, Policy{StartSnapshotID: new(int64(7))}, []string{"7", "head's snapshot 3", "begins at snapshot 1"}},
		{"a snapshot on another line", reset(), 15, Policy{StartSnapshotID: new(int64(3))}, []string{"start_snapshot_id: 3", "15"}},
		{"a snapshot below a hole", forgotten, 3, Policy{StartSnapshotID: new(int64(1))}, []string{"followed back to snapshot 3 only", "parent 2 was not found"}},
		{"a snapshot of an empty table", newModel(), none, Policy{StartSnapshotID: new(int64(1))}, []string{"holds no snapshot"}},
		{"a snapshot whose parent nothing names", lostHeader, 3, Policy{StartSnapshotID: new(int64(2))}, []string{"nothing names its parent", "snap-2.avro does not exist"}},
		{"a snapshot whose manifest list is gone", expiredAt(chain(1, 2, 3), 2), 3, Policy{StartSnapshotID: new(int64(2))}, []string{"start_snapshot_id: 2", "its manifest list is gone"}},
		{"a snapshot whose files are gone", chain(1, 2, 3), 3, Policy{StartSnapshotID: new(int64(2)), Gone: map[int64]string{2: "d.parquet is gone"}}, []string{"d.parquet is gone"}},
		{"a snapshot whose parent planning needs and misses", withoutSequences(chain(1, 2, 3)), 3, Policy{StartSnapshotID: new(int64(2)), Gone: map[int64]string{1: "snap-1.avro is gone"}}, []string{"snap-1.avro is gone"}},
		{"a scan of a head that is gone", chain(1, 2), 2, Policy{Gone: map[int64]string{2: "d.parquet is gone"}}, []string{"start_from: table_scan", "d.parquet is gone"}},
		{"nothing can be read", dead, 2, Policy{StartFrom: StartEarliest}, []string{"start_from: earliest", "none of the 2 snapshots from 1 to the head's 2"}},
		{"nothing can be read since", dead, 2, Policy{StartTime: at(2)}, []string{"start_from: 1970-01-01T00:33:20Z", "2"}},
		{"the end lies before the start", chain(1, 2, 3), 3, Policy{StartSnapshotID: new(int64(3)), EndSnapshotID: new(int64(2))}, []string{"end_snapshot_id 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Start(t.Context(), c.model.state(c.head), c.model, c.policy)
			var start *StartError
			require.ErrorAs(t, err, &start)
			for _, part := range c.says {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestStartAsksNothingItDoesNotNeed(t *testing.T) {
	m := chain(1, 2, 3, 4, 5)
	for _, p := range []Policy{{}, {StartFrom: StartLatest}} {
		_, err := Start(t.Context(), m.state(5), m, p)
		require.NoError(t, err)
	}
	assert.Zero(t, m.parents+m.finds+m.reads+m.logs)
	_, err := Start(t.Context(), m.state(5), m, Policy{StartTime: at(5)})
	require.NoError(t, err)
	assert.Equal(t, 1, m.finds, "the walk stops at the first snapshot that is too old")
}

func TestStartPassesErrorsOn(t *testing.T) {
	for _, call := range []string{"Parent", "Find", "Readable"} {
		m := chain(1, 2, 3)
		_, err := Start(t.Context(), m.state(3), failing{m, call}, Policy{StartFrom: StartEarliest})
		require.ErrorIs(t, err, errStore)
	}
	for _, call := range []string{"Parent", "Find"} {
		m := chain(1, 2, 3)
		_, err := Start(t.Context(), m.state(3), failing{m, call}, Policy{StartSnapshotID: new(int64(1))})
		require.ErrorIs(t, err, errStore)
	}
}

// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func never(catalog.State) bool { return false }

func TestTraceSaysHowEachStateWasFoundAndWhereItEnds(t *testing.T) {
	ids := func(l Line) (ids []int64, by []string) {
		for _, n := range l.Nodes {
			ids, by = append(ids, n.State.SnapshotID), append(by, n.FoundBy)
		}
		return ids, by
	}
	t.Run("a root", func(t *testing.T) {
		m := chain(1, 2, 3, 4)
		m.silent[4], m.logged[2], m.hidden[3] = true, true, true
		line, err := Trace(t.Context(), m.state(4), m, never)
		require.NoError(t, err)
		got, by := ids(line)
		assert.Equal(t, []int64{4, 3, 2, 1}, got)
		assert.Equal(t, []string{FoundByHeader, FoundByListing, FoundByLog, FoundByMetadata}, by)
		assert.True(t, line.Root)
		assert.False(t, line.Stopped)
		assert.Equal(t, none, line.Missing)
	})
	t.Run("a parent that is not found", func(t *testing.T) {
		m := chain(1, 2, 3)
		m.forgotten[1], m.expired[1] = true, true
		line, err := Trace(t.Context(), m.state(3), m, never)
		require.NoError(t, err)
		got, _ := ids(line)
		assert.Equal(t, []int64{3, 2}, got)
		assert.False(t, line.Root)
		assert.Equal(t, int64(1), line.Missing)
		assert.NotEmpty(t, line.Why)
	})
	t.Run("a parent that nothing names", func(t *testing.T) {
		m := chain(1, 2)
		m.silent[2], m.expired[2] = true, true
		line, err := Trace(t.Context(), m.state(2), m, never)
		require.NoError(t, err)
		_, by := ids(line)
		assert.Equal(t, []string{""}, by)
		assert.Equal(t, none, line.Missing)
		assert.NotEmpty(t, line.Why)
	})
	t.Run("where the caller has seen enough", func(t *testing.T) {
		m := chain(1, 2, 3)
		line, err := Trace(t.Context(), m.state(3), m, func(s catalog.State) bool { return s.SnapshotID == 2 })
		require.NoError(t, err)
		got, _ := ids(line)
		assert.Equal(t, []int64{3, 2}, got)
		assert.True(t, line.Stopped)
		assert.False(t, line.Root)
	})
	t.Run("no snapshot", func(t *testing.T) {
		m := newModel()
		line, err := Trace(t.Context(), m.state(none), m, never)
		require.NoError(t, err)
		assert.True(t, line.Root)
		assert.Len(t, line.Nodes, 1)
		assert.Zero(t, m.parents)
	})
	t.Run("a cycle", func(t *testing.T) {
		m := chain(1, 2)
		m.parent[1] = 2
		_, err := Trace(t.Context(), m.state(2), m, never)
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
	})
}

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

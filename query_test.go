// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

func TestAQueryFiltersAFullScan(t *testing.T) {
	tests := []struct {
		name   string
		fields []string
		want   []string
	}{
		{"json", nil, orders(2, 4)},
		{"ndjson", []string{"format: ndjson", "batch_rows: 1"}, []string{tables.Order(2) + "\n", tables.Order(4) + "\n"}},
		{"without the column", []string{"columns: [ item ]"}, []string{`{"item":"item 2"}`, `{"item":"item 4"}`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newShop(t)
			s.add(1, 2, 3)
			s.add(4, 5)
			s.add(6)
			r := newRig(t)
			r.run(s.fields(append(tc.fields, "poll_interval: 0s", "query: id IN (2, 4)")...))
			assert.Equal(t, tc.want, r.out.bodies())
		})
	}
}

func TestAQueryThatNoRowPassesDeliversNothing(t *testing.T) {
	s := newShop(t)
	s.add(1, 2, 3)
	r := newRig(t)
	l := r.run(s.fields("poll_interval: 0s", "query: id > 3"))
	assert.Empty(t, r.out.bodies())
	assert.Empty(t, l.reported())
}

func TestAQueryThatTheTableRefusesEndsABoundedRunWithItsPlace(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	l := r.run(s.fields("poll_interval: 0s", "query: itm = 'item 1'"))
	require.Len(t, l.reported(), 1)
	assert.Contains(t, l.reported()[0].Error(), "query, line 1, column 1: the table has no column itm; it has item, id\n    itm = 'item 1'\n    ^")
}

func TestWrongQueriesAreConstructorErrors(t *testing.T) {
	err := construct(t, []string{"query: 'lower(item) = 1'"})
	require.ErrorContains(t, err, "field query: query, line 1, column 1: the function lower is not supported")
	err = construct(t, []string{"query: id = 1", "incremental_by_snapshot: true", "checkpoint_cache: progress"})
	require.EqualError(t, err, "field query can't be combined with incremental_by_snapshot: true")
}

func TestAQueryWithIncrementalReadingIsALint(t *testing.T) {
	linter := service.GlobalEnvironment().NewComponentConfigLinter()
	lints, err := linter.LintInputYAML([]byte(inputYAML("query: id = 1", "incremental_by_snapshot: true", "checkpoint_cache: progress")))
	require.NoError(t, err)
	var says []string
	for _, lint := range lints {
		says = append(says, lint.What)
	}
	assert.Equal(t, "field query can't be combined with incremental_by_snapshot: true", strings.Join(says, "; "))
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// shop is a Nessie with a table shop.orders in a folder of the test.
type shop struct {
	*tables.Place
	t   *testing.T
	key catalog.Key
}

func openShop(t *testing.T, opts nessietest.Options) *shop {
	t.Helper()
	return &shop{Place: tables.Open(t, opts, nessietest.WriterConfig{}), t: t, key: tables.Orders()}
}

// newShop has an empty table.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := openShop(t, nessietest.Options{})
	s.create(nessietest.TableOptions{})
	return s
}

func (s *shop) create(opts nessietest.TableOptions, steps ...nessietest.Step) nessietest.Written {
	s.t.Helper()
	w, err := s.Writer.Create(s.t.Context(), s.key, tables.OrdersSchema(), opts, steps...)
	require.NoError(s.t, err)
	return w
}

func (s *shop) commit(steps ...nessietest.Step) nessietest.Written {
	s.t.Helper()
	w, err := s.Writer.Commit(s.t.Context(), s.key, nessietest.Change{Message: "change", Steps: steps})
	require.NoError(s.t, err)
	return w
}

// add appends one snapshot with the given ids.
func (s *shop) add(ids ...int) nessietest.Written {
	s.t.Helper()
	return s.commit(nessietest.Append(orders(ids...)...))
}

// reset moves main to a commit.
func (s *shop) reset(commit string) {
	s.t.Helper()
	head, err := s.Client.Reference(s.t.Context(), "main")
	require.NoError(s.t, err)
	_, err = s.Client.AssignReference(s.t.Context(), head, catalog.Ref{Name: "main", Hash: commit})
	require.NoError(s.t, err)
}

func orders(ids ...int) []string {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = tables.Order(id)
	}
	return rows
}

func span(from, to int) []int {
	var ids []int
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

func snapshotOf(w nessietest.Written) string { return strconv.FormatInt(w.SnapshotID(), 10) }

// fields are the YAML lines of a nessie input on the shop's table; more are added at the end.
func (s *shop) fields(more ...string) []string {
	return append([]string{
		"base_url: " + s.Server.URL, "namespace: shop", "table: orders", "max_retries: 0", fmt.Sprintf("storage: { local_root: %q }", s.Warehouse),
	}, more...)
}

// increments are fields for reading by snapshot with the test's cache.
func (s *shop) increments(more ...string) []string {
	return s.fields(append([]string{"incremental_by_snapshot: true", "checkpoint_cache: progress", "checkpoint_cache_key: place"}, more...)...)
}

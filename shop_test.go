// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// shop is a Nessie with a table shop.orders in a folder of the test.
type shop struct {
	t         *testing.T
	server    *nessietest.Server
	client    *catalog.Client
	writer    *nessietest.Writer
	warehouse string
	key       catalog.Key
}

func openShop(t *testing.T, opts nessietest.Options) *shop {
	t.Helper()
	server, err := nessietest.Start(opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := &shop{t: t, server: server, client: client, warehouse: t.TempDir(), key: catalog.Key{"shop", "orders"}}
	s.writer, err = nessietest.NewWriter(t.Context(), nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + s.warehouse})
	require.NoError(t, err)
	return s
}

// newShop has an empty table.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := openShop(t, nessietest.Options{})
	s.create(nessietest.TableOptions{})
	return s
}

func ordersSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "item", Type: iceberg.PrimitiveTypes.String},
	)
}

func (s *shop) create(opts nessietest.TableOptions, steps ...nessietest.Step) nessietest.Written {
	s.t.Helper()
	w, err := s.writer.Create(s.t.Context(), s.key, ordersSchema(), opts, steps...)
	require.NoError(s.t, err)
	return w
}

func (s *shop) commit(steps ...nessietest.Step) nessietest.Written {
	s.t.Helper()
	w, err := s.writer.Commit(s.t.Context(), s.key, nessietest.Change{Message: "change", Steps: steps})
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
	head, err := s.client.Reference(s.t.Context(), "main")
	require.NoError(s.t, err)
	_, err = s.client.AssignReference(s.t.Context(), head, catalog.Ref{Name: "main", Hash: commit})
	require.NoError(s.t, err)
}

func orders(ids ...int) []string {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = order(id)
	}
	return rows
}

func order(id int) string { return fmt.Sprintf(`{"id":%d,"item":"item %d"}`, id, id) }

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
		"base_url: " + s.server.URL, "namespace: shop", "table: orders", "max_retries: 0", fmt.Sprintf("storage: { local_root: %q }", s.warehouse),
	}, more...)
}

// increments are fields for reading by snapshot with the test's cache.
func (s *shop) increments(more ...string) []string {
	return s.fields(append([]string{"incremental_by_snapshot: true", "checkpoint_cache: progress", "checkpoint_cache_key: place"}, more...)...)
}

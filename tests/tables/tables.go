// SPDX-License-Identifier: Apache-2.0

// Package tables opens what most tests follow: a Nessie in the test's own process, and a writer of its tables.
package tables

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// TB is a test, or one case of a random test.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(end func())
	Context() context.Context
}

// Place is a Nessie with a client of its own, and a writer of tables. All end with the test.
type Place struct {
	Server    *nessietest.Server
	Client    *catalog.Client
	Writer    *nessietest.Writer
	Warehouse string // the tables' folder, which may have siblings; "" where they lie elsewhere
}

// Open opens a place without a table. Its files lie in a folder, unless files names another warehouse.
func Open(t TB, opts nessietest.Options, files nessietest.WriterConfig) *Place {
	t.Helper()
	p := &Place{}
	if files.Warehouse == "" {
		folder, err := os.MkdirTemp("", "tables-")
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
		p.Warehouse = filepath.Join(folder, "warehouse")
		require.NoError(t, os.Mkdir(p.Warehouse, 0o700))
		files.Warehouse = "file://" + p.Warehouse
	}
	var err error
	p.Server, err = nessietest.Start(opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Server.Close()) })
	p.Client, err = catalog.NewClient(catalog.ClientConfig{BaseURL: p.Server.URL})
	require.NoError(t, err)
	t.Cleanup(p.Client.Close)
	files.Catalog = p.Client
	p.Writer, err = nessietest.NewWriter(t.Context(), files)
	require.NoError(t, err)
	return p
}

// OpenOrders opens a place with an empty table of orders.
func OpenOrders(t TB) *Place {
	t.Helper()
	p := Open(t, nessietest.Options{}, nessietest.WriterConfig{})
	_, err := p.Writer.Create(t.Context(), Orders(), OrdersSchema(), nessietest.TableOptions{})
	require.NoError(t, err)
	return p
}

// Orders is the key of the table that most tests follow.
func Orders() catalog.Key { return catalog.Key{"shop", "orders"} }

// OrdersSchema is the table's schema.
func OrdersSchema() *iceberg.Schema { return Named("item") }

// Order is the order of a number, as a row of the table and as the input delivers it.
func Order(id int) string { return fmt.Sprintf(`{"id":%d,"item":"item %[1]d"}`, id) }

// Named is a schema of an id and one column of text.
func Named(column string) *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: column, Type: iceberg.PrimitiveTypes.String},
	)
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	"github.com/redpanda-data/benthos/v4/public/schema"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/scan"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

func TestEveryMetadataKeyHasItsTypeAndValue(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	s := openShop(t, nessietest.Options{Clock: func() time.Time { at = at.Add(time.Second); return at }})
	created := s.create(nessietest.TableOptions{}, nessietest.Append(orders(1, 2)...))
	second := s.add(3)
	secondAt := at.UnixMilli()

	r := newRig(t)
	r.run(s.increments("start_from: earliest"))

	rows := r.out.all()
	require.Equal(t, orders(1, 2, 3), r.out.bodies())
	common := map[string]any{
		"snapshot_id":       snapshotOf(second),
		"snapshot_sequence": int64(2),
		"namespace":         "shop",
		"table":             "orders",
		"operation":         "insert",
		"branch":            "main",
		"commit_hash":       second.Commit,
		"commit_ts_ms":      secondAt,
		"schema_id":         0,
		"table_uuid":        second.Metadata.TableUUID().String(),
		"schema": (&schema.Common{
			Name: "orders", Type: schema.Object,
			Children: []schema.Common{
				{Name: "id", Type: schema.Int64},
				{Name: "item", Type: schema.String, Optional: true},
			},
		}).ToAny(),
		"step":          int64(2),
		"first_row":     int64(0),
		"snapshot_last": true,
	}
	assert.Equal(t, common, rows[2].meta)
	assert.Equal(t, snapshotOf(created), rows[1].meta["snapshot_id"])
	assert.Equal(t, created.Commit, rows[1].meta["commit_hash"])
	assert.Equal(t, int64(1), rows[1].meta["step"])
	assert.Equal(t, int64(0), rows[1].meta["first_row"], "the batch's first row, on each of its rows")
}

func TestTableScansSayRead(t *testing.T) {
	s := newShop(t)
	s.add(1)
	s.add(2)
	r := newRig(t)
	r.run(s.increments())
	require.ElementsMatch(t, orders(1, 2), r.out.bodies())
	head, err := s.Client.Reference(t.Context(), "main")
	require.NoError(t, err)
	for _, row := range r.out.all() {
		assert.Equal(t, "read", row.meta["operation"])
		assert.Equal(t, head.Hash, row.meta["commit_hash"], "the head that was read")
	}
}

func TestNamespacesAreQuoted(t *testing.T) {
	s := openShop(t, nessietest.Options{})
	s.key = catalog.Key{"a", "b.c", "orders"}
	s.create(nessietest.TableOptions{}, nessietest.Append(tables.Order(1)))
	r := newRig(t)
	r.run([]string{"base_url: " + s.Server.URL, `namespace: 'a."b.c"'`, "table: orders", "storage: { local_root: " + strconv.Quote(s.Warehouse) + " }"})
	require.Equal(t, orders(1), r.out.bodies())
	assert.Equal(t, `a."b.c"`, r.out.all()[0].meta["namespace"])
	assert.Positive(t, r.numbers.of("nessie_rows_read", `table=a."b.c".orders`))
}

func TestFormatsOfSeveralRowsCountThem(t *testing.T) {
	for format, decode := range map[string]func(*testing.T, string) []string{
		"ndjson": func(_ *testing.T, body string) []string { return strings.Split(strings.TrimSuffix(body, "\n"), "\n") },
		"arrow":  arrowOrders,
	} {
		t.Run(format, func(t *testing.T) {
			s := newShop(t)
			s.add(span(1, 5)...)
			s.add(6)
			r := newRig(t)
			r.run(s.increments("start_from: earliest", "format: "+format, "batch_rows: 2"))
			var (
				got   []string
				rows  []any
				first []any
				last  []any
			)
			for _, m := range r.out.all() {
				got = append(got, decode(t, m.body)...)
				rows = append(rows, m.meta["rows"])
				first = append(first, m.meta["first_row"])
				last = append(last, m.meta["snapshot_last"])
			}
			assert.Equal(t, orders(span(1, 6)...), got)
			assert.Equal(t, []any{2, 2, 1, 1}, rows)
			assert.Equal(t, []any{int64(0), int64(2), int64(4), int64(0)}, first)
			assert.Equal(t, []any{false, false, true, true}, last)
			assert.Equal(t, int64(6), r.numbers.of("nessie_rows_acked"))
		})
	}
}

func arrowOrders(t *testing.T, body string) []string {
	t.Helper()
	reader, err := ipc.NewReader(bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	defer reader.Release()
	var got []string
	for reader.Next() {
		text, err := reader.RecordBatch().MarshalJSON()
		require.NoError(t, err)
		var rows []struct {
			ID   int    `json:"id"`
			Item string `json:"item"`
		}
		require.NoError(t, json.Unmarshal(text, &rows))
		for _, row := range rows {
			one, err := json.Marshal(row)
			require.NoError(t, err)
			got = append(got, string(one))
		}
	}
	require.NoError(t, reader.Err())
	return got
}

func TestBatchingPolicies(t *testing.T) {
	tests := map[string]struct {
		policy string
		sizes  []int
		first  []int64
	}{
		"by count, flushed at the end of a step": {"count: 2", []int{2, 2, 1, 2}, []int64{0, 2, 4, 0}},
		"by size":                                {"byte_size: 40", []int{2, 2, 1, 2}, []int64{0, 2, 4, 0}},
		"by check":                               {`check: this.id == 4`, []int{4, 1, 2}, []int64{0, 4, 0}},
		"a period alone":                         {"period: 1h", []int{5, 2}, []int64{0, 0}},
		"with processors": {
			"count: 3\n      processors:\n        - archive: { format: lines }",
			[]int{1, 1, 1},
			[]int64{0, 3, 0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.add(span(1, 5)...)
			s.add(6, 7)
			r := newRig(t)
			r.run(s.increments("start_from: earliest", "batching:\n      "+tc.policy))
			assert.Equal(t, tc.sizes, r.out.batches())
			assert.Equal(t, strings.Join(orders(span(1, 7)...), "\n"), strings.Join(r.out.bodies(), "\n"))
			at := 0
			for i, size := range tc.sizes {
				m := r.out.all()[at]
				assert.Equal(t, tc.first[i], m.meta["first_row"], "batch %d", i)
				ends := i == len(tc.sizes)-1 || tc.first[i+1] == 0
				assert.Equal(t, ends, m.meta["snapshot_last"], "batch %d", i)
				at += size
			}
			assert.Equal(t, int64(7), r.numbers.of("nessie_rows_acked"))
		})
	}
}

// mixed is a batch of several operations.
func mixed(operations ...string) scan.Batch {
	return scan.Batch{First: 7, Rows: len(operations), Messages: make([][]byte, len(operations)), Operations: operations}
}

func TestMessagesOfABatchHaveTheirOwnOperationAndMetadata(t *testing.T) {
	m := &stepMessage{base: service.NewMessage(nil), perRow: true, ordinals: true}
	m.base.MetaSetMut(metaBranch, "main")
	for _, again := range []bool{false, true} {
		operations := []string{scan.OperationDelete, scan.OperationInsert, scan.OperationDelete, scan.OperationInsert}
		batch := m.batch(mixed(operations...))
		batch[0].MetaSetMut(metaOperation, "changed by a processor")
		batch[1].MetaDelete(metaBranch)
		for i, msg := range batch[2:] {
			got := map[string]any{}
			require.NoError(t, msg.MetaWalkMut(func(key string, value any) error {
				got[key] = value
				return nil
			}))
			want := map[string]any{
				metaBranch: "main", metaOperation: operations[i], metaFirstRow: int64(7), metaSnapshotLast: false, metaRowOrdinal: int64(9 + i),
			}
			assert.Equal(t, want, got, "message %d, made again: %v", i+2, again)
		}
	}
}

// What a message costs is what it costs to read rows of few columns.
func TestAMessageTakesTwoAllocations(t *testing.T) {
	const rows = 1000
	operations := make([]string, rows)
	for i := range operations {
		operations[i] = []string{scan.OperationDelete, scan.OperationInsert}[i%2]
	}
	m := &stepMessage{base: service.NewMessage(nil), perRow: true}
	for name, b := range map[string]scan.Batch{
		"one operation":      {Rows: rows, Messages: make([][]byte, rows), Operation: scan.OperationRead},
		"several operations": mixed(operations...),
	} {
		allocations := testing.AllocsPerRun(10, func() { m.batch(b) })
		assert.InDelta(t, 2*rows, allocations, rows/4, name)
	}
}

func TestColumnsAreProjected(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	r.run(s.increments("columns: [ item ]"))
	require.Equal(t, []string{`{"item":"item 1"}`}, r.out.bodies())
	want := (&schema.Common{Name: "orders", Type: schema.Object, Children: []schema.Common{{Name: "item", Type: schema.String, Optional: true}}}).ToAny()
	assert.Equal(t, want, r.out.all()[0].meta["schema"])
}

func TestCommonSchemaFollowsTheJSON(t *testing.T) {
	p := iceberg.PrimitiveTypes
	nested := iceberg.NewSchema(3,
		iceberg.NestedField{ID: 1, Name: "flag", Type: p.Bool, Required: true},
		iceberg.NestedField{ID: 2, Name: "n", Type: p.Int32},
		iceberg.NestedField{ID: 3, Name: "f", Type: p.Float32},
		iceberg.NestedField{ID: 4, Name: "d", Type: p.Float64},
		iceberg.NestedField{ID: 5, Name: "price", Type: iceberg.DecimalTypeOf(9, 2)},
		iceberg.NestedField{ID: 6, Name: "at", Type: p.TimestampTz},
		iceberg.NestedField{ID: 7, Name: "tags", Type: &iceberg.ListType{ElementID: 8, Element: p.String, ElementRequired: true}},
		iceberg.NestedField{ID: 9, Name: "props", Type: &iceberg.MapType{KeyID: 10, KeyType: p.String, ValueID: 11, ValueType: p.Int64}},
		iceberg.NestedField{ID: 12, Name: "counts", Type: &iceberg.MapType{KeyID: 13, KeyType: p.Int64, ValueID: 14, ValueType: p.String, ValueRequired: true}},
		iceberg.NestedField{ID: 15, Name: "inner", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 16, Name: "x", Type: p.Binary}}}},
	)
	want := schema.Common{Name: "t", Type: schema.Object, Children: []schema.Common{
		{Name: "flag", Type: schema.Boolean},
		{Name: "n", Type: schema.Int32, Optional: true},
		{Name: "f", Type: schema.Float32, Optional: true},
		{Name: "d", Type: schema.Float64, Optional: true},
		{Name: "price", Type: schema.String, Optional: true},
		{Name: "at", Type: schema.String, Optional: true},
		{Name: "tags", Type: schema.Array, Optional: true, Children: []schema.Common{{Type: schema.String}}},
		{Name: "props", Type: schema.Map, Optional: true, Children: []schema.Common{{Type: schema.Int64, Optional: true}}},
		{Name: "counts", Type: schema.Array, Optional: true, Children: []schema.Common{{Type: schema.Object, Children: []schema.Common{
			{Name: "key", Type: schema.Int64}, {Name: "value", Type: schema.String},
		}}}},
		{Name: "inner", Type: schema.Object, Optional: true, Children: []schema.Common{{Name: "x", Type: schema.String, Optional: true}}},
	}}
	assert.Equal(t, want, commonSchema("t", nested))
}

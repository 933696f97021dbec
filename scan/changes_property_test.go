// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// history is a table that iceberg-go writes, without a catalog, and every state that it was in.
type history struct {
	rapid.TB
	ctx    context.Context
	meta   table.Metadata
	states []historic
}

// historic is a state with the metadata of its time.
type historic struct {
	state catalog.State
	meta  table.Metadata
	what  string
}

var _ table.CatalogIO = (*history)(nil)

func (h *history) LoadTable(context.Context, table.Identifier) (*table.Table, error) {
	return h.table(), nil
}

func (h *history) CommitTable(_ context.Context, _ table.Identifier, _ []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	meta, err := table.UpdateTableMetadata(h.meta, updates, "")
	if err != nil {
		return nil, "", err
	}
	h.meta = meta
	return meta, "metadata.json", nil
}

func localFS(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }

func (h *history) table() *table.Table {
	return table.New(table.Identifier{"t"}, h.meta, "metadata.json", localFS, h)
}

// commit applies a step; one that iceberg-go refuses leaves the table as it was.
func (h *history) commit(what string, step nessietest.Step) {
	tx := h.table().NewTransaction()
	err := step(h.ctx, tx)
	if err == nil {
		_, err = tx.Commit(h.ctx)
	}
	if err != nil {
		h.Logf("%s: refused: %v", what, err)
		return
	}
	h.Logf("%s: snapshot %v", what, h.meta.CurrentSnapshot())
	h.remember(what)
}

func (h *history) remember(what string) {
	state := catalog.State{SnapshotID: catalog.NoSnapshot, TableUUID: h.meta.TableUUID().String(), SchemaID: h.meta.CurrentSchema().ID}
	if s := h.meta.CurrentSnapshot(); s != nil {
		state = stateOf(h.meta, *s, "metadata.json")
	}
	h.states = append(h.states, historic{state, h.meta, what})
}

// rows is a full scan by iceberg-go under a schema. Equality deletes are applied here: iceberg-go compares what the files
// hold, so that those from after a column was widened miss rows from before.
func (h *history) rows(at historic, schema *iceberg.Schema) []string {
	if at.state.Empty() {
		return nil
	}
	tbl := table.New(nil, at.meta, "", localFS, nil)
	tasks, err := tbl.Scan(table.WithSnapshotID(at.state.SnapshotID)).PlanFiles(h.ctx)
	require.NoError(h, err)
	var rows []string
	for _, task := range tasks {
		deletes := task.EqualityDeleteFiles
		task.EqualityDeleteFiles = nil
		found := h.read(at, schema, task)
		for _, d := range deletes {
			byPart := slices.Contains(d.EqualityFieldIDs(), 3)
			gone := map[string]bool{}
			for _, row := range h.read(at, schema, table.FileScanTask{File: asData{d}, Length: d.FileSizeBytes()}) {
				gone[h.key(row, byPart)] = true
			}
			found = slices.DeleteFunc(found, func(row string) bool { return gone[h.key(row, byPart)] })
		}
		rows = append(rows, found...)
	}
	return rows
}

// key is what an equality delete compares of a row.
func (h *history) key(row string, byPart bool) string {
	var fields struct{ ID, Part json.RawMessage }
	require.NoError(h, json.Unmarshal([]byte(row), &fields))
	if !byPart {
		return string(fields.ID)
	}
	return string(fields.ID) + " " + string(fields.Part)
}

func (h *history) read(at historic, schema *iceberg.Schema, task table.FileScanTask) (rows []string) {
	_, batches, err := table.New(nil, stepMetadata{at.meta, schema}, "", localFS, nil).Scan().ReadTasks(h.ctx, []table.FileScanTask{task})
	require.NoError(h, err)
	encoder, err := NewEncoder(schema)
	require.NoError(h, err)
	for batch, err := range batches {
		require.NoError(h, err)
		buf, ends, err := encoder.Append(nil, nil, batch, 0, int(batch.NumRows()))
		require.NoError(h, err)
		for _, row := range slice(buf, ends) {
			rows = append(rows, string(row))
		}
		batch.Release()
	}
	return rows
}

var historySchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "part", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 4, Name: "score", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 5, Name: "price", Type: iceberg.DecimalTypeOf(9, 2)},
	iceberg.NestedField{ID: 6, Name: "tags", Type: &iceberg.ListType{ElementID: 7, Element: iceberg.PrimitiveTypes.String}},
	iceberg.NestedField{ID: 8, Name: "props", Type: &iceberg.MapType{
		KeyID: 9, KeyType: iceberg.PrimitiveTypes.String, ValueID: 10, ValueType: iceberg.PrimitiveTypes.Int64,
	}},
	iceberg.NestedField{ID: 11, Name: "point", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 12, Name: "x", Type: iceberg.PrimitiveTypes.Int32}, {ID: 13, Name: "y", Type: iceberg.PrimitiveTypes.Float32},
	}}},
)

func newHistory(t *rapid.T, dir string) *history {
	h := &history{TB: t, ctx: context.Background()}
	spec := *iceberg.UnpartitionedSpec
	if rapid.Bool().Draw(t, "partitioned") {
		spec = iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1000, Name: "part", Transform: iceberg.IdentityTransform{}})
	}
	mode := rapid.SampledFrom([]string{"copy-on-write", "merge-on-read"}).Draw(t, "mode")
	version := rapid.SampledFrom([]string{"2", "3"}).Draw(t, "version")
	var err error
	h.meta, err = table.NewMetadata(historySchema, &spec, table.UnsortedSortOrder, "file://"+filepath.ToSlash(dir),
		iceberg.Properties{"format-version": version, "write.delete.mode": mode})
	require.NoError(t, err)
	h.remember("create")
	return h
}

// drawRows draws rows with ids of a small range, so that keys repeat and whole rows do.
func drawRows(t *rapid.T, schema *iceberg.Schema) []string {
	var rows []string
	for range rapid.IntRange(1, 6).Draw(t, "rows") {
		n := rapid.IntRange(0, 9).Draw(t, "id")
		fields := []string{
			fmt.Sprintf(`"id": %d, "part": %q`, n, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "part")),
			fmt.Sprintf(`"name": %s`, rapid.SampledFrom([]string{`null`, `""`, `"x"`}).Draw(t, "name")),
			`"score": ` + rapid.SampledFrom([]string{`null`, `0`, `-0.0`, `1.5`}).Draw(t, "score"),
			`"price": ` + rapid.SampledFrom([]string{`null`, `"1.00"`, `"-0.01"`}).Draw(t, "price"),
			`"tags": ` + rapid.SampledFrom([]string{`null`, `[]`, `[null]`, `["a", ""]`}).Draw(t, "tags"),
			`"point": ` + rapid.SampledFrom([]string{`null`, `{"x": null, "y": null}`, `{"x": 1, "y": 2.5}`}).Draw(t, "point"),
			`"props": ` + rapid.SampledFrom([]string{`null`, `[]`, `[{"key": "k", "value": null}, {"key": "l", "value": 1}]`}).Draw(t, "props"),
		}
		fields = slices.DeleteFunc(fields, func(f string) bool {
			name := strings.SplitN(f, `"`, 3)[1]
			_, ok := schema.FindFieldByName(name)
			return !ok
		})
		rows = append(rows, "{"+strings.Join(fields, ", ")+"}")
	}
	return rows
}

func (h *history) random(t *rapid.T) {
	schema := h.meta.CurrentSchema()
	var filter iceberg.BooleanExpression = iceberg.EqualTo(iceberg.Reference("part"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "filter"))
	if id, ok := schema.FindFieldByName("id"); ok && rapid.Bool().Draw(t, "byID") {
		limit := rapid.IntRange(0, 9).Draw(t, "limit")
		if _, ok := id.Type.(iceberg.Int64Type); ok {
			filter = iceberg.LessThan(iceberg.Reference("id"), int64(limit))
		} else {
			filter = iceberg.LessThan(iceberg.Reference("id"), int32(limit))
		}
	}
	key, columns := func() string { return fmt.Sprintf(`{"id": %d}`, rapid.IntRange(0, 9).Draw(t, "key")) }, []string{"id"}
	if spec := h.meta.PartitionSpec(); !spec.IsUnpartitioned() {
		id := key
		key, columns = func() string { return strings.Replace(id(), "}", `, "part": "a"}`, 1) }, []string{"id", "part"}
	}
	switch what := rapid.SampledFrom([]string{
		"append", "append", "files", "delete", "delete", "overwrite", "upsert", "compact", "schema", "rollback", "upgrade",
	}).Draw(t, "what"); what {
	case "append":
		h.commit(what, nessietest.Append(drawRows(t, schema)...))
	case "files":
		h.commit(what, nessietest.AppendFiles(drawRows(t, schema), drawRows(t, schema)))
	case "delete":
		h.commit(what, nessietest.Delete(filter))
	case "overwrite":
		h.commit(what, nessietest.Overwrite(filter, drawRows(t, schema)...))
	case "upsert":
		h.commit(what, nessietest.RowDelta(drawRows(t, schema), columns, []string{key(), key()}))
	case "compact":
		h.commit(what, nessietest.Compact())
	case "schema":
		h.commit(what, nessietest.ChangeSchema(drawSchemaChange(t, schema)))
	case "rollback":
		if s := rapid.SampledFrom(h.meta.Snapshots()).Draw(t, "to"); s.SnapshotID != 0 {
			h.commit(what, nessietest.Rollback(s.SnapshotID))
		}
	case "upgrade":
		h.commit(what, nessietest.Upgrade(3))
	}
}

func drawSchemaChange(t *rapid.T, schema *iceberg.Schema) func(*table.UpdateSchema) *table.UpdateSchema {
	what := rapid.SampledFrom([]string{"add", "drop", "rename", "widen", "again"}).Draw(t, "change")
	_, hasScore := schema.FindFieldByName("score")
	return func(u *table.UpdateSchema) *table.UpdateSchema {
		switch {
		case what == "widen":
			return u.UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
		case what == "drop" && hasScore:
			return u.DeleteColumn([]string{"score"})
		case what == "again" && !hasScore:
			return u.AddColumn([]string{"score"}, iceberg.PrimitiveTypes.Float64, "", false, nil)
		case what == "rename":
			return u.RenameColumn([]string{"name"}, "name")
		}
		return u.AddColumn([]string{fmt.Sprintf("c%d", len(schema.Fields()))}, iceberg.PrimitiveTypes.String, "", false, nil)
	}
}

func TestTheNetOfTheMessagesIsTheDifferenceOfFullScans(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		h := newHistory(r, dir)
		h.commit("append", nessietest.Append(drawRows(r, h.meta.CurrentSchema())...))
		for range rapid.IntRange(1, 4).Draw(r, "steps") {
			h.random(r)
		}
		for i := range h.states[1:] {
			h.check(r, h.states[i], h.states[i+1])
		}
		for range 2 { // bridges, backwards too
			before, after := rapid.SampledFrom(h.states).Draw(r, "before"), rapid.SampledFrom(h.states).Draw(r, "after")
			if !after.state.Empty() {
				h.check(r, before, after)
			}
		}
	})
}

// check compares the messages between two states with full scans of both, in every mode.
func (h *history) check(t *rapid.T, before, after historic) {
	meta := before.meta
	if len(after.meta.Snapshots()) >= len(meta.Snapshots()) {
		meta = after.meta
	}
	step := Step{Way: WayBridge, Before: &before.state, After: after.state}
	schema, err := step.schema(meta)
	require.NoError(t, err)
	_, old, err := schemaOf(before)
	require.NoError(t, err)
	if !promotes(old, schema) {
		return // a rollback of a widened column: nothing cancels, which the fixtures' tests look at
	}
	added, removed := net(h.rows(after, schema), h.rows(before, schema))
	source := Source{FS: iceio.LocalFS{}, Meta: meta}
	where := fmt.Sprintf("%s (%d) → %s (%d)", before.what, before.state.SnapshotID, after.what, after.state.SnapshotID)
	for _, opts := range []ChangeOptions{{IdentifierFields: []string{}}, {IdentifierFields: []string{"id"}}} {
		c := checkedChanges(t, source, step, opts)
		require.Equal(t, [][]string{added, removed}, [][]string{c.rows(true), c.rows(false)}, "%s, keys %v", where, opts.IdentifierFields)
		c.requireOrder(t)
	}
	c := checkedChanges(t, source, step, ChangeOptions{Mode: AddedRows})
	require.Equal(t, [][]string{added, {}}, [][]string{c.rows(true), c.rows(false)}, where)
	plan, err := PlanChanges(h.ctx, source, step, ChangeOptions{})
	require.NoError(t, err)
	inserted, deleted, err := plan.Net(h.ctx, ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []int64{int64(len(added)), int64(len(removed))}, []int64{inserted, deleted}, where)
}

func schemaOf(at historic) (table.Metadata, *iceberg.Schema, error) {
	schema, err := (Step{After: at.state}).schema(at.meta)
	return at.meta, schema, err
}

// changed is the sequence of a step's messages.
type changed struct {
	plan       *ChangePlan
	operations []string
	bodies     []string
	batches    []int // the ordinal behind each
}

// checkedChanges reads a step in several ways that must give the same messages: with room and without, and resumed.
func checkedChanges(t *rapid.T, source Source, step Step, opts ChangeOptions) changed {
	plan, err := PlanChanges(t.Context(), source, step, opts)
	require.NoError(t, err)
	all := readChanged(t, plan, ReadOptions{})
	small := readChanged(t, plan, ReadOptions{BatchRows: 2, Memory: 600})
	require.Equal(t, all.bodies, small.bodies, "memory changes nothing")
	require.Equal(t, all.operations, small.operations)
	if n := len(all.bodies); n > 0 {
		from := rapid.IntRange(0, n).Draw(t, "from")
		rest := readChanged(t, plan, ReadOptions{From: int64(from), BatchRows: 3})
		require.Equal(t, all.bodies[from:], append([]string{}, rest.bodies...))
		require.Equal(t, all.operations[from:], append([]string{}, rest.operations...))
	}
	small.plan = plan
	return small
}

func readChanged(t *rapid.T, plan *ChangePlan, opts ReadOptions) changed {
	var c changed
	var last bool
	for b, err := range plan.Read(t.Context(), opts) {
		require.NoError(t, err)
		require.False(t, last)
		last = b.Last
		require.Equal(t, opts.From+int64(len(c.bodies)), b.First)
		for i, m := range b.Messages {
			c.bodies = append(c.bodies, string(m))
			if b.Operations == nil {
				c.operations = append(c.operations, b.Operation)
			} else {
				c.operations = append(c.operations, b.Operations[i])
			}
		}
		c.batches = append(c.batches, len(c.bodies))
	}
	require.Equal(t, len(c.bodies) > 0, last)
	return c
}

func (c changed) rows(inserts bool) []string {
	rows := []string{}
	for i, operation := range c.operations {
		if inserts == (operation == OperationInsert || operation == OperationUpdateAfter) {
			rows = append(rows, c.bodies[i])
		}
	}
	slices.Sort(rows)
	return rows
}

// requireOrder checks what Read promises about the order of messages.
func (c changed) requireOrder(t *rapid.T) {
	if len(c.plan.Keys) == 0 {
		require.True(t, slices.IsSortedFunc(c.operations, func(a, b string) int { return strings.Compare(a, b) }), "%v", c.operations)
		return
	}
	if c.plan.addsOnly() {
		return
	}
	byKey := map[string][]string{}
	var previous string
	for i, body := range c.bodies {
		key := body[:strings.IndexByte(body, ',')]
		if key != previous {
			require.NotContains(t, byKey, key, "the messages of a key are neighbours")
		} else {
			require.NotContains(t, c.batches, i, "the messages of a key are in one batch")
		}
		byKey[key] = append(byKey[key], c.operations[i])
		previous = key
	}
	for key, operations := range byKey {
		text := strings.Join(operations, " ")
		text = strings.ReplaceAll(text, "update_before update_after", "pair")
		require.NotContains(t, text, "update", "%s: updates are pairs: %v", key, operations)
		require.False(t, slices.Contains(operations, OperationDelete) && slices.Contains(operations, OperationInsert), "%s: %v", key, operations)
		require.True(t, slices.IsSortedFunc(strings.Fields(text), func(a, b string) int {
			order := []string{OperationDelete, "pair", OperationInsert}
			return slices.Index(order, a) - slices.Index(order, b)
		}), "%s: %v", key, operations)
	}
}

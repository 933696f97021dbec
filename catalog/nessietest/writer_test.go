// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/hamba/avro/v2/ocf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

var orders = catalog.Key{"shop", "orders"}

func ordersSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "item", Type: iceberg.PrimitiveTypes.String},
	)
}

func newTestWriter(t *testing.T) *Writer {
	t.Helper()
	server, err := Start(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w, err := NewWriter(t.Context(), WriterConfig{Catalog: client, Warehouse: "file://" + t.TempDir()})
	require.NoError(t, err)
	return w
}

// ids reads the table's head back through iceberg-go and returns the sorted ids.
func ids(t *testing.T, w *Writer, key catalog.Key) []int64 {
	t.Helper()
	tbl, err := w.Table(t.Context(), key)
	require.NoError(t, err)
	rows, err := tbl.Scan().ToArrowTable(t.Context())
	require.NoError(t, err)
	defer rows.Release()
	at := rows.Schema().FieldIndices("id")[0]
	var got []int64
	for _, chunk := range rows.Column(at).Data().Chunks() {
		for i := range chunk.Len() {
			id, err := strconv.ParseInt(chunk.ValueStr(i), 10, 64)
			require.NoError(t, err)
			got = append(got, id)
		}
	}
	slices.Sort(got)
	return got
}

func row(id int, item string) string {
	return `{"id":` + strconv.Itoa(id) + `,"item":"` + item + `"}`
}

func TestWriterReadsBackWhatItWrote(t *testing.T) {
	byID := func(id int64) iceberg.BooleanExpression { return iceberg.EqualTo(iceberg.Reference("id"), id) }
	mergeOnRead := iceberg.Properties{table.WriteDeleteModeKey: table.WriteModeMergeOnRead}
	tests := map[string]struct {
		opts  TableOptions
		steps []Step // one commit each, after a commit of ids 1 and 2
		want  []int64
		ops   []table.Operation
	}{
		"append":                  {steps: []Step{Append(row(3, "c"))}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend}},
		"append without rows":     {steps: []Step{Append()}, want: []int64{1, 2}, ops: []table.Operation{table.OpAppend}},
		"several files":           {steps: []Step{AppendFiles([]string{row(3, "c")}, []string{row(4, "d")})}, want: []int64{1, 2, 3, 4}, ops: []table.Operation{table.OpAppend}},
		"copy-on-write delete":    {steps: []Step{Delete(byID(1))}, want: []int64{2}, ops: []table.Operation{table.OpDelete}},
		"delete of a whole file":  {steps: []Step{Append(row(3, "c")), Delete(byID(3))}, want: []int64{1, 2}, ops: []table.Operation{table.OpAppend, table.OpDelete}},
		"position deletes":        {opts: TableOptions{Properties: mergeOnRead}, steps: []Step{Delete(byID(1))}, want: []int64{2}, ops: []table.Operation{table.OpDelete}},
		"deletion vectors":        {opts: TableOptions{FormatVersion: 3, Properties: mergeOnRead}, steps: []Step{Delete(byID(1))}, want: []int64{2}, ops: []table.Operation{table.OpDelete}},
		"equality deletes":        {steps: []Step{RowDelta([]string{row(2, "b2")}, []string{"id"}, []string{`{"id":2}`, `{"id":1}`})}, want: []int64{2}, ops: []table.Operation{table.OpOverwrite}},
		"compaction":              {steps: []Step{Append(row(3, "c")), Compact()}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend, table.OpReplace}},
		"overwrite of everything": {steps: []Step{Overwrite(nil, row(9, "i"))}, want: []int64{9}, ops: []table.Operation{table.OpOverwrite}},
		"format version 1":        {opts: TableOptions{FormatVersion: 1}, steps: []Step{Append(row(3, "c"))}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend}},
		"format version 3":        {opts: TableOptions{FormatVersion: 3}, steps: []Step{Append(row(3, "c"))}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend}},
		"compressed metadata": {
			opts:  TableOptions{Properties: iceberg.Properties{table.MetadataCompressionKey: table.MetadataCompressionCodecGzip}},
			steps: []Step{Append(row(3, "c"))}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend},
		},
		"another schema": {
			steps: []Step{ChangeSchema(func(u *table.UpdateSchema) *table.UpdateSchema {
				return u.AddColumn([]string{"price"}, iceberg.PrimitiveTypes.Float64, "", false, nil)
			}), Append(`{"id":3,"item":"c","price":1.5}`)},
			want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend},
		},
		"upgraded": {steps: []Step{Upgrade(3), Append(row(3, "c"))}, want: []int64{1, 2, 3}, ops: []table.Operation{table.OpAppend}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestWriter(t)
			_, err := w.Create(t.Context(), orders, ordersSchema(), tc.opts, Append(row(1, "a"), row(2, "b")))
			require.NoError(t, err)
			var ops []table.Operation
			for _, step := range tc.steps {
				written, err := w.Commit(t.Context(), orders, Change{Steps: []Step{step}})
				require.NoError(t, err)
				for _, s := range written.Snapshots {
					ops = append(ops, s.Summary.Operation)
				}
			}
			assert.Equal(t, tc.want, ids(t, w, orders))
			assert.Equal(t, tc.ops, ops)
		})
	}
}

func TestWriterPartitions(t *testing.T) {
	w := newTestWriter(t)
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "item", Transform: iceberg.IdentityTransform{}})
	written, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{Spec: &spec}, Append(row(1, "a"), row(2, "b"), row(3, "a")))
	require.NoError(t, err)
	assert.Equal(t, "2", written.Snapshots[0].Summary.Properties["added-data-files"])
	assert.Equal(t, []int64{1, 2, 3}, ids(t, w, orders))
}

func TestWriterCommitsSeveralSnapshotsAtOnce(t *testing.T) {
	w := newTestWriter(t)
	first, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	second, err := w.Commit(t.Context(), orders, Change{Steps: []Step{
		Append(row(2, "b")), Delete(iceberg.EqualTo(iceberg.Reference("id"), int64(1))), Append(row(3, "c")),
	}})
	require.NoError(t, err)
	require.Len(t, second.Snapshots, 3)
	assert.Equal(t, first.SnapshotID(), *second.Snapshots[0].ParentSnapshotID)
	assert.Equal(t, second.Snapshots[1].SnapshotID, *second.Snapshots[2].ParentSnapshotID)
	assert.Equal(t, second.Snapshots[2].SnapshotID, second.SnapshotID())
	assert.Equal(t, []int64{2, 3}, ids(t, w, orders))
}

func TestManifestListHeadersNameTheParent(t *testing.T) {
	for _, version := range []int{1, 2, 3} {
		t.Run("format version "+strconv.Itoa(version), func(t *testing.T) {
			w := newTestWriter(t)
			_, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{FormatVersion: version}, Append(row(1, "a")))
			require.NoError(t, err)
			written, err := w.Commit(t.Context(), orders, Change{Steps: []Step{Append(row(2, "b")), Append(row(3, "c"))}})
			require.NoError(t, err)
			for _, s := range written.Metadata.Snapshots() {
				header := listHeader(t, s.ManifestList)
				assert.Equal(t, strconv.FormatInt(s.SnapshotID, 10), string(header["snapshot-id"]))
				parent := "null"
				if s.ParentSnapshotID != nil {
					parent = strconv.FormatInt(*s.ParentSnapshotID, 10)
				}
				assert.Equal(t, parent, string(header["parent-snapshot-id"]))
				if version > 1 {
					assert.Equal(t, strconv.FormatInt(s.SequenceNumber, 10), string(header["sequence-number"]))
				}
			}
		})
	}
}

func TestTruncatedMetadataHidesWhatRESTHides(t *testing.T) {
	w := newTestWriter(t)
	_, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{Form: Truncated}, Append(row(1, "a")))
	require.NoError(t, err)
	written, err := w.Commit(t.Context(), orders, Change{Form: Truncated, Steps: []Step{Append(row(2, "b")), Append(row(3, "c"))}})
	require.NoError(t, err)

	var meta struct {
		Current     int64            `json:"current-snapshot-id"`
		Snapshots   []map[string]any `json:"snapshots"`
		SnapshotLog []any            `json:"snapshot-log"`
		MetadataLog []any            `json:"metadata-log"`
		Last        int64            `json:"last-sequence-number"`
	}
	body, err := os.ReadFile(localFile(t, written.Content.MetadataLocation))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &meta))
	require.Len(t, meta.Snapshots, 1)
	assert.NotContains(t, meta.Snapshots[0], "parent-snapshot-id")
	assert.Len(t, meta.SnapshotLog, 1)
	assert.Empty(t, meta.MetadataLog)
	assert.Equal(t, written.SnapshotID(), meta.Current)
	assert.EqualValues(t, 3, meta.Last)
	assert.True(t, strings.HasPrefix(filepath.Base(written.Content.MetadataLocation), "00000-"))
	assert.Equal(t, []int64{1, 2, 3}, ids(t, w, orders))

	require.Len(t, written.Snapshots, 2, "the hidden snapshot is told to the test")
	_, err = os.Stat(localFile(t, written.Snapshots[0].ManifestList))
	require.NoError(t, err, "a hidden snapshot's manifest list stays")

	native, err := w.Append(t.Context(), orders, row(4, "d"))
	require.NoError(t, err)
	assert.Len(t, native.Metadata.Snapshots(), 2, "a native commit builds on the truncated file")
	assert.Equal(t, []int64{1, 2, 3, 4}, ids(t, w, orders))
}

func TestTruncatedEmptyTable(t *testing.T) {
	w := newTestWriter(t)
	written, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{Form: Truncated})
	require.NoError(t, err)
	assert.Equal(t, catalog.NoSnapshot, written.SnapshotID())
	_, err = w.Append(t.Context(), orders, row(1, "a"))
	require.NoError(t, err)
	assert.Equal(t, []int64{1}, ids(t, w, orders))
}

func TestReplaceKeepsTheTableAndStartsAnotherHistory(t *testing.T) {
	w := newTestWriter(t)
	first, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 3, Name: "other", Type: iceberg.PrimitiveTypes.Int32},
	)
	second, err := w.Replace(t.Context(), orders, schema, TableOptions{}, Append(`{"id":7,"other":1}`))
	require.NoError(t, err)
	assert.Equal(t, first.Content.ID, second.Content.ID)
	assert.Equal(t, first.Metadata.TableUUID(), second.Metadata.TableUUID())
	require.Len(t, second.Snapshots, 1)
	assert.Nil(t, second.Snapshots[0].ParentSnapshotID)
	assert.Equal(t, "null", string(listHeader(t, second.Snapshots[0].ManifestList)["parent-snapshot-id"]))
	assert.EqualValues(t, 2, second.Snapshots[0].SequenceNumber)
	assert.NotNil(t, second.Metadata.SnapshotByID(first.SnapshotID()), "older snapshots stay listed")
	assert.Equal(t, []int64{7}, ids(t, w, orders))

	empty, err := w.Replace(t.Context(), orders, ordersSchema(), TableOptions{})
	require.NoError(t, err)
	assert.Equal(t, catalog.NoSnapshot, empty.SnapshotID())
}

func TestRollbackAndExpire(t *testing.T) {
	w := newTestWriter(t)
	first, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	second, err := w.Append(t.Context(), orders, row(2, "b"))
	require.NoError(t, err)
	back, err := w.Commit(t.Context(), orders, Change{Steps: []Step{Rollback(first.SnapshotID())}})
	require.NoError(t, err)
	assert.Equal(t, first.SnapshotID(), back.SnapshotID())
	assert.NotEqual(t, second.Content.MetadataLocation, back.Content.MetadataLocation)
	assert.Equal(t, []int64{1}, ids(t, w, orders))

	third, err := w.Append(t.Context(), orders, row(3, "c"))
	require.NoError(t, err)
	assert.EqualValues(t, 3, third.Snapshots[0].SequenceNumber, "a rollback leaves a gap")
	expired, err := w.Commit(t.Context(), orders, Change{Steps: []Step{Expire(1)}})
	require.NoError(t, err)
	assert.Len(t, expired.Metadata.Snapshots(), 1)
	_, err = os.Stat(localFile(t, first.Snapshots[0].ManifestList))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, []int64{1, 3}, ids(t, w, orders))
}

func TestWriterOnBranchLeavesMainAlone(t *testing.T) {
	w := newTestWriter(t)
	_, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	main, err := w.cfg.Catalog.Reference(t.Context(), "main")
	require.NoError(t, err)
	_, err = w.cfg.Catalog.CreateReference(t.Context(), catalog.Branch, "dev", main.Ref())
	require.NoError(t, err)
	dev := w.OnBranch("dev")
	_, err = dev.Append(t.Context(), orders, row(2, "b"))
	require.NoError(t, err)
	assert.Equal(t, []int64{1}, ids(t, w, orders))
	assert.Equal(t, []int64{1, 2}, ids(t, dev, orders))
}

func TestWriterSeesWhatTheServerKept(t *testing.T) {
	w := newTestWriter(t)
	deep := catalog.Key{"shop", "eu.west", "orders"}
	written, err := w.Create(t.Context(), deep, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	head, err := w.cfg.Catalog.Head(t.Context(), catalog.Ref{Name: "main"}, deep)
	require.NoError(t, err)
	assert.Equal(t, written.Content, head.Content)
	assert.Equal(t, written.Commit, head.Reference.Hash)
	assert.NotEmpty(t, written.Content.ID)
}

func TestRenameDropAndCreateAgain(t *testing.T) {
	w := newTestWriter(t)
	first, err := w.Create(t.Context(), orders, ordersSchema(), TableOptions{}, Append(row(1, "a")))
	require.NoError(t, err)
	renamed := catalog.Key{"shop", "archive"}
	_, err = w.Rename(t.Context(), orders, renamed)
	require.NoError(t, err)
	moved, err := w.Append(t.Context(), renamed, row(2, "b"))
	require.NoError(t, err)
	assert.Equal(t, first.Content.ID, moved.Content.ID)
	_, err = w.Table(t.Context(), orders)
	require.ErrorIs(t, err, catalog.ErrUnknownContent)

	again, err := w.Recreate(t.Context(), renamed, ordersSchema(), TableOptions{}, Append(row(5, "e")))
	require.NoError(t, err)
	assert.NotEqual(t, first.Content.ID, again.Content.ID)
	assert.NotEqual(t, first.Metadata.TableUUID(), again.Metadata.TableUUID())
	for commit, err := range w.cfg.Catalog.Log(t.Context(), catalog.LogQuery{From: catalog.Ref{Name: "main", Hash: again.Commit}}) {
		require.NoError(t, err)
		require.Len(t, commit.Operations, 1)
		assert.Equal(t, catalog.Put, commit.Operations[0].Type)
		break
	}
	assert.Equal(t, []int64{5}, ids(t, w, renamed))
	_, err = w.Drop(t.Context(), renamed)
	require.NoError(t, err)
	_, err = w.Table(t.Context(), renamed)
	require.ErrorIs(t, err, catalog.ErrUnknownContent)
}

// localFile is the path of a location, in which the table library percent-encodes what the temporary folder is called.
func localFile(t *testing.T, location string) string {
	t.Helper()
	path, err := url.PathUnescape(strings.TrimPrefix(location, "file://"))
	require.NoError(t, err)
	return path
}

func listHeader(t *testing.T, location string) map[string][]byte {
	t.Helper()
	f, err := os.Open(localFile(t, location))
	require.NoError(t, err)
	defer f.Close()
	dec, err := ocf.NewDecoder(f)
	require.NoError(t, err)
	return dec.Metadata()
}

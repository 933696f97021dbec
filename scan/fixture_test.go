// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// tableText is the metadata of the hand-made table: spec 0 is unpartitioned, spec 1 identity(cat), spec 2 identity(cat) and
// identity(id).
const tableText = `{
  "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "%[1]s",
  "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 3, "current-schema-id": 1, "last-partition-id": 1001,
  "schemas": [
    {"type": "struct", "schema-id": 0, "fields": [
      {"id": 1, "name": "id", "required": false, "type": "long"}, {"id": 3, "name": "cat", "required": false, "type": "string"}]},
    {"type": "struct", "schema-id": 1, "fields": [
      {"id": 1, "name": "id", "required": false, "type": "long"}, {"id": 2, "name": "name", "required": false, "type": "string"},
      {"id": 3, "name": "cat", "required": false, "type": "string"}]}],
  "default-spec-id": 0, "partition-specs": [
    {"spec-id": 0, "fields": []},
    {"spec-id": 1, "fields": [{"source-id": 3, "field-id": 1000, "name": "cat", "transform": "identity"}]},
    {"spec-id": 2, "fields": [{"source-id": 3, "field-id": 1000, "name": "cat", "transform": "identity"},
                              {"source-id": 1, "field-id": 1001, "name": "id", "transform": "identity"}]}],
  "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": %[2]s}`

// fixture is a table made by hand: every manifest entry is as the test says.
type fixture struct {
	testing.TB
	dir  string
	fs   *localFiles
	meta table.Metadata
	// state is the last commit's; manifests its list.
	state     catalog.State
	manifests []iceberg.ManifestFile
	// format is the version of commits; nextRow the first row id that the next one gives away, from version 3 on.
	format  int
	nextRow int64
}

func newFixture(t testing.TB, properties string) *fixture {
	t.Helper()
	f := &fixture{TB: t, dir: t.TempDir(), fs: &localFiles{}, state: catalog.State{SnapshotID: catalog.NoSnapshot}, format: 2}
	if properties == "" {
		properties = "{}"
	}
	var err error
	f.meta, err = table.ParseMetadataString(fmt.Sprintf(tableText, f.dir, properties))
	require.NoError(t, err)
	return f
}

func (f *fixture) source() Source { return Source{FS: f.fs, Meta: f.meta} }

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) spec(id int) iceberg.PartitionSpec { return *f.meta.PartitionSpecByID(id) }

// localFiles counts what is opened and lets tests interfere.
type localFiles struct {
	iceio.LocalFS
	mu     sync.Mutex
	opened []string
	before func(name string) error // nil: nothing
}

func (l *localFiles) Open(name string) (iceio.File, error) {
	l.mu.Lock()
	l.opened = append(l.opened, filepath.Base(name))
	l.mu.Unlock()
	if l.before != nil {
		if err := l.before(name); err != nil {
			return nil, err
		}
	}
	return l.LocalFS.Open(name)
}

// fileOption changes what a manifest says of a file.
type fileOption func(*iceberg.DataFileBuilder)

// entryFile describes a file without writing it.
func (f *fixture) entryFile(name string, content iceberg.ManifestEntryContent, spec int, partition map[int]any, records int64, opts ...fileOption) iceberg.DataFile {
	f.Helper()
	format := iceberg.ParquetFile
	switch filepath.Ext(name) {
	case ".avro":
		format = iceberg.AvroFile
	case ".orc":
		format = iceberg.OrcFile
	case ".puffin":
		format = iceberg.PuffinFile
	}
	b, err := iceberg.NewDataFileBuilder(f.spec(spec), content, f.path(name), format, partition, nil, nil, records, 1000)
	require.NoError(f, err)
	for _, opt := range opts {
		opt(b)
	}
	return b.Build()
}

func (f *fixture) dataEntry(name string, spec int, partition map[int]any) iceberg.DataFile {
	return f.entryFile(name, iceberg.EntryContentData, spec, partition, 10)
}

// dataFile writes rows (JSON objects) as a Parquet file of the current schema.
func (f *fixture) dataFile(name string, spec int, partition map[int]any, rows ...string) iceberg.DataFile {
	f.Helper()
	size := f.writeParquet(name, arrowSchema(f.TB, f.meta.CurrentSchema()), rows)
	b, err := iceberg.NewDataFileBuilder(f.spec(spec), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, partition, nil, nil, int64(len(rows)), size)
	require.NoError(f, err)
	return b.Build()
}

// positionDeletes writes a position delete file for one data file.
func (f *fixture) positionDeletes(name string, spec int, partition map[int]any, target string, positions ...int64) iceberg.DataFile {
	f.Helper()
	var rows []string
	for _, pos := range positions {
		rows = append(rows, fmt.Sprintf(`{"file_path": %q, "pos": %d}`, f.path(target), pos))
	}
	f.writeParquet(name, arrowSchema(f.TB, iceberg.PositionalDeleteSchema), rows)
	return f.entryFile(name, iceberg.EntryContentPosDeletes, spec, partition, int64(len(positions)))
}

// equalityDeletes writes an equality delete file on the id column.
func (f *fixture) equalityDeletes(name string, spec int, partition map[int]any, ids ...int64) iceberg.DataFile {
	f.Helper()
	schema := iceberg.NewSchema(9, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	var rows []string
	for _, id := range ids {
		rows = append(rows, fmt.Sprintf(`{"id": %d}`, id))
	}
	f.writeParquet(name, arrowSchema(f.TB, schema), rows)
	return f.entryFile(name, iceberg.EntryContentEqDeletes, spec, partition, int64(len(ids)),
		func(b *iceberg.DataFileBuilder) { b.EqualityFieldIDs([]int{1}) })
}

// vector writes a deletion vector for one data file.
func (f *fixture) vector(name, target string, positions ...int64) iceberg.DataFile {
	f.Helper()
	w := dv.NewDVWriter(f.fs, func(id int32) *iceberg.PartitionSpec { return f.meta.PartitionSpecByID(int(id)) })
	require.NoError(f, w.Add(f.path(target), positions, 0, nil))
	files, err := w.Flush(f.Context(), f.path(name))
	require.NoError(f, err)
	require.Len(f, files, 1)
	return files[0]
}

func arrowSchema(t testing.TB, schema *iceberg.Schema) *arrow.Schema {
	t.Helper()
	out, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	return out
}

func (f *fixture) writeParquet(name string, schema *arrow.Schema, rows []string) int64 {
	f.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(f, err)
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, nil, pqarrow.DefaultWriterProps())
	require.NoError(f, err)
	require.NoError(f, w.Write(rec))
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
	return int64(buf.Len())
}

// change is one entry of a commit: sequence 0 is left out of the manifest, to be inherited.
type change struct {
	status   iceberg.ManifestEntryStatus
	file     iceberg.DataFile
	snapshot int64 // 0: the commit's
	sequence int64
}

func added(file iceberg.DataFile) change { return change{status: iceberg.EntryStatusADDED, file: file} }

func addedAt(file iceberg.DataFile, sequence int64) change {
	return change{status: iceberg.EntryStatusADDED, file: file, sequence: sequence}
}

func existing(file iceberg.DataFile, snapshot, sequence int64) change {
	return change{status: iceberg.EntryStatusEXISTING, file: file, snapshot: snapshot, sequence: sequence}
}

func deleted(file iceberg.DataFile, sequence int64) change {
	return change{status: iceberg.EntryStatusDELETED, file: file, sequence: sequence}
}

// commit adds a snapshot with one manifest for each group of changes, after the manifests of the snapshot before.
func (f *fixture) commit(operation string, groups ...[]change) catalog.State {
	f.Helper()
	return f.commitOn(f.manifests, operation, groups...)
}

// commitOn is commit with other manifests carried over.
func (f *fixture) commitOn(carried []iceberg.ManifestFile, operation string, groups ...[]change) catalog.State {
	f.Helper()
	sequence := f.state.Sequence + 1
	id := 1000 + sequence
	var files []iceberg.ManifestFile
	for i, group := range groups {
		files = append(files, f.manifest(fmt.Sprintf("m-%d-%d.avro", id, i), id, group))
	}
	location := f.path(fmt.Sprintf("snap-%d.avro", id))
	var list bytes.Buffer
	require.NoError(f, iceberg.WriteManifestList(f.format, &list, id, nil, &sequence, f.nextRow, append(files, carried...)))
	require.NoError(f, os.WriteFile(location, list.Bytes(), 0o600))
	var err error
	f.manifests, err = iceberg.ReadManifestList(&list)
	require.NoError(f, err)
	f.state = catalog.State{SnapshotID: id, Sequence: sequence, ManifestList: location, SchemaID: 1, Operation: operation, Records: -1, FormatVersion: f.format}
	return f.state
}

// upgrade makes it a table of format version 3.
func (f *fixture) upgrade() {
	f.Helper()
	text := strings.Replace(fmt.Sprintf(tableText, f.dir, "{}"), `"format-version": 2`, `"format-version": 3, "next-row-id": 1000000`, 1)
	var err error
	f.meta, err = table.ParseMetadataString(text)
	require.NoError(f, err)
	f.format = 3
}

func (f *fixture) manifest(name string, snapshot int64, group []change) iceberg.ManifestFile {
	f.Helper()
	content := iceberg.ManifestContentData
	if group[0].file.ContentType() != iceberg.EntryContentData {
		content = iceberg.ManifestContentDeletes
	}
	var buf bytes.Buffer
	w, err := iceberg.NewManifestWriter(f.format, &buf, f.spec(int(group[0].file.SpecID())), f.meta.CurrentSchema(), snapshot, iceberg.WithManifestWriterContent(content))
	require.NoError(f, err)
	for _, c := range group {
		b := iceberg.NewManifestEntryBuilder(c.status, &snapshot, c.file)
		if c.snapshot != 0 {
			b = iceberg.NewManifestEntryBuilder(c.status, &c.snapshot, c.file)
		}
		if c.sequence != 0 {
			b = b.SequenceNum(c.sequence).FileSequenceNum(c.sequence)
		}
		switch c.status {
		case iceberg.EntryStatusADDED:
			err = w.Add(b.Build())
		case iceberg.EntryStatusEXISTING:
			err = w.Existing(b.Build())
		default:
			err = w.Delete(b.Build())
		}
		require.NoError(f, err)
	}
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
	out, err := w.ToManifestFile(f.path(name), int64(buf.Len()))
	require.NoError(f, err)
	return out
}

// plan plans a step and expects no error.
func (f *fixture) plan(step Step) *Plan {
	f.Helper()
	plan, err := PlanStep(f.Context(), f.source(), step)
	require.NoError(f, err)
	return plan
}

// names are the base names of tasks with those of their deletes: "a.parquet", "b.parquet -d.parquet".
func names(tasks []Task) []string {
	out := []string{}
	for _, task := range tasks {
		name := filepath.Base(task.File.Path())
		for d := range task.Deletes.all() {
			name += " -" + filepath.Base(d.Path())
		}
		out = append(out, name)
	}
	return out
}

// ids reads a plan and returns the id of every row in order.
func (f *fixture) ids(plan *Plan) []int64 {
	f.Helper()
	ids := []int64{}
	for batch, err := range plan.Read(f.Context(), ReadOptions{}) {
		require.NoError(f, err)
		for _, m := range batch.Messages {
			var row struct{ ID int64 }
			require.NoError(f, json.Unmarshal(m, &row))
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// numbered makes rows with ids from ≤ i < to.
func numbered(from, to int) []string {
	var rows []string
	for i := from; i < to; i++ {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "name %d", "cat": "a"}`, i, i))
	}
	return rows
}

// writeV1 writes a manifest of format version 1.
func (f *fixture) writeV1(name string, snapshot int64, entries ...iceberg.ManifestEntry) {
	f.Helper()
	var buf bytes.Buffer
	spec := f.spec(int(entries[0].DataFile().SpecID()))
	_, err := iceberg.WriteManifest(f.path(name), &buf, 1, spec, f.meta.CurrentSchema(), snapshot, entries)
	require.NoError(f, err)
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
}

// truncate cuts a file in half.
func (f *fixture) truncate(name string) {
	f.Helper()
	info, err := os.Stat(f.path(name))
	require.NoError(f, err)
	require.NoError(f, os.Truncate(f.path(name), info.Size()/2))
}

func (f *fixture) remove(name string) {
	f.Helper()
	require.NoError(f, os.Remove(f.path(name)))
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// foreignTables are whole tables of other writers; the scripts in tests/writers/make made them.
const foreignTables = "../tests/writers/testdata"

// movedFiles are the files below a location where they were unpacked.
type movedFiles struct {
	iceio.LocalFS
	root, dir string
}

func (m movedFiles) local(location string) string { return strings.Replace(location, m.root, m.dir, 1) }

func (m movedFiles) Open(location string) (iceio.File, error) {
	return m.LocalFS.Open(m.local(location))
}

func (m movedFiles) metadata(t *testing.T, location string) table.Metadata {
	text, err := os.ReadFile(m.local(location))
	require.NoError(t, err)
	if strings.HasSuffix(location, ".gz.metadata.json") {
		zipped, err := gzip.NewReader(bytes.NewReader(text))
		require.NoError(t, err)
		text, err = io.ReadAll(zipped)
		require.NoError(t, err)
	}
	meta, err := table.ParseMetadataBytes(text)
	require.NoError(t, err)
	return meta
}

// foreignTable is a table after each of its writer's statements, as the writer itself reads it.
type foreignTable struct {
	Name  string
	Steps []struct {
		Statement string
		Metadata  string // location
		Rows      []json.RawMessage
		Refused   string // part of the error; "": it is read
	}
}

func TestTablesAreReadAsTheirWritersReadThem(t *testing.T) {
	for writer, root := range map[string]string{
		"clickhouse": "/tmp/rpk-nessie-writers",
		"duckdb":     "s3://bucket",
		"spark":      "s3://bucket",
		"flink":      "s3://bucket",
		"java":       "s3://bucket",
		"python":     "s3://bucket",
	} {
		t.Run(writer, func(t *testing.T) { followForeignTables(t, writer, root) })
	}
}

func followForeignTables(t *testing.T, writer, root string) {
	tables, files := openForeignTables(t, writer, root)
	for _, c := range tables {
		t.Run(c.Name, func(t *testing.T) { c.follow(t, files) })
	}
}

func openForeignTables(t *testing.T, writer, root string) ([]foreignTable, movedFiles) {
	folder := filepath.Join(foreignTables, writer)
	content, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	require.NoError(t, err)
	var tables []foreignTable
	require.NoError(t, json.Unmarshal(content, &tables))
	archive, err := os.Open(filepath.Join(folder, "files.tar.gz"))
	require.NoError(t, err)
	defer archive.Close() //nolint:errcheck // it is only read
	files := movedFiles{root: root, dir: t.TempDir()}
	require.NoError(t, corpus.Unpack(archive, files.dir))
	return tables, files
}

func TestKeysInsideOfStructsFindTheirRowsWhateverIsRead(t *testing.T) {
	tables, files := openForeignTables(t, "java", "s3://bucket")
	at := slices.IndexFunc(tables, func(c foreignTable) bool { return c.Name == "nested_key" })
	require.GreaterOrEqual(t, at, 0)
	steps := tables[at].Steps
	last := steps[len(steps)-1]
	require.Less(t, len(last.Rows), len(steps[0].Rows))
	meta := files.metadata(t, last.Metadata)
	for name, columns := range map[string][]string{
		"nothing of the struct":         {"id"},
		"another value of the struct":   {"id", "st.u.v"},
		"the key":                       {"st.z"},
		"the struct":                    {"st", "id"},
		"the struct that the key is in": {"st.u"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, row := range last.Rows {
				var v map[string]any
				require.NoError(t, json.Unmarshal(row, &v))
				text, err := json.Marshal(chosen(v, columns))
				require.NoError(t, err)
				want = append(want, string(text))
			}
			step := Step{Way: WayTableScan, After: stateOf(meta, *meta.CurrentSnapshot(), last.Metadata), Schema: meta.CurrentSchema(), Columns: columns}
			rows, err := scanned(t, Source{FS: files, Meta: meta}, step)
			require.NoError(t, err)
			assert.Equal(t, canonical(t, want), rows)
		})
	}
}

// chosen are the columns of a row, with dots inside of structs.
func chosen(row map[string]any, columns []string) map[string]any {
	out := map[string]any{}
	for _, column := range columns {
		name, inside, deep := strings.Cut(column, ".")
		out[name] = row[name]
		if s, ok := row[name].(map[string]any); ok && deep {
			out[name] = chosen(s, []string{inside})
		}
	}
	return out
}

// follow reads the table after each statement, and what changed since the one before wherever the schema is the same.
func (c foreignTable) follow(t *testing.T, files movedFiles) {
	var before *catalog.State
	var held []string
	for _, step := range c.Steps {
		meta := files.metadata(t, step.Metadata)
		after := stateOf(meta, *meta.CurrentSnapshot(), step.Metadata)
		source := Source{FS: files, Meta: meta}
		rows, err := scanned(t, source, Step{Way: WayTableScan, After: after, Schema: meta.CurrentSchema()})
		if step.Refused != "" {
			require.ErrorContains(t, err, step.Refused)
			require.ErrorContains(t, err, files.root)
			continue
		}
		require.NoError(t, err, step.Statement)
		want := canonical(t, step.Rows)
		assert.Equal(t, want, rows, step.Statement)
		if before != nil && before.SchemaID == after.SchemaID && before.SnapshotID != after.SnapshotID {
			ways := []Way{WayBridge}
			if parent := meta.CurrentSnapshot().ParentSnapshotID; parent != nil && *parent == before.SnapshotID {
				ways = append(ways, WaySnapshot) // else the statement made several
			}
			for _, way := range ways {
				plan, err := PlanChanges(t.Context(), source, Step{Way: way, Before: before, After: after}, ChangeOptions{})
				require.NoError(t, err, step.Statement)
				assert.Equal(t, want, replayed(t, held, plan), "%s by %s", step.Statement, way)
			}
		}
		before, held = &after, rows
	}
}

func scanned(t *testing.T, source Source, step Step) ([]string, error) {
	plan, err := PlanStep(t.Context(), source, step)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(t, plan, ReadOptions{})
	return canonical(t, rows), err
}

// canonical are rows in one order and one spelling.
func canonical[R ~string | ~[]byte](t *testing.T, rows []R) []string {
	out := []string{}
	for _, r := range rows {
		var v any
		decoder := json.NewDecoder(strings.NewReader(string(r)))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&v))
		text, err := json.Marshal(spelled(v))
		require.NoError(t, err)
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// spelled is a value with each number in one spelling, which keeps all digits of a long.
func spelled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = spelled(v[name])
		}
	case []any:
		for i := range v {
			v[i] = spelled(v[i])
		}
	case json.Number:
		if _, err := v.Int64(); err == nil && v != "-0" {
			return v
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return v
}

// replayed are the rows after a step's changes.
func replayed(t *testing.T, rows []string, plan *ChangePlan) []string {
	rows = slices.Clone(rows)
	for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
		require.NoError(t, err)
		for i, m := range batch.Messages {
			operation := batch.Operation
			if batch.Operations != nil {
				operation = batch.Operations[i]
			}
			row := canonical(t, [][]byte{m})[0]
			if operation == OperationInsert || operation == OperationUpdateAfter {
				rows = append(rows, row)
				continue
			}
			at := slices.Index(rows, row)
			require.GreaterOrEqual(t, at, 0, "%s of %s, which is not there", operation, row)
			rows = slices.Delete(rows, at, at+1)
		}
	}
	slices.Sort(rows)
	return rows
}

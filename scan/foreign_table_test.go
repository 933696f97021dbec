// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
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

// foreignTable is a table after each of its writer's statements, as the writer itself reads it.
type foreignTable struct {
	Name  string
	Steps []struct {
		Statement string
		Metadata  string // location
		Rows      []json.RawMessage
	}
}

func TestTablesThatClickHouseWroteAreReadAsItReadsThem(t *testing.T) {
	followForeignTables(t, "clickhouse", "/tmp/rpk-nessie-writers")
}

func TestTablesThatDuckDBWroteAreReadAsItReadsThem(t *testing.T) {
	followForeignTables(t, "duckdb", "s3://bucket")
}

func TestTablesThatSparkWroteAreReadAsItReadsThem(t *testing.T) {
	followForeignTables(t, "spark", "s3://bucket")
}

func followForeignTables(t *testing.T, writer, root string) {
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
	for _, c := range tables {
		t.Run(c.Name, func(t *testing.T) { c.follow(t, files) })
	}
}

// follow reads the table after each statement, and what changed since the one before wherever the schema is the same.
func (c foreignTable) follow(t *testing.T, files movedFiles) {
	var before *catalog.State
	var held []string
	for _, step := range c.Steps {
		text, err := os.ReadFile(files.local(step.Metadata))
		require.NoError(t, err)
		meta, err := table.ParseMetadataBytes(text)
		require.NoError(t, err, step.Statement)
		after := stateOf(meta, *meta.CurrentSnapshot(), step.Metadata)
		source := Source{FS: files, Meta: meta}
		rows, err := scanned(t, source, Step{Way: WayTableScan, After: after, Schema: meta.CurrentSchema()})
		require.NoError(t, err, step.Statement)
		want := canonical(t, step.Rows)
		assert.Equal(t, want, rows, step.Statement)
		if before != nil && before.SchemaID == after.SchemaID && before.SnapshotID != after.SnapshotID {
			for _, way := range []Way{WayBridge, WaySnapshot} {
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
	require.NoError(t, err)
	rows, err := readRows(t, plan, ReadOptions{})
	return canonical(t, rows), err
}

// canonical are rows in one order and one spelling.
func canonical[R ~string | ~[]byte](t *testing.T, rows []R) []string {
	out := []string{}
	for _, r := range rows {
		var v any
		require.NoError(t, json.Unmarshal([]byte(r), &v))
		text, err := json.Marshal(v)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// objectsOf are the lines that are JSON objects.
func objectsOf(stdout string) []string {
	var rows []string
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, "{") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}

func TestReadGivesTheTableInEveryForm(t *testing.T) {
	for _, name := range []string{"events", "mor", "rest_multi", "types", "empty", "evolve"} {
		t.Run(name, func(t *testing.T) {
			e, err := corpus.Load(name)
			require.NoError(t, err)
			read := func(form string) string {
				got := onCorpus(t, "read", e.Table, "--format", form)
				require.Equal(t, 0, got.code, got.all())
				return got.stdout
			}
			want := int(e.Head().RowCount)
			lines := objectsOf(read("ndjson"))
			assert.Len(t, lines, want)
			if name == "events" || name == "evolve" || name == "rest_multi" {
				return
			}
			var array []json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(read("json")), &array))
			assert.Len(t, array, want)
			for i := range array {
				assert.JSONEq(t, lines[i], string(array[i]))
			}
			table, err := csv.NewReader(strings.NewReader(read("csv"))).ReadAll()
			require.NoError(t, err)
			assert.Len(t, table, want+1)
			assert.Equal(t, want, arrowRows(t, read("arrow")))
			assert.Equal(t, want, parquetRows(t, read("parquet")))
		})
	}
}

func arrowRows(t *testing.T, stream string) int {
	r, err := ipc.NewReader(strings.NewReader(stream))
	require.NoError(t, err)
	defer r.Release()
	rows := 0
	for r.Next() {
		rows += int(r.RecordBatch().NumRows())
	}
	require.NoError(t, r.Err())
	return rows
}

func parquetRows(t *testing.T, content string) int {
	f, err := file.NewParquetReader(bytes.NewReader([]byte(content)))
	require.NoError(t, err)
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	table, err := r.ReadTable(t.Context())
	require.NoError(t, err)
	defer table.Release()
	return int(table.NumRows())
}

func TestReadOfSnapshotsAndRanges(t *testing.T) {
	e, err := corpus.Load("rest_multi")
	require.NoError(t, err)
	ids := committed(t, "rest_multi")
	count := func(code int, args ...string) int {
		got := onCorpus(t, "read", "rest_multi", args...)
		require.Equal(t, code, got.code, got.all())
		return len(objectsOf(got.stdout))
	}
	assert.Equal(t, int(e.Head().RowCount), count(0))
	assert.Equal(t, 5, count(0, "--at", ids[0]))
	assert.Equal(t, 5, count(0, "--snapshot", ids[0]))
	assert.Equal(t, 5, count(0, "--snapshot", ids[len(ids)-1]))
	assert.Equal(t, 15, count(0, "--from", ids[0]), "the hidden snapshot's rows too")
	assert.Equal(t, 0, count(0, "--from", ids[len(ids)-1]))
	assert.Equal(t, 10, count(0, "--from", ids[0], "--at", ids[1]))
	hidden := chain(t, "rest_multi")[0]
	assert.Equal(t, 10, count(0, "--at", hidden))
	assert.Equal(t, 5, count(0, "--snapshot", hidden))
	assert.Equal(t, 0, count(1, "--from", "12345"))
}

func TestReadStopsAtRemovedRowsUnlessToldOtherwise(t *testing.T) {
	first := chain(t, "cow")[0]
	got := onCorpus(t, "read", "cow", "--from", first)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "--removed skip")
	skipped := onCorpus(t, "read", "cow", "--from", first, "--removed", "skip")
	require.Equal(t, 0, skipped.code, skipped.all())
	added := onCorpus(t, "read", "cow", "--from", first, "--removed", "added_rows")
	require.Equal(t, 0, added.code, added.all())
	assert.Greater(t, len(objectsOf(added.stdout)), len(objectsOf(skipped.stdout)))
}

func TestReadTakesColumns(t *testing.T) {
	got := onCorpus(t, "read", "rest_multi", "--columns", "cat,id", "--format", "csv", "--at", committed(t, "rest_multi")[0])
	require.Equal(t, 0, got.code, got.all())
	golden(t, "read/columns.csv", got.stdout)
	got = onCorpus(t, "read", "rest_multi", "--columns", "colour")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "colour")
}

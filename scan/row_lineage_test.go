// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The expectations here are the Iceberg spec's, "Row Lineage" and "First Row ID Inheritance", worked out by hand.

var withLineage = []string{"id", "_row_id", "_last_updated_sequence_number"}

// lineageFile writes rows (JSON objects), two to a row group. Where one of them has a row id, the file stores lineage.
func (f *fixture) lineageFile(name string, rows ...string) *iceberg.DataFileBuilder {
	f.Helper()
	fields := f.meta.CurrentSchema().Fields()
	if strings.Contains(strings.Join(rows, ""), "_row_id") {
		fields = append(fields, iceberg.RowID(), iceberg.LastUpdatedSequenceNumber())
	}
	schema := arrowSchema(f.TB, iceberg.NewSchema(1, fields...))
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(f, err)
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(2)), pqarrow.DefaultWriterProps())
	require.NoError(f, err)
	require.NoError(f, w.Write(rec))
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, nil, nil, nil, int64(len(rows)), int64(buf.Len()))
	require.NoError(f, err)
	return b
}

// lineageOf are rows as "operation id row sequence".
func lineageOf(t require.TestingT, format Format, batches iter.Seq2[Batch, error]) []string {
	var out []string
	for batch, err := range batches {
		require.NoError(t, err)
		for i, line := range lines(t, format, batch) {
			var row struct {
				ID       int64  `json:"id"`
				RowID    *int64 `json:"_row_id"`
				Sequence *int64 `json:"_last_updated_sequence_number"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			operation := batch.Operation
			if batch.Operations != nil {
				operation = batch.Operations[i]
			}
			out = append(out, fmt.Sprintf("%s %d %s %s", operation, row.ID, orNull(row.RowID), orNull(row.Sequence)))
		}
	}
	return out
}

func orNull(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// readsLineage reads a step in every format, from every row on, alone and in parallel.
func (f *fixture) readsLineage(step Step, want ...string) {
	f.Helper()
	step.Columns = withLineage
	plan := f.plan(step)
	for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
		for from := range len(want) + 1 {
			for _, parallelism := range []int{1, 4} {
				opts := ReadOptions{Format: format, From: int64(from), Parallelism: parallelism, BatchRows: 3, stretch: 1}
				got := []string{}
				for _, row := range lineageOf(f, format, plan.Read(f.Context(), opts)) {
					_, row, _ = strings.Cut(row, " ")
					got = append(got, row)
				}
				require.Equal(f, want[from:], got, "%s from %d, %d at once", format, from, parallelism)
			}
		}
	}
}

func TestRowsInheritTheLineageThatTheirFilesDoNotStore(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.nextRow = 1000
	f.commit(
		"append", []change{
			added(f.lineageFile("a.parquet", numbered(0, 5)...).Build()),
			added(f.lineageFile(
				"b.parquet",
				`{"id": 5, "_row_id": 7, "_last_updated_sequence_number": -3}`,
				`{"id": 6}`,
				`{"id": 7, "_row_id": 9}`,
				`{"id": 8, "_last_updated_sequence_number": 4}`,
			).Build()),
		})
	want := []string{
		"0 1000 1", "1 1001 1", "2 1002 1", "3 1003 1", "4 1004 1",
		"5 7 -3", "6 1006 1", "7 9 1", "8 1008 4",
	}
	f.readsLineage(Step{Way: WayTableScan, After: f.state}, want...)
	f.readsLineage(Step{Way: WaySnapshot, After: f.state}, want...)
}

func TestFilesInheritTheirFirstRowFromTheManifestInTheOrderOfItsEntries(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.commitOn(nil, "append", []change{added(f.lineageFile("before.parquet", numbered(0, 3)...).Build())})
	f.nextRow = 1000
	f.commitOn(
		nil, "overwrite",
		[]change{
			deleted(f.lineageFile("a.parquet", numbered(0, 3)...).Build(), 1), // takes no ids
			added(f.lineageFile("b.parquet", numbered(10, 13)...).Build()),
			existing(f.lineageFile("c.parquet", numbered(20, 22)...).FirstRowID(50).Build(), 1001, 1), // has its own
			added(f.lineageFile("d.parquet", numbered(30, 32)...).Build()),
			existing(f.lineageFile("e.parquet", numbered(40, 41)...).Build(), 1001, 1), // takes some, though not new
			added(f.lineageFile("f.parquet", numbered(50, 51)...).Build()),
		},
		[]change{added(f.lineageFile("g.parquet", numbered(60, 61)...).Build())}, // after all rows of the first
	)
	f.readsLineage(
		Step{Way: WayTableScan, After: f.state},
		"20 50 1", "21 51 1", "40 1005 1",
		"10 1000 2", "11 1001 2", "12 1002 2", "30 1003 2", "31 1004 2", "50 1006 2", "60 1009 2",
	)
}

func TestDeletedRowsCountInThePositionsOfOthers(t *testing.T) {
	for name, deletes := range map[string]func(f *fixture) iceberg.DataFile{
		"position deletes": func(f *fixture) iceberg.DataFile {
			return f.positionDeletes("d.parquet", 0, none, "a.parquet", 0, 2, 3, 6)
		},
		"vector":           func(f *fixture) iceberg.DataFile { return f.vector("d.puffin", "a.parquet", 0, 2, 3, 6) },
		"equality deletes": func(f *fixture) iceberg.DataFile { return f.equalityDeletes("e.parquet", 0, none, 0, 2, 3, 6) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			f.upgrade()
			f.nextRow = 1000
			f.commit("append", []change{added(f.lineageFile("a.parquet", numbered(0, 8)...).Build())})
			before := f.state
			f.commit("delete", []change{added(deletes(f))})
			f.readsLineage(Step{Way: WayTableScan, After: f.state}, "1 1001 1", "4 1004 1", "5 1005 1", "7 1007 1")

			query, err := ParseQuery("id >= 5")
			require.NoError(t, err)
			f.readsLineage(Step{Way: WayTableScan, After: f.state, Query: query}, "5 1005 1", "7 1007 1")

			changes := f.changes(Step{Way: WayBridge, Before: &before, After: f.state, Columns: withLineage}, ChangeOptions{})
			for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
				for from := range 4 {
					want := []string{"delete 0 1000 1", "delete 2 1002 1", "delete 3 1003 1", "delete 6 1006 1"}
					assert.Equal(t, want[from:], lineageOf(t, format, changes.Read(t.Context(), ReadOptions{Format: format, From: int64(from)})))
				}
			}
		})
	}
}

func TestARewriteThatKeepsRowIDsChangesNothing(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.nextRow = 1000
	a := f.lineageFile("a.parquet", numbered(0, 3)...).Build()
	b := f.lineageFile("b.parquet", numbered(3, 5)...).Build()
	f.commit("append", []change{added(a), added(b)})
	before := f.state
	f.nextRow = 1005
	compacted := f.lineageFile(
		"c.parquet",
		`{"id": 3, "name": "name 3", "cat": "a", "_row_id": 1003, "_last_updated_sequence_number": 1}`,
		`{"id": 0, "name": "name 0", "cat": "a", "_row_id": 1000, "_last_updated_sequence_number": 1}`,
		`{"id": 4, "name": "name 4", "cat": "a", "_row_id": 1004, "_last_updated_sequence_number": 1}`,
		`{"id": 1, "name": "name 1", "cat": "a", "_row_id": 1001, "_last_updated_sequence_number": 1}`,
		`{"id": 2, "name": "name 2", "cat": "a", "_row_id": 1002, "_last_updated_sequence_number": 1}`,
	).Build()
	f.commitOn(nil, "overwrite", []change{deleted(a, 1), deleted(b, 1), added(compacted)})
	f.readsLineage(Step{Way: WayTableScan, After: f.state}, "3 1003 1", "0 1000 1", "4 1004 1", "1 1001 1", "2 1002 1")
	// No matter what the columns are: what differs by lineage alone is the same row.
	for _, columns := range [][]string{nil, withLineage} {
		for _, keys := range [][]string{{}, {"id"}} {
			step := Step{Way: WaySnapshot, Before: &before, After: f.state, Columns: columns}
			inserted, deleted, err := f.changes(step, ChangeOptions{IdentifierFields: keys}).Net(t.Context(), ReadOptions{})
			require.NoError(t, err)
			assert.Zero(t, inserted)
			assert.Zero(t, deleted)
		}
	}
}

func TestAnUpdateTellsTheLineageOfBothSides(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.nextRow = 1000
	a := f.lineageFile("a.parquet", numbered(0, 4)...).Build()
	f.commit("append", []change{added(a)})
	before := f.state
	f.nextRow = 1004
	rewritten := f.lineageFile(
		"b.parquet",
		`{"id": 0, "name": "name 0", "cat": "a", "_row_id": 1000, "_last_updated_sequence_number": 1}`,
		`{"id": 1, "name": "other", "cat": "a", "_row_id": 1001}`,
		`{"id": 2, "name": "name 2", "cat": "a", "_row_id": 1002}`, // touched, yet the same
		`{"id": 9, "name": "new", "cat": "a"}`,
	).Build()
	f.commitOn(nil, "overwrite", []change{deleted(a, 1), added(rewritten)})
	step := Step{Way: WaySnapshot, Before: &before, After: f.state, Columns: append([]string{"name"}, withLineage...)}
	want := map[Format][]string{
		FormatJSON:   {"update_before 1 1001 1", "update_after 1 1001 2", "delete 3 1003 1", "insert 9 1007 2"},
		FormatNDJSON: {"delete 1 1001 1", "delete 3 1003 1", "insert 1 1001 2", "insert 9 1007 2"},
		FormatArrow:  {"delete 1 1001 1", "delete 3 1003 1", "insert 1 1001 2", "insert 9 1007 2"},
	}
	for format, want := range want {
		var keys []string
		if format == FormatJSON {
			keys = []string{"id"}
		}
		changes := f.changes(step, ChangeOptions{IdentifierFields: keys})
		assert.ElementsMatch(t, want, lineageOf(t, format, changes.Read(t.Context(), ReadOptions{Format: format})), format)
		added := f.changes(step, ChangeOptions{IdentifierFields: keys, Mode: AddedRows})
		assert.ElementsMatch(
			t, []string{"insert 1 1001 2", "insert 9 1007 2"},
			lineageOf(t, format, added.Read(t.Context(), ReadOptions{Format: format})), format,
		)
	}
}

func TestLineageIsNoKey(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.commit("append", []change{added(f.lineageFile("a.parquet", numbered(0, 4)...).Build())})
	for _, columns := range [][]string{nil, withLineage} {
		step := Step{Way: WaySnapshot, After: f.state, Columns: columns}
		_, err := PlanChanges(t.Context(), f.source(), step, ChangeOptions{IdentifierFields: []string{"id", "_row_id"}})
		require.EqualError(t, err, `identifier field "_row_id" is row lineage, by which rows are not compared`)
		var key *KeyError
		require.ErrorAs(t, err, &key)
	}
}

func TestRowsFromBeforeAnUpgradeHaveNoLineage(t *testing.T) {
	f := newFixture(t, "")
	a := f.lineageFile("a.parquet", numbered(0, 4)...).Build()
	f.commit("append", []change{added(a)})
	v2, beforeMeta := f.state, f.meta
	nothing := []string{"0 null null", "1 null null", "2 null null", "3 null null"}
	f.readsLineage(Step{Way: WayTableScan, After: v2}, nothing...)
	f.readsLineage(Step{Way: WaySnapshot, After: v2}, nothing...)

	f.upgrade()
	f.readsLineage(Step{Way: WayTableScan, After: v2}, nothing...) // the list of then gives no ids

	f.nextRow = 500
	f.commit("append", []change{added(f.lineageFile("b.parquet", numbered(10, 12)...).Build())})
	f.readsLineage(Step{Way: WayTableScan, After: f.state}, "0 502 1", "1 503 1", "2 504 1", "3 505 1", "10 500 2", "11 501 2")

	for _, meta := range []bool{true, false} {
		step := Step{Way: WayBridge, Before: &v2, After: f.state, Columns: withLineage}
		if meta {
			step.BeforeMeta = beforeMeta
		}
		changes := f.changes(step, ChangeOptions{})
		assert.Equal(t, []string{"insert 10 500 2", "insert 11 501 2"}, lineageOf(t, FormatJSON, changes.Read(t.Context(), ReadOptions{})))
	}

	// The upgraded table drops a row of the old file.
	f.nextRow = 502
	kept := f.lineageFile(
		"c.parquet",
		`{"id": 0, "name": "name 0", "cat": "a", "_row_id": 502, "_last_updated_sequence_number": 1}`,
		`{"id": 1, "name": "name 1", "cat": "a", "_row_id": 503, "_last_updated_sequence_number": 1}`,
		`{"id": 3, "name": "name 3", "cat": "a", "_row_id": 505, "_last_updated_sequence_number": 1}`,
	).Build()
	f.commitOn(nil, "overwrite", []change{deleted(a, 1), added(kept)})
	step := Step{Way: WayBridge, Before: &v2, BeforeMeta: beforeMeta, After: f.state, Columns: withLineage}
	changes := f.changes(step, ChangeOptions{})
	assert.Equal(t, []string{"delete 2 null null"}, lineageOf(t, FormatJSON, changes.Read(t.Context(), ReadOptions{})))
}

func TestRowsOfATableThatWasReplacedKeepTheirLineage(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.nextRow = 1000
	a := f.lineageFile("a.parquet", numbered(0, 2)...).Build()
	f.commit("append", []change{added(a)})
	before := f.state
	before.TableUUID = "11111111-1111-4111-8111-111111111111"
	f.nextRow = 0
	f.commitOn(nil, "append", []change{added(f.lineageFile("b.parquet", numbered(0, 2)...).Build())})
	after := f.state
	after.TableUUID = "22222222-2222-4222-8222-222222222222"
	changes := f.changes(Step{Way: WayBridge, Before: &before, BeforeMeta: f.meta, After: after, Columns: withLineage}, ChangeOptions{})
	assert.Equal(
		t, []string{"delete 0 1000 1", "delete 1 1001 1", "insert 0 0 2", "insert 1 1 2"},
		lineageOf(t, FormatJSON, changes.Read(t.Context(), ReadOptions{})),
	)
}

func TestLineageAloneIsReadToo(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	f.nextRow = 1000
	f.commit("append", []change{added(f.lineageFile("a.parquet", numbered(0, 3)...).Build())})
	for columns, want := range map[string][]string{
		"_row_id":                       {`{"_row_id":1000}`, `{"_row_id":1001}`, `{"_row_id":1002}`},
		"_last_updated_sequence_number": {`{"_last_updated_sequence_number":1}`, `{"_last_updated_sequence_number":1}`, `{"_last_updated_sequence_number":1}`},
	} {
		rows, err := readRows(t, f.plan(Step{Way: WayTableScan, After: f.state, Columns: []string{columns}}), ReadOptions{})
		require.NoError(t, err)
		assert.Equal(t, want, rows)
	}
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// foreignFiles are Parquet files of other writers, which tests/writers/make/parquet.py and JavaTables.java made.
var foreignFiles = []string{"../tests/writers/testdata/parquet", "../tests/writers/testdata/parquet_java"}

// foreignFile is one of them, in a table of its own.
type foreignFile struct {
	Name    string
	Format  int // version
	Fields  json.RawMessage
	Mapping json.RawMessage // null: the table has none
	Rows    int64
	Want    []json.RawMessage // as another reader has them
	WantOf  string            `json:"want_of"` // the file that has the same rows
	Refused string            // part of the error; "": it is read
	path    string
}

func eachForeignFile(t *testing.T, check func(t *testing.T, c foreignFile, plan *Plan)) {
	for _, folder := range foreignFiles {
		content, err := os.ReadFile(filepath.Join(folder, "cases.json"))
		require.NoError(t, err)
		var cases []foreignFile
		require.NoError(t, json.Unmarshal(content, &cases))
		require.NotEmpty(t, cases)
		wants := map[string][]json.RawMessage{}
		for _, c := range cases {
			if c.WantOf != "" {
				c.Want = wants[c.WantOf]
				require.NotEmpty(t, c.Want)
			}
			wants[c.Name], c.path = c.Want, filepath.Join(folder, c.Name+".parquet")
			t.Run(c.Name, func(t *testing.T) { check(t, c, c.plan(t)) })
		}
	}
}

// foreignPaths are the files of all cases.
func foreignPaths(t testing.TB) (paths []string) {
	for _, folder := range foreignFiles {
		files, err := filepath.Glob(filepath.Join(folder, "*.parquet"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		paths = append(paths, files...)
	}
	return paths
}

// plan is a scan of the table.
func (c foreignFile) plan(t *testing.T) *Plan {
	f := newFixture(t, "")
	properties := map[string]string{}
	if string(c.Mapping) != "null" {
		properties["schema.name-mapping.default"] = string(c.Mapping)
	}
	props, err := json.Marshal(properties)
	require.NoError(t, err)
	next := ""
	if c.Format == 3 {
		next = `"next-row-id": 0,`
	}
	f.meta, err = table.ParseMetadataString(fmt.Sprintf(`{
		"format-version": %d, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": %q, %s
		"last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 99, "current-schema-id": 1, "last-partition-id": 999,
		"schemas": [{"type": "struct", "schema-id": 1, "fields": %s}],
		"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
		"default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": %s}`, c.Format, f.dir, next, c.Fields, props))
	require.NoError(t, err)
	content, err := os.ReadFile(c.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path("a.parquet"), content, 0o600))
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("a.parquet"), iceberg.ParquetFile, nil, nil, nil, max(c.Rows, 1), int64(len(content)))
	require.NoError(t, err)
	state := f.commit("append", []change{added(b.Build())})
	plan := f.plan(Step{Way: WayTableScan, After: state})
	require.Len(t, plan.Tasks, 1)
	plan.Tasks[0].File.Data = counted{plan.Tasks[0].File.Data, c.Rows}
	return plan
}

// counted is a data file of so many rows, none among them, which iceberg-go does not let writers say.
type counted struct {
	iceberg.DataFile
	rows int64
}

func (c counted) Count() int64 { return c.rows }

func TestFilesOfOtherWritersAreReadAsOtherReadersDo(t *testing.T) {
	eachForeignFile(t, func(t *testing.T, c foreignFile, plan *Plan) {
		for _, batchRows := range []int{0, 7} {
			rows, err := readRows(t, plan, ReadOptions{BatchRows: batchRows})
			c.check(t, rows, err)
		}
		rows, err := generalRows(t, t, plan, plan.Tasks[0])
		c.check(t, rows, err)
	})
}

func readRows(t *testing.T, plan *Plan, opts ReadOptions) (rows []string, err error) {
	for batch, err := range plan.Read(t.Context(), opts) {
		if err != nil {
			return rows, err
		}
		for _, m := range batch.Messages {
			rows = append(rows, string(m))
		}
	}
	return rows, nil
}

func (c foreignFile) check(t *testing.T, rows []string, err error) {
	t.Helper()
	if c.Refused != "" {
		assert.ErrorContains(t, err, c.Refused)
		assert.ErrorContains(t, err, "a.parquet")
		return
	}
	require.NoError(t, err)
	require.Len(t, rows, len(c.Want))
	for i := range rows {
		require.JSONEq(t, string(c.Want[i]), rows[i])
	}
}

func TestFilesOfOtherWritersBecomeArrowOfTheTablesTypes(t *testing.T) {
	eachForeignFile(t, func(t *testing.T, c foreignFile, plan *Plan) {
		if c.Refused != "" || c.Rows == 0 {
			return // nothing comes
		}
		wanted := arrowSchema(t, plan.Schema)
		encoder, err := NewEncoder(plan.Schema)
		require.NoError(t, err)
		var rows []string
		for batch, err := range plan.Read(t.Context(), ReadOptions{Format: FormatArrow}) {
			require.NoError(t, err)
			r, err := ipc.NewReader(strings.NewReader(string(batch.Messages[0])))
			require.NoError(t, err)
			defer r.Release()
			for r.Next() {
				require.Equal(t, len(wanted.Fields()), int(r.RecordBatch().NumCols()))
				for i, f := range wanted.Fields() {
					assert.Equal(t, f.Type.Fingerprint(), r.Schema().Field(i).Type.Fingerprint(), f.Name)
				}
				buf, ends, err := encoder.Append(nil, nil, r.RecordBatch(), 0, int(r.RecordBatch().NumRows()))
				require.NoError(t, err)
				rows = append(rows, splitRows(buf, ends)...)
			}
		}
		c.check(t, rows, nil)
	})
}

func TestFootersAreWrittenAgainAsTheyWere(t *testing.T) {
	for _, path := range foreignPaths(t) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := iceio.LocalFS{}.Open(path)
		require.NoError(t, err)
		f, err := readFooter(file)
		require.NoError(t, err, path)
		over, err := f.over(file)
		require.NoError(t, err)
		size, err := over.Seek(0, 2)
		require.NoError(t, err)
		_, err = over.Seek(0, 0)
		require.NoError(t, err)
		again := make([]byte, size)
		n, err := over.ReadAt(again, 0)
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		require.Equal(t, content[:f.start], again[:f.start], path)
		fresh, err := parseThrift(again[len(again)-8-int(uint32(again[len(again)-8])|uint32(again[len(again)-7])<<8|uint32(again[len(again)-6])<<16) : len(again)-8])
		require.NoError(t, err)
		require.Equal(t, f.root, fresh, path)
		require.NoError(t, file.Close())
	}
}

func FuzzFooters(f *testing.F) {
	for _, path := range foreignPaths(f) {
		content, err := os.ReadFile(path)
		require.NoError(f, err)
		n := len(content)
		size := int(uint32(content[n-8]) | uint32(content[n-7])<<8 | uint32(content[n-6])<<16)
		f.Add(content[n-8-size : n-8])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseThrift(data)
		if err != nil {
			return
		}
		again, err := parseThrift(v.appendTo(nil))
		require.NoError(t, err)
		require.Equal(t, v.appendTo(nil), again.appendTo(nil))
		layout := &footer{root: v}
		if layout.layOut() == nil {
			_ = layout.identify(nil, iceberg.NewSchema(0)) // any footer has an answer
		}
	})
}

func TestAnEqualityDeleteFindsRowsInAnotherUnit(t *testing.T) {
	eachForeignFile(t, func(t *testing.T, c foreignFile, plan *Plan) {
		if c.Name != "int96_as_timestamp" {
			return
		}
		dir := filepath.Dir(plan.Tasks[0].File.path)
		f := &fixture{TB: t, dir: dir, fs: &localFiles{}, meta: plan.source.Meta, state: catalog.State{}}
		deletes := f.entryFile("d.parquet", iceberg.EntryContentEqDeletes, 0, nil, 1, func(b *iceberg.DataFileBuilder) { b.EqualityFieldIDs([]int{1}) })
		schema := iceberg.NewSchema(9, iceberg.NestedField{ID: 1, Name: "t", Type: iceberg.PrimitiveTypes.Timestamp})
		f.writeParquet("d.parquet", arrowSchema(t, schema), []string{`{"t": "2024-02-29 12:00:00.123"}`})
		plan.Tasks[0].Deletes.Equality = []File{{Data: deletes, path: deletes.FilePath(), Sequence: 9}}
		rows, err := readRows(t, plan, ReadOptions{})
		require.NoError(t, err)
		var want []string
		for _, row := range c.Want {
			if !strings.Contains(string(row), "2024-02-29T12:00:00.123000") {
				want = append(want, string(row))
			}
		}
		require.Less(t, len(want), len(c.Want))
		assert.Equal(t, canonical(t, want), canonical(t, rows))
	})
}

func TestDeletesAndProjectionsHoldForFilesInOtherUnits(t *testing.T) {
	eachForeignFile(t, func(t *testing.T, c foreignFile, plan *Plan) {
		if c.Name != "int96_nested" {
			return
		}
		f := &fixture{TB: t, dir: filepath.Dir(plan.Tasks[0].File.path), fs: &localFiles{}, meta: plan.source.Meta}
		narrow := f.plan(Step{Way: WayTableScan, After: plan.after, Columns: []string{"st.t"}})
		rows, err := readRows(t, narrow, ReadOptions{})
		require.NoError(t, err)
		assert.Equal(t, []string{`{"st":{"t":"2024-02-29T12:00:00.123000"}}`, `{"st":null}`, `{"st":{"t":null}}`}, rows)

		deletes := f.positionDeletes("d.parquet", 0, none, "a.parquet", 1)
		plan.Tasks[0].Deletes.Position = []File{{Data: deletes, path: deletes.FilePath(), Sequence: 9}}
		rows, err = readRows(t, plan, ReadOptions{})
		require.NoError(t, err)
		require.Len(t, rows, 2)
		assert.JSONEq(t, string(c.Want[0]), rows[0])
		assert.JSONEq(t, string(c.Want[2]), rows[1])
	})
}

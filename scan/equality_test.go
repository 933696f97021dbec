// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// equalityOn writes an equality delete file that compares the columns with those ids.
func (f *fixture) equalityOn(name string, spec int, partition map[int]any, columns []iceberg.NestedField, ids []int, rows ...string) iceberg.DataFile {
	f.Helper()
	f.writeParquet(name, arrowSchema(f.TB, iceberg.NewSchema(9, columns...)), rows)
	return f.entryFile(name, iceberg.EntryContentEqDeletes, spec, partition, int64(len(rows)),
		func(b *iceberg.DataFileBuilder) { b.EqualityFieldIDs(ids) })
}

// handRow is a row of the hand-made table; nil: NULL.
type handRow struct{ id, name, cat any }

func (r handRow) String() string {
	text := func(v any) string {
		if v == nil {
			return "null"
		}
		return fmt.Sprintf("%#v", v)
	}
	return fmt.Sprintf(`{"id":%s,"name":%s,"cat":%s}`, text(r.id), text(r.name), text(r.cat))
}

func (r handRow) values(ids []int) [3]any {
	var out [3]any
	for _, id := range ids {
		out[id-1] = []any{r.id, r.name, r.cat}[id-1]
	}
	return out
}

// handFile is a data file or, with ids, an equality delete file of the hand-made table.
type handFile struct {
	spec     int
	cat      any // the partition's
	sequence int64
	ids      []int
	rows     []handRow
}

func (d handFile) deletes(data handFile, row handRow) bool {
	inScope := d.spec == 0 || (d.spec == data.spec && d.cat == data.cat)
	return inScope && d.sequence > data.sequence && slices.ContainsFunc(d.rows, func(gone handRow) bool {
		return gone.values(d.ids) == row.values(d.ids)
	})
}

func drawHandFile(t *rapid.T, sequence int64) handFile {
	of := func(what string, values ...any) any { return rapid.SampledFrom(values).Draw(t, what) }
	file := handFile{sequence: sequence, spec: rapid.IntRange(0, 1).Draw(t, "spec"), cat: of("cat", "a", "b", nil)}
	if rapid.Bool().Draw(t, "deletes") {
		file.ids = rapid.SampledFrom([][]int{{1}, {2}, {3}, {1, 2}, {2, 1}, {3, 1}}).Draw(t, "columns")
	}
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		row := handRow{of("id", 0, 1, 2, 3, nil), of("name", "x", "", nil), file.cat}
		if file.spec == 0 {
			row.cat = of("cat of row", "a", "b", nil)
		}
		file.rows = append(file.rows, row)
	}
	return file
}

// write writes the files, and is the plan of a scan of all.
func (f *fixture) write(files []handFile) *Plan {
	var groups [][]change
	for i, file := range files {
		partition := none
		if file.spec == 1 {
			partition = cat(file.cat)
		}
		var rows []string
		for _, row := range file.rows {
			rows = append(rows, row.String())
		}
		entry := f.dataFile
		if file.ids != nil {
			entry = func(name string, spec int, partition map[int]any, rows ...string) iceberg.DataFile {
				var columns []iceberg.NestedField
				for _, id := range []int{3, 2, 1} {
					if c, _ := f.meta.CurrentSchema().FindFieldByID(id); slices.Contains(file.ids, id) {
						columns = append(columns, c)
					}
				}
				return f.equalityOn("deletes-"+name, spec, partition, columns, file.ids, rows...)
			}
		}
		groups = append(groups, []change{addedAt(entry(fmt.Sprintf("%d.parquet", i), file.spec, partition, rows...), file.sequence)})
	}
	f.state.Sequence = int64(len(files))
	return f.plan(Step{Way: WayTableScan, After: f.commitOn(nil, "overwrite", groups...)})
}

// live are the rows that nothing deletes, in the order of a scan, and which delete files have anything to be compared with.
func live(files []handFile) (rows []string, needed map[string]int) {
	rows, needed = []string{}, map[string]int{}
	for _, data := range files {
		if data.ids != nil {
			continue
		}
		for i, d := range files {
			if d.ids != nil && d.sequence > data.sequence && (d.spec == 0 || (d.spec == data.spec && d.cat == data.cat)) {
				needed[fmt.Sprintf("deletes-%d.parquet", i)] = 1
			}
		}
		for _, row := range data.rows {
			if !slices.ContainsFunc(files, func(d handFile) bool { return d.ids != nil && d.deletes(data, row) }) {
				rows = append(rows, row.String())
			}
		}
	}
	return rows, needed
}

func TestEqualityDeletesRemoveWhatTheSpecSays(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := newFixture(t, "")
		var files []handFile
		for sequence := range rapid.Int64Range(1, 12).Draw(r, "files") {
			files = append(files, drawHandFile(r, sequence/2+1)) // two of one commit: deletes of it leave its data alone
		}
		plan := f.write(files)
		slices.SortStableFunc(files, func(a, b handFile) int { return int(a.sequence - b.sequence) })
		want, _ := live(files)
		for _, columns := range [][]string{nil, {"id"}, {"cat", "name"}} {
			narrow := f.plan(Step{Way: WayTableScan, After: plan.after, Columns: columns})
			rows := []string{}
			from := rapid.IntRange(0, len(want)).Draw(r, "from")
			opts := ReadOptions{From: int64(from), Parallelism: rapid.IntRange(1, 3).Draw(r, "parallelism"), BatchRows: 3, equality: rapid.SampledFrom([]int64{1, 1 << 40}).Draw(r, "read directly from")}
			for batch, err := range narrow.Read(t.Context(), opts) {
				require.NoError(r, err)
				rows = append(rows, lines(r, FormatJSON, batch)...)
			}
			require.Equal(r, projected(want[from:], columns), rows, "columns %v", columns)
		}
	})
}

// projected are rows with those columns alone.
func projected(rows, columns []string) []string {
	out := []string{}
	for _, row := range rows {
		var fields []string
		for field := range strings.SplitSeq(strings.Trim(row, "{}"), ",") {
			if columns == nil || slices.Contains(columns, strings.Split(field, `"`)[1]) {
				fields = append(fields, field)
			}
		}
		out = append(out, "{"+strings.Join(fields, ",")+"}")
	}
	return out
}

// manyUpserts are 60 data files and as many delete files, on different columns, in a partition and for all.
func manyUpserts() []handFile {
	var files []handFile
	for i := range 60 {
		data := handFile{spec: 1, cat: []any{"a", "b"}[i%2], sequence: int64(i + 1)}
		for id := i; id < i+20; id++ {
			data.rows = append(data.rows, handRow{id, fmt.Sprint("n", id%3), data.cat})
		}
		deletes := data
		deletes.ids, deletes.rows = [][]int{{1}, {1, 2}, {3, 1}}[i%3], data.rows[5:]
		if i%4 == 0 {
			deletes.spec, deletes.cat = 0, nil
		}
		files = append(files, data, deletes)
	}
	return files
}

func TestAnEqualityDeleteFileIsReadOnceForAllDataFiles(t *testing.T) {
	f := newFixture(t, "")
	files := manyUpserts()
	plan := f.write(files)
	want, needed := live(files)
	require.Greater(t, len(needed), 50)
	read := func(step func()) map[string]int {
		opened := f.openedBy(step)
		for name := range opened {
			if !strings.HasPrefix(name, "deletes-") {
				delete(opened, name)
			}
		}
		return opened
	}
	for name, opts := range map[string]ReadOptions{
		"by one worker": {Parallelism: 1}, "by several": {Parallelism: 6}, "with rows to count first": {Parallelism: 6, From: 200},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, needed, read(func() {
				rows, err := readRows(t, plan, opts)
				require.NoError(t, err)
				assert.Equal(t, want[opts.From:], rows)
			}))
		})
	}
	t.Run("by a query", func(t *testing.T) {
		query, err := ParseQuery("id >= 0")
		require.NoError(t, err)
		asking := f.plan(Step{Way: WayTableScan, After: plan.after, Query: query})
		assert.Equal(t, needed, read(func() {
			rows, err := readRows(t, asking, ReadOptions{})
			require.NoError(t, err)
			assert.Equal(t, want, rows)
		}))
	})
	t.Run("for each side of a change", func(t *testing.T) {
		before := plan.after
		gone := handFile{spec: 0, sequence: 100, ids: []int{1}, rows: []handRow{{4, nil, nil}}}
		f.write(append(files, gone))
		step := Step{Way: WayBridge, Before: &before, After: f.state}
		twice := map[string]int{fmt.Sprintf("deletes-%d.parquet", len(files)): 1}
		for name := range needed {
			twice[name] = 2
		}
		assert.Equal(t, twice, read(func() { f.said(f.changes(step, ChangeOptions{}), ReadOptions{}) }))
	})
}

func TestAllWhoWaitForAnEqualityDeleteFileGetItsError(t *testing.T) {
	f := newFixture(t, "")
	plan := f.write(manyUpserts()[:8])
	f.remove("deletes-7.parquet")
	r := newEqualityReader(plan, plan.Tasks, 1<<20, t.TempDir())
	scope := r.scopes[slices.IndexFunc(r.scopes, func(s *equalityScope) bool {
		return slices.ContainsFunc(s.files, func(f File) bool { return strings.HasSuffix(f.path, "deletes-7.parquet") })
	})]
	var waiting sync.WaitGroup
	errs := make([]error, 8)
	opened := f.openedBy(func() {
		for i := range errs {
			waiting.Go(func() { errs[i] = r.load(t.Context(), scope) })
		}
		waiting.Wait()
	})
	for _, err := range errs {
		var missing *MissingFileError
		require.ErrorAs(t, err, &missing)
		assert.Equal(t, MissingFileError{Snapshot: plan.after.SnapshotID, Path: f.path("deletes-7.parquet"), Kind: DeleteFileKind}, *missing)
	}
	assert.Equal(t, 1, opened["deletes-7.parquet"])
	_, err := readRows(t, plan, ReadOptions{})
	require.ErrorContains(t, err, "delete file "+f.path("deletes-7.parquet")+" no longer exists")
}

func TestWhoWaitsForAnEqualityDeleteFileCanGiveUp(t *testing.T) {
	f := newFixture(t, "")
	plan := f.write(manyUpserts()[:8])
	r := newEqualityReader(plan, plan.Tasks, 1<<20, t.TempDir())
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.fs.before = func(string) error {
		once.Do(func() { close(begun) })
		<-goOn
		return nil
	}
	first, stopFirst := context.WithCancelCause(t.Context())
	second, stopSecond := context.WithCancelCause(t.Context())
	failed := make(chan error, 2)
	go func() { failed <- r.load(first, r.scopes[0]) }()
	<-begun
	go func() { failed <- r.load(second, r.scopes[0]) }()
	gaveUp := errors.New("gave up")
	stopSecond(gaveUp)
	require.ErrorIs(t, <-failed, gaveUp, "while the file is being opened")
	stopFirst(gaveUp)
	close(goOn)
	require.ErrorIs(t, <-failed, gaveUp)
	f.fs.before = nil
	require.NoError(t, r.load(t.Context(), r.scopes[0]), "others do not get the error of one who gave up")
}

func TestKeysThatDoNotFitIntoMemoryGoToDisk(t *testing.T) {
	f := newFixture(t, "")
	var files []handFile
	for i, c := range []any{"a", "b", "a", "b"} {
		data := handFile{spec: 1, cat: c, sequence: int64(i + 1)}
		for id := range 8000 {
			data.rows = append(data.rows, handRow{id, fmt.Sprint(id % 7), c})
		}
		deletes := data
		deletes.ids, deletes.rows, deletes.sequence = []int{1, 2}, nil, data.sequence+2
		for id := i % 3; id < 8000; id += 3 {
			deletes.rows = append(deletes.rows, data.rows[id])
		}
		files = append(files, data, deletes)
	}
	plan := f.write(files)
	want := []string{} // live would take an hour
	for i, data := range files {
		for id, row := range data.rows {
			gone := slices.ContainsFunc(files, func(d handFile) bool {
				return d.ids != nil && d.cat == data.cat && d.sequence > data.sequence && id%3 == int(d.sequence-3)%3
			})
			if files[i].ids == nil && !gone {
				want = append(want, row.String())
			}
		}
	}
	dir := t.TempDir()
	little := ReadOptions{Memory: 1, SpillDir: dir, Parallelism: 3}
	rows, err := readRows(t, plan, little)
	require.NoError(t, err)
	assert.Equal(t, want, rows)
	assertEmptyFolder(t, dir)

	nowhere := ReadOptions{Memory: 1, SpillDir: f.path("nowhere")}
	_, err = readRows(t, plan, nowhere)
	var spill *SpillError
	require.ErrorAs(t, err, &spill)
	assert.Equal(t, f.path("nowhere"), spill.Dir)
	nowhere.Memory = 0
	rows, err = readRows(t, plan, nowhere)
	require.NoError(t, err, "with more memory nothing goes to disk")
	assert.Equal(t, want, rows)

	r := newEqualityReader(plan, plan.Tasks, 1, dir)
	for _, s := range r.scopes {
		require.NoError(t, r.load(t.Context(), s))
		assert.NotEmpty(t, s.keys.runs)
	}
	assert.LessOrEqual(t, r.used, int64(leastKeyMemory))
	require.NoError(t, r.close())
}

func TestEqualityDeletesFollowTheirColumnsThroughSchemas(t *testing.T) {
	was := func(id int, name string, typ iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: typ}
	}
	in := func(id int, name string, fields ...iceberg.NestedField) []iceberg.NestedField {
		return []iceberg.NestedField{was(id, name, &iceberg.StructType{FieldList: fields})}
	}
	ints, longs, texts := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.String
	for name, c := range map[string]struct {
		columns []iceberg.NestedField
		ids     []int
		rows    []string
		gone    []int // of the six rows
	}{
		"a widened column, deleted before": {[]iceberg.NestedField{was(1, "id", ints)}, []int{1}, []string{`{"id": 2}`, `{"id": 5}`}, []int{1, 4}},
		"a widened column, deleted since":  {[]iceberg.NestedField{was(1, "id", longs)}, []int{1}, []string{`{"id": 2}`, `{"id": 5}`}, []int{1, 4}},
		"a widened column's NULL":          {[]iceberg.NestedField{was(1, "id", longs)}, []int{1}, []string{`{"id": null}`}, []int{2}},
		"a renamed column, deleted before": {[]iceberg.NestedField{was(2, "a", texts)}, []int{2}, []string{`{"a": "p"}`}, []int{0, 3}},
		"a renamed column, deleted since":  {[]iceberg.NestedField{was(2, "b", texts)}, []int{2}, []string{`{"b": "p"}`}, []int{0, 3}},
		"a dropped column":                 {[]iceberg.NestedField{was(3, "n", ints)}, []int{3}, []string{`{"n": 30}`}, []int{2}},
		"a dropped column's NULL, which is what new files have": {
			[]iceberg.NestedField{was(3, "n", ints)}, []int{3}, []string{`{"n": null}`}, []int{3, 4, 5},
		},
		"a column of the dropped one's name": {[]iceberg.NestedField{was(10, "n", texts)}, []int{10}, []string{`{"n": "20"}`}, []int{4}},
		"an added column's NULL, which is what old files have": {
			[]iceberg.NestedField{was(10, "n", texts)}, []int{10}, []string{`{"n": null}`}, []int{0, 1, 2, 5},
		},
		"a dropped and a widened column": {
			[]iceberg.NestedField{was(1, "id", ints), was(3, "n", ints)},
			[]int{3, 1},
			[]string{`{"id": 1, "n": 10}`, `{"id": 2, "n": 10}`, `{"id": 4, "n": null}`},
			[]int{0, 3},
		},
		"a value in a struct, widened":             {in(4, "st", was(5, "x", ints)), []int{5}, []string{`{"st": {"x": 7}}`}, []int{0, 3}},
		"a value in a struct, with another column": {append(in(4, "st", was(5, "x", longs)), was(2, "b", texts)), []int{2, 5}, []string{`{"st": {"x": 7}, "b": "p"}`, `{"st": {"x": 7}, "b": "q"}`}, []int{0, 3}},
		"NULL in a struct, or of it":               {in(4, "st", was(5, "x", longs)), []int{5}, []string{`{"st": {"x": null}}`}, []int{1, 2, 4}},
		"a value that left a struct":               {in(4, "st", was(6, "y", texts)), []int{6}, []string{`{"st": {"y": "k"}}`}, []int{0}},
		"a value in a struct that was dropped":     {in(7, "went", was(8, "z", iceberg.PrimitiveTypes.Float32)), []int{8}, []string{`{"went": {"z": 1.5}}`}, []int{1}},
		"values in a struct that was dropped": {
			in(7, "went", was(8, "z", iceberg.PrimitiveTypes.Float32), was(9, "w", ints)),
			[]int{8, 9},
			[]string{`{"went": {"z": 1.5, "w": 3}}`, `{"went": {"z": 0.5, "w": 3}}`},
			[]int{1},
		},
		"a widened floating-point number, and not the zero with another sign": {
			[]iceberg.NestedField{was(12, "f", iceberg.PrimitiveTypes.Float64)}, []int{12}, []string{`{"f": 1.5}`, `{"f": 0}`}, []int{1, 3},
		},
		"the negative zero": {[]iceberg.NestedField{was(12, "f", iceberg.PrimitiveTypes.Float32)}, []int{12}, []string{`{"f": -0.0}`}, []int{0, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			var err error
			f.meta, err = table.ParseMetadataString(fmt.Sprintf(schemasText, f.dir))
			require.NoError(t, err)
			old := f.oldFile()
			young := f.dataFile(
				"young.parquet", 0, none,
				`{"id": 4, "b": "p", "n": "10", "st": {"x": 7, "y": "k"}, "f": 0}`,
				`{"id": 5, "b": "q", "n": "20", "st": {"x": null, "y": null}, "f": -0.0}`,
				`{"id": 6, "b": "r", "n": null, "st": {"x": 8, "y": "l"}, "f": 2.5}`,
			)
			f.state.Sequence = 2
			data := []change{addedAt(old, 1), addedAt(young, 1)}
			all := f.commitOn(nil, "append", data)
			deletes := f.equalityOn("e.parquet", 0, none, c.columns, c.ids, c.rows...)
			after := f.commitOn(nil, "overwrite", data, []change{addedAt(deletes, 2)})
			for _, columns := range [][]string{nil, {"id"}, {"st.y"}, {"b", "st"}, {"n", "st.x"}} {
				whole, err := readRows(t, f.plan(Step{Way: WayTableScan, After: all, Columns: columns}), ReadOptions{})
				require.NoError(t, err)
				require.Len(t, whole, 6)
				var want []string
				for i, row := range whole {
					if !slices.Contains(c.gone, i) {
						want = append(want, row)
					}
				}
				for _, from := range []int64{1, 1 << 40} {
					rows, err := readRows(t, f.plan(Step{Way: WayTableScan, After: after, Columns: columns}), ReadOptions{equality: from})
					require.NoError(t, err)
					assert.Equal(t, want, rows, "columns %v, directly from %d bytes on", columns, from)
				}
			}
		})
	}
}

func TestEqualityDeletesCompareEveryPrimitiveType(t *testing.T) {
	for _, c := range []struct {
		typ    iceberg.Type
		values []string // JSON, all different
	}{
		{iceberg.PrimitiveTypes.Bool, []string{`true`, `false`}},
		{iceberg.PrimitiveTypes.Int32, []string{`0`, `-1`, `2147483647`}},
		{iceberg.PrimitiveTypes.Int64, []string{`0`, `-1`, `9223372036854775807`}},
		{iceberg.PrimitiveTypes.Float32, []string{`0`, `-0.0`, `1.5`, `"NaN"`, `"-Inf"`}},
		{iceberg.PrimitiveTypes.Float64, []string{`0`, `-0.0`, `1.5`, `"NaN"`, `"+Inf"`}},
		{iceberg.DecimalTypeOf(9, 2), []string{`"0.00"`, `"-1.00"`, `"1234567.89"`}},
		{iceberg.DecimalTypeOf(38, 0), []string{`"0"`, `"-1"`, `"99999999999999999999999999999999999999"`}},
		{iceberg.PrimitiveTypes.Date, []string{`"1970-01-01"`, `"1969-12-31"`}},
		{iceberg.PrimitiveTypes.Time, []string{`"00:00:00"`, `"23:59:59.999999"`}},
		{iceberg.PrimitiveTypes.Timestamp, []string{`"1970-01-01 00:00:00"`, `"1969-12-31 23:59:59.999999"`}},
		{iceberg.PrimitiveTypes.TimestampTz, []string{`"1970-01-01 00:00:00Z"`, `"1969-12-31 23:59:59.999999Z"`}},
		{iceberg.PrimitiveTypes.TimestampNs, []string{`"1970-01-01 00:00:00"`, `"1969-12-31 23:59:59.999999999"`}},
		{iceberg.PrimitiveTypes.TimestampTzNs, []string{`"1970-01-01 00:00:00Z"`, `"1969-12-31 23:59:59.999999999Z"`}},
		{iceberg.PrimitiveTypes.String, []string{`""`, `"a"`, `"a\u0000"`, `"ä"`}},
		{iceberg.PrimitiveTypes.UUID, []string{`"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, `"00000000-0000-0000-0000-000000000000"`}},
		{iceberg.FixedTypeOf(2), []string{`"AAE="`, `"AQA="`}},
		{iceberg.PrimitiveTypes.Binary, []string{`""`, `"AA=="`, `"AAA="`}},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			schema := iceberg.NewSchema(0,
				iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
				iceberg.NestedField{ID: 2, Name: "v", Type: c.typ})
			f := newFixture(t, "")
			meta, err := table.NewMetadata(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, f.dir, iceberg.Properties{table.PropertyFormatVersion: "3"})
			require.NoError(t, err)
			f.meta, f.format = meta, 3
			values := append(c.values, "null")
			var rows []string
			for i, v := range values {
				rows = append(rows, fmt.Sprintf(`{"id": %d, "v": %s}`, i, v))
			}
			data := []change{addedAt(f.dataFile("a.parquet", 0, none, rows...), 1)}
			for gone, v := range values {
				deletes := f.equalityOn(fmt.Sprintf("e%d.parquet", gone), 0, none, schema.Fields()[1:], []int{2}, `{"v": `+v+`}`)
				f.state.Sequence = 1
				state := f.commitOn(nil, "overwrite", data, []change{addedAt(deletes, 2)})
				state.SchemaID = f.meta.CurrentSchema().ID
				var want []int64
				for i := range values {
					if i != gone {
						want = append(want, int64(i))
					}
				}
				assert.Equal(t, want, f.ids(f.plan(Step{Way: WayTableScan, After: state, Columns: []string{"id"}})), "without %s", v)
				assert.Equal(t, want, f.ids(f.plan(Step{Way: WayTableScan, After: state})), "without %s", v)
			}
		})
	}
}

func TestADamagedEqualityDeleteFileIsNamed(t *testing.T) {
	f := newFixture(t, "")
	plan := f.write(manyUpserts()[:8])
	require.NoError(t, os.WriteFile(f.path("deletes-5.parquet"), []byte("PAR1"), 0o600))
	_, err := readRows(t, plan, ReadOptions{})
	var corrupt *CorruptFileError
	require.ErrorAs(t, err, &corrupt)
	assert.Equal(t, "deletes-5.parquet", filepath.Base(corrupt.Path))
	assert.Equal(t, DeleteFileKind, corrupt.Kind)
}

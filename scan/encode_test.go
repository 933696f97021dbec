// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// oneColumn is a batch whose only column, v, is the array.
func oneColumn(arr arrow.Array) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{arr}, int64(arr.Len()))
}

// encodeRows gives each row of a batch as JSON.
func encodeRows(t testing.TB, e *Encoder, rec arrow.RecordBatch, from, to int) []string {
	t.Helper()
	buf, ends, err := e.Append(nil, nil, rec, from, to)
	require.NoError(t, err)
	require.Len(t, ends, to-from)
	return splitRows(buf, ends)
}

func splitRows(buf []byte, ends []int) []string {
	rows, beg := make([]string, len(ends)), 0
	for i, end := range ends {
		rows[i], beg = string(buf[beg:end]), end
	}
	return rows
}

// encodeValues gives the JSON of each value of an array as an Iceberg type.
func encodeValues(t testing.TB, typ iceberg.Type, arr arrow.Array) []string {
	t.Helper()
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", typ)))
	require.NoError(t, err)
	rows := encodeRows(t, e, oneColumn(arr), 0, arr.Len())
	for i, row := range rows {
		require.True(t, strings.HasPrefix(row, `{"v":`) && strings.HasSuffix(row, "}"), row)
		rows[i] = row[len(`{"v":`) : len(row)-1]
	}
	return rows
}

// fromJSON builds an array of an Arrow type.
func fromJSON(t testing.TB, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(text))
	require.NoError(t, err)
	return arr
}

func twoColumns(t testing.TB) (*iceberg.Schema, arrow.RecordBatch) {
	schema := iceberg.NewSchema(0, optional(1, "id", iceberg.PrimitiveTypes.Int64), optional(2, "name", iceberg.PrimitiveTypes.String))
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil), []arrow.Array{
		fromJSON(t, arrow.PrimitiveTypes.Int64, `[1,2,3]`),
		fromJSON(t, arrow.BinaryTypes.String, `["a",null,"ccc"]`),
	}, 3)
	return schema, rec
}

func TestRowsAreCompactObjectsInSchemaOrder(t *testing.T) {
	schema, rec := twoColumns(t)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	want := []string{`{"id":1,"name":"a"}`, `{"id":2,"name":null}`, `{"id":3,"name":"ccc"}`}
	assert.Equal(t, want, encodeRows(t, e, rec, 0, 3))
	assert.Equal(t, want[1:2], encodeRows(t, e, rec, 1, 2), "a part of the batch")
	assert.Empty(t, encodeRows(t, e, rec, 2, 2))
	assert.Equal(t, want[1:], encodeRows(t, e, rec.NewSlice(1, 3), 0, 2), "a slice of the batch")

	swapped := array.NewRecordBatch(
		arrow.NewSchema([]arrow.Field{rec.Schema().Field(1), {Name: "other", Type: rec.Schema().Field(0).Type}, rec.Schema().Field(0)}, nil),
		[]arrow.Array{rec.Column(1), rec.Column(0), rec.Column(0)}, 3)
	assert.Equal(t, want, encodeRows(t, e, swapped, 0, 3), "columns are found by name")
	assert.Equal(t, want, encodeRows(t, e.Clone(), rec, 0, 3))
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	schema, rec := twoColumns(t)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	buf, ends, err := e.Append([]byte("before"), []int{6}, rec, 0, 2)
	require.NoError(t, err)
	assert.Equal(t, `before{"id":1,"name":"a"}{"id":2,"name":null}`, string(buf))
	assert.Equal(t, []int{6, 25, 45}, ends)
}

func TestNamesAreEscapedAndMayBeLong(t *testing.T) {
	for _, name := range []string{"", `a"b\c`, "tab\there", "größe", "<&>", strings.Repeat("long", 40), strings.Repeat("x", 12)} {
		arr := fromJSON(t, arrow.PrimitiveTypes.Int32, `[7]`)
		rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: name, Type: arr.DataType()}}, nil), []arrow.Array{arr}, 1)
		e, err := NewEncoder(iceberg.NewSchema(0, optional(1, name, iceberg.PrimitiveTypes.Int32)))
		require.NoError(t, err)
		assert.Equal(t, []string{"{" + marshalPlain(t, name) + ":7}"}, encodeRows(t, e, rec, 0, 1))
	}
}

func TestSchemaWithoutColumnsGivesEmptyObjects(t *testing.T) {
	_, rec := twoColumns(t)
	e, err := NewEncoder(iceberg.NewSchema(0))
	require.NoError(t, err)
	assert.Equal(t, []string{"{}", "{}", "{}"}, encodeRows(t, e, rec, 0, 3))
}

func TestBatchThatDoesNotFitIsRefusedByName(t *testing.T) {
	schema, rec := twoColumns(t)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	buf, ends := []byte("kept"), []int{4}

	missing := array.NewRecordBatch(arrow.NewSchema(rec.Schema().Fields()[:1], nil), rec.Columns()[:1], 3)
	got, gotEnds, err := e.Append(buf, ends, missing, 0, 3)
	require.EqualError(t, err, "encoding column name: the batch has no such column")
	assert.Equal(t, buf, got)
	assert.Equal(t, ends, gotEnds)

	_, _, err = e.Append(nil, nil, rec, 2, 4)
	require.EqualError(t, err, "encoding rows 2 to 4 of a batch of 3 rows")

	wrong := iceberg.NewSchema(0, optional(1, "v", &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.Date}))
	e, err = NewEncoder(wrong)
	require.NoError(t, err)
	_, _, err = e.Append(nil, nil, oneColumn(fromJSON(t, arrow.ListOf(arrow.BinaryTypes.String), `[["x"]]`)), 0, 1)
	require.EqualError(t, err, "encoding column v.element: Iceberg type date does not come as Arrow type utf8")

	_, err = NewEncoder(nil)
	require.Error(t, err)
}

func TestEncoderFollowsAChangeOfArrowTypes(t *testing.T) {
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", iceberg.PrimitiveTypes.Int64)))
	require.NoError(t, err)
	narrow := oneColumn(fromJSON(t, arrow.PrimitiveTypes.Int32, `[1,-2]`))
	wide := oneColumn(fromJSON(t, arrow.PrimitiveTypes.Int64, `[3000000000,null]`))
	for range 2 {
		assert.Equal(t, []string{`{"v":1}`, `{"v":-2}`}, encodeRows(t, e, narrow, 0, 2))
		assert.Equal(t, []string{`{"v":3000000000}`, `{"v":null}`}, encodeRows(t, e, wide, 0, 2))
	}
	_, _, err = e.Append(nil, nil, oneColumn(fromJSON(t, arrow.BinaryTypes.String, `["x"]`)), 0, 1)
	require.Error(t, err)
	assert.Equal(t, []string{`{"v":1}`, `{"v":-2}`}, encodeRows(t, e, narrow, 0, 2), "usable after a refusal")
}

// Every batch size from a cold encoder: the buffer's end is met at every place of a row.
func TestRowsDoNotDependOnTheBuffersCapacity(t *testing.T) {
	schema, rec := eventsBatch(40)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	want := encodeRows(t, e, rec, 0, 40)
	for room := range 600 {
		e := e.Clone()
		e.rowBytes = 0
		buf, ends, err := e.Append(make([]byte, 0, room), nil, rec, 0, 3)
		require.NoError(t, err)
		require.Equal(t, want[:3], splitRows(buf, ends))
	}
}

func TestHugeRowDoesNotMakeTheNextRowsReserveAsMuch(t *testing.T) {
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", iceberg.PrimitiveTypes.String)))
	require.NoError(t, err)
	huge := oneColumn(stringArray(arrow.BinaryTypes.String, strings.Repeat("x", 32<<20)))
	_, _, err = e.Append(nil, nil, huge, 0, 1)
	require.NoError(t, err)
	small := oneColumn(array.MakeArrayOfNull(memory.DefaultAllocator, arrow.BinaryTypes.String, 10_000))
	buf, _, err := e.Append(nil, nil, small, 0, 10_000)
	require.NoError(t, err)
	assert.Len(t, buf, 10_000*len(`{"v":null}`))
	assert.LessOrEqual(t, cap(buf), 2*maxReserve)
}

func TestClonesShareABatch(t *testing.T) {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	rec := oneColumn(array.NewSlice(fromJSON(t, dt, `["a","b",null,"a","c"]`), 1, 5))
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", iceberg.PrimitiveTypes.String)))
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 4 {
		clone := e.Clone()
		group.Go(func() {
			for range 20 {
				buf, _, err := clone.Append(nil, nil, rec, 0, 4)
				assert.NoError(t, err)
				assert.Equal(t, `{"v":"b"}{"v":null}{"v":"a"}{"v":"c"}`, string(buf))
			}
		})
	}
	group.Wait()
}

// Rows of random values, NULLs among them, are those that encoding/json writes, from
// whatever slice of a batch.
func TestRandomRowsAreThoseOfEncodingJSON(t *testing.T) {
	type row struct {
		ID   *int64    `json:"id"`
		Name *string   `json:"name"`
		Rate *float64  `json:"rate"`
		Tags []*string `json:"tags"`
	}
	p := iceberg.PrimitiveTypes
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "id", p.Int64), optional(2, "name", p.String), optional(3, "rate", p.Float64),
		optional(4, "tags", &iceberg.ListType{ElementID: 5, Element: p.String})))
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "rate", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	text := rapid.Ptr(rapid.String(), true)
	rows := rapid.SliceOf(rapid.Custom(func(t *rapid.T) row {
		r := row{rapid.Ptr(rapid.Int64(), true).Draw(t, "id"), text.Draw(t, "name"), rapid.Ptr(rapid.Float64(), true).Draw(t, "rate"), nil}
		if rapid.Bool().Draw(t, "has tags") {
			r.Tags = append([]*string{}, rapid.SliceOf(text).Draw(t, "tags")...)
		}
		return r
	}))
	rapid.Check(t, func(t *rapid.T) {
		all := rows.Draw(t, "rows")
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for _, r := range all {
			require.NoError(t, b.UnmarshalJSON([]byte(marshalPlain(t, r))))
		}
		rec := b.NewRecordBatch()
		from := rapid.IntRange(0, len(all)).Draw(t, "from")
		to := rapid.IntRange(from, len(all)).Draw(t, "to")
		if rapid.Bool().Draw(t, "sliced") {
			rec, all = rec.NewSlice(int64(from), int64(len(all))), all[from:]
			from, to = 0, to-from
		}
		buf, ends, err := e.Append(nil, nil, rec, from, to)
		require.NoError(t, err)
		for i, got := range splitRows(buf, ends) {
			require.Equal(t, marshalPlain(t, all[from+i]), got)
		}
	})
}

func TestNoAllocationARow(t *testing.T) {
	schema, rec := eventsBatch(2000)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	buf, ends, err := e.Append(nil, nil, rec, 0, 2000)
	require.NoError(t, err)
	allocations := testing.AllocsPerRun(10, func() {
		_, _, err = e.Append(buf[:0], ends[:0], rec, 0, 2000)
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, allocations, 4.0)
}

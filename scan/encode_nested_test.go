// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	innerStruct = &iceberg.StructType{FieldList: []iceberg.NestedField{
		optional(10, "x", iceberg.PrimitiveTypes.Float64),
		optional(11, "y", &iceberg.ListType{ElementID: 12, Element: iceberg.PrimitiveTypes.String}),
	}}
	outerStruct = &iceberg.StructType{FieldList: []iceberg.NestedField{
		optional(13, "a", iceberg.PrimitiveTypes.Int32), optional(14, "inner", innerStruct),
	}}
	outerArrow = arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "inner", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true})})
)

func TestStructs(t *testing.T) {
	want := []string{
		`{"a":1,"inner":{"x":1.5,"y":["",null,"z"]}}`,
		`{"a":null,"inner":null}`,
		`null`,
		`{"a":2,"inner":{"x":null,"y":[]}}`,
		`{"a":3,"inner":{"x":-0.25,"y":null}}`,
	}
	arr := fromJSON(t, outerArrow, "["+want[0]+","+want[1]+","+want[2]+","+want[3]+","+want[4]+"]")
	assert.Equal(t, want, encodeValues(t, outerStruct, arr))
	assert.Equal(t, want[1:4], encodeValues(t, outerStruct, array.NewSlice(arr, 1, 4)))
	assert.Equal(t, want[3:4], encodeValues(t, outerStruct, array.NewSlice(array.NewSlice(arr, 1, 5), 2, 3)))

	empty := &iceberg.StructType{}
	assert.Equal(t, []string{"{}", "null"}, encodeValues(t, empty, fromJSON(t, arrow.StructOf(), `[{},null]`)))
}

func TestStructFieldsAreFoundByName(t *testing.T) {
	arr := fromJSON(t, arrow.StructOf(
		arrow.Field{Name: "inner", Type: arrow.Null, Nullable: true},
		arrow.Field{Name: "other", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), `[{"inner":null,"other":1,"a":2}]`)
	assert.Equal(t, []string{`{"a":2,"inner":null}`}, encodeValues(t, outerStruct, arr))
}

func TestListsOfEveryLayout(t *testing.T) {
	want := []string{`[1,null,-3]`, `null`, `[]`, `[4]`, `[5,6]`}
	typ := &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.Int64}
	elem := arrow.PrimitiveTypes.Int64
	for _, dt := range []arrow.DataType{arrow.ListOf(elem), arrow.LargeListOf(elem), arrow.ListViewOf(elem), arrow.LargeListViewOf(elem)} {
		t.Run(dt.Name(), func(t *testing.T) {
			arr := fromJSON(t, dt, `[[1,null,-3],null,[],[4],[5,6]]`)
			assert.Equal(t, want, encodeValues(t, typ, arr))
			assert.Equal(t, want[1:4], encodeValues(t, typ, array.NewSlice(arr, 1, 4)))
		})
	}
	fixed := fromJSON(t, arrow.FixedSizeListOf(2, elem), `[[1,2],null,[3,null],[4,5]]`)
	assert.Equal(t, []string{`[1,2]`, `null`, `[3,null]`, `[4,5]`}, encodeValues(t, typ, fixed))
	assert.Equal(t, []string{`null`, `[3,null]`}, encodeValues(t, typ, array.NewSlice(fixed, 1, 3)))
}

func TestListsOfListsAndStructs(t *testing.T) {
	lists := &iceberg.ListType{ElementID: 2, Element: &iceberg.ListType{ElementID: 3, Element: iceberg.PrimitiveTypes.Int64}}
	want := []string{`[[1,2],null,[],[null]]`, `null`, `[]`, `[[3]]`}
	arr := fromJSON(t, arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int64)), `[[[1,2],null,[],[null]],null,[],[[3]]]`)
	assert.Equal(t, want, encodeValues(t, lists, arr))
	assert.Equal(t, want[2:], encodeValues(t, lists, array.NewSlice(arr, 2, 4)))

	structs := &iceberg.ListType{ElementID: 2, Element: outerStruct}
	wantStructs := []string{`[{"a":1,"inner":null},null]`, `[{"a":null,"inner":{"x":2,"y":["a","b"]}}]`}
	arr = fromJSON(t, arrow.ListOf(outerArrow), "["+wantStructs[0]+","+wantStructs[1]+"]")
	assert.Equal(t, wantStructs, encodeValues(t, structs, arr))
	assert.Equal(t, wantStructs[1:], encodeValues(t, structs, array.NewSlice(arr, 1, 2)))
}

func TestMapsWithStringKeysAreObjects(t *testing.T) {
	typ := &iceberg.MapType{KeyID: 2, KeyType: iceberg.PrimitiveTypes.String, ValueID: 3, ValueType: iceberg.PrimitiveTypes.String}
	b := array.NewMapBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String, arrow.BinaryTypes.String, false)
	keys, items := b.KeyBuilder().(*array.StringBuilder), b.ItemBuilder().(*array.StringBuilder)
	b.Append(true)
	keys.AppendValues([]string{"b", `q"`, "b", ""}, nil)
	items.AppendValues([]string{"1", "ü", "2", ""}, []bool{true, true, true, false})
	b.AppendNull()
	b.Append(true)
	b.Append(true)
	keys.Append("k")
	items.Append("v")
	arr := b.NewArray()
	want := []string{`{"b":"1","q\"":"ü","b":"2","":null}`, `null`, `{}`, `{"k":"v"}`}
	assert.Equal(t, want, encodeValues(t, typ, arr), "keys as they come, doubled ones too")
	assert.Equal(t, want[1:], encodeValues(t, typ, array.NewSlice(arr, 1, 4)))
}

func TestMapsWithOtherKeysAreLists(t *testing.T) {
	typ := &iceberg.MapType{KeyID: 2, KeyType: iceberg.PrimitiveTypes.Int32, ValueID: 3, ValueType: outerStruct}
	want := []string{`[{"key":-1,"value":{"a":1,"inner":null}},{"key":7,"value":null}]`, `[]`, `null`, `[{"key":8,"value":{"a":null,"inner":{"x":1e+21,"y":null}}}]`}
	arr := fromJSON(t, arrow.MapOf(arrow.PrimitiveTypes.Int32, outerArrow), "["+want[0]+","+want[1]+","+want[2]+","+want[3]+"]")
	assert.Equal(t, want, encodeValues(t, typ, arr))
	assert.Equal(t, want[2:], encodeValues(t, typ, array.NewSlice(arr, 2, 4)))
}

func TestDictionariesInListsAndMaps(t *testing.T) {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	typ := &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.String}
	want := []string{`["a","b","a"]`, `null`, `[null,"b"]`}
	arr := fromJSON(t, arrow.ListOf(dt), "["+want[0]+","+want[1]+","+want[2]+"]")
	assert.Equal(t, want, encodeValues(t, typ, arr))
	assert.Equal(t, want[2:], encodeValues(t, typ, array.NewSlice(arr, 2, 3)))
}

func TestUnknownTypeIsNull(t *testing.T) {
	assert.Equal(t, []string{"null", "null"}, encodeValues(t, iceberg.PrimitiveTypes.Unknown, array.NewNull(2)))
	assert.Equal(t, []string{"null", "null"}, encodeValues(t, outerStruct, array.NewNull(2)))
	assert.Equal(t, []string{"null"}, encodeValues(t, iceberg.PrimitiveTypes.Unknown, fromJSON(t, arrow.PrimitiveTypes.Int8, "[1]")))
}

func TestEveryColumnMayBeNull(t *testing.T) {
	schema, rec := eventsBatch(1)
	cols := make([]arrow.Array, rec.NumCols())
	for i := range cols {
		cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, rec.Column(i).DataType(), 20)
	}
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	for _, row := range encodeRows(t, e, array.NewRecordBatch(rec.Schema(), cols, 20).NewSlice(3, 20), 0, 17) {
		assert.Equal(t, `{"id":null,"ts":null,"user":null,"kind":null,"amount":null,"price":null,"flag":null,"note":null,"tags":null,"props":null}`, row)
	}
}

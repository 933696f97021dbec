// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyTypes is a batch of four rows with nested, dictionary and extension columns.
func manyTypes(t *testing.T, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	text := arrow.BinaryTypes.String
	pair := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "y", Type: arrow.ListOf(text), Nullable: true})
	var fields []arrow.Field
	for name, typ := range map[string]arrow.DataType{
		"n": arrow.PrimitiveTypes.Int64, "b": arrow.FixedWidthTypes.Boolean, "s": text,
		"dec": &arrow.Decimal128Type{Precision: 9, Scale: 2}, "fixed": &arrow.FixedSizeBinaryType{ByteWidth: 2},
		"dict": &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: text},
		"list": arrow.ListOf(pair), "map": arrow.MapOf(text, arrow.PrimitiveTypes.Int64), "st": pair,
		"uuid": extensions.NewUUIDType(),
	} {
		fields = append(fields, arrow.Field{Name: name, Type: typ, Nullable: true})
	}
	rows := `[
	  {"n": 1, "b": true, "s": "a", "dec": "1.00", "fixed": "AAE=", "dict": "p", "list": [{"x": 1, "y": ["q", null]}], "map": [{"key": "k", "value": 1}],
	   "st": {"x": 1, "y": null}, "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
	  {"n": null, "b": null, "s": null, "dec": null, "fixed": null, "dict": null, "list": null, "map": null, "st": null, "uuid": null},
	  {"n": 3, "b": false, "s": "", "dec": "-1.00", "fixed": "AgM=", "dict": "q", "list": [], "map": [], "st": {"x": null, "y": []},
	   "uuid": "00000000-0000-0000-0000-000000000000"},
	  {"n": 4, "b": true, "s": "d", "dec": "0.00", "fixed": "BAU=", "dict": "p", "list": [null, {"x": 2, "y": []}], "map": [{"key": "l", "value": null}],
	   "st": {"x": 4, "y": ["z"]}, "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e8"}]`
	batch, _, err := array.RecordFromJSON(mem, arrow.NewSchema(fields, nil), strings.NewReader(rows))
	require.NoError(t, err)
	defer batch.Release()
	variants := variantArray(t, extensions.NewDefaultVariantType(), `{"a":1}`, "", `null`, `"text"`)
	fields = append(fields, arrow.Field{Name: "variant", Type: variants.DataType(), Nullable: true}, arrow.Field{Name: "unknown", Type: arrow.Null, Nullable: true})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), slices.Concat(batch.Columns(), []arrow.Array{variants, array.NewNull(4)}), 4)
}

func TestRowsAreTakenFromBatchesOfEveryType(t *testing.T) {
	for name, keep := range map[string][]int{"none": {}, "the first": {0}, "NULLs": {1}, "some": {0, 3}, "all but NULLs": {0, 2, 3}, "all": {0, 1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			all := manyTypes(t, mem)
			defer all.Release()
			for from := range int64(2) { // offsets in the buffers
				batch := all.NewSlice(from, 4)
				rows, err := batch.MarshalJSON()
				require.NoError(t, err)
				var given, want []json.RawMessage
				require.NoError(t, json.Unmarshal(rows, &given))
				kept := map[int]bool{}
				for _, i := range keep {
					if i -= int(from); i >= 0 {
						kept[i] = true
						want = append(want, given[i])
					}
				}
				got, err := onlyRows(compute.WithAllocator(t.Context(), mem), batch, len(kept), func(row int) bool { return kept[row] })
				require.NoError(t, err)
				if len(kept) == len(given) {
					assert.Same(t, batch, got, "nothing is copied")
				}
				assert.Equal(t, int64(len(kept)), got.NumRows())
				assert.True(t, batch.Schema().Equal(got.Schema()))
				batch.Release()
				rows, err = got.MarshalJSON()
				require.NoError(t, err)
				var taken []json.RawMessage
				require.NoError(t, json.Unmarshal(rows, &taken))
				assert.Equal(t, append([]json.RawMessage{}, want...), append([]json.RawMessage{}, taken...))
				got.Release()
			}
		})
	}
}

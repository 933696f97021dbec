// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lists of variants and maps to them are refused by the column's name and type, and only where the column is read.
func TestVariantsInsideOfListsAndMapsAreRefusedByName(t *testing.T) {
	field := func(name string, of iceberg.Type) *iceberg.Schema {
		return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 2, Name: name, Type: of})
	}
	variant := iceberg.VariantType{}
	list := &iceberg.ListType{ElementID: 10, Element: variant}
	structOf := func(of iceberg.Type) iceberg.Type {
		return &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 20, Name: "inner", Type: of}}}
	}
	for name, tc := range map[string]struct {
		of   iceberg.Type
		says string
	}{
		"a variant":             {variant, ""},
		"in a struct":           {structOf(variant), ""},
		"a list":                {list, `column "tags", of type list<variant>, is not supported`},
		"a map":                 {&iceberg.MapType{KeyID: 11, KeyType: iceberg.PrimitiveTypes.String, ValueID: 12, ValueType: variant}, `column "tags", of type map<string, variant>, is not supported`},
		"a list in a struct":    {structOf(list), `column "tags", of type struct<20: inner: optional list<variant>>, is not supported`},
		"a list in a list":      {&iceberg.ListType{ElementID: 13, Element: list}, `column "tags", of type list<list<variant>>, is not supported`},
		"a list of other types": {&iceberg.ListType{ElementID: 14, Element: iceberg.PrimitiveTypes.String}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			state := f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, numbered(0, 1)...))})
			plan := f.plan(Step{Way: WaySnapshot, After: state})
			plan.Schema = field("tags", tc.of)
			err := plan.refuseUnsupported()
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			var unsupported *UnsupportedError
			require.ErrorAs(t, err, &unsupported)
			assert.EqualError(t, err, tc.says)
			plan.Tasks = nil
			assert.NoError(t, plan.refuseUnsupported(), "a step without files is nobody's trouble")
		})
	}
}

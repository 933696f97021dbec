// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// codeRows codes rows of one column that fill appends.
func codeRows(t *testing.T, typ iceberg.Type, fill func(array.Builder)) []string {
	t.Helper()
	code, err := newRowCode(iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "v", Type: typ}), nil)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, code.arrow)
	defer b.Release()
	fill(b.Field(0))
	rec := b.NewRecordBatch()
	defer rec.Release()
	coded, err := code.rows(rec)
	require.NoError(t, err)
	var rows []string
	var survivors []survivor
	start := 0
	for i := 0; i < len(coded.ends); i += 2 {
		rows = append(rows, string(coded.bytes[start:coded.ends[i]]))
		survivors = append(survivors, survivor{row: rows[len(rows)-1]})
		start = coded.ends[i+1]
	}
	back, err := code.batch(survivors)
	require.NoError(t, err)
	defer back.Release()
	again, err := code.rows(back)
	require.NoError(t, err)
	assert.Equal(t, coded.bytes, again.bytes, "rows come back as they were")
	return rows
}

func TestValuesAreEqualAsTheyMeanIt(t *testing.T) {
	t.Run("floats", func(t *testing.T) {
		rows := codeRows(t, iceberg.PrimitiveTypes.Float64, func(b array.Builder) {
			b.(*array.Float64Builder).AppendValues([]float64{
				math.NaN(), math.Float64frombits(math.Float64bits(math.NaN()) ^ 1), 0, math.Copysign(0, -1), math.Inf(1),
			}, nil)
			b.AppendNull()
		})
		assert.Equal(t, rows[0], rows[1], "NaN is NaN")
		assert.Len(t, distinct(rows), 5)
	})
	t.Run("floats of 4 bytes", func(t *testing.T) {
		rows := codeRows(t, iceberg.PrimitiveTypes.Float32, func(b array.Builder) {
			b.(*array.Float32Builder).AppendValues([]float32{
				float32(math.NaN()), math.Float32frombits(0x7fc00001), 0, float32(math.Copysign(0, -1)),
			}, nil)
		})
		assert.Equal(t, rows[0], rows[1])
		assert.Len(t, distinct(rows), 3)
	})
	text := func(typ iceberg.Type, rows ...string) []string {
		return codeRows(t, typ, func(b array.Builder) {
			for _, row := range rows {
				require.NoError(t, b.AppendValueFromString(row))
			}
		})
	}
	t.Run("lists", func(t *testing.T) {
		list := &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.String}
		assert.Len(t, distinct(text(list, `[]`, `[""]`, `["",""]`, `["a"]`, `[null]`, `["a","b"]`, `["ab"]`, `["b","a"]`)), 8)
	})
	t.Run("maps have no order", func(t *testing.T) {
		m := &iceberg.MapType{KeyID: 2, KeyType: iceberg.PrimitiveTypes.String, ValueID: 3, ValueType: iceberg.PrimitiveTypes.Int32}
		rows := text(m, `[{"key":"a","value":1},{"key":"b","value":2}]`, `[{"key":"b","value":2},{"key":"a","value":1}]`,
			`[{"key":"a","value":2},{"key":"b","value":1}]`, `[]`)
		assert.Equal(t, rows[0], rows[1])
		assert.Len(t, distinct(rows), 3)
	})
	t.Run("variants", func(t *testing.T) {
		rows := codeRows(t, iceberg.VariantType{}, func(b array.Builder) {
			for _, text := range []string{`{"a":1,"b":[2,"x",null]}`, `{"b":[2,"x",null],"a":1}`, `{"a":1}`, `[]`, `"1"`, `1`, `1.5`} {
				v, err := variant.ParseJSON(text, false)
				require.NoError(t, err)
				b.(*extensions.VariantBuilder).Append(v)
			}
			wide, err := variant.New(variant.EmptyMetadataBytes[:], []byte{6 << 2, 1, 0, 0, 0, 0, 0, 0, 0}) // 1 as an int64
			require.NoError(t, err)
			b.(*extensions.VariantBuilder).Append(wide)
			b.AppendNull()
		})
		assert.Equal(t, rows[0], rows[1], "fields have no order")
		assert.Equal(t, rows[5], rows[7], "integers have no width")
		assert.Len(t, distinct(rows), 7)
	})
}

func distinct(rows []string) map[string]bool {
	set := map[string]bool{}
	for _, r := range rows {
		set[r] = true
	}
	return set
}

func TestLineageTakesNoPartInComparisons(t *testing.T) {
	code, err := newRowCode(iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "v", Type: iceberg.PrimitiveTypes.Int32}, iceberg.RowID()), nil)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, code.arrow)
	defer b.Release()
	b.Field(0).(*array.Int32Builder).AppendValues([]int32{7, 7}, nil)
	b.Field(1).(*array.Int64Builder).AppendValues([]int64{1, 2}, nil)
	rec := b.NewRecordBatch()
	defer rec.Release()
	coded, err := code.rows(rec)
	require.NoError(t, err)
	first, second := coded.bytes[:coded.ends[0]], coded.bytes[coded.ends[1]:coded.ends[2]]
	assert.Equal(t, first, second)
	back, err := code.batch([]survivor{{row: string(second), carried: string(coded.bytes[coded.ends[2]:])}})
	require.NoError(t, err)
	defer back.Release()
	assert.Equal(t, int64(2), back.Column(1).(*array.Int64).Value(0), "it is carried")
}

// Whatever the memory, and however the sides take turns, the last rows of the larger side remain.
func TestSubtractionDependsOnNothingButTheRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 40)
		sides := [][]int{names.Draw(r, "deletes"), names.Draw(r, "inserts")}
		keyed := rapid.Bool().Draw(r, "keyed")
		want := map[string][]int{} // ordinals that remain
		for name := range 7 {
			var at [2][]int
			for side := range sides {
				for i, n := range sides[side] {
					if n == name {
						at[side] = append(at[side], i)
					}
				}
			}
			cancelled := min(len(at[0]), len(at[1]))
			for side := range at {
				want[fmt.Sprint(side)] = append(want[fmt.Sprint(side)], at[side][cancelled:]...)
			}
		}
		spill := newSpillFolder(t.TempDir())
		defer func() { require.NoError(r, spill.remove()) }()
		m := newMultiset(keyed, int64(rapid.IntRange(1, 5000).Draw(r, "memory")), spill)
		next := [2]int{}
		for next[0] < len(sides[0]) || next[1] < len(sides[1]) {
			side := rapid.IntRange(0, 1).Draw(r, "turn")
			if next[side] == len(sides[side]) {
				side = 1 - side
			}
			n := sides[side][next[side]]
			key := fmt.Sprint(n % 3)
			row := append([]byte{byte(len(key))}, key+strings.Repeat("x", n)...)
			require.NoError(r, m.add(order(side)*insertSide+order(next[side]), row, []byte{byte(side)}))
			next[side]++
		}
		got := map[string][]int{}
		var previous order
		visit := func(g cluster) {
			require.GreaterOrEqual(r, g[0].order, previous)
			previous = g[0].order
			for _, s := range g {
				side := 0
				if s.order.isInsert() {
					side = 1
				}
				require.Equal(r, string([]byte{byte(side)}), s.carried)
				require.Equal(r, sides[side][s.order&^insertSide], strings.Count(s.row, "x"))
				got[fmt.Sprint(side)] = append(got[fmt.Sprint(side)], int(s.order&^insertSide))
			}
		}
		if m.spilled() {
			runs, err := spill.runs()
			require.NoError(r, err)
			require.NoError(r, m.settle(t.Context(), runs))
			for g, err := range runs.merge(1) {
				require.NoError(r, err)
				visit(g)
			}
		} else {
			for _, g := range m.groups() {
				visit(g)
			}
		}
		for _, side := range []string{"0", "1"} {
			slices.Sort(want[side])
			slices.Sort(got[side])
			require.ElementsMatch(r, want[side], got[side])
		}
	})
}

func BenchmarkCopyOnWrite(b *testing.B) {
	f := newFixture(b, "")
	step := f.rewritten(1_000_000, changedRow)
	plan := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for batch, err := range plan.Read(b.Context(), ReadOptions{SpillDir: "/nowhere"}) {
			require.NoError(b, err)
			n += batch.Rows
		}
		require.Equal(b, 2, n)
	}
	b.ReportMetric(2_000_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

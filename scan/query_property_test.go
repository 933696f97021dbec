// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	stdmaps "maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sqlSchema is the schema of the random tables: a column of each type that a query may name.
func sqlSchema() *iceberg.Schema {
	f := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(1,
		f(1, "id", p.Int64), f(2, "flag", p.Bool), f(3, "i", p.Int32), f(4, "n", p.Int64), f(5, "f", p.Float32), f(6, "d", p.Float64),
		f(7, "price", iceberg.DecimalTypeOf(9, 2)), f(8, "huge", iceberg.DecimalTypeOf(38, 4)), f(9, "day", p.Date), f(10, "t", p.Time),
		f(11, "ts", p.Timestamp), f(12, "tz", p.TimestampTz), f(13, "ns", p.TimestampNs), f(14, "s", p.String), f(15, "u", p.UUID),
		f(16, "bin", p.Binary), f(17, "fix", iceberg.FixedTypeOf(2)),
		f(18, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{f(19, "x", p.Int64), f(20, "in.ner", p.String)}}),
		f(21, "list", &iceberg.ListType{ElementID: 22, Element: p.Int64}), f(23, "added", p.Int64))
}

// maybeNull draws NULL now and then.
func maybeNull(draw func(*rapid.T) sqlCell) func(*rapid.T) sqlCell {
	return func(t *rapid.T) sqlCell {
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			return nil
		}
		return draw(t)
	}
}

func oneOf[T any](values ...T) func(*rapid.T) sqlCell {
	return maybeNull(func(t *rapid.T) sqlCell { return rapid.SampledFrom(values).Draw(t, "value") })
}

func bigInt(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic(text)
	}
	return n
}

// sqlColumns are the columns of sqlSchema but for id. The values are few, so that expressions meet them, and edges.
func sqlColumns() []sqlColumn {
	const day, second = 86_400_000_000_000, 1_000_000_000
	whole := oneOf[int64](-3, -2, -1, 0, 1, 2, 3, math.MinInt32, math.MaxInt32)
	long := oneOf[int64](-3, -2, -1, 0, 1, 2, 3, math.MinInt64, math.MaxInt64, math.MaxInt32+1)
	nines := strings.Repeat("9", 38)
	texts := oneOf("", "a", "ab", "abc", "b", "ä", "a%", "a_b", "it's", "\U0001F600", "\uFFFD", "aaaaaaaaaaaaaaaaaaaaaaaa")
	micros := oneOf[int64](0, 1, -1, 86_399_999_999, 86_400_000_000, -86_400_000_000, 1_709_209_815_123_456, -62_000_000_000_000_000)
	column := func(name string, class sqlClass, unit int64, draw func(*rapid.T) sqlCell) sqlColumn {
		return sqlColumn{name: name, quoted: name, class: class, unit: unit, draw: draw}
	}
	inner := column("st.in.ner", sqlText, 0, texts)
	inner.quoted = "st.\"in.ner\""
	upper := column("s", sqlText, 0, texts)
	upper.quoted = "`s`"
	there := oneOf(true)
	return []sqlColumn{
		column("flag", sqlBoolean, 0, oneOf(true, false)),
		column("i", sqlWhole, 0, whole), column("n", sqlWhole, 0, long),
		column("f", sqlFloat, 0, maybeNull(func(t *rapid.T) sqlCell {
			return float64(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 0.1, -0.1, 1, 2.5, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, math.SmallestNonzeroFloat32}).Draw(t, "value"))
		})),
		column("d", sqlDouble, 0, oneOf(0, math.Copysign(0, -1), 0.1, -0.1, 1, 2.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-3)),
		column("price", sqlDecimal, 100, maybeNull(func(t *rapid.T) sqlCell {
			return big.NewInt(rapid.SampledFrom([]int64{0, 1, -1, 50, 100, 250, -250, 999_999_999, -999_999_999}).Draw(t, "value"))
		})),
		column("huge", sqlDecimal, 10_000, maybeNull(func(t *rapid.T) sqlCell {
			return bigInt(rapid.SampledFrom([]string{"0", "1", "-1", "10000", "25000", nines, "-" + nines}).Draw(t, "value"))
		})),
		column("day", sqlDate, day, oneOf[int64](0, 1, -1, 30, 31, 365, -365, 19782, -700_000)),
		column("t", sqlTime, 1000, oneOf[int64](0, 1, 45_000_000_000, 45_000_500_000, 86_399_999_999)),
		column("ts", sqlTimestamp, 1000, micros), column("tz", sqlZoned, 1000, micros),
		column("ns", sqlTimestamp, 1, oneOf[int64](0, 1, -1, second, 1_709_209_815_123_456_789, math.MinInt64, math.MaxInt64)),
		upper,
		column("u", sqlUUID, 0, oneOf(string(make([]byte, 16)), "0123456789abcdef", "\xff123456789abcdef")),
		column("bin", sqlBytes, 0, oneOf("", "\x00", "\x00\xff", "ab", "\xff\xff")),
		column("fix", sqlBytes, 0, oneOf("\x00\x00", "ab", "\xff\xff", "\x7f\x80")),
		column("st", sqlNested, 0, there), column("st.x", sqlWhole, 0, whole), inner, column("list", sqlNested, 0, there),
		column("added", sqlWhole, 0, long),
	}
}

// sqlPartitions are the partition fields of the table's specs, one each from spec 1 on.
var sqlPartitions = []struct {
	column    string
	transform iceberg.Transform
}{
	{"s", iceberg.IdentityTransform{}},
	{"n", iceberg.IdentityTransform{}},
	{"day", iceberg.IdentityTransform{}},
	{"flag", iceberg.IdentityTransform{}},
	{"d", iceberg.IdentityTransform{}},
	{"n", iceberg.BucketTransform{NumBuckets: 4}},
	{"s", iceberg.BucketTransform{NumBuckets: 3}},
	{"day", iceberg.BucketTransform{NumBuckets: 3}},
	{"ts", iceberg.BucketTransform{NumBuckets: 5}},
	{"n", iceberg.TruncateTransform{Width: 10}},
	{"i", iceberg.TruncateTransform{Width: 2}},
	{"s", iceberg.TruncateTransform{Width: 1}},
	{"day", iceberg.YearTransform{}},
	{"day", iceberg.MonthTransform{}},
	{"ts", iceberg.DayTransform{}},
	{"tz", iceberg.HourTransform{}},
	{"ts", iceberg.YearTransform{}},
}

// sqlTable is a random table: a fixture, and its rows by id.
type sqlTable struct {
	*fixture
	columns []sqlColumn
	rows    map[int64]sqlRow
	next    int64 // id

	partitioned []string // columns
}

func newSQLTable(t testing.TB, dir string) *sqlTable {
	t.Helper()
	schema := sqlSchema()
	fields, err := json.Marshal(schema)
	require.NoError(t, err)
	specs := []string{`{"spec-id": 0, "fields": []}`}
	for i, p := range sqlPartitions {
		source, ok := schema.FindFieldByName(p.column)
		require.True(t, ok, p.column)
		specs = append(specs, fmt.Sprintf(`{"spec-id": %d, "fields": [{"source-id": %d, "field-id": %d, "name": "p%d", "transform": %q}]}`, i+1, source.ID, 1000+i, i, p.transform))
	}
	meta, err := table.ParseMetadataString(fmt.Sprintf(`{
	  "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c2", "location": %q, "next-row-id": 0,
	  "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 23, "current-schema-id": 1, "last-partition-id": 1999,
	  "schemas": [%s], "default-spec-id": 0, "partition-specs": [%s],
	  "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}}`, dir, fields, strings.Join(specs, ",")))
	require.NoError(t, err)
	f := newFixture(t, "")
	f.dir, f.meta = dir, meta
	return &sqlTable{fixture: f, columns: sqlColumns(), rows: map[int64]sqlRow{}}
}

func (s *sqlTable) column(name string) sqlColumn {
	return s.columns[slices.IndexFunc(s.columns, func(c sqlColumn) bool { return c.name == name })]
}

// sqlFile is how a random file is written.
type sqlFile struct {
	number    int
	spec      int
	partition map[int]any
	old       bool     // it was written before column added, when n was an int and d a float
	measured  bool     // its manifest entry has metrics
	lacking   []string // columns
}

// addFile writes a random data file and returns the entries that add it and its deletes.
func (s *sqlTable) addFile(t *rapid.T, number int) (data, deletes []change) {
	file := sqlFile{number: number, spec: rapid.IntRange(0, len(sqlPartitions)).Draw(t, "spec"), old: rapid.Bool().Draw(t, "old"), measured: rapid.Bool().Draw(t, "measured")}
	rows := s.drawRows(t, &file)
	if file.spec > 0 {
		p := sqlPartitions[file.spec-1]
		if _, ok := p.transform.(iceberg.IdentityTransform); ok && rapid.Bool().Draw(t, "without") {
			file.lacking = append(file.lacking, p.column)
		}
	}
	name := fmt.Sprintf("%d.parquet", number)
	builder, err := iceberg.NewDataFileBuilder(s.spec(file.spec), iceberg.EntryContentData, s.path(name), iceberg.ParquetFile, file.partition, nil, nil, int64(len(rows)), s.write(t, name, file, rows))
	require.NoError(t, err)
	if file.measured {
		s.measure(t, builder, file, rows)
	}
	data = []change{added(builder.Build())}
	if rapid.IntRange(0, 2).Draw(t, "deletes") == 0 {
		var positions []int64
		for i := range rows {
			if rapid.Bool().Draw(t, "deleted") {
				positions = append(positions, int64(i))
			}
		}
		if len(positions) > 0 {
			deletes = []change{added(s.positionDeletes(fmt.Sprintf("%d-deletes.parquet", number), file.spec, file.partition, name, positions...))}
		}
	}
	return data, deletes
}

// drawRows draws rows that share the file's partition.
func (s *sqlTable) drawRows(t *rapid.T, file *sqlFile) []sqlRow {
	if file.old {
		file.lacking = append(file.lacking, "added")
	}
	var rows []sqlRow
	for range rapid.IntRange(1, 7).Draw(t, "rows") {
		row := sqlRow{"id": s.next}
		s.rows[s.next] = row
		s.next++
		for _, c := range s.columns {
			row[c.name] = narrowed(c.name, c.draw(t), file.old)
		}
		if file.old {
			row["added"] = nil
		}
		if row["st"] == nil {
			row["st.x"], row["st.in.ner"] = nil, nil
		}
		rows = append(rows, row)
	}
	if file.spec == 0 {
		return rows
	}
	p := sqlPartitions[file.spec-1]
	s.partitioned = append(s.partitioned, p.column)
	first := s.transformed(t, file.spec, rows[0][p.column])
	for _, row := range rows[1:] {
		if other := s.transformed(t, file.spec, row[p.column]); other != first {
			row[p.column] = rows[0][p.column]
		}
	}
	file.partition = map[int]any{1000 + file.spec - 1: first}
	return rows
}

// narrowed is a value that a column could hold before its type was widened.
func narrowed(name string, v sqlCell, old bool) sqlCell {
	if v == nil || !old {
		return v
	}
	switch name {
	case "n":
		return int64(int32(v.(int64)))
	case "d":
		return float64(float32(v.(float64)))
	}
	return v
}

// transformed is a row's partition value, by iceberg-go.
func (s *sqlTable) transformed(t *rapid.T, spec int, v sqlCell) any {
	if v == nil {
		return nil
	}
	p := sqlPartitions[spec-1]
	out := p.transform.Apply(iceberg.Optional[iceberg.Literal]{Val: s.literalOf(p.column, v), Valid: true})
	require.True(t, out.Valid)
	return out.Val.Any()
}

// literalOf is a sqlCell as iceberg-go's literal of the column's type.
func (s *sqlTable) literalOf(name string, v sqlCell) iceberg.Literal {
	field, _ := s.meta.CurrentSchema().FindFieldByName(name)
	switch t := field.Type.(type) {
	case iceberg.BooleanType:
		return iceberg.NewLiteral(v.(bool))
	case iceberg.Int32Type:
		return iceberg.NewLiteral(int32(v.(int64)))
	case iceberg.Int64Type:
		return iceberg.NewLiteral(v.(int64))
	case iceberg.Float32Type:
		return iceberg.NewLiteral(float32(v.(float64)))
	case iceberg.Float64Type:
		return iceberg.NewLiteral(v.(float64))
	case iceberg.DecimalType:
		return iceberg.NewLiteral(iceberg.Decimal{Val: decimal128.FromBigInt(v.(*big.Int)), Scale: t.Scale()})
	case iceberg.DateType:
		return iceberg.NewLiteral(iceberg.Date(v.(int64)))
	case iceberg.TimeType:
		return iceberg.NewLiteral(iceberg.Time(v.(int64)))
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.NewLiteral(iceberg.Timestamp(v.(int64)))
	case iceberg.TimestampNsType:
		return iceberg.NewLiteral(iceberg.TimestampNano(v.(int64)))
	case iceberg.UUIDType:
		return iceberg.NewLiteral(uuid.UUID([]byte(v.(string))))
	case iceberg.BinaryType, iceberg.FixedType:
		return iceberg.NewLiteral([]byte(v.(string)))
	}
	return iceberg.NewLiteral(v.(string))
}

// measure gives a manifest entry the metrics of its columns, as writers do: bounds leave NULL and NaN out, and texts are
// cut to a few characters.
func (s *sqlTable) measure(t *rapid.T, b *iceberg.DataFileBuilder, file sqlFile, rows []sqlRow) {
	values, nulls, nans := map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	cut := rapid.Bool().Draw(t, "cut texts")
	withNaNs := rapid.Bool().Draw(t, "count NaNs")
	for _, c := range s.columns {
		field, ok := s.meta.CurrentSchema().FindFieldByName(c.name)
		require.True(t, ok, c.name)
		if c.class == sqlNested || slices.Contains(file.lacking, c.name) {
			continue
		}
		values[field.ID], nulls[field.ID] = int64(len(rows)), 0
		var low, high sqlCell
		for _, row := range rows {
			v := row[c.name]
			f, isFloat := v.(float64)
			switch {
			case v == nil:
				nulls[field.ID]++
			case isFloat && math.IsNaN(f):
				nans[field.ID]++
			default:
				if low == nil || lessCell(v, low) {
					low = v
				}
				if high == nil || lessCell(high, v) {
					high = v
				}
			}
		}
		if low != nil {
			lower[field.ID], upper[field.ID] = s.bound(t, c, low, file.old, -1, cut), s.bound(t, c, high, file.old, 1, cut)
			if upper[field.ID] == nil {
				delete(upper, field.ID)
			}
		}
	}
	b.ValueCounts(values).NullValueCounts(nulls).LowerBoundValues(lower).UpperBoundValues(upper)
	if withNaNs {
		b.NaNValueCounts(nans)
	}
}

func lessCell(a, b sqlCell) bool {
	switch a := a.(type) {
	case bool:
		return !a && b.(bool)
	case int64:
		return a < b.(int64)
	case *big.Int:
		return a.Cmp(b.(*big.Int)) < 0
	case float64:
		return a < b.(float64)
	}
	return a.(string) < b.(string)
}

// bound serializes a bound; nil where a cut upper bound has no successor.
func (s *sqlTable) bound(t *rapid.T, c sqlColumn, v sqlCell, old bool, side int, cut bool) []byte {
	l := s.literalOf(c.name, v)
	switch {
	case old && c.name == "n":
		l = iceberg.NewLiteral(int32(v.(int64)))
	case old && c.name == "d":
		l = iceberg.NewLiteral(float32(v.(float64)))
	case c.class == sqlText && cut:
		runes := []rune(v.(string))
		if len(runes) > 1 {
			if runes = runes[:1]; side > 0 {
				runes[0]++
			}
			l = iceberg.NewLiteral(string(runes))
		}
	}
	raw, err := l.(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
	require.NoError(t, err)
	return raw
}

// write writes rows as a Parquet file and returns its size.
func (s *sqlTable) write(t *rapid.T, name string, how sqlFile, rows []sqlRow) int64 {
	var fields []iceberg.NestedField
	for _, f := range s.meta.CurrentSchema().Fields() {
		switch {
		case slices.Contains(how.lacking, f.Name):
			continue
		case how.old && f.Name == "n":
			f.Type = iceberg.PrimitiveTypes.Int32
		case how.old && f.Name == "d":
			f.Type = iceberg.PrimitiveTypes.Float32
		}
		fields = append(fields, f)
	}
	schema := arrowSchema(s.TB, iceberg.NewSchema(1, fields...))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, row := range rows {
		for i, f := range schema.Fields() {
			appendCell(b.Field(i), row, f.Name)
		}
	}
	record := b.NewRecordBatch()
	defer record.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(
		parquet.WithMaxRowGroupLength(rapid.SampledFrom([]int64{2, 100}).Draw(t, "row group")),
		parquet.WithStats(rapid.Bool().Draw(t, "statistics")), parquet.WithDictionaryDefault(rapid.Bool().Draw(t, "dictionary"))), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(record))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(s.path(name), buf.Bytes(), 0o600))
	return int64(buf.Len())
}

func appendCell(b array.Builder, row sqlRow, name string) {
	v := row[name]
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v.(*big.Int)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int64)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(v.(string)))
	case *extensions.UUIDBuilder:
		b.Append(uuid.UUID([]byte(v.(string))))
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			appendCell(b.FieldBuilder(i), row, name+"."+f.Name)
		}
	case *array.ListBuilder:
		b.Append(true)
	default:
		panic(fmt.Sprintf("no value for %T", b))
	}
}

// messages are the bodies of a plan's rows in one format, by id, in order.
func (s *sqlTable) messages(t *rapid.T, plan *Plan, opts ReadOptions) (ids []int64, bodies []string) {
	for batch, err := range plan.Read(s.Context(), opts) {
		require.NoError(t, err)
		for _, m := range batch.Messages {
			for line := range strings.SplitSeq(strings.TrimSuffix(string(m), "\n"), "\n") {
				var row struct{ ID int64 }
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				ids, bodies = append(ids, row.ID), append(bodies, line)
			}
		}
	}
	return ids, bodies
}

func drawSQLTable(t *rapid.T, tb testing.TB) (*sqlTable, Step) {
	dir, err := os.MkdirTemp(tb.TempDir(), "table")
	require.NoError(t, err)
	s := newSQLTable(tb, dir)
	var groups [][]change
	for n := range rapid.IntRange(1, 4).Draw(t, "files") {
		data, deletes := s.addFile(t, n)
		groups = append(groups, data)
		if deletes != nil {
			groups = append(groups, deletes)
		}
	}
	return s, Step{Way: WayTableScan, After: s.commit("append", groups...)}
}

func queryPassesWhatSQLSays(t *rapid.T, tb testing.TB) {
	s, step := drawSQLTable(t, tb)
	ids, bodies := s.messages(t, s.plan(step), ReadOptions{})
	columns := s.columns
	for range 10 { // where planning has most to decide
		for _, name := range s.partitioned {
			columns = append(columns, s.column(name))
		}
	}
	for range 6 {
		e := drawSQL(t, columns, 3)
		var err error
		step.Query, err = ParseQuery(e.text)
		require.NoError(t, err, e.text)
		plan := s.plan(step)
		want := []string{}
		for i, id := range ids {
			if e.of(s.rows[id]) == sqlTrue {
				want = append(want, bodies[i])
			}
		}
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		opts := ReadOptions{From: int64(from), BatchRows: rapid.SampledFrom([]int{1, 2, 0}).Draw(t, "batch rows"), Format: rapid.SampledFrom([]Format{FormatJSON, FormatNDJSON}).Draw(t, "format")}
		_, got := s.messages(t, plan, opts)
		require.Equal(t, want[from:], append([]string{}, got...), e.text)
	}
}

// The rows of a scan with a query are those of a scan without one for which the query is true.
func TestAQueryPassesTheRowsThatSQLSaysItDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { queryPassesWhatSQLSays(rt, t) })
}

func FuzzAQueryPassesTheRowsThatSQLSaysItDoes(f *testing.F) {
	f.Fuzz(func(t *testing.T, input []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { queryPassesWhatSQLSays(rt, t) })(t, input)
	})
}

// opened counts what a plan's reading opens, by base name.
func (f *fixture) openedBy(step func()) map[string]int {
	f.Helper()
	f.fs.mu.Lock()
	f.fs.opened = nil
	f.fs.mu.Unlock()
	step()
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	out := map[string]int{}
	for _, name := range f.fs.opened {
		out[name]++
	}
	return out
}

// A table of three partitions with two files each, whose ids lie apart: what a query opens of its manifests and files.
func TestAQueryOpensOnlyWhatMayHoldItsRows(t *testing.T) {
	f := newFixture(t, "")
	bounded := func(cat string, low, high int64) change {
		name := fmt.Sprintf("%s%d.parquet", cat, low)
		var rows []string
		for id := low; id <= high; id++ {
			rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "name", "cat": %q}`, id, cat))
		}
		size := f.writeParquet(name, arrowSchema(t, f.meta.CurrentSchema()), rows)
		b, err := iceberg.NewDataFileBuilder(f.spec(1), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, map[int]any{1000: cat}, nil, nil, int64(len(rows)), size)
		require.NoError(t, err)
		raw := func(v int64) []byte {
			out, err := iceberg.Int64Literal(v).MarshalBinary()
			require.NoError(t, err)
			return out
		}
		b.LowerBoundValues(map[int][]byte{1: raw(low)}).UpperBoundValues(map[int][]byte{1: raw(high)}).SplitOffsets([]int64{4})
		return added(b.Build())
	}
	state := f.commit("append",
		[]change{bounded("a", 0, 9), bounded("a", 10, 19)},
		[]change{bounded("b", 20, 29), bounded("b", 30, 39)},
		[]change{bounded("c", 40, 49), bounded("c", 50, 59)})
	tests := []struct {
		query string
		rows  int
		opens []string // manifests by their number, files
	}{
		{"", 60, []string{"m-1001-0.avro", "m-1001-1.avro", "m-1001-2.avro", "a0.parquet", "a10.parquet", "b20.parquet", "b30.parquet", "c40.parquet", "c50.parquet"}},
		{"cat = 'b'", 20, []string{"m-1001-1.avro", "b20.parquet", "b30.parquet"}},
		{"cat = 'b' AND id < 25", 5, []string{"m-1001-1.avro", "b20.parquet"}},
		{"id = 55", 1, []string{"m-1001-0.avro", "m-1001-1.avro", "m-1001-2.avro", "c50.parquet"}},
		{"NOT (cat <> 'c') AND id IN (41, 12)", 1, []string{"m-1001-2.avro", "c40.parquet"}},
		{"cat = 'a' OR id > 50", 29, []string{"m-1001-0.avro", "m-1001-1.avro", "m-1001-2.avro", "a0.parquet", "a10.parquet", "c50.parquet"}},
		{"cat > 'x'", 0, []string{}},
		{"FALSE", 0, []string{}},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			step := Step{Way: WayTableScan, After: state}
			if test.query != "" {
				var err error
				step.Query, err = ParseQuery(test.query)
				require.NoError(t, err)
			}
			var ids []int64
			opened := f.openedBy(func() { ids = f.ids(f.plan(step)) })
			require.Len(t, ids, test.rows)
			delete(opened, "snap-1001.avro")
			require.ElementsMatch(t, test.opens, slices.Collect(stdmaps.Keys(opened)))
		})
	}
}

// One file of 20 row groups, of which the footer says what ids they hold.
func TestAQueryReadsOnlyTheRowGroupsThatMayHoldItsRows(t *testing.T) {
	const groups, rows = 20, 2000
	f := withSchema(t, textSchema())
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]string, groups*rows)
	for i := range values {
		values[i] = fmt.Sprintf("%x%x%x%x", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
	}
	file := f.texts("a.parquet", compress.Codecs.Zstd, rows, values)
	require.Greater(t, file.file.FileSizeBytes(), int64(aheadLargest), "it is not fetched whole")
	state := f.commit("append", []change{file})
	state.SchemaID = f.meta.CurrentSchema().ID
	read := func(query string) (bytes int64, ids []int64) {
		step := Step{Way: WayTableScan, After: state}
		if query != "" {
			var err error
			step.Query, err = ParseQuery(query)
			require.NoError(t, err)
		}
		plan := f.plan(step)
		counted := &countedFiles{IO: f.fs}
		plan.source.FS = counted
		ids = f.ids(plan)
		return counted.bytes.Load(), ids
	}
	all, ids := read("")
	require.Len(t, ids, groups*rows)
	some, ids := read("id BETWEEN 6001 AND 6010")
	require.Len(t, ids, 10)
	require.Less(t, some, all/5, "of %d bytes", all)
	two, ids := read("id = 1 OR id >= 39999")
	require.Equal(t, []int64{1, 39999}, ids)
	require.Less(t, two, all/3)
	nothing, ids := read("id > 40000")
	require.Empty(t, ids)
	require.Less(t, nothing, all/20, "its footer alone")
}

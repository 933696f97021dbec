// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"errors"
	"fmt"
	stdmaps "maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// generalRows reads a task through iceberg-go alone.
func generalRows(t require.TestingT, tb testing.TB, plan *Plan, task Task) ([]string, error) {
	encoder, err := NewEncoder(plan.Schema)
	require.NoError(t, err)
	var rows []string
	for batch, err := range plan.decode(tb.Context(), task, plan.columns, 1000) {
		if err != nil {
			return rows, err
		}
		buf, ends, err := encoder.Append(nil, nil, batch, 0, int(batch.NumRows()))
		batch.Release()
		if err != nil {
			return rows, err
		}
		rows = append(rows, splitRows(buf, ends)...)
	}
	return rows, nil
}

// directRows reads a task without iceberg-go, all but the first skip rows.
func directRows(tb testing.TB, plan *Plan, task Task, skip int64, opts ReadOptions) (rows []string, done int64, err error) {
	opts = opts.withDefaults()
	w := &worker{plan: plan, opts: opts, positions: plan.positions()}
	pack := &rowPacker{limits: opts, closing: "}", put: func(p piece) error {
		for _, m := range p.messages {
			rows = append(rows, string(m))
		}
		return nil
	}}
	stretches, err := w.openDirect(tb.Context(), task, skip)
	for _, s := range stretches {
		if err == nil {
			done, err = w.readDirect(s, pack)
			done += s.before
		}
		s.file.leave()
	}
	if err == nil {
		err = pack.flush()
	}
	return rows, done, err
}

func TestDirectRowsAreThoseOfTheGeneralDecoderOnTheCorpus(t *testing.T) {
	direct, indirect := 0, 0
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		seen := map[string]bool{} // most files are in many states
		const enough = 30
		for _, id := range slices.Sorted(stdmaps.Keys(c.states))[:min(enough, len(c.states))] {
			state := c.states[id]
			plan, err := PlanStep(t.Context(), c.source(state), Step{Way: WayTableScan, After: state})
			if err != nil {
				continue // refused, which other tests look at
			}
			for _, task := range plan.Tasks {
				key := fmt.Sprint(task.File.Path(), " ", plan.Schema.ID)
				if seen[key] || !task.readsDirectly(ReadOptions{}) {
					continue
				}
				seen[key] = true
				got, done, err := directRows(t, plan, task, 0, ReadOptions{})
				if errors.Is(err, errIndirect) {
					assert.Zero(t, done, "rows before giving up")
					indirect++
					continue
				}
				direct++
				require.NoError(t, err)
				want, err := generalRows(t, t, plan, task)
				require.NoError(t, err)
				require.Equal(t, want, got, task.File.Path())
			}
		}
	})
	t.Logf("%d files were read directly, %d were not", direct, indirect)
	assert.Greater(t, direct, 4*indirect, "most files are plain cases")
}

// writerForm is how a random file is written.
type writerForm struct {
	dictionary, v2, small bool
	codec                 compress.Compression
	groupRows             int64
}

func (w writerForm) properties() *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithDictionaryDefault(w.dictionary), parquet.WithCompression(w.codec), parquet.WithMaxRowGroupLength(w.groupRows),
		parquet.WithBatchSize(17),
	}
	if w.v2 {
		opts = append(opts, parquet.WithDataPageVersion(parquet.DataPageV2))
	}
	if w.small {
		opts = append(opts, parquet.WithDataPageSize(200), parquet.WithDictionaryPageSizeLimit(400))
	}
	return parquet.NewWriterProperties(opts...)
}

// plainTypes are the primitive types that are read directly.
var plainTypes = []iceberg.Type{
	iceberg.BooleanType{},
	iceberg.Int32Type{},
	iceberg.Int64Type{},
	iceberg.Float32Type{},
	iceberg.Float64Type{},
	iceberg.DateType{},
	iceberg.TimeType{},
	iceberg.TimestampType{},
	iceberg.TimestampTzType{},
	iceberg.StringType{},
	iceberg.BinaryType{},
	iceberg.UUIDType{},
	iceberg.FixedTypeOf(5), iceberg.DecimalTypeOf(4, 2), iceberg.DecimalTypeOf(12, 2), iceberg.DecimalTypeOf(30, 9),
}

// randomType draws a type that is read directly; ids come from next.
func randomType(t *rapid.T, depth int, next func() int) iceberg.Type {
	kind := rapid.SampledFrom([]string{"plain", "plain", "struct", "list", "map"}).Draw(t, "kind")
	if depth == 0 {
		kind = "plain"
	}
	switch kind {
	case "struct":
		var fields []iceberg.NestedField
		for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
			fields = append(fields, randomField(t, fmt.Sprintf("f%d", i), depth-1, next))
		}
		return &iceberg.StructType{FieldList: fields}
	case "list":
		return &iceberg.ListType{ElementID: next(), Element: randomType(t, depth-1, next), ElementRequired: rapid.Bool().Draw(t, "required")}
	case "map":
		return &iceberg.MapType{
			KeyID: next(), KeyType: rapid.SampledFrom([]iceberg.Type{iceberg.StringType{}, iceberg.Int32Type{}}).Draw(t, "key"),
			ValueID: next(), ValueType: randomType(t, depth-1, next), ValueRequired: rapid.Bool().Draw(t, "required"),
		}
	}
	return rapid.SampledFrom(plainTypes).Draw(t, "type")
}

func randomField(t *rapid.T, name string, depth int, next func() int) iceberg.NestedField {
	return iceberg.NestedField{ID: next(), Name: name, Type: randomType(t, depth, next), Required: rapid.Bool().Draw(t, "required")}
}

// appendRandom fills one value in. Few values are distinct, so that dictionaries are used.
func appendRandom(rng *rand.Rand, b array.Builder, nullable bool) {
	if nullable && rng.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	few := rng.Int64N(1 << (rng.Int64N(3) * 20))
	text := []byte("some words \"quoted\"\n é and more than a block of text")[:rng.IntN(4)*13]
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(few&1 == 0)
	case *array.Int32Builder:
		b.Append(int32(few) - 100)
	case *array.Int64Builder:
		b.Append(few*few - 100)
	case *array.Float32Builder:
		b.Append(float32(few) / 8)
	case *array.Float64Builder:
		b.Append([]float64{float64(few) / 100, math.NaN(), math.Inf(-1), float64(few) * 1e200}[rng.IntN(4)])
	case *array.Date32Builder:
		b.Append(arrow.Date32(few - 1000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(few % 86_400_000_000))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(few*1_000_003 - 5_000_000))
	case *array.StringBuilder:
		b.Append(string(text))
	case *array.BinaryBuilder:
		b.Append(text)
	case *array.FixedSizeBinaryBuilder:
		value := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		value[0], value[len(value)-1] = byte(few), byte(few>>8)
		b.Append(value)
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(few%9999 - 5000))
	case *extensions.UUIDBuilder:
		b.Append(uuid.UUID{0: byte(few), 15: byte(few >> 8)})
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			appendRandom(rng, b.FieldBuilder(i), f.Nullable)
		}
	case *array.MapBuilder:
		b.Append(true)
		mt := b.Type().(*arrow.MapType)
		for range rng.IntN(4) {
			appendRandom(rng, b.KeyBuilder(), false)
			appendRandom(rng, b.ItemBuilder(), mt.ItemField().Nullable)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range rng.IntN(4) * rng.IntN(4) {
			appendRandom(rng, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable)
		}
	default:
		panic(fmt.Sprintf("no random value for %T", b))
	}
}

// randomFile writes rows of a schema, and plans reading them with another.
func randomFile(t *rapid.T, f *fixture, written, read *iceberg.Schema) (*Plan, Task) {
	form := writerForm{
		dictionary: rapid.Bool().Draw(t, "dictionary"), v2: rapid.Bool().Draw(t, "v2"), small: rapid.Bool().Draw(t, "small pages"),
		codec:     rapid.SampledFrom([]compress.Compression{compress.Codecs.Zstd, compress.Codecs.Snappy, compress.Codecs.Uncompressed}).Draw(t, "codec"),
		groupRows: int64(rapid.SampledFrom([]int{10, 100, 100_000}).Draw(t, "row group")),
	}
	rows := rapid.SampledFrom([]int{1, 30, 300, 9000}).Draw(t, "rows")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	schema := arrowSchema(f.TB, written)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for range rows {
		for i, field := range schema.Fields() {
			appendRandom(rng, b.Field(i), field.Nullable)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, form.properties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(f.path("a.parquet"), buf.Bytes(), 0o600))

	data, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("a.parquet"), iceberg.ParquetFile, nil, nil, nil, int64(rows), int64(buf.Len()))
	require.NoError(t, err)
	plan := &Plan{Schema: read, schema: read, source: Source{FS: f.fs, Meta: stepMetadata{f.meta, read}}, after: f.state}
	return plan, Task{File: f.file(data.Build(), 1)}
}

// randomDeletes are deletes by position of a.parquet, most often none: runs of rows and single ones, in a vector or in
// files that name it or do not.
func randomDeletes(t *rapid.T, f *fixture, rows int64) (d Deletes) {
	if rapid.IntRange(0, 2).Draw(t, "no deletes") > 0 {
		return d
	}
	var positions []int64
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		from := rapid.Int64Range(0, rows+1).Draw(t, "from")
		for i := range rapid.Int64Range(1, max(rows, 3)).Draw(t, "length") {
			positions = append(positions, from+i)
		}
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	if rapid.Bool().Draw(t, "vector") {
		vector := f.file(f.vector("v.puffin", "a.parquet", positions...), 2)
		d.Vector = &vector
		return d
	}
	d.Position = []File{f.file(f.positionDeletes("p.parquet", 0, nil, "a.parquet", positions...), 2)}
	if rapid.Bool().Draw(t, "another file") {
		d.Position = append(d.Position, f.file(f.positionDeletes("q.parquet", 0, nil, "a.parquet", positions[0], rows-1), 3))
	}
	return d
}

func TestDirectRowsAreThoseOfTheGeneralDecoder(t *testing.T) {
	f := newFixture(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		id := 0
		next := func() int { id++; return id }
		var fields []iceberg.NestedField
		for i := range rapid.IntRange(1, 5).Draw(rt, "columns") {
			fields = append(fields, randomField(rt, fmt.Sprintf("c%d", i), 3, next))
		}
		schema := iceberg.NewSchema(7, fields...)
		plan, task := randomFile(rt, f, schema, schema)
		task.Deletes = randomDeletes(rt, f, task.File.Data.Count())
		plan.Tasks = []Task{task}
		want, err := generalRows(rt, t, plan, task)
		require.NoError(rt, err)
		skip := rapid.IntRange(0, len(want)).Draw(rt, "skip")
		opts := ReadOptions{
			BatchRows: rapid.SampledFrom([]int{1, 7, 4096}).Draw(rt, "batch rows"), BatchBytes: int64(rapid.SampledFrom([]int{10, 1 << 20}).Draw(rt, "batch bytes")),
			stretch: rapid.SampledFrom([]int64{1, 1000, 1 << 20}).Draw(rt, "stretch"), ahead: aheadOrNot(rt), Parallelism: 2,
		}
		got, done, err := directRows(t, plan, task, int64(skip), opts)
		require.NoError(rt, err)
		require.EqualValues(rt, len(want), done)
		if len(want) == skip {
			require.Empty(rt, got)
			return
		}
		require.Equal(rt, want[skip:], got)
	})
}

func TestDirectRowsFollowAChangedSchema(t *testing.T) {
	f := newFixture(t, "")
	field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	written := iceberg.NewSchema(7, field(1, "a", iceberg.Int32Type{}), field(2, "b", iceberg.Float32Type{}), field(3, "c", iceberg.DecimalTypeOf(5, 2)),
		field(4, "gone", iceberg.StringType{}), field(5, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{field(6, "x", iceberg.Int32Type{}), field(7, "y", iceberg.StringType{})}}))
	read := iceberg.NewSchema(8, field(5, "renamed", &iceberg.StructType{FieldList: []iceberg.NestedField{
		field(9, "new", iceberg.StringType{}), field(7, "why", iceberg.StringType{}), field(6, "x", iceberg.Int64Type{}),
	}}), field(3, "c", iceberg.DecimalTypeOf(20, 2)), field(8, "new", iceberg.DateType{}), field(2, "b", iceberg.Float64Type{}), field(1, "a", iceberg.Int64Type{}))
	rapid.Check(t, func(rt *rapid.T) {
		plan, task := randomFile(rt, f, written, read)
		want, err := generalRows(rt, t, plan, task)
		require.NoError(rt, err)
		got, _, err := directRows(t, plan, task, 0, ReadOptions{ahead: aheadOrNot(rt), Parallelism: 2})
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

// aheadOrNot is how many rows a row group must have so that its pages are read ahead.
func aheadOrNot(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{1, 1 << 40}).Draw(t, "read ahead from")
}

// Any byte of a file may be wrong. Then the rows before the fault are right, and the general decoder gets the rest.
func TestDirectReadingSurvivesBrokenFiles(t *testing.T) {
	f := newFixture(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		id := 0
		next := func() int { id++; return id }
		schema := iceberg.NewSchema(7, randomField(rt, "a", 3, next), randomField(rt, "b", 1, next))
		plan, task := randomFile(rt, f, schema, schema)
		raw, err := os.ReadFile(f.path("a.parquet"))
		require.NoError(rt, err)
		for range rapid.IntRange(1, 4).Draw(rt, "faults") {
			raw[rapid.IntRange(0, len(raw)-1).Draw(rt, "where")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		}
		require.NoError(rt, os.WriteFile(f.path("a.parquet"), raw, 0o600))
		_, _, err = directRows(t, plan, task, 0, ReadOptions{
			stretch: rapid.SampledFrom([]int64{1, 1 << 20}).Draw(rt, "stretch"), ahead: aheadOrNot(rt), Parallelism: 2,
		})
		var corrupt *CorruptFileError
		if err != nil && !errors.As(err, &corrupt) {
			require.ErrorIs(rt, err, errIndirect)
		}
	})
}

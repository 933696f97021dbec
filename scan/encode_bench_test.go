// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

const benchRows = 64 << 10

// BenchmarkEncode encodes a batch of 64k rows. events has ten mixed columns, about 250
// bytes a row; flat has five, with doubles of all digits.
func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch func(rows int) (*iceberg.Schema, arrow.RecordBatch)
	}{{"events", eventsBatch}, {"flat", flatBatch}} {
		b.Run(c.name, func(b *testing.B) {
			schema, rec := c.batch(benchRows)
			benchmarkBatch(b, schema, rec)
		})
	}
}

// BenchmarkEncodeColumn encodes each column of the events batch alone.
func BenchmarkEncodeColumn(b *testing.B) {
	schema, rec := eventsBatch(benchRows)
	flat, flatRec := flatBatch(benchRows)
	for i, f := range schema.Fields() {
		b.Run(f.Name, func(b *testing.B) {
			one := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{rec.Schema().Field(i)}, nil), []arrow.Array{rec.Column(i)}, benchRows)
			benchmarkBatch(b, iceberg.NewSchema(0, f), one)
		})
	}
	b.Run("double", func(b *testing.B) {
		one := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{flatRec.Schema().Field(2)}, nil), []arrow.Array{flatRec.Column(2)}, benchRows)
		benchmarkBatch(b, iceberg.NewSchema(0, flat.Field(2)), one)
	})
}

func benchmarkBatch(b *testing.B, schema *iceberg.Schema, rec arrow.RecordBatch) {
	e, err := NewEncoder(schema)
	require.NoError(b, err)
	var buf []byte
	var ends []int
	b.ReportAllocs()
	for b.Loop() {
		buf, ends, err = e.Append(buf[:0], ends[:0], rec, 0, int(rec.NumRows()))
		if err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func optional(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

// eventsBatch builds rows of ten mixed columns: id, ts, user, kind, amount, price, flag,
// note (a tenth NULL, some with quotes and non-ASCII), tags, props.
func eventsBatch(rows int) (*iceberg.Schema, arrow.RecordBatch) {
	rng := rand.New(rand.NewPCG(1, 2))
	mem := memory.DefaultAllocator
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0,
		optional(1, "id", p.Int64), optional(2, "ts", p.TimestampTz), optional(3, "user", p.String),
		optional(4, "kind", p.String), optional(5, "amount", iceberg.DecimalTypeOf(12, 2)),
		optional(6, "price", p.Float64), optional(7, "flag", p.Bool), optional(8, "note", p.String),
		optional(9, "tags", &iceberg.ListType{ElementID: 11, Element: p.String}),
		optional(10, "props", &iceberg.StructType{FieldList: []iceberg.NestedField{
			optional(12, "a", p.Int32), optional(13, "b", p.String),
		}}))
	fields := []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "user", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "kind", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}, Nullable: true},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "props", Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	phrases := notePhrases(rng)
	kinds := []string{"click", "view", "purchase", "refund", "login", "logout", "search", "share"}
	tags := b.Field(8).(*array.ListBuilder)
	props := b.Field(9).(*array.StructBuilder)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + i*1000 + rng.IntN(1000)))
		b.Field(2).(*array.StringBuilder).Append(alphanumeric(rng, 10+rng.IntN(5)))
		b.Field(3).(*array.StringBuilder).Append(kinds[rng.IntN(len(kinds))])
		b.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(rng.Int64N(1_000_000)))
		b.Field(5).(*array.Float64Builder).Append(math.Round(rng.Float64()*1e9) / 1e6)
		b.Field(6).(*array.BooleanBuilder).Append(rng.IntN(2) == 0)
		if rng.IntN(10) == 0 {
			b.Field(7).AppendNull()
		} else {
			b.Field(7).(*array.StringBuilder).Append(phrases[rng.IntN(len(phrases))] + " " + alphanumeric(rng, 5))
		}
		tags.Append(true)
		for range rng.IntN(4) {
			tags.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("tag%02d", rng.IntN(50)))
		}
		props.Append(true)
		props.FieldBuilder(0).(*array.Int32Builder).Append(rng.Int32N(100_000))
		props.FieldBuilder(1).(*array.StringBuilder).Append(alphanumeric(rng, 8))
	}
	return schema, b.NewRecordBatch()
}

func notePhrases(rng *rand.Rand) []string {
	words := []string{
		"the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "wizards", "quietly",
		"mix", `"bold"`, "jugs", "of", "liquid", "oxygen", "near", "café", "Zürich",
	}
	phrases := make([]string, 5000)
	for i := range phrases {
		var s string
		for len(s) < 32 {
			s += words[rng.IntN(len(words))] + " "
		}
		runes := []rune(s)
		phrases[i] = string(runes[:min(34, len(runes))])
	}
	return phrases
}

func alphanumeric(rng *rand.Rand, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rng.IntN(36)]
	}
	return string(b)
}

// flatBatch builds rows of id, v, x, s, ts.
func flatBatch(rows int) (*iceberg.Schema, arrow.RecordBatch) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, optional(1, "id", p.Int64), optional(2, "v", p.Int64), optional(3, "x", p.Float64),
		optional(4, "s", p.String), optional(5, "ts", p.Timestamp))
	fields := []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int64Builder).Append(rng.Int64N(1 << 40))
		b.Field(2).(*array.Float64Builder).Append(rng.Float64())
		b.Field(3).(*array.StringBuilder).Append(alphanumeric(rng, 16))
		b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + i*1000))
	}
	return schema, b.NewRecordBatch()
}

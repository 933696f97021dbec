// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsedVariant(t testing.TB, text string) variant.Value {
	v, err := variant.ParseJSON(text, false)
	require.NoError(t, err)
	return v
}

func variantArray(t testing.TB, dt *extensions.VariantType, texts ...string) arrow.Array {
	b := extensions.NewVariantBuilder(memory.DefaultAllocator, dt)
	for _, text := range texts {
		if text == "" {
			b.AppendNull()
			continue
		}
		b.Append(parsedVariant(t, text))
	}
	return b.NewArray()
}

var variantTexts = []string{
	`{"a":1,"b":[true,false,null,"x\"y"],"c":{"d":-2147483649,"e":1.25}}`, "", `null`, `"text"`, `[]`, `{}`, `123456789012`,
	`"` + strings.Repeat("long ", 40) + `"`, `{"a":{"a":{"a":["ü",300,40000]}}}`,
}

func TestVariantsAreTheirJSON(t *testing.T) {
	var want []string
	for _, text := range variantTexts {
		if text == "" {
			text = "null"
		}
		want = append(want, text)
	}
	plain := variantArray(t, extensions.NewDefaultVariantType(), variantTexts...)
	assert.Equal(t, want, encodeValues(t, iceberg.VariantType{}, plain))
	assert.Equal(t, want[3:7], encodeValues(t, iceberg.VariantType{}, array.NewSlice(plain, 3, 7)))

	shredded := variantArray(t, extensions.NewShreddedVariantType(arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64})), variantTexts...)
	got := encodeValues(t, iceberg.VariantType{}, shredded)
	for i := range want {
		assert.JSONEq(t, want[i], got[i])
	}
}

func TestVariantPrimitivesAreWrittenAsColumnsOfTheirType(t *testing.T) {
	for _, c := range []struct {
		want  string
		build func(b *variant.Builder) error
	}{
		{`127`, func(b *variant.Builder) error { return b.AppendInt(127) }},
		{`-32768`, func(b *variant.Builder) error { return b.AppendInt(math.MinInt16) }},
		{`-2147483648`, func(b *variant.Builder) error { return b.AppendInt(math.MinInt32) }},
		{`9223372036854775807`, func(b *variant.Builder) error { return b.AppendInt(math.MaxInt64) }},
		{`1.1`, func(b *variant.Builder) error { return b.AppendFloat32(1.1) }},
		{`1e-7`, func(b *variant.Builder) error { return b.AppendFloat64(1e-7) }},
		{`"NaN"`, func(b *variant.Builder) error { return b.AppendFloat64(math.NaN()) }},
		{`-1.10`, func(b *variant.Builder) error { return b.AppendDecimal4(2, decimal.Decimal32(-110)) }},
		{`0.000000000000000001`, func(b *variant.Builder) error { return b.AppendDecimal8(18, decimal.Decimal64(1)) }},
		{`-1844674407370955161.6`, func(b *variant.Builder) error { return b.AppendDecimal16(1, decimal128.New(-1, 0)) }},
		{`"2024-02-29"`, func(b *variant.Builder) error { return b.AppendDate(19782) }},
		{`"01:59:59.000001"`, func(b *variant.Builder) error { return b.AppendTimeMicro(7199000001) }},
		{`"1969-12-31T23:59:59.999999+00:00"`, func(b *variant.Builder) error { return b.AppendTimestamp(-1, true, true) }},
		{`"1969-12-31T23:59:59.999999"`, func(b *variant.Builder) error { return b.AppendTimestamp(-1, true, false) }},
		{`"1969-12-31T23:59:59.999999999+00:00"`, func(b *variant.Builder) error { return b.AppendTimestamp(-1, false, true) }},
		{`"1969-12-31T23:59:59.999999999"`, func(b *variant.Builder) error { return b.AppendTimestamp(-1, false, false) }},
		{`"00ff"`, func(b *variant.Builder) error { return b.AppendBinary([]byte{0, 255}) }},
		{`"f24f9b64-81fa-49d1-b74e-8c09a6e31c56"`, func(b *variant.Builder) error {
			return b.AppendUUID(uuid.MustParse("f24f9b64-81fa-49d1-b74e-8c09a6e31c56"))
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			var b variant.Builder
			require.NoError(t, c.build(&b))
			v, err := b.Build()
			require.NoError(t, err)
			got, err := appendVariant(nil, v.Metadata().Bytes(), v.Bytes())
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
}

func TestInvalidVariantFailsTheBatchByName(t *testing.T) {
	b := array.NewStructBuilder(memory.DefaultAllocator, extensions.NewDefaultVariantType().StorageType().(*arrow.StructType))
	good := parsedVariant(t, `{"a":[1,2,3]}`)
	for i := range 3 {
		b.Append(true)
		b.FieldBuilder(0).(*array.BinaryBuilder).Append(good.Metadata().Bytes())
		value := good.Bytes()
		if i == 1 {
			value = value[:len(value)-2]
		}
		b.FieldBuilder(1).(*array.BinaryBuilder).Append(value)
	}
	arr := array.NewExtensionArrayWithStorage(extensions.NewDefaultVariantType(), b.NewArray())
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", iceberg.VariantType{})))
	require.NoError(t, err)
	_, _, err = e.Append(nil, nil, oneColumn(arr), 0, 3)
	require.ErrorIs(t, err, errVariant)
	require.ErrorContains(t, err, "encoding column v: reading variant of row 1")
	assert.Equal(t, []string{`{"v":{"a":[1,2,3]}}`}, encodeRows(t, e, oneColumn(arr), 2, 3), "usable after the error")
}

func TestDeepVariantIsRefused(t *testing.T) {
	// An array of one element, over and over: header, count, two offsets of four bytes.
	var v []byte
	for range 3000 {
		v = append([]byte{0b11<<2 | 3, 1, 0, 0, 0, 0, byte(len(v)), byte(len(v) >> 8), byte(len(v) >> 16), 0}, v...)
	}
	_, err := appendVariant(nil, variant.EmptyMetadataBytes[:], append(v, 0))
	require.ErrorContains(t, err, "nested too deep")
}

// Elements that share their bytes would multiply at each level.
func TestVariantWithOverlappingElementsIsRefused(t *testing.T) {
	v := []byte{0}
	for range 60 {
		// An array of two elements that both lie at the beginning.
		v = append([]byte{1<<2 | 3, 2, 0, 0, 0, 0, byte(len(v)), byte(len(v) >> 8)}, v...)
	}
	_, err := appendVariant(nil, variant.EmptyMetadataBytes[:], v)
	require.ErrorContains(t, err, "elements overlap")
}

// Any bytes give an error or valid JSON, and never a panic.
func FuzzVariant(f *testing.F) {
	for _, text := range variantTexts {
		if text != "" {
			v := parsedVariant(f, text)
			f.Add(v.Metadata().Bytes(), v.Bytes())
		}
	}
	f.Add([]byte{1, 0, 0}, []byte{0x2c, 1, 2, 3})
	f.Fuzz(func(t *testing.T, meta, value []byte) {
		if got, err := appendVariant(nil, meta, value); err == nil {
			require.True(t, json.Valid(got), "%q", got)
		}
	})
}

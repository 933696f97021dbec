// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIntegersOfEveryWidth(t *testing.T) {
	for _, c := range []struct {
		dt   arrow.DataType
		want []string
	}{
		{arrow.PrimitiveTypes.Int8, []string{"0", "-128", "127", "null"}},
		{arrow.PrimitiveTypes.Int16, []string{"0", "-32768", "32767", "null"}},
		{arrow.PrimitiveTypes.Int32, []string{"0", "-2147483648", "2147483647", "null"}},
		{arrow.PrimitiveTypes.Int64, []string{"0", "-9223372036854775808", "9223372036854775807", "null", "9007199254740993"}},
		{arrow.PrimitiveTypes.Uint8, []string{"0", "255", "null"}},
		{arrow.PrimitiveTypes.Uint16, []string{"0", "65535", "null"}},
		{arrow.PrimitiveTypes.Uint32, []string{"0", "4294967295", "null"}},
		{arrow.PrimitiveTypes.Uint64, []string{"0", "18446744073709551615", "null"}},
	} {
		t.Run(c.dt.Name(), func(t *testing.T) {
			arr := fromJSON(t, c.dt, "["+strings.Join(c.want, ",")+"]")
			assert.Equal(t, c.want, encodeValues(t, iceberg.PrimitiveTypes.Int64, arr))
			assert.Equal(t, c.want[1:], encodeValues(t, iceberg.PrimitiveTypes.Int32, array.NewSlice(arr, 1, int64(arr.Len()))))
		})
	}
}

func TestIntegersReadBack(t *testing.T) {
	check := func(v uint64) {
		require.Equal(t, fmt.Sprint(v), string(appendUint(make([]byte, 0, spare), v)))
		require.Equal(t, len(fmt.Sprint(max(v, 1))), digitCount(max(v, 1)))
		require.Equal(t, fmt.Sprint(int64(v)), string(appendInt(make([]byte, 0, spare), int64(v))))
	}
	for p := uint64(1); p <= 1e19 && p != 0; p *= 10 {
		for _, d := range []uint64{0, 1, 2, 9} {
			check(p - d)
			check(p + d)
		}
		if p == 1e19 {
			break
		}
	}
	for shift := range 64 {
		check(1 << shift)
		check(rand.Uint64() >> shift)
	}
}

func TestBooleans(t *testing.T) {
	arr := fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true,false,null,true,true,false,false,true,null,true]`)
	want := []string{"true", "false", "null", "true", "true", "false", "false", "true", "null", "true"}
	assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.Bool, arr))
	assert.Equal(t, want[3:], encodeValues(t, iceberg.PrimitiveTypes.Bool, array.NewSlice(arr, 3, 10)))
}

func TestFloats(t *testing.T) {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{
		0, math.Copysign(0, -1), 45, -1.5, 1.1, 0.1, 1e20, 1e21, 123456789012345680000, 1e-6, 9.9e-7, 1e-9, 1e-10,
		math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 33.333332, 1e23, 9007199254740993,
		123456.789, 0.000001, 999999999.999999, 5e-324, 2.2250738585072014e-308,
	}, nil)
	b.AppendNull()
	assert.Equal(t, []string{
		"0", "-0", "45", "-1.5", "1.1", "0.1", "100000000000000000000", "1e+21", "123456789012345680000", "0.000001", "9.9e-7", "1e-9", "1e-10",
		"1.7976931348623157e+308", "5e-324", `"NaN"`, `"Infinity"`, `"-Infinity"`, "33.333332", "1e+23", "9007199254740992",
		"123456.789", "0.000001", "999999999.999999", "5e-324", "2.2250738585072014e-308", "null",
	}, encodeValues(t, iceberg.PrimitiveTypes.Float64, b.NewArray()))

	f := array.NewFloat32Builder(memory.DefaultAllocator)
	f.AppendValues([]float32{
		0, float32(math.Copysign(0, -1)), 45, 1.1, 33.333332, 3.4028235e38, 1e-45, float32(math.NaN()), float32(math.Inf(1)),
		float32(math.Inf(-1)), 16777216, 1e21, 1e20, 1e-6, 1e-7,
	}, nil)
	f.AppendNull()
	narrow := f.NewArray()
	assert.Equal(t, []string{
		"0", "-0", "45", "1.1", "33.333332", "3.4028235e+38", "1e-45", `"NaN"`, `"Infinity"`,
		`"-Infinity"`, "16777216", "1e+21", "100000000000000000000", "0.000001", "1e-7", "null",
	}, encodeValues(t, iceberg.PrimitiveTypes.Float32, narrow))
	assert.Equal(t, []string{
		"0", "-0", "45", "1.100000023841858", "33.33333206176758", "3.4028234663852886e+38", "1.401298464324817e-45",
	}, encodeValues(t, iceberg.PrimitiveTypes.Float64, narrow)[:7], "a float promoted to double shows the widened value")
}

// checkFloat compares with encoding/json.
func checkFloat(t testing.TB, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	want, err := json.Marshal(v)
	require.NoError(t, err)
	if got := string(appendFloat64(make([]byte, 0, spare), v)); got != string(want) {
		t.Fatalf("%x: got %s, want %s", math.Float64bits(v), got, want)
	}
	n := float32(v)
	if math.IsInf(float64(n), 0) {
		return
	}
	want, err = json.Marshal(n)
	require.NoError(t, err)
	if got := string(appendFloat32(make([]byte, 0, spare), n)); got != string(want) {
		t.Fatalf("%x: got %s, want %s", math.Float32bits(n), got, want)
	}
}

func TestFloatsAreThoseOfEncodingJSON(t *testing.T) {
	for e := range 2048 {
		for _, fraction := range []uint64{0, 1, 2, 1<<52 - 1, 1<<52 - 2, 1 << 51, 0x5555555555555} {
			checkFloat(t, math.Float64frombits(uint64(e)<<52|fraction))
		}
	}
	for e := range uint32(255) {
		for _, fraction := range []uint32{0, 1, 2, 1<<23 - 1, 1 << 22, 0x155555} {
			checkFloat(t, float64(math.Float32frombits(e<<23|fraction)))
		}
	}
	for e := -340; e < 310; e++ {
		v, err := json.Number(fmt.Sprintf("1e%d", e)).Float64()
		if err != nil {
			continue
		}
		checkFloat(t, v)
		checkFloat(t, math.Nextafter(v, 0))
		checkFloat(t, math.Nextafter(v, math.Inf(1)))
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200_000 {
		checkFloat(t, math.Float64frombits(rng.Uint64()))
		checkFloat(t, float64(math.Float32frombits(rng.Uint32())))
		checkFloat(t, float64(rng.Int64N(1e15))/math.Pow10(rng.IntN(16)))
		checkFloat(t, float64(rng.Int64N(1e9))/1e6)
	}
}

func FuzzFloat(f *testing.F) {
	for _, v := range []float64{0, 1.1, -45, 1e21, 1e-7, 5e-324, math.MaxFloat64, 0.3, 1 / 3.0, 9007199254740993} {
		f.Add(math.Float64bits(v))
	}
	f.Fuzz(func(t *testing.T, word uint64) {
		checkFloat(t, math.Float64frombits(word))
		checkFloat(t, float64(math.Float32frombits(uint32(word))))
		checkFloat(t, float64(int64(word))/1e6)
	})
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		name string
		dt   arrow.DataType
		want []string
	}{
		{"32 bits", &arrow.Decimal32Type{Precision: 9, Scale: 2}, []string{"9999999.99", "-9999999.99", "0.00", "-0.01", "1.10"}},
		{"64 bits", &arrow.Decimal64Type{Precision: 18, Scale: 6}, []string{"999999999999.999999", "-0.000001", "0.000000", "123456.789000"}},
		{"64 bits, no scale", &arrow.Decimal64Type{Precision: 18, Scale: 0}, []string{"0", "-1", "999999999999999999"}},
		{"128 bits", &arrow.Decimal128Type{Precision: 38, Scale: 10}, []string{
			"9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "-1.0000000000", "0.0000000000",
		}},
		{"128 bits, no scale", &arrow.Decimal128Type{Precision: 38, Scale: 0}, []string{
			"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0", "18446744073709551616", "9223372036854775808", "-9223372036854775809",
		}},
		{"128 bits, all scale", &arrow.Decimal128Type{Precision: 38, Scale: 38}, []string{
			"0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001",
		}},
		{"128 bits, few digits", &arrow.Decimal128Type{Precision: 7, Scale: 7}, []string{"0.9999999", "-0.0000001", "0.0000000"}},
		{"256 bits", &arrow.Decimal256Type{Precision: 76, Scale: 4}, []string{
			strings.Repeat("9", 72) + ".9999", "-" + strings.Repeat("9", 72) + ".9999", "0.0000", "-12.3456",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.dt.(arrow.DecimalType)
			arr := fromJSON(t, c.dt, `["`+strings.Join(c.want, `","`)+`",null]`)
			want := make([]string, 0, len(c.want)+1)
			for _, w := range c.want {
				want = append(want, `"`+w+`"`)
			}
			want = append(want, "null")
			typ := iceberg.DecimalTypeOf(min(int(d.GetPrecision()), 38), int(d.GetScale()))
			assert.Equal(t, want, encodeValues(t, typ, arr))
			assert.Equal(t, want[1:], encodeValues(t, typ, array.NewSlice(arr, 1, int64(arr.Len()))))
		})
	}
}

// decimalText is the reference: the digits of a big.Int with a point among them.
func decimalText(v *big.Int, scale int) string {
	digits, sign := new(big.Int).Abs(v).String(), ""
	if v.Sign() < 0 {
		sign = "-"
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	if scale == 0 {
		return sign + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func checkDecimal(t require.TestingT, v decimal128.Num, scale int) {
	big128 := v.BigInt()
	wide := appendDecimalWide(make([]byte, 0, spare), []uint64{v.LowBits(), uint64(v.HighBits())}, scale)
	require.Equal(t, decimalText(big128, scale), string(wide))
	limbs := decimal256.FromDecimal128(v).Array()
	require.Equal(t, string(wide), string(appendDecimalWide(make([]byte, 0, spare), limbs[:], scale)))
	small := int64(v.LowBits())
	require.Equal(t, decimalText(big.NewInt(small), scale), string(appendDecimal64(make([]byte, 0, spare), small, scale)))
	small %= 1e8
	require.Equal(t, decimalText(big.NewInt(small), scale), string(appendDecimal64(make([]byte, 0, spare), small, scale)))
}

func TestDecimalsAreThoseOfBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hi, lo, shift := rapid.Int64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo"), rapid.UintRange(0, 63).Draw(t, "shift")
		checkDecimal(t, decimal128.New(hi>>shift, lo), rapid.IntRange(0, 38).Draw(t, "scale"))
		checkDecimal(t, decimal128.New(0, lo>>shift), rapid.IntRange(0, 38).Draw(t, "scale"))
	})
	checkDecimal(t, decimal128.New(math.MinInt64, 0), 5)
	checkDecimal(t, decimal128.New(0, math.MaxUint64), 0)
	checkDecimal(t, decimal128.New(-1, 1<<63), 0)
}

func FuzzDecimal(f *testing.F) {
	f.Add(int64(0), uint64(123), byte(2))
	f.Add(int64(math.MinInt64), uint64(0), byte(38))
	f.Add(int64(-1), uint64(math.MaxUint64), byte(0))
	f.Add(int64(542101086242752217), uint64(68739955140067327), byte(10))
	f.Fuzz(func(t *testing.T, hi int64, lo uint64, scale byte) {
		checkDecimal(t, decimal128.New(hi, lo), int(scale%39))
	})
}

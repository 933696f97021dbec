// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/iceberg-go"
)

// smallDecimals writes decimals whose unscaled value is a machine word.
type smallDecimals[T int32 | int64] struct {
	validity
	values []T
	scale  int
}

// decimals writes decimals of 128 bits.
type decimals struct {
	validity
	values []decimal128.Num
	scale  int
}

// bigDecimals writes decimals of 256 bits.
type bigDecimals struct {
	validity
	values []decimal256.Num
	scale  int
}

// decimalColumn writes decimals as strings with their full scale.
func decimalColumn(t iceberg.DecimalType, dt arrow.DataType) column {
	if d, ok := dt.(arrow.DecimalType); !ok || int(d.GetScale()) != t.Scale() || t.Scale() < 0 {
		return nil
	}
	switch dt.ID() {
	case arrow.DECIMAL32:
		return &smallDecimals[int32]{scale: t.Scale()}
	case arrow.DECIMAL64:
		return &smallDecimals[int64]{scale: t.Scale()}
	case arrow.DECIMAL128:
		return &decimals{scale: t.Scale()}
	case arrow.DECIMAL256:
		return &bigDecimals{scale: t.Scale()}
	}
	return nil
}

func (c *smallDecimals[T]) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[T](arr)
}
func (c *smallDecimals[T]) release() { c.validity, c.values = validity{}, nil }

func (c *smallDecimals[T]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return append(appendDecimal64(append(b, '"'), int64(c.values[i]), c.scale), '"')
}

func (c *decimals) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[decimal128.Num](arr)
}
func (c *decimals) release() { c.validity, c.values = validity{}, nil }

func (c *decimals) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	v := &c.values[i]
	hi, lo := v.HighBits(), v.LowBits()
	b = append(b, '"')
	if hi == int64(lo)>>63 {
		b = appendDecimal64(b, int64(lo), c.scale)
	} else {
		b = appendDecimalWide(b, []uint64{lo, uint64(hi)}, c.scale)
	}
	return append(b, '"')
}

func (c *bigDecimals) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[decimal256.Num](arr)
}
func (c *bigDecimals) release() { c.validity, c.values = validity{}, nil }

func (c *bigDecimals) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	limbs := c.values[i].Array()
	return append(appendDecimalWide(append(b, '"'), limbs[:], c.scale), '"')
}

// appendDecimal64 appends v / 10^scale.
func appendDecimal64(b []byte, v int64, scale int) []byte {
	if v < 0 {
		b, v = append(b, '-'), -v // the smallest int64 is its own negative, and right as uint64
	}
	u := uint64(v)
	if u >= 1e8 || scale >= 8 || scale == 0 {
		n := len(b)
		return point(appendUint(b, u), n, scale)
	}
	// All digits fit a word: the whole part is stored, then the point, then the fraction.
	w := digits8(uint32(u))
	whole := 8 - scale
	skip := min(bits.TrailingZeros64(w|1<<56)>>3, whole-1)
	w += zeros
	n := len(b)
	putWord(b, n, w>>(8*skip))
	n += whole - skip
	b = b[:n+1]
	b[n] = '.'
	putWord(b, n+1, w>>(8*whole))
	return b[:n+1+scale]
}

// point puts a decimal point before the last scale digits of b[n:], with leading zeros
// where there are not enough digits.
func point(b []byte, n, scale int) []byte {
	if scale == 0 {
		return b
	}
	digits := len(b) - n
	lead := max(scale+1-digits, 0)
	b = slices.Grow(b, lead+1+spare)
	if lead > 0 {
		b = b[:len(b)+lead]
		copy(b[n+lead:], b[n:n+digits])
		for i := range lead {
			b[n+i] = '0'
		}
	}
	end := len(b)
	b = b[:end+1]
	if at := end - scale; scale <= 16 {
		// The fraction moves by one place, in whole words.
		low, high := getWord(b[:cap(b)], at), getWord(b[:cap(b)], at+8)
		putWord(b, at+1, low)
		putWord(b, at+9, high)
	} else {
		copy(b[at+1:], b[at:end])
	}
	b[end-scale] = '.'
	return b
}

// tenTo19 is the greatest power of ten in a machine word.
const tenTo19 = 10_000_000_000_000_000_000

// appendDecimalWide appends the two's complement number of limbs, lowest first, divided
// by 10^scale.
func appendDecimalWide(b []byte, limbs []uint64, scale int) []byte {
	var buf [4]uint64
	limbs = buf[:copy(buf[:], limbs)]
	if int64(limbs[len(limbs)-1]) < 0 {
		b = append(b, '-')
		carry := uint64(1)
		for i := range limbs {
			limbs[i], carry = bits.Add64(^limbs[i], 0, carry)
		}
	}
	// Split off nineteen digits at a time; 2^255 has 77.
	var parts [5]uint64
	count := 0
	for len(limbs) > 0 {
		var rest uint64
		for i := len(limbs) - 1; i >= 0; i-- {
			limbs[i], rest = bits.Div64(rest, limbs[i], tenTo19)
		}
		parts[count] = rest
		count++
		for len(limbs) > 0 && limbs[len(limbs)-1] == 0 {
			limbs = limbs[:len(limbs)-1]
		}
	}
	b = slices.Grow(b, 2*spare)
	n := len(b)
	b = appendUint(b, parts[count-1])
	for i := count - 2; i >= 0; i-- {
		b = append19Digits(b, parts[i])
	}
	return point(b, n, scale)
}

// append19Digits appends v < 10^19 with leading zeros.
func append19Digits(b []byte, v uint64) []byte {
	top, rest := v/1e16, v%1e16
	n := len(b)
	putWord(b, n, digits8(uint32(top))>>40+zeros)
	b = append8Digits(b[:n+3], uint32(rest/1e8))
	return append8Digits(b, uint32(rest%1e8))
}

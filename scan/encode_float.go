// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// float32s writes float: the shortest decimal that reads back to the same float32.
type float32s struct {
	validity
	values []float32
}

// float64s writes double.
type float64s struct {
	validity
	values []float64
}

// widenedFloats writes double from values that were written as float, before the column
// was promoted.
type widenedFloats struct {
	validity
	values []float32
}

func floatColumn(t iceberg.Type, dt arrow.DataType) column {
	_, double := t.(iceberg.Float64Type)
	switch {
	case double && dt.ID() == arrow.FLOAT64:
		return &float64s{}
	case double && dt.ID() == arrow.FLOAT32:
		return &widenedFloats{}
	case dt.ID() == arrow.FLOAT32:
		return &float32s{}
	}
	return nil
}

func (c *float32s) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[float32](arr)
}
func (c *float32s) release() { *c = float32s{} }

func (c *float32s) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendFloat32(b, c.values[i])
}

func (c *float64s) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[float64](arr)
}
func (c *float64s) release() { *c = float64s{} }

func (c *float64s) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendFloat64(b, c.values[i])
}

func (c *widenedFloats) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[float32](arr)
}
func (c *widenedFloats) release() { *c = widenedFloats{} }

func (c *widenedFloats) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendFloat64(b, float64(c.values[i]))
}

// appendFloat64 appends v as encoding/json does: without exponent from 1e-6 to below
// 1e21. NaN and the infinities, which JSON lacks, are strings.
func appendFloat64(b []byte, v float64) []byte {
	word, start := math.Float64bits(v), len(b)
	if int64(word) < 0 && v == v {
		b, v = append(b, '-'), -v
	}
	if v < 1e15 {
		whole := uint64(v)
		if float64(whole) == v {
			return appendUint(b, whole)
		}
		// Decimals of at most 15 digits read back to different doubles. So if one with
		// six places reads back to v, it is the shortest that does, but for trailing
		// zeros. Reading it is one division, as both numbers are exact.
		if m := uint64(v*1e6 + 0.5); m < 1e15 && float64(m)/1e6 == v {
			return appendMillionths(b, m)
		}
	}
	fraction, exponent := word&(1<<52-1), int(word>>52&0x7ff)
	if exponent == 0x7ff {
		return appendNonFinite(b[:start], math.Float64frombits(word))
	}
	exponential := v < 1e-6 || v >= 1e21
	switch {
	case exponent == 0:
		exponent++
	case fraction == 0:
		return appendPowerOfTwo(b, v, 64, exponential)
	default:
		fraction |= 1 << 52
	}
	digits, scale := shortest(fraction, exponent-1075)
	return appendDigits(b, digits, scale, exponential)
}

// appendFloat32 appends v as encoding/json does.
func appendFloat32(b []byte, v float32) []byte {
	word, start := math.Float32bits(v), len(b)
	if int32(word) < 0 && v == v {
		b, v = append(b, '-'), -v
	}
	if v < 1<<24 && float32(uint32(v)) == v {
		return appendUint(b, uint64(v))
	}
	fraction, exponent := uint64(word&(1<<23-1)), int(word>>23&0xff)
	if exponent == 0xff {
		return appendNonFinite(b[:start], float64(math.Float32frombits(word)))
	}
	exponential := v < 1e-6 || v >= 1e21
	switch {
	case exponent == 0:
		exponent++
	case fraction == 0:
		return appendPowerOfTwo(b, float64(v), 32, exponential)
	default:
		fraction |= 1 << 23
	}
	digits, scale := shortest(fraction, exponent-150)
	return appendDigits(b, digits, scale, exponential)
}

func appendNonFinite(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	return append(b, `"NaN"`...)
}

// appendMillionths appends m / 10^6, which has a fraction.
func appendMillionths(b []byte, m uint64) []byte {
	b = appendUint(b, m/1e6)
	w := digits8(uint32(m%1e6) * 100)
	n := len(b)
	b = append(b, '.')
	putWord(b, n+1, w+zeros)
	// Trailing zeros are the highest bytes.
	return b[:n+9-bits.LeadingZeros64(w)>>3]
}

// appendDigits appends digits · 10^scale.
func appendDigits(b []byte, digits uint64, scale int, exponential bool) []byte {
	for digits%10 == 0 {
		digits, scale = digits/10, scale+1
	}
	n := len(b)
	if exponential {
		b = appendUint(b[:n+1], digits)
		size := len(b) - n - 1
		b[n] = b[n+1]
		if size == 1 {
			b = b[:n+1]
		} else {
			b[n+1] = '.'
		}
		return appendExponent(b, scale+size-1)
	}
	if scale >= 0 {
		b = appendUint(b, digits)
		for range scale {
			b = append(b, '0')
		}
		return b
	}
	if lead := -scale - digitCount(digits); lead >= 0 {
		// At most five zeros lead, as smaller numbers have an exponent.
		putWord(b, n, zeroPoint)
		return appendUint(b[:n+2+lead], digits)
	}
	return point(appendUint(b, digits), n, -scale)
}

const zeroPoint = zeros - ('0'-'.')<<8 // "0.000000"

func appendExponent(b []byte, e int) []byte {
	if e < 0 {
		return appendUint(append(b, 'e', '-'), uint64(-e))
	}
	return appendUint(append(b, 'e', '+'), uint64(e))
}

// appendPowerOfTwo leaves to strconv the floats whose lower neighbour is nearer than the
// upper one. They are rare, and how to round one of them (the float32 2^-12) differs
// between releases of Go.
func appendPowerOfTwo(b []byte, v float64, size int, exponential bool) []byte {
	if !exponential {
		return strconv.AppendFloat(b, v, 'f', -1, size)
	}
	b = strconv.AppendFloat(b, v, 'e', -1, size)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 to e-9
		b = b[:n-1]
	}
	return b
}

// shortest gives the decimal digits · 10^scale with the fewest digits among those nearer
// to c · 2^q than to (c ± 1) · 2^q, and of them the closest to it; digits may end in
// zeros. This is Raffaello Giulietti's Schubfach ("The Schubfach way to render doubles",
// 2020): with 10^scale the greatest power of ten that is no wider than the interval, one
// of the four multiples around is the answer.
func shortest(c uint64, q int) (digits uint64, scale int) {
	k := q * 1_262_611 >> 22              // floor(log10(2^q))
	h := uint(q + (-k*1_741_647)>>19 + 1) // floor(log2(10^-k)) is (-k · 1741647) >> 19
	g := &powersOfTen[-k-minPower]
	odd := c & 1
	// Four times the value and the interval's ends in units of 10^k, rounded to odd.
	v := roundToOdd(g, 4*c<<h)
	lower := roundToOdd(g, (4*c-2)<<h) + odd
	upper := roundToOdd(g, (4*c+2)<<h) - odd

	s := v / 4
	if s >= 10 {
		tens := s / 10
		under, over := lower <= 40*tens, 40*tens+40 <= upper
		if under != over {
			if over {
				tens++
			}
			return tens, k + 1
		}
	}
	under, over := lower <= 4*s, 4*s+4 <= upper
	if under != over {
		if over {
			s++
		}
		return s, k
	}
	middle := 4*s + 2
	if v > middle || v == middle && s&1 != 0 {
		s++
	}
	return s, k
}

// roundToOdd gives g · c / 2^128, its last bit set if anything was cut off.
func roundToOdd(g *[2]uint64, c uint64) uint64 {
	low, _ := bits.Mul64(g[1], c)
	high, middle := bits.Mul64(g[0], c)
	middle, carry := bits.Add64(middle, low, 0)
	high += carry
	if middle > 1 {
		high |= 1
	}
	return high
}

const (
	minPower = -292
	maxPower = 324
)

// powersOfTen holds the powers of ten from minPower to maxPower as 128-bit numbers g, high
// word first, with 10^e < g · 2^(floor(log2(10^e)) - 127) by less than one unit of g.
var powersOfTen = func() (table [maxPower - minPower + 1][2]uint64) {
	ten, one := big.NewInt(10), big.NewInt(1)
	var g, high big.Int
	for e := minPower; e <= maxPower; e++ {
		shift := 127 - (e*1_741_647)>>19
		if e >= 0 {
			g.Exp(ten, big.NewInt(int64(e)), nil)
			if shift >= 0 {
				g.Lsh(&g, uint(shift))
			} else {
				g.Rsh(&g, uint(-shift))
			}
		} else {
			g.Lsh(one, uint(shift))
			g.Quo(&g, high.Exp(ten, big.NewInt(int64(-e)), nil))
		}
		g.Add(&g, one)
		high.Rsh(&g, 64)
		table[e-minPower] = [2]uint64{high.Uint64(), g.Uint64()}
	}
	return table
}()

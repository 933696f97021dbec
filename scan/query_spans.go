// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// ordering is the domain that a column's values are compared in: int64 for booleans, integers, dates and times; float64;
// decimal128.Num for unscaled decimals; string, by bytes, for text, uuid and binary.
type ordering[T any] struct{ compare func(a, b T) int }

var (
	wholeOrder   = ordering[int64]{cmp.Compare[int64]}
	decimalOrder = ordering[decimal128.Num]{decimal128.Num.Cmp}
	textOrder    = ordering[string]{strings.Compare}
	// realOrder is for numbers that are not NaN; -0 equals 0.
	realOrder = ordering[float64]{func(a, b float64) int {
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}}
)

// valueRange is a range of values. A nil end is unbounded; an end belongs to it unless it is open.
type valueRange[T any] struct {
	low, high         *T
	openLow, openHigh bool
}

func (o ordering[T]) holds(s valueRange[T], v T) bool {
	if s.low != nil {
		if c := o.compare(v, *s.low); c < 0 || (c == 0 && s.openLow) {
			return false
		}
	}
	if s.high != nil {
		if c := o.compare(v, *s.high); c > 0 || (c == 0 && s.openHigh) {
			return false
		}
	}
	return true
}

// touches reports whether a value from low to high can be in the span.
func (o ordering[T]) touches(s valueRange[T], low, high *T) bool {
	if s.low != nil && high != nil {
		if c := o.compare(*high, *s.low); c < 0 || (c == 0 && s.openLow) {
			return false
		}
	}
	if s.high != nil && low != nil {
		if c := o.compare(*low, *s.high); c > 0 || (c == 0 && s.openHigh) {
			return false
		}
	}
	return true
}

// covers reports whether every value from low to high is in the span.
func (o ordering[T]) covers(s valueRange[T], low, high *T) bool {
	if s.low != nil && (low == nil || !o.holds(s, *low)) {
		return false
	}
	return s.high == nil || (high != nil && o.holds(s, *high))
}

// place is a literal between the values of a column: the greatest value that is not above it and the least that is not
// below it. They are the same value where the column can hold the literal; one is nil where there is none on that side.
type place[T any] struct{ floor, ceil *T }

func exactly[T any](v T) place[T] { return place[T]{&v, &v} }

func (p place[T]) exact() bool { return p.floor == p.ceil }

// spans are the values for which a comparison with the point is true.
func (p place[T]) spans(op operator) []valueRange[T] {
	switch op {
	case equal:
		if !p.exact() {
			return nil
		}
		return []valueRange[T]{{low: p.floor, high: p.ceil}}
	case notEqual:
		if !p.exact() {
			return []valueRange[T]{{}}
		}
		return []valueRange[T]{{high: p.floor, openHigh: true}, {low: p.ceil, openLow: true}}
	case less, lessOrEqual:
		if p.floor == nil {
			return nil
		}
		return []valueRange[T]{{high: p.floor, openHigh: op == less && p.exact()}}
	default:
		if p.ceil == nil {
			return nil
		}
		return []valueRange[T]{{low: p.ceil, openLow: op == greater && p.exact()}}
	}
}

// members are the spans of an IN list, in order, so that they can be searched.
func (o ordering[T]) members(points []place[T]) []valueRange[T] {
	var out []valueRange[T]
	for _, p := range points {
		out = append(out, p.spans(equal)...)
	}
	slices.SortFunc(out, func(a, b valueRange[T]) int { return o.compare(*a.low, *b.low) })
	return out
}

// integerPoint places a number among the integers from least to greatest.
func integerPoint[T any](n *big.Rat, least, greatest T, fit func(*big.Int) (T, bool)) place[T] {
	floor, rest := new(big.Int).DivMod(n.Num(), n.Denom(), new(big.Int)) // Denom > 0, so that this rounds down
	low, fits := fit(floor)
	switch {
	case !fits && n.Sign() > 0:
		return place[T]{floor: &greatest}
	case fits && rest.Sign() == 0:
		return exactly(low)
	}
	high, highFits := fit(floor.Add(floor, big.NewInt(1)))
	switch {
	case fits && highFits:
		return place[T]{&low, &high}
	case fits:
		return place[T]{floor: &low}
	case highFits:
		return place[T]{ceil: &high}
	}
	return place[T]{ceil: &least}
}

func fitInt64(n *big.Int) (int64, bool) { return n.Int64(), n.IsInt64() }

func fitDecimal(n *big.Int) (decimal128.Num, bool) {
	if n.BitLen() > 127 {
		return decimal128.Num{}, false
	}
	return decimal128.FromBigInt(n), true
}

// realPoint rounds a number to the nearest value of the column's type, as Iceberg does with literals, so that 0.1 finds a
// float that was written as 0.1. A number beyond the type's range lies between the last finite value and infinity.
func realPoint(n *big.Rat, single bool) place[float64] {
	var v, last float64
	if single {
		f, _ := n.Float32()
		v, last = float64(f), math.MaxFloat32
	} else {
		v, _ = n.Float64()
		last = math.MaxFloat64
	}
	if !math.IsInf(v, 0) {
		return exactly(v)
	}
	ends := []float64{last, v}
	if v < 0 {
		ends = []float64{v, -last}
	}
	return place[float64]{&ends[0], &ends[1]}
}

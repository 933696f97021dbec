// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// outcomes is a set of truths.
type outcomes uint8

func only(t truth) outcomes { return 1 << t }

func (o outcomes) has(t truth) bool { return o&only(t) != 0 }

// facts is what is known of a column's values in a manifest, file or row group, before it is opened. The zero value says
// that there are none at all.
type facts struct {
	null, nan, value bool // there may be NULLs, NaNs, and other values
	// low and high bound the other values: nil, or of the type of the column's domain.
	low, high any
	buckets   []bucketFact
}

// bucketFact says that the values' hashes are in buckets low to high of n.
type bucketFact struct {
	transform iceberg.BucketTransform
	low, high int64
}

// factsOf finds the facts of a column; those of a column of which nothing is known are unknownFacts.
type factsOf func(boundColumn) facts

func unknownFacts() facts { return facts{null: true, nan: true, value: true} }

func (p allOf) possible(of factsOf) outcomes {
	return foldOutcomes(p, of, func(a, b truth) truth { return min(a, b) })
}

func (p anyOf) possible(of factsOf) outcomes {
	return foldOutcomes(p, of, func(a, b truth) truth { return max(a, b) })
}

func foldOutcomes(terms []predicate, of factsOf, join func(a, b truth) truth) outcomes {
	sum := terms[0].possible(of)
	for _, term := range terms[1:] {
		next, joined := term.possible(of), outcomes(0)
		for a := no; a <= yes; a++ {
			for b := no; b <= yes; b++ {
				if sum.has(a) && next.has(b) {
					joined |= only(join(a, b))
				}
			}
		}
		sum = joined
	}
	return sum
}

func (p not) possible(of factsOf) (mirrored outcomes) {
	o := p.term.possible(of)
	for t := no; t <= yes; t++ {
		if o.has(t) {
			mirrored |= only(yes - t)
		}
	}
	return mirrored
}

func (p always) possible(factsOf) outcomes { return only(p.value) }

func (p nullCheck) possible(of factsOf) outcomes {
	f := of(p.column)
	return outcomesIf(f.null, yes) | outcomesIf(f.nan || f.value, no)
}

func (p nanCheck) possible(of factsOf) outcomes {
	f := of(p.column)
	return outcomesIf(f.nan, yes) | outcomesIf(f.null || f.value, no)
}

func (p like) possible(of factsOf) outcomes {
	f := of(p.column)
	low, high := ends[string](f)
	return outcomesIf(f.null, unknown) | outcomesIf(f.value, no) |
		outcomesIf(f.value && textOrder.touches(p.pattern.span(), low, high), yes)
}

func (p *inSpans[T]) possible(of factsOf) outcomes {
	f := of(p.column)
	otherwise := no
	if p.hasNull {
		otherwise = unknown
	}
	o := outcomesIf(f.null, unknown)
	if f.nan && p.domain.isNaN != nil {
		if p.nan {
			o |= only(yes)
		} else {
			o |= only(otherwise)
		}
	}
	if !f.value {
		return o
	}
	low, high := ends[T](f)
	passes, all := false, false
	for _, s := range p.spans {
		all = all || p.domain.order.covers(s, low, high)
		passes = passes || (p.domain.order.touches(s, low, high) && p.inBuckets(f, s))
	}
	return o | outcomesIf(passes, yes) | outcomesIf(!all, otherwise)
}

// inBuckets is false where a span is one value, whose hash is in none of the buckets.
func (p *inSpans[T]) inBuckets(f facts, s valueRange[T]) bool {
	if s.low == nil || s.high == nil || s.openLow || s.openHigh || p.domain.order.compare(*s.low, *s.high) != 0 {
		return true
	}
	for _, b := range f.buckets {
		l := literalOf(*s.low, p.column.typ)
		if l == nil {
			return true
		}
		bucket := b.transform.Apply(iceberg.Optional[iceberg.Literal]{Val: l, Valid: true})
		if !bucket.Valid {
			return true
		}
		if n, ok := integerOf(bucket.Val.Any()); ok && (n < b.low || n > b.high) {
			return false
		}
	}
	return true
}

// literalOf is a value as iceberg-go hashes it; nil for types that are not hashed.
func literalOf(value any, t iceberg.Type) iceberg.Literal {
	switch t := t.(type) {
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.NewLiteral(value.(int64))
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.NewLiteral(iceberg.TimestampNano(value.(int64)))
	case iceberg.DecimalType:
		return iceberg.DecimalLiteral{Val: value.(decimal128.Num), Scale: t.Scale()}
	case iceberg.StringType, iceberg.UUIDType, iceberg.BinaryType, iceberg.FixedType:
		return iceberg.NewLiteral(value.(string)) // hashed as its bytes
	}
	return nil
}

func outcomesIf(condition bool, t truth) outcomes {
	if condition {
		return only(t)
	}
	return 0
}

func ends[T any](f facts) (low, high *T) {
	if v, ok := f.low.(T); ok {
		low = &v
	}
	if v, ok := f.high.(T); ok {
		high = &v
	}
	return low, high
}

// both is what is known where both facts hold.
func (f facts) both(g facts) facts {
	f.null, f.nan, f.value = f.null && g.null, f.nan && g.nan, f.value && g.value
	f.low, f.high = tighter(f.low, g.low, 1), tighter(f.high, g.high, -1)
	f.buckets = slices.Concat(f.buckets, g.buckets)
	return f
}

// tighter is the greater (sign 1) or the lesser (-1) of two bounds.
func tighter(a, b any, sign int) any {
	if a == nil || (b != nil && sign*compareBounds(a, b) < 0) {
		return b
	}
	return a
}

// compareBounds compares values of one domain.
func compareBounds(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return wholeOrder.compare(a, b)
		}
	case float64:
		if b, ok := b.(float64); ok {
			return realOrder.compare(a, b)
		}
	case decimal128.Num:
		if b, ok := b.(decimal128.Num); ok {
			return a.Cmp(b)
		}
	case string:
		if b, ok := b.(string); ok {
			return textOrder.compare(a, b)
		}
	}
	return 0
}

// decodeBound decodes a bound as metadata stores it (Iceberg spec, "Binary single-value serialization"), of the column's
// type or of one that it was promoted from. It is nil where that is not possible, and where the bound says nothing.
func decodeBound(b []byte, t iceberg.Type) any {
	switch t.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return bounded(realDomain, b)
	case iceberg.DecimalType:
		return bounded(decimalDomain, b)
	case iceberg.StringType:
		if !byteOrdered(b) { // Java's order of strings is not that of their bytes
			return nil
		}
		return bounded(textDomain, b)
	case iceberg.UUIDType, iceberg.BinaryType, iceberg.FixedType:
		return bounded(textDomain, b)
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType:
		return bounded(wholeDomain, b)
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if len(b) == 8 { // four bytes are a date's
			return bounded(wholeDomain, b)
		}
	}
	return nil
}

func bounded[T any](d domain[T], b []byte) any {
	if v, ok := d.bound(b); ok {
		return v
	}
	return nil
}

func wholeBound(b []byte) (int64, bool) {
	if len(b) == 1 {
		return int64(b[0]), true
	}
	return integerBound(b)
}

func realBound(b []byte) (v float64, ok bool) {
	switch len(b) {
	case 4:
		v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case 8:
		v = math.Float64frombits(binary.LittleEndian.Uint64(b))
	default:
		return 0, false
	}
	return v, !math.IsNaN(v)
}

func decimalBound(b []byte) (decimal128.Num, bool) {
	if len(b) == 0 || len(b) > 16 {
		return decimal128.Num{}, false
	}
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return fitDecimal(n)
}

func textBound(b []byte) (string, bool) { return string(b), true }

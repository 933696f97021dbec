// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// truth is a value of SQL's logic. By this order AND is the least of its terms, OR the greatest, and NOT the mirror.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// rowSet is a batch under evaluation. Not safe for concurrent use.
type rowSet struct {
	batch  arrow.RecordBatch
	lookup map[int]columnValues
}

// columnValues is a column's array and those of the structs around it: a value in a struct that is NULL is NULL.
type columnValues struct {
	arrow.Array
	valid []validity
}

func (v columnValues) null(i int) bool {
	for k := range v.valid {
		if v.valid[k].null(i) {
			return true
		}
	}
	return false
}

func (r *rowSet) values(c boundColumn) (columnValues, error) {
	if v, ok := r.lookup[c.id]; ok {
		return v, nil
	}
	k := slices.IndexFunc(r.batch.Schema().Fields(), func(f arrow.Field) bool { return f.Name == c.path[0] })
	if k < 0 {
		return columnValues{}, fmt.Errorf("filtering: the batch has no column %s", c.path[0])
	}
	v := columnValues{Array: r.batch.Column(k)}
	v.see()
	for _, name := range c.path[1:] {
		parent, ok := v.Array.(*array.Struct)
		if !ok {
			if v.DataType().ID() == arrow.NULL {
				break
			}
			return v, fmt.Errorf("filtering: column %s is no struct but %s", name, v.DataType())
		}
		k, ok := parent.DataType().(*arrow.StructType).FieldIdx(name)
		if !ok {
			return v, fmt.Errorf("filtering: the batch has no field %s", name)
		}
		v.Array = parent.Field(k)
		v.see()
	}
	if r.lookup == nil {
		r.lookup = map[int]columnValues{}
	}
	r.lookup[c.id] = v
	return v, nil
}

// see adds the array's own nulls.
func (v *columnValues) see() {
	if v.DataType().ID() == arrow.NULL {
		v.valid = append(v.valid, validity{bits: make([]byte, v.Len()/8+1)})
		return
	}
	if own := validityOf(v.Array); own.bits != nil {
		v.valid = append(v.valid, own)
	}
}

type (
	allOf     []predicate
	anyOf     []predicate
	not       struct{ term predicate }
	always    struct{ value truth }
	nullCheck struct{ column boundColumn }
	nanCheck  struct{ column boundColumn }
	like      struct {
		column  boundColumn
		pattern pattern
	}
	// inSpans is a comparison, IN, or LIKE with a prefix: true for values in one of the spans, which are in order and apart.
	inSpans[T any] struct {
		column  boundColumn
		domain  domain[T]
		spans   []valueRange[T]
		nan     bool // NaN passes
		hasNull bool // NULL is compared with: what does not pass is unknown
	}
)

func (p allOf) evaluate(rows *rowSet) ([]truth, error) {
	return fold(p, rows, func(a, b truth) truth { return min(a, b) })
}

func (p anyOf) evaluate(rows *rowSet) ([]truth, error) {
	return fold(p, rows, func(a, b truth) truth { return max(a, b) })
}

func fold(terms []predicate, rows *rowSet, join func(a, b truth) truth) ([]truth, error) {
	out, err := terms[0].evaluate(rows)
	if err != nil {
		return nil, err
	}
	for _, term := range terms[1:] {
		next, err := term.evaluate(rows)
		if err != nil {
			return nil, err
		}
		for i, v := range next {
			out[i] = join(out[i], v)
		}
	}
	return out, nil
}

func (p not) evaluate(rows *rowSet) ([]truth, error) {
	out, err := p.term.evaluate(rows)
	for i := range out {
		out[i] = yes - out[i]
	}
	return out, err
}

func (p always) evaluate(rows *rowSet) ([]truth, error) {
	out := make([]truth, rows.batch.NumRows())
	for i := range out {
		out[i] = p.value
	}
	return out, nil
}

func (p nullCheck) evaluate(rows *rowSet) ([]truth, error) {
	v, err := rows.values(p.column)
	if err != nil {
		return nil, err
	}
	out := make([]truth, rows.batch.NumRows())
	for i := range out {
		out[i] = truthOf(v.null(i))
	}
	return out, nil
}

func (p nanCheck) evaluate(rows *rowSet) ([]truth, error) {
	v, err := rows.values(p.column)
	if err != nil {
		return nil, err
	}
	get, err := readReal(v.Array)
	if err != nil {
		return nil, err
	}
	out := make([]truth, rows.batch.NumRows())
	for i := range out {
		out[i] = truthOf(!v.null(i) && math.IsNaN(get(i)))
	}
	return out, nil
}

func (p like) evaluate(rows *rowSet) ([]truth, error) {
	return evaluateValues(rows, p.column, readText, func(s string) truth { return truthOf(p.pattern.matches(s)) })
}

func (p *inSpans[T]) evaluate(rows *rowSet) ([]truth, error) {
	otherwise := no
	if p.hasNull {
		otherwise = unknown
	}
	one := len(p.spans) == 1
	return evaluateValues(rows, p.column, p.domain.read, func(v T) truth {
		switch {
		case p.domain.isNaN != nil && p.domain.isNaN(v):
			if p.nan {
				return yes
			}
		case one && p.domain.order.holds(p.spans[0], v), !one && p.inAny(v):
			return yes
		}
		return otherwise
	})
}

// inAny searches the spans.
func (p *inSpans[T]) inAny(v T) bool {
	after := sort.Search(len(p.spans), func(i int) bool { // the first span that lies wholly above v
		s := p.spans[i]
		return s.low != nil && p.domain.order.compare(*s.low, v) > 0
	})
	for i := after - 1; i >= 0 && i >= after-2; i-- { // spans share no more than an open end
		if p.domain.order.holds(p.spans[i], v) {
			return true
		}
	}
	return false
}

func evaluateValues[T any](rows *rowSet, c boundColumn, read func(arrow.Array) (func(int) T, error), test func(T) truth) ([]truth, error) {
	v, err := rows.values(c)
	if err != nil {
		return nil, err
	}
	get, err := read(v.Array)
	if err != nil {
		return nil, err
	}
	out := make([]truth, rows.batch.NumRows())
	for i := range out {
		if v.null(i) {
			out[i] = unknown
		} else {
			out[i] = test(get(i))
		}
	}
	return out, nil
}

// domain is how the values of a column are ordered, and read from arrays and from bounds.
type domain[T any] struct {
	order ordering[T]
	read  func(arrow.Array) (func(int) T, error)
	isNaN func(T) bool // nil: there is none
	bound func([]byte) (T, bool)
}

var (
	wholeDomain   = domain[int64]{order: wholeOrder, read: readWhole, bound: wholeBound}
	realDomain    = domain[float64]{order: realOrder, read: readReal, isNaN: math.IsNaN, bound: realBound}
	decimalDomain = domain[decimal128.Num]{order: decimalOrder, read: readDecimal, bound: decimalBound}
	textDomain    = domain[string]{order: textOrder, read: readText, bound: textBound}
)

func unreadable[T any](a arrow.Array) (func(int) T, error) {
	if a.DataType().ID() == arrow.NULL { // every value is NULL, and not asked for
		return func(int) (v T) { return v }, nil
	}
	return nil, fmt.Errorf("filtering: values of Arrow type %s are not expected", a.DataType())
}

// throughDictionary reads through a dictionary.
func throughDictionary[T any](a *array.Dictionary, read func(arrow.Array) (func(int) T, error)) (func(int) T, error) {
	get, err := read(a.Dictionary())
	if err != nil {
		return nil, err
	}
	return func(i int) T { return get(a.GetValueIndex(i)) }, nil
}

func readWhole(a arrow.Array) (func(int) int64, error) {
	switch a := storage(a).(type) {
	case *array.Boolean:
		return func(i int) int64 {
			if a.Value(i) {
				return 1
			}
			return 0
		}, nil
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }, nil
	case *array.Int64:
		return a.Value, nil
	case *array.Date32:
		return func(i int) int64 { return int64(a.Value(i)) }, nil
	case *array.Time64:
		return func(i int) int64 { return int64(a.Value(i)) }, nil
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }, nil
	case *array.Dictionary:
		return throughDictionary(a, readWhole)
	}
	return unreadable[int64](a)
}

func readReal(a arrow.Array) (func(int) float64, error) {
	switch a := storage(a).(type) {
	case *array.Float32:
		return func(i int) float64 { return float64(a.Value(i)) }, nil
	case *array.Float64:
		return a.Value, nil
	case *array.Dictionary:
		return throughDictionary(a, readReal)
	}
	return unreadable[float64](a)
}

func readDecimal(a arrow.Array) (func(int) decimal128.Num, error) {
	switch a := storage(a).(type) {
	case *array.Decimal32:
		return func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) }, nil
	case *array.Decimal64:
		return func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) }, nil
	case *array.Decimal128:
		return a.Value, nil
	case *array.Dictionary:
		return throughDictionary(a, readDecimal)
	}
	return unreadable[decimal128.Num](a)
}

func readText(a arrow.Array) (func(int) string, error) {
	switch a := storage(a).(type) {
	case interface{ Value(int) string }: // strings of either offset width, and views
		return a.Value, nil
	case *array.Dictionary:
		return throughDictionary(a, readText)
	case interface{ Value(int) []byte }:
		return func(i int) string { return borrow(a.Value(i)) }, nil
	}
	return unreadable[string](a)
}

// borrow views bytes as a string, for as long as the array lives.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// filter is a query that is tied to a schema. It is immutable and safe for concurrent use.
type filter struct {
	query   *Query
	root    predicate
	columns []string // that it reads, dotted
}

// predicate is a bound expression.
type predicate interface {
	// evaluate is the outcome for each row; the caller may change what it gets.
	evaluate(rows *rowSet) ([]truth, error)
	// possible is every outcome that a row can have where facts hold of all rows. It errs towards more.
	possible(facts factsOf) outcomes
}

// boundColumn is a column of the schema that a predicate reads.
type boundColumn struct {
	id   int
	path []string // names of the column and of the structs around it, outermost first
	typ  iceberg.Type
}

// bind ties a query to a schema. Errors are *QueryError.
func (q *Query) bind(schema *iceberg.Schema) (*filter, error) {
	b := &binder{schema: schema}
	root, err := b.bind(q.root)
	if r, ok := errors.AsType[*refusal](err); ok {
		return nil, &QueryError{Text: q.text, Offset: r.at, Reason: r.reason}
	}
	return &filter{query: q, root: root, columns: b.columns}, err
}

type binder struct {
	schema  *iceberg.Schema
	columns []string
}

func (b *binder) bind(e expression) (predicate, error) {
	switch e := e.(type) {
	case conjunction:
		terms, err := b.bindAll(e.terms)
		return allOf(terms), err
	case disjunction:
		terms, err := b.bindAll(e.terms)
		return anyOf(terms), err
	case negation:
		term, err := b.bind(e.term)
		return not{term}, err
	case constant:
		return always(e), nil
	case bareColumn:
		return b.bareColumn(e)
	case nullTest:
		c, err := b.column(e.column)
		return nullCheck{c}, err
	case nanTest:
		return b.nanTest(e)
	case comparison:
		return b.test(e.column, e.operator, e.value)
	case membership:
		return b.test(e.column, equal, e.values...)
	case between:
		low, err := b.test(e.column, greaterOrEqual, e.low)
		if err != nil {
			return nil, err
		}
		high, err := b.test(e.column, lessOrEqual, e.high)
		return allOf{low, high}, err
	case likeTest:
		return b.likeTest(e)
	}
	return nil, fmt.Errorf("an expression of Go type %T is not known", e)
}

func (b *binder) bindAll(terms []expression) ([]predicate, error) {
	out := make([]predicate, len(terms))
	for i, term := range terms {
		var err error
		if out[i], err = b.bind(term); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// column looks a name up, through structs.
func (b *binder) column(name columnName) (boundColumn, error) {
	fields := b.schema.Fields()
	c := boundColumn{path: name.path}
	for i, part := range name.path {
		k := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == part })
		if k < 0 {
			return c, b.unknown(name, i)
		}
		c.id, c.typ = fields[k].ID, fields[k].Type
		fields = nil
		switch t := c.typ.(type) {
		case *iceberg.StructType:
			fields = t.FieldList
		case *iceberg.ListType, *iceberg.MapType:
			if i+1 < len(name.path) {
				return c, refuseAt(name.at, "%s lies inside of a %s, of which a row has many", name, t.Type())
			}
		}
	}
	full, ok := b.schema.FindColumnName(c.id)
	if !ok {
		return c, fmt.Errorf("schema %d names no field %d", b.schema.ID, c.id)
	}
	if !slices.Contains(b.columns, full) {
		b.columns = append(b.columns, full)
	}
	return c, nil
}

func (b *binder) unknown(name columnName, part int) error {
	reason := fmt.Sprintf("the table has no column %s", name)
	if part > 0 {
		reason = fmt.Sprintf("%s has no field %q", strings.Join(name.path[:part], "."), name.path[part])
	}
	if near := closeNames(name.String(), columnNames(b.schema)); len(near) > 0 {
		reason += "; it has " + strings.Join(near, ", ")
		if part > 0 {
			reason = strings.Replace(reason, "; it has", "; the table has", 1)
		}
	}
	return refuseAt(name.at, "%s", reason)
}

func (b *binder) bareColumn(e bareColumn) (predicate, error) {
	c, err := b.column(e.column)
	if err != nil {
		return nil, err
	}
	if _, ok := c.typ.(iceberg.BooleanType); !ok {
		return nil, refuseAt(e.column.at, "column %s is of type %s and no condition by itself", e.column, typeName(c.typ))
	}
	return b.test(e.column, equal, literal{kind: booleanLiteral, number: big.NewRat(1, 1)})
}

func (b *binder) nanTest(e nanTest) (predicate, error) {
	c, err := b.column(e.column)
	if err != nil {
		return nil, err
	}
	switch c.typ.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return nanCheck{c}, nil
	}
	return nil, refuseAt(e.column.at, "column %s is of type %s, which has no NaN", e.column, typeName(c.typ))
}

func (b *binder) likeTest(e likeTest) (predicate, error) {
	c, err := b.column(e.column)
	if err != nil {
		return nil, err
	}
	if _, ok := c.typ.(iceberg.StringType); !ok {
		return nil, refuseAt(e.column.at, "column %s is of type %s; LIKE needs a string", e.column, typeName(c.typ))
	}
	if e.pattern.exact || e.pattern.open {
		return &inSpans[string]{column: c, domain: textDomain, spans: []valueRange[string]{e.pattern.span()}}, nil
	}
	return like{column: c, pattern: e.pattern}, nil
}

// test binds a comparison with a value, or with any of several.
func (b *binder) test(name columnName, op operator, values ...literal) (predicate, error) {
	c, err := b.column(name)
	if err != nil {
		return nil, err
	}
	switch t := c.typ.(type) {
	case iceberg.Float32Type:
		return newTest(c, name, op, values, realDomain, func(l literal) (place[float64], bool, error) { return realPlace(l, true) })
	case iceberg.Float64Type:
		return newTest(c, name, op, values, realDomain, func(l literal) (place[float64], bool, error) { return realPlace(l, false) })
	case iceberg.DecimalType:
		return newTest(c, name, op, values, decimalDomain, func(l literal) (place[decimal128.Num], bool, error) { return decimalPlace(l, t.Scale()) })
	case iceberg.StringType, iceberg.UUIDType, iceberg.BinaryType, iceberg.FixedType:
		return newTest(c, name, op, values, textDomain, func(l literal) (place[string], bool, error) { return textPlace(l, t) })
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType,
		iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return newTest(c, name, op, values, wholeDomain, func(l literal) (place[int64], bool, error) { return wholePlace(l, t) })
	}
	return nil, refuseAt(name.at, "column %s is of type %s, which can only be tested with IS NULL", name, typeName(c.typ))
}

// newTest makes the test. locate finds a literal among the column's values, !ok where their types don't go together.
func newTest[T any](c boundColumn, name columnName, op operator, values []literal, d domain[T], locate func(literal) (place[T], bool, error)) (predicate, error) {
	t := &inSpans[T]{column: c, domain: d, nan: op == notEqual}
	var points []place[T]
	for _, v := range values {
		if v.kind == nullLiteral {
			t.hasNull = true
			continue
		}
		p, ok, err := locate(v)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, refuseAt(v.at, "column %s is of type %s and can't be compared with %s", name, typeName(c.typ), v)
		}
		points = append(points, p)
	}
	switch {
	case t.hasNull && len(values) == 1:
		t.nan = false
	case len(values) == 1:
		t.spans = points[0].spans(op)
	default:
		t.spans = d.order.members(points)
	}
	return t, nil
}

// typeName leaves out what nested types hold.
func typeName(t iceberg.Type) string {
	if nested, ok := t.(iceberg.NestedType); ok {
		return nested.Type()
	}
	return t.String()
}

func realPlace(l literal, single bool) (p place[float64], ok bool, err error) {
	if l.kind != numberLiteral {
		return p, false, nil
	}
	return realPoint(l.number, single), true, nil
}

func decimalPlace(l literal, scale int) (p place[decimal128.Num], ok bool, err error) {
	if l.kind != numberLiteral {
		return p, false, nil
	}
	n := new(big.Rat).Mul(l.number, powerOfTen(scale))
	greatest, _ := fitDecimal(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1)))
	return integerPoint(n, greatest.Negate(), greatest, fitDecimal), true, nil
}

func textPlace(l literal, t iceberg.Type) (p place[string], ok bool, err error) {
	switch t.(type) {
	case iceberg.StringType:
		return exactly(l.text), l.kind == stringLiteral, nil
	case iceberg.UUIDType:
		if l.kind != stringLiteral {
			return p, false, nil
		}
		bytes, ok := readUUID(l.text)
		if !ok {
			return p, false, refuseAt(l.at, "%s is no UUID", clip(l.source))
		}
		return exactly(bytes), true, nil
	}
	return exactly(l.text), l.kind == binaryLiteral, nil
}

// wholePlace finds booleans, integers, dates and times. A string is read as the column's type.
func wholePlace(l literal, t iceberg.Type) (p place[int64], ok bool, err error) {
	if l.kind == stringLiteral {
		if l, ok, err = readAs(l, t); err != nil || !ok {
			return p, false, err
		}
	}
	unit := big.NewRat(1, 1)
	switch t.(type) {
	case iceberg.BooleanType:
		ok = l.kind == booleanLiteral
	case iceberg.Int32Type, iceberg.Int64Type:
		ok = l.kind == numberLiteral
	case iceberg.DateType:
		ok = l.kind == dateLiteral || l.kind == timestampLiteral
		unit.SetInt64(nanosPerDay)
	case iceberg.TimeType:
		ok = l.kind == timeLiteral
		unit.SetInt64(1000)
	case iceberg.TimestampType:
		ok = l.kind == dateLiteral || l.kind == timestampLiteral
		unit.SetInt64(1000)
	case iceberg.TimestampTzType:
		ok = l.kind == dateLiteral || l.kind == timestampLiteral || l.kind == zonedLiteral
		unit.SetInt64(1000)
	case iceberg.TimestampNsType:
		ok = l.kind == dateLiteral || l.kind == timestampLiteral
	case iceberg.TimestampTzNsType:
		ok = l.kind == dateLiteral || l.kind == timestampLiteral || l.kind == zonedLiteral
	}
	if !ok {
		return p, false, nil
	}
	return integerPoint(new(big.Rat).Quo(l.number, unit), math.MinInt64, math.MaxInt64, fitInt64), true, nil
}

const nanosPerDay = 24 * 60 * 60 * 1_000_000_000

// readAs reads a string as a date, time or timestamp, by the column's type; !ok for other columns.
func readAs(l literal, t iceberg.Type) (literal, bool, error) {
	var ok bool
	switch t.(type) {
	case iceberg.DateType:
		l.kind = dateLiteral
		l.number, ok = readDate(l.text)
	case iceberg.TimeType:
		l.kind = timeLiteral
		l.number, ok = readTime(l.text)
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		l.kind, l.number, ok = readTimestamp(l.text)
	default:
		return l, false, nil
	}
	if !ok {
		return l, false, refuseAt(l.at, "%s is no %s", clip(l.source), t)
	}
	return l, true, nil
}

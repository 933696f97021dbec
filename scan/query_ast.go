// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math/big"
	"strings"
)

// expression is what a query can mean, before a schema says what its names are. Values follow SQL: NULL makes a comparison
// unknown, unknown goes through AND, OR and NOT by Kleene's logic, and only rows whose value is true pass. NaN equals
// nothing and is neither less nor greater than anything.
type expression interface{ isExpression() }

type (
	conjunction struct{ terms []expression }
	disjunction struct{ terms []expression }
	negation    struct{ term expression }
	// comparison has its column on the left, whichever side it was written on.
	comparison struct {
		column   columnName
		operator operator
		value    literal
	}
	membership struct {
		column columnName
		values []literal
	}
	between struct {
		column    columnName
		low, high literal
	}
	nullTest struct{ column columnName } // is never unknown
	nanTest  struct{ column columnName } // is never unknown; NULL is not NaN
	likeTest struct {
		column  columnName
		at      int
		pattern pattern
	}
	bareColumn struct{ column columnName } // a boolean column by itself
	constant   struct{ value truth }
)

func (conjunction) isExpression() {}
func (disjunction) isExpression() {}
func (negation) isExpression()    {}
func (comparison) isExpression()  {}
func (membership) isExpression()  {}
func (between) isExpression()     {}
func (nullTest) isExpression()    {}
func (nanTest) isExpression()     {}
func (likeTest) isExpression()    {}
func (bareColumn) isExpression()  {}
func (constant) isExpression()    {}

// operator is a comparison's.
type operator string

const (
	equal          operator = "="
	notEqual       operator = "<>"
	less           operator = "<"
	lessOrEqual    operator = "<="
	greater        operator = ">"
	greaterOrEqual operator = ">="
)

// flipped is the operator with its sides exchanged.
func (o operator) flipped() operator {
	switch o {
	case less:
		return greater
	case lessOrEqual:
		return greaterOrEqual
	case greater:
		return less
	case greaterOrEqual:
		return lessOrEqual
	}
	return o
}

// columnName is a column as the query names it.
type columnName struct {
	at   int
	path []string
}

func (c columnName) String() string { return strings.Join(c.path, ".") }

// literalKind is the type that a literal is written in.
type literalKind string

const (
	nullLiteral      literalKind = "NULL"
	booleanLiteral   literalKind = "boolean"
	numberLiteral    literalKind = "number"
	stringLiteral    literalKind = "string"
	binaryLiteral    literalKind = "binary"
	dateLiteral      literalKind = "date"
	timeLiteral      literalKind = "time"
	timestampLiteral literalKind = "timestamp"
	zonedLiteral     literalKind = "timestamp with zone"
)

// literal is a value in a query.
type literal struct {
	at     int
	source string // for messages
	kind   literalKind
	// text is the value of strings and binaries; number that of booleans (0, 1), of numbers, and in nanoseconds, since
	// midnight or 1970, of times, dates and timestamps.
	text   string
	number *big.Rat
}

func (l literal) String() string {
	if l.kind == nullLiteral {
		return "NULL"
	}
	return "the " + string(l.kind) + " " + clip(l.source)
}

// item is what stands where a value or a condition may: one of the three.
type item struct {
	at        int
	column    *columnName
	literal   *literal
	condition expression
}

// condition is the item as a condition.
func (i item) asCondition() (expression, error) {
	switch {
	case i.condition != nil:
		return i.condition, nil
	case i.column != nil:
		return bareColumn{*i.column}, nil
	case i.literal.kind == nullLiteral:
		return constant{unknown}, nil
	case i.literal.kind == booleanLiteral:
		return constant{truthOf(i.literal.number.Sign() != 0)}, nil
	}
	return nil, refuseAt(i.at, "%s is no condition", i.literal)
}

func (i item) asLiteral() (literal, error) {
	switch {
	case i.column != nil:
		return literal{}, refuseAt(i.at, "column %s stands where a literal is expected; columns can't be compared with columns, and strings stand in single quotes", i.column)
	case i.condition != nil:
		return literal{}, refuseAt(i.at, "a condition stands where a literal is expected")
	}
	return *i.literal, nil
}

func (t *orTree) expression() (expression, error) {
	i, err := t.item()
	if err != nil {
		return nil, err
	}
	return i.asCondition()
}

func (t *orTree) item() (item, error) {
	if len(t.Terms) == 1 {
		return t.Terms[0].item()
	}
	terms, err := conditions(t.Terms)
	return item{at: t.Pos.Offset, condition: disjunction{terms}}, err
}

func (t *andTree) item() (item, error) {
	if len(t.Terms) == 1 {
		return t.Terms[0].item()
	}
	terms, err := conditions(t.Terms)
	return item{at: t.Pos.Offset, condition: conjunction{terms}}, err
}

func conditions[T interface{ item() (item, error) }](trees []T) ([]expression, error) {
	out := make([]expression, len(trees))
	for k, tree := range trees {
		i, err := tree.item()
		if err != nil {
			return nil, err
		}
		if out[k], err = i.asCondition(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (t *notTree) item() (item, error) {
	i, err := t.Left.item()
	if err == nil && t.Test != nil {
		i.condition, err = t.Test.apply(i)
		i.column, i.literal = nil, nil
	}
	if err != nil || len(t.Nots) == 0 {
		return i, err
	}
	e, err := i.asCondition()
	if err == nil && len(t.Nots)%2 == 1 {
		e = negation{e}
	}
	return item{at: t.Pos.Offset, condition: e}, err
}

// apply is the condition that a test makes of what stands on its left.
func (t *testTree) apply(left item) (expression, error) {
	if t.Compare != nil {
		return t.Compare.apply(left)
	}
	if left.literal != nil {
		return nil, refuseAt(left.at, "%s stands where a column is expected", left.literal)
	}
	if left.condition != nil {
		return nil, refuseAt(left.at, "a condition stands where a column is expected")
	}
	var e expression
	var err error
	negated := t.Negated
	switch {
	case t.Is != nil:
		e, err = t.Is.apply(*left.column)
		negated = t.Is.Negated
	case t.In != nil:
		e, err = t.In.apply(*left.column)
	case t.Between != nil:
		e, err = t.Between.apply(*left.column)
	default:
		e, err = t.Like.apply(*left.column)
	}
	if err == nil && negated {
		e = negation{e}
	}
	return e, err
}

func (t *compareTree) apply(left item) (expression, error) {
	right, err := t.Right.item()
	if err != nil {
		return nil, err
	}
	op := operator(t.Operator)
	switch t.Operator {
	case "!=":
		op = notEqual
	case "==":
		op = equal
	case "<=>":
		return nil, refuseAt(left.at, "the operator <=> is not supported: use = and IS NULL")
	}
	if left.literal != nil && right.literal != nil {
		return nil, refuseAt(left.at, "two literals are compared; one side has to be a column")
	}
	if left.literal != nil {
		left, right, op = right, left, op.flipped()
	}
	if left.condition != nil {
		return nil, refuseAt(left.at, "a condition stands where a column is expected")
	}
	value, err := right.asLiteral()
	return comparison{*left.column, op, value}, err
}

func (t *isTree) apply(column columnName) (expression, error) {
	switch strings.ToUpper(t.What) {
	case "NULL":
		return nullTest{column}, nil
	case "NAN":
		return nanTest{column}, nil
	}
	return nil, refuseAt(t.Pos.Offset, "IS %s is not supported: there are IS NULL and IS NAN", strings.ToUpper(t.What))
}

func (t *listTree) apply(column columnName) (expression, error) {
	m := membership{column: column}
	for _, v := range t.Values {
		value, err := v.literal()
		if err != nil {
			return nil, err
		}
		m.values = append(m.values, value)
	}
	return m, nil
}

func (t *betweenTree) apply(column columnName) (expression, error) {
	low, err := t.Low.literal()
	if err != nil {
		return nil, err
	}
	high, err := t.High.literal()
	return between{column, low, high}, err
}

func (t *likeTree) apply(column columnName) (expression, error) {
	if t.Operator != "LIKE" {
		return nil, refuseAt(t.Pos.Offset, "%s is not supported; LIKE is", t.Operator)
	}
	text, err := t.Pattern.literal()
	if err != nil {
		return nil, err
	}
	if text.kind == nullLiteral {
		return constant{unknown}, nil
	}
	if text.kind != stringLiteral {
		return nil, refuseAt(text.at, "LIKE needs a string, not %s", text)
	}
	escape := ""
	if t.Escape != nil {
		e, err := t.Escape.literal()
		if err != nil {
			return nil, err
		}
		if e.kind != stringLiteral || len([]rune(e.text)) != 1 {
			return nil, refuseAt(e.at, "ESCAPE needs a string of one character")
		}
		escape = e.text
	}
	p, ok := newPattern(text.text, escape)
	if !ok {
		return nil, refuseAt(text.at, "in the pattern %s an escape character does not stand before %%, _ or itself", clip(text.source))
	}
	return likeTest{column, text.at, p}, nil
}

func (t *valueTree) literal() (literal, error) {
	i, err := t.item()
	if err != nil {
		return literal{}, err
	}
	return i.asLiteral()
}

func (t *valueTree) item() (item, error) {
	if len(t.Rest) > 0 {
		r := t.Rest[0]
		return item{}, refuseAt(r.Pos.Offset, "the operator %s is not supported: a query compares columns with literals", r.Operator)
	}
	return t.First.item()
}

func (t *termTree) item() (item, error) {
	at := t.Pos.Offset
	negative := false
	for _, sign := range t.Signs {
		negative = negative != (sign == "-")
	}
	if len(t.Signs) > 0 && t.Number == nil {
		return item{}, refuseAt(at, "a sign can only stand before a number")
	}
	switch {
	case t.Group != nil:
		return t.Group.item()
	case t.Column != nil:
		return item{at: at, column: newColumnName(at, t.Column)}, nil
	case t.Call != nil:
		return t.Call.item()
	}
	l, err := t.readLiteral(negative)
	return item{at: at, literal: &l}, err
}

// item is isnan(column); there are no other functions.
func (t *callTree) item() (item, error) {
	at := t.Pos.Offset
	if !strings.EqualFold(t.Name, "isnan") {
		return item{}, refuseAt(at, "the function %s is not supported; isnan is the only one", clip(t.Name))
	}
	if len(t.Arguments) == 1 {
		i, err := t.Arguments[0].item()
		if err != nil {
			return item{}, err
		}
		if i.column != nil {
			return item{at: at, condition: nanTest{*i.column}}, nil
		}
	}
	return item{}, refuseAt(at, "isnan takes one column")
}

func newColumnName(at int, parts []string) *columnName {
	c := &columnName{at: at}
	for _, part := range parts {
		switch quote := part[:1]; quote {
		case `"`, "`":
			part = strings.ReplaceAll(part[1:len(part)-1], quote+quote, quote)
		}
		c.path = append(c.path, part)
	}
	return c
}

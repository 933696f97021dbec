// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// This file is SQL once more, from docs/query.md and not from query_*.go: random expressions that know their text and,
// row by row, whether they are true. Nothing of it goes through the parser or the evaluator that are under test.

// sqlCell is a value of a column: nil for NULL, bool, int64 in the column's unit (booleans aside all whole numbers, dates and
// times), *big.Int for unscaled decimals, float64, or string for texts and bytes.
type sqlCell any

// sqlRow holds cells by column; a field of a struct under its dotted name, a struct or list as whether it is there.
type sqlRow map[string]sqlCell

// sqlTruth is TRUE, FALSE or UNKNOWN.
type sqlTruth string

const (
	sqlTrue    sqlTruth = "TRUE"
	sqlFalse   sqlTruth = "FALSE"
	sqlUnknown sqlTruth = "UNKNOWN"
)

// SQL:2016, 6.39, tables 11 and 12.
var (
	sqlAnd = map[[2]sqlTruth]sqlTruth{
		{sqlTrue, sqlTrue}: sqlTrue, {sqlTrue, sqlFalse}: sqlFalse, {sqlTrue, sqlUnknown}: sqlUnknown,
		{sqlFalse, sqlTrue}: sqlFalse, {sqlFalse, sqlFalse}: sqlFalse, {sqlFalse, sqlUnknown}: sqlFalse,
		{sqlUnknown, sqlTrue}: sqlUnknown, {sqlUnknown, sqlFalse}: sqlFalse, {sqlUnknown, sqlUnknown}: sqlUnknown,
	}
	sqlOr = map[[2]sqlTruth]sqlTruth{
		{sqlTrue, sqlTrue}: sqlTrue, {sqlTrue, sqlFalse}: sqlTrue, {sqlTrue, sqlUnknown}: sqlTrue,
		{sqlFalse, sqlTrue}: sqlTrue, {sqlFalse, sqlFalse}: sqlFalse, {sqlFalse, sqlUnknown}: sqlUnknown,
		{sqlUnknown, sqlTrue}: sqlTrue, {sqlUnknown, sqlFalse}: sqlUnknown, {sqlUnknown, sqlUnknown}: sqlUnknown,
	}
	sqlNot = map[sqlTruth]sqlTruth{sqlTrue: sqlFalse, sqlFalse: sqlTrue, sqlUnknown: sqlUnknown}
)

func sqlTruthOf(b bool) sqlTruth {
	if b {
		return sqlTrue
	}
	return sqlFalse
}

// sqlExpression is a condition in its two forms.
type sqlExpression struct {
	text string
	of   func(sqlRow) sqlTruth
}

// sqlClass is how a column's values are written and compared.
type sqlClass string

const (
	sqlBoolean   sqlClass = "boolean"
	sqlWhole     sqlClass = "whole"
	sqlDecimal   sqlClass = "decimal"
	sqlFloat     sqlClass = "float"
	sqlDouble    sqlClass = "double"
	sqlDate      sqlClass = "date"
	sqlTime      sqlClass = "time"
	sqlTimestamp sqlClass = "timestamp" // without zone
	sqlZoned     sqlClass = "timestamptz"
	sqlText      sqlClass = "text"
	sqlUUID      sqlClass = "uuid"
	sqlBytes     sqlClass = "bytes"
	sqlNested    sqlClass = "nested" // only IS NULL
)

// sqlColumn is a column of the tables here.
type sqlColumn struct {
	name, quoted string
	class        sqlClass
	unit         int64 // of dates and times, in nanoseconds; of decimals, 10^scale
	draw         func(*rapid.T) sqlCell
}

// sqlLiteral is a literal and what it means: text for strings and bytes, exact for all numbers and moments (nanoseconds
// since midnight or 1970), written for what a float is read from.
type sqlLiteral struct {
	text    string
	null    bool
	exact   *big.Rat
	meaning string
	written string
}

// exact is a sqlCell as a number; moments in nanoseconds.
func (c sqlColumn) exact(v sqlCell) *big.Rat {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewRat(1, 1)
		}
		return new(big.Rat)
	case int64:
		if c.unit > 1 {
			return new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(v), big.NewInt(c.unit)))
		}
		return new(big.Rat).SetInt64(v)
	case *big.Int:
		return new(big.Rat).SetFrac(v, big.NewInt(c.unit))
	}
	return nil
}

// compare is the sign of a sqlCell against a literal; !ordered for NaN.
func (c sqlColumn) compare(v sqlCell, l sqlLiteral) (sign int, ordered bool) {
	switch v := v.(type) {
	case string:
		return strings.Compare(v, l.meaning), true
	case float64:
		return compareFloat(v, l, c.class == sqlFloat)
	}
	return c.exact(v).Cmp(l.exact), true
}

func compareFloat(v float64, l sqlLiteral, single bool) (sign int, ordered bool) {
	bits := 64
	if single {
		bits = 32
	}
	rounded, err := strconv.ParseFloat(l.written, bits)
	switch {
	case math.IsNaN(v):
		return 0, false
	case err != nil && math.IsInf(v, 0): // beyond the type's range, and yet finite
		return int(math.Copysign(1, v)), true
	case err != nil:
		return -int(math.Copysign(1, rounded)), true
	case v < rounded:
		return -1, true
	case v > rounded:
		return 1, true
	}
	return 0, true
}

func (c sqlColumn) holds(v sqlCell, operator string, l sqlLiteral) sqlTruth {
	if v == nil || l.null {
		return sqlUnknown
	}
	sign, ordered := c.compare(v, l)
	switch operator {
	case "=", "==":
		return sqlTruthOf(ordered && sign == 0)
	case "<>", "!=":
		return sqlTruthOf(!ordered || sign != 0)
	case "<":
		return sqlTruthOf(ordered && sign < 0)
	case "<=":
		return sqlTruthOf(ordered && sign <= 0)
	case ">":
		return sqlTruthOf(ordered && sign > 0)
	case ">=":
		return sqlTruthOf(ordered && sign >= 0)
	}
	panic(operator)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// literal draws a literal that the column can be compared with, mostly near its values.
func (c sqlColumn) literal(t *rapid.T) sqlLiteral {
	v := c.draw(t)
	if v == nil {
		return sqlLiteral{text: "NULL", null: true}
	}
	switch c.class {
	case sqlBoolean:
		return sqlLiteral{text: rapid.SampledFrom([]string{strings.ToUpper(fmt.Sprint(v)), fmt.Sprint(v)}).Draw(t, "case"), exact: c.exact(v)}
	case sqlWhole, sqlDecimal, sqlFloat, sqlDouble:
		return c.number(t, v)
	case sqlDate, sqlTimestamp, sqlZoned:
		return c.moment(t, v.(int64))
	case sqlTime:
		return timeLiteralOf(t, v.(int64))
	case sqlText:
		return sqlLiteral{text: quoted(v.(string)), meaning: v.(string)}
	case sqlUUID:
		text := uuid.UUID([]byte(v.(string))).String()
		if rapid.Bool().Draw(t, "upper case") {
			text = strings.ToUpper(text)
		}
		return sqlLiteral{text: rapid.SampledFrom([]string{"", "UUID "}).Draw(t, "type") + quoted(text), meaning: v.(string)}
	}
	return sqlLiteral{text: "X'" + hex.EncodeToString([]byte(v.(string))) + "'", meaning: v.(string)}
}

func (c sqlColumn) number(t *rapid.T, v sqlCell) sqlLiteral {
	var text string
	if f, ok := v.(float64); ok {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = math.Copysign(1e300, f)
		}
		bits := 64
		if c.class == sqlFloat && math.Abs(f) <= math.MaxFloat32 {
			bits = 32
		}
		text = strconv.FormatFloat(f, 'g', -1, bits)
	} else {
		text = c.exact(v).FloatString(2)
		if c.class == sqlWhole {
			text = c.exact(v).FloatString(0)
		}
	}
	switch rapid.IntRange(0, 7).Draw(t, "off") {
	case 0:
		text = rapid.SampledFrom([]string{"1e400", "-1e400", "99999999999999999999999999", "-0", "0.1", "2.5", "1e-3", ".5", "3.", "-1E2"}).Draw(t, "edge")
	case 1:
		if !strings.ContainsAny(text, ".e") {
			text += ".5"
		}
	case 2:
		if strings.Contains(text, ".") && !strings.Contains(text, "e") {
			text += "01"
		}
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return sqlLiteral{text: text, exact: exact, written: text}
}

// moment draws a literal for a date or timestamp.
func (c sqlColumn) moment(t *rapid.T, v int64) sqlLiteral {
	at := momentOf(v, c.unit)
	if at.Year() < 1 || at.Year() > 9998 {
		at = time.Date(2024, 2, 29, 12, 30, 15, 123456789, time.UTC)
	}
	nanos := func(at time.Time) *big.Rat {
		n := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(1e9))
		return new(big.Rat).SetInt(n.Add(n, big.NewInt(int64(at.Nanosecond()))))
	}
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	switch kind := rapid.IntRange(0, 3).Draw(t, "literal"); {
	case kind == 0 || (c.class == sqlDate && kind == 1):
		return sqlLiteral{text: "DATE " + quoted(day.Format(time.DateOnly)), exact: nanos(day)}
	case c.class == sqlDate && kind == 2:
		return sqlLiteral{text: quoted(day.Format(time.DateOnly)), exact: nanos(day)}
	case kind == 1 && c.class == sqlZoned:
		zone := rapid.SampledFrom([]int{-5 * 60, 0, 90, 14 * 60}).Draw(t, "zone")
		local := at.In(time.FixedZone("", zone*60))
		return sqlLiteral{text: "TIMESTAMP " + quoted(local.Format("2006-01-02 15:04:05.999999999Z07:00")), exact: nanos(at)}
	}
	layout := rapid.SampledFrom([]string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999"}).Draw(t, "layout")
	prefix := "TIMESTAMP "
	if c.class != sqlDate {
		prefix = rapid.SampledFrom([]string{"TIMESTAMP ", "timestamp ", ""}).Draw(t, "type")
	}
	if rapid.IntRange(0, 3).Draw(t, "finer") == 0 {
		at = at.Add(time.Nanosecond)
	}
	return sqlLiteral{text: prefix + quoted(at.Format(layout)), exact: nanos(at)}
}

// momentOf is a moment so many units after 1970.
func momentOf(v, unit int64) time.Time {
	if unit >= int64(time.Second) {
		return time.Unix(v*(unit/int64(time.Second)), 0).UTC()
	}
	perSecond := int64(time.Second) / unit
	return time.Unix(v/perSecond, v%perSecond*unit).UTC()
}

func timeLiteralOf(t *rapid.T, micros int64) sqlLiteral {
	at := time.UnixMicro(micros).UTC()
	text := at.Format("15:04:05.999999")
	if at.Second() == 0 && at.Nanosecond() == 0 {
		text = at.Format("15:04")
	}
	return sqlLiteral{text: rapid.SampledFrom([]string{"TIME ", ""}).Draw(t, "type") + quoted(text), exact: big.NewRat(micros*1000, 1)}
}

// drawSQL draws an expression over the columns.
func drawSQL(t *rapid.T, columns []sqlColumn, depth int) sqlExpression {
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "joined") > 0 {
		return drawJoined(t, columns, depth)
	}
	if rapid.IntRange(0, 40).Draw(t, "constant") == 0 {
		text := rapid.SampledFrom([]string{"TRUE", "FALSE", "NULL"}).Draw(t, "truth")
		v := map[string]sqlTruth{"TRUE": sqlTrue, "FALSE": sqlFalse, "NULL": sqlUnknown}[text]
		return sqlExpression{text, func(sqlRow) sqlTruth { return v }}
	}
	c := rapid.SampledFrom(columns).Draw(t, "column")
	if c.class == sqlNested || rapid.IntRange(0, 6).Draw(t, "is null") == 0 {
		return drawNot(t, c.quoted+" IS ", "NULL", func(r sqlRow) sqlTruth { return sqlTruthOf(r[c.name] == nil) })
	}
	switch kind := rapid.IntRange(0, 5).Draw(t, "test"); {
	case kind == 0:
		return drawIn(t, c)
	case kind == 1:
		low, high := c.literal(t), c.literal(t)
		return drawNot(t, c.quoted+" ", "BETWEEN "+low.text+" AND "+high.text, func(r sqlRow) sqlTruth {
			return sqlAnd[[2]sqlTruth{c.holds(r[c.name], ">=", low), c.holds(r[c.name], "<=", high)}]
		})
	case kind == 2 && (c.class == sqlFloat || c.class == sqlDouble):
		isNaN := func(r sqlRow) sqlTruth {
			f, ok := r[c.name].(float64)
			return sqlTruthOf(ok && math.IsNaN(f))
		}
		if rapid.Bool().Draw(t, "function") {
			return sqlExpression{"isnan(" + c.quoted + ")", isNaN}
		}
		return drawNot(t, c.quoted+" IS ", "NAN", isNaN)
	case kind <= 3 && c.class == sqlText:
		return drawLike(t, c)
	case kind == 2 && c.class == sqlBoolean:
		return sqlExpression{c.quoted, func(r sqlRow) sqlTruth { return c.holds(r[c.name], "=", sqlLiteral{exact: big.NewRat(1, 1)}) }}
	}
	return drawComparison(t, c)
}

func drawJoined(t *rapid.T, columns []sqlColumn, depth int) sqlExpression {
	a := drawSQL(t, columns, depth-1)
	how := rapid.SampledFrom([]string{"AND", "OR", "and", "NOT"}).Draw(t, "how")
	if how == "NOT" {
		return sqlExpression{"NOT (" + a.text + ")", func(r sqlRow) sqlTruth { return sqlNot[a.of(r)] }}
	}
	b := drawSQL(t, columns, depth-1)
	join := sqlAnd
	if how == "OR" {
		join = sqlOr
	}
	return sqlExpression{"((" + a.text + ") " + how + " " + "(" + b.text + "))", func(r sqlRow) sqlTruth { return join[[2]sqlTruth{a.of(r), b.of(r)}] }}
}

// drawNot puts NOT between before and test, or not.
func drawNot(t *rapid.T, before, test string, of func(sqlRow) sqlTruth) sqlExpression {
	if rapid.Bool().Draw(t, "not") {
		return sqlExpression{before + "NOT " + test, func(r sqlRow) sqlTruth { return sqlNot[of(r)] }}
	}
	return sqlExpression{before + test, of}
}

func drawIn(t *rapid.T, c sqlColumn) sqlExpression {
	var values []sqlLiteral
	var texts []string
	for range rapid.IntRange(1, 4).Draw(t, "members") {
		l := c.literal(t)
		values, texts = append(values, l), append(texts, l.text)
	}
	return drawNot(t, c.quoted+" ", "IN ("+strings.Join(texts, ", ")+")", func(r sqlRow) sqlTruth {
		out := sqlFalse
		for _, l := range values {
			out = sqlOr[[2]sqlTruth{out, c.holds(r[c.name], "=", l)}]
		}
		return out
	})
}

func drawComparison(t *rapid.T, c sqlColumn) sqlExpression {
	operator := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">=", "!=", "=="}).Draw(t, "operator")
	l := c.literal(t)
	of := func(r sqlRow) sqlTruth { return c.holds(r[c.name], operator, l) }
	if rapid.Bool().Draw(t, "flipped") {
		mirrored := strings.NewReplacer("<>", "<>", "<", ">", ">", "<").Replace(operator)
		return sqlExpression{l.text + " " + mirrored + " " + c.quoted, of}
	}
	return sqlExpression{c.quoted + " " + operator + " " + l.text, of}
}

// drawLike draws a pattern, and the regular expression that means the same.
func drawLike(t *rapid.T, c sqlColumn) sqlExpression {
	escape := rapid.SampledFrom([]string{"", "", `\`, "!"}).Draw(t, "escape")
	var pattern, expression strings.Builder
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		switch part := rapid.SampledFrom([]string{"%", "_", "a", "b", "ab", "ä", "'", "\U0001F600", "escaped %", "escaped _", "escaped"}).Draw(t, "part"); part {
		case "%":
			pattern.WriteString("%")
			expression.WriteString("(?s:.*)")
		case "_":
			pattern.WriteString("_")
			expression.WriteString("(?s:.)")
		case "escaped %", "escaped _", "escaped":
			if escape == "" {
				continue
			}
			special := strings.TrimPrefix(strings.TrimPrefix(part, "escaped"), " ")
			if special == "" {
				special = escape
			}
			pattern.WriteString(escape + special)
			expression.WriteString(regexp.QuoteMeta(special))
		default:
			pattern.WriteString(part)
			expression.WriteString(regexp.QuoteMeta(part))
		}
	}
	matches := regexp.MustCompile("^(?:" + expression.String() + ")$")
	test := "LIKE " + quoted(pattern.String())
	if escape != "" {
		test += " ESCAPE " + quoted(escape)
	}
	return drawNot(t, c.quoted+" ", test, func(r sqlRow) sqlTruth {
		s, ok := r[c.name].(string)
		if !ok {
			return sqlUnknown
		}
		return sqlTruthOf(matches.MatchString(s))
	})
}

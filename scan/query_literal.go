// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/hex"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const maxExponent = 1000 // of ten; no column type comes near

func (t *termTree) readLiteral(negative bool) (literal, error) {
	at := t.Pos.Offset
	switch {
	case t.Number != nil:
		return readNumber(at, *t.Number, negative)
	case t.Text != nil:
		return literal{at: at, source: *t.Text, kind: stringLiteral, text: unquoted(*t.Text)}, nil
	case t.Hex != nil:
		bytes, err := hex.DecodeString((*t.Hex)[2 : len(*t.Hex)-1])
		if err != nil {
			return literal{}, refuseAt(at, "%s does not hold pairs of hexadecimal digits", clip(*t.Hex))
		}
		return literal{at: at, source: *t.Hex, kind: binaryLiteral, text: string(bytes)}, nil
	case t.Typed != nil:
		return t.Typed.read()
	}
	switch *t.Word {
	case "NULL":
		return literal{at: at, source: "NULL", kind: nullLiteral}, nil
	case "TRUE":
		return literal{at: at, source: "TRUE", kind: booleanLiteral, number: big.NewRat(1, 1)}, nil
	}
	return literal{at: at, source: "FALSE", kind: booleanLiteral, number: new(big.Rat)}, nil
}

func unquoted(text string) string { return strings.ReplaceAll(text[1:len(text)-1], "''", "'") }

func readNumber(at int, text string, negative bool) (literal, error) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	power := 0
	if scientific {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil || power > maxExponent || power < -maxExponent {
			return literal{}, refuseAt(at, "the exponent of %s is beyond %d", clip(text), maxExponent)
		}
	}
	n, ok := new(big.Rat).SetString(strings.TrimSuffix(mantissa, "."))
	if !ok {
		return literal{}, refuseAt(at, "%s is no number", clip(text))
	}
	if power != 0 {
		n.Mul(n, powerOfTen(power))
	}
	if negative {
		n.Neg(n)
		text = "-" + text
	}
	return literal{at: at, source: text, kind: numberLiteral, number: n}, nil
}

func powerOfTen(power int) *big.Rat {
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil)
	if power < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), ten)
	}
	return new(big.Rat).SetInt(ten)
}

func (t *typedTree) read() (literal, error) {
	at, text := t.Pos.Offset, unquoted(t.Text)
	l := literal{at: at, source: t.Type + " " + t.Text}
	ok := true
	switch name := strings.ToUpper(t.Type); name {
	case "DATE":
		l.kind = dateLiteral
		l.number, ok = readDate(text)
	case "TIME":
		l.kind = timeLiteral
		l.number, ok = readTime(text)
	case "TIMESTAMP", "TIMESTAMPTZ":
		l.kind, l.number, ok = readTimestamp(text)
	case "UUID":
		l.kind, l.text = stringLiteral, text
		_, ok = readUUID(text)
	default:
		return l, refuseAt(at, "literals of type %s are not supported; DATE, TIME, TIMESTAMP and UUID are", clip(t.Type))
	}
	if !ok {
		return l, refuseAt(at, "%s is no %s", clip(t.Text), strings.ToUpper(t.Type))
	}
	return l, nil
}

// Fractions have at most nine digits; time.Parse would cut longer ones off.
var (
	timePattern      = regexp.MustCompile(`^\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$`)
	timestampPattern = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})([T ](\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?) ?(Z|z|[+-]\d{2}(:?\d{2})?)?)?$`)
)

func nanoseconds(t time.Time) *big.Rat {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(int64(time.Second)))
	return new(big.Rat).SetInt(n.Add(n, big.NewInt(int64(t.Nanosecond()))))
}

func readDate(text string) (*big.Rat, bool) {
	t, err := time.Parse("2006-01-02", text)
	return nanoseconds(t), err == nil
}

// readTime is the time since midnight.
func readTime(text string) (*big.Rat, bool) {
	if !timePattern.MatchString(text) {
		return nil, false
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse("2006-01-02 "+layout, "1970-01-01 "+text); err == nil {
			return nanoseconds(t), true
		}
	}
	return nil, false
}

func readTimestamp(text string) (literalKind, *big.Rat, bool) {
	m := timestampPattern.FindStringSubmatch(text)
	if m == nil {
		return "", nil, false
	}
	day, ok := readDate(m[1])
	if !ok || m[2] == "" {
		return timestampLiteral, day, ok
	}
	moment, ok := readTime(m[3])
	if !ok {
		return "", nil, false
	}
	moment.Add(moment, day)
	if m[6] == "" {
		return timestampLiteral, moment, true
	}
	offset, ok := zoneOffset(m[6])
	return zonedLiteral, moment.Sub(moment, offset), ok
}

func zoneOffset(zone string) (*big.Rat, bool) {
	if strings.EqualFold(zone, "Z") {
		return new(big.Rat), true
	}
	digits := strings.ReplaceAll(zone[1:], ":", "") + "00"
	hours, _ := strconv.Atoi(digits[:2])
	minutes, _ := strconv.Atoi(digits[2:4])
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if zone[0] == '-' {
		offset = -offset
	}
	return new(big.Rat).SetInt64(int64(offset)), hours <= 18 && minutes < 60
}

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

func readUUID(text string) (string, bool) {
	if !uuidPattern.MatchString(text) {
		return "", false
	}
	bytes, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return string(bytes), err == nil
}

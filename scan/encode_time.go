// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

const (
	secondsPerDay = 86_400
	microsPerDay  = secondsPerDay * 1_000_000
)

// day is a quoted date and what a timestamp has after it, kept from value to value:
// neighbours mostly share the day. Its text is YYYY-MM-DD, as java.time.LocalDate prints
// it: years beyond 9999 with a plus, negative ones with a minus.
type day struct {
	number int64
	text   [32]byte
	size   int
}

// append appends a quote, the date, and next.
func (d *day) append(b []byte, number int64, next byte) []byte {
	if number != d.number || d.size == 0 {
		d.set(number, next)
	}
	n := len(b)
	*(*[32]byte)(b[n : n+32]) = d.text
	return b[:n+d.size]
}

func (d *day) set(number int64, next byte) {
	year, month, dom := civil(number)
	text := append(make([]byte, 0, spare), '"')
	switch {
	case year > 9999:
		text = append(text, '+')
	case year < 0:
		text, year = append(text, '-'), -year
	}
	for pad := int64(1000); pad > year && pad > 1; pad /= 10 {
		text = append(text, '0')
	}
	text = append(appendUint(text, uint64(year)), '-')
	text = append(text, '0'+byte(month/10), '0'+byte(month%10), '-', '0'+byte(dom/10), '0'+byte(dom%10), next)
	d.number, d.size = number, copy(d.text[:], text)
}

// civil gives the proleptic Gregorian date of a number of days since 1970-01-01. Years
// are counted from March in eras of 400 years, so that the leap day comes last.
func civil(number int64) (year int64, month, dom int) {
	const daysPerEra = 146_097
	number += 719_468 // from 0000-03-01
	era := floorDiv(number, daysPerEra)
	doe := number - era*daysPerEra
	yoe := (doe - doe/1460 + doe/36_524 - doe/(daysPerEra-1)) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	dom = int(doy - (153*mp+2)/5 + 1)
	year, month = era*400+yoe, int(mp)+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, dom
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// appendClock appends HH:MM:SS. The three numbers lie in one word, with room for two
// digits and a colon each, and are divided by ten at once.
func appendClock(b []byte, second uint32) []byte {
	h, m, s := second/3600, second/60%60, second%60
	x := uint64(h) | uint64(m)<<24 | uint64(s)<<48
	tens := (x * 103 >> 10) & 0x000f00000f00000f
	n := len(b)
	putWord(b, n, (tens|(x-10*tens)<<8)+0x30303a30303a3030)
	return b[:n+8]
}

// appendFraction appends a point and six digits of micros, and further three of nanos
// beyond them if digits is 9.
func appendFraction(b []byte, nanos uint32, digits int) []byte {
	n := len(b)
	b = append(b, '.')
	putWord(b, n+1, digits8(nanos/10)+zeros)
	b = b[:n+10]
	b[n+9] = '0' + byte(nanos%10)
	return b[:n+1+digits]
}

// dates writes date from days.
type dates struct {
	validity
	values []int32
	day    day
}

// datesInMillis writes date from milliseconds.
type datesInMillis struct {
	validity
	values []int64
	day    day
}

// times writes time from a count of units since midnight.
type times[T int32 | int64] struct {
	validity
	values []T
	// nanos is the unit.
	nanos int64
}

func dayOrTimeColumn(t iceberg.Type, dt arrow.DataType) column {
	if _, isDate := t.(iceberg.DateType); isDate {
		switch dt.ID() {
		case arrow.DATE32:
			return &dates{}
		case arrow.DATE64:
			return &datesInMillis{}
		}
		return nil
	}
	switch dt := dt.(type) {
	case *arrow.Time32Type:
		return &times[int32]{nanos: int64(dt.Unit.Multiplier())}
	case *arrow.Time64Type:
		return &times[int64]{nanos: int64(dt.Unit.Multiplier())}
	}
	return nil
}

func (c *dates) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[int32](arr)
}
func (c *dates) release() { c.validity, c.values = validity{}, nil }

func (c *dates) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return c.day.append(b, int64(c.values[i]), '"')
}

func (c *datesInMillis) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[int64](arr)
}
func (c *datesInMillis) release() { c.validity, c.values = validity{}, nil }

func (c *datesInMillis) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return c.day.append(b, floorDiv(c.values[i], 1000*secondsPerDay), '"')
}

func (c *times[T]) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[T](arr)
}
func (c *times[T]) release() { c.validity, c.values = validity{}, nil }

func (c *times[T]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return append(appendTime(append(b, '"'), int64(c.values[i])*c.nanos), '"')
}

// appendTime appends HH:MM:SS.ffffff.
func appendTime(b []byte, nanos int64) []byte {
	b = appendClock(b, uint32(nanos/1e9))
	return appendFraction(b, uint32(nanos%1e9), 6)
}

// timestamps writes timestamp and timestamptz from microseconds, six digits.
type timestamps struct {
	validity
	values []int64
	day    day
	// midnight is the microsecond at which day begins, length how many it has: none before
	// the first value.
	midnight int64
	length   uint64
	// end closes the text: the zone, if there is one, and the quote.
	end     uint64
	endSize int
}

// timestampsIn writes timestamps from any unit, with six or nine digits.
type timestampsIn[T int32 | int64] struct {
	validity
	values []T
	day    day
	// perDay and perSecond count units; a unit of days has one of each.
	perDay, perSecond int64
	digits            int
	end               string
}

// timestampColumn takes dates too: a date may be promoted to a timestamp.
func timestampColumn(dt arrow.DataType, digits int, zoned bool) column {
	end := `"`
	if zoned {
		end = `+00:00"`
	}
	if dt.ID() == arrow.DATE32 {
		return &timestampsIn[int32]{perDay: 1, perSecond: 1, digits: digits, end: end}
	}
	ts, ok := dt.(*arrow.TimestampType)
	if !ok {
		return nil
	}
	if ts.Unit == arrow.Microsecond && digits == 6 {
		var word [8]byte
		copy(word[:], end)
		return &timestamps{end: getWord(word[:], 0), endSize: len(end)}
	}
	perSecond := int64(1e9) / int64(ts.Unit.Multiplier())
	return &timestampsIn[int64]{perDay: secondsPerDay * perSecond, perSecond: perSecond, digits: digits, end: end}
}

func (c *timestamps) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[int64](arr)
}
func (c *timestamps) release() { c.validity, c.values = validity{}, nil }

func (c *timestamps) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	rest := c.values[i] - c.midnight
	if uint64(rest) >= c.length {
		c.setDay(c.values[i])
		rest = c.values[i] - c.midnight
	}
	n := len(b)
	*(*[32]byte)(b[n : n+32]) = c.day.text
	b = appendClock(b[:n+c.day.size], uint32(rest/1e6))
	n = len(b)
	b = append(b, '.')
	putWord(b, n+1, digits8(uint32(rest%1e6)*100)+zeros)
	putWord(b, n+7, c.end)
	return b[:n+7+c.endSize]
}

// setDay keeps the day of a value. The first and last days of all are not kept: they are
// not whole, and the difference to the other end of time would wrap into them.
func (c *timestamps) setDay(v int64) {
	number := floorDiv(v, microsPerDay)
	c.day.set(number, 'T')
	c.midnight, c.length = number*microsPerDay, microsPerDay
	if number <= math.MinInt64/microsPerDay-1 || number >= math.MaxInt64/microsPerDay {
		c.length = 0
	}
}

func (c *timestampsIn[T]) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[T](arr)
}
func (c *timestampsIn[T]) release() { c.validity, c.values = validity{}, nil }

func (c *timestampsIn[T]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return c.appendValue(b, int64(c.values[i]))
}

func (c *timestampsIn[T]) appendValue(b []byte, v int64) []byte {
	number := floorDiv(v, c.perDay)
	rest := v - number*c.perDay
	b = c.day.append(b, number, 'T')
	b = appendClock(b, uint32(rest/c.perSecond))
	b = appendFraction(b, uint32(rest%c.perSecond*(1e9/c.perSecond)), c.digits)
	return append(b, c.end...)
}

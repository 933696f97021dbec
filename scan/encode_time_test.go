// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func dateArray(days ...int32) arrow.Array {
	b := array.NewDate32Builder(memory.DefaultAllocator)
	for _, d := range days {
		b.Append(arrow.Date32(d))
	}
	b.AppendNull()
	return b.NewArray()
}

func TestDates(t *testing.T) {
	want := []string{
		`"1970-01-01"`, `"1969-12-31"`, `"2024-02-29"`, `"0001-01-01"`, `"0000-12-31"`, `"-0001-12-31"`, `"9999-12-31"`, `"+10000-01-01"`,
		`"-9999-01-01"`, `"-10000-12-31"`, `"+5881580-07-11"`, `"-5877641-06-23"`, `"1582-10-15"`, "null",
	}
	arr := dateArray(0, -1, 19782, -719162, -719163, -719529, 2932896, 2932897, -4371587, -4371588, math.MaxInt32, math.MinInt32, -141427)
	assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.Date, arr))
	assert.Equal(t, want[4:9], encodeValues(t, iceberg.PrimitiveTypes.Date, array.NewSlice(arr, 4, 9)))

	millis := array.NewDate64Builder(memory.DefaultAllocator)
	millis.Append(arrow.Date64(19782 * 86_400_000))
	millis.Append(-1)
	millis.AppendNull()
	assert.Equal(t, []string{`"2024-02-29"`, `"1969-12-31"`, "null"}, encodeValues(t, iceberg.PrimitiveTypes.Date, millis.NewArray()))

	assert.Equal(t, []string{`"2024-02-29T00:00:00.000000"`, "null"},
		encodeValues(t, iceberg.PrimitiveTypes.Timestamp, dateArray(19782)), "a date promoted to a timestamp")
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		dt   arrow.DataType
		json string
		want []string
	}{
		{arrow.FixedWidthTypes.Time32s, `[0,86399,null]`, []string{`"00:00:00.000000"`, `"23:59:59.000000"`, "null"}},
		{arrow.FixedWidthTypes.Time32ms, `[1,86399999,null]`, []string{`"00:00:00.001000"`, `"23:59:59.999000"`, "null"}},
		{arrow.FixedWidthTypes.Time64us, `[7199000001,86399999999,null]`, []string{`"01:59:59.000001"`, `"23:59:59.999999"`, "null"}},
		{arrow.FixedWidthTypes.Time64ns, `[1000,86399999999999,null]`, []string{`"00:00:00.000001"`, `"23:59:59.999999"`, "null"}},
	} {
		t.Run(c.dt.String(), func(t *testing.T) {
			assert.Equal(t, c.want, encodeValues(t, iceberg.PrimitiveTypes.Time, fromJSON(t, c.dt, c.json)))
		})
	}
}

func timestampArray(unit arrow.TimeUnit, zone string, values ...int64) arrow.Array {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: unit, TimeZone: zone})
	for _, v := range values {
		b.Append(arrow.Timestamp(v))
	}
	b.AppendNull()
	return b.NewArray()
}

func TestTimestamps(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		name   string
		typ    iceberg.Type
		unit   arrow.TimeUnit
		values []int64
		want   []string
	}{
		{"timestamp", p.Timestamp, arrow.Microsecond, []int64{0, -1, 1704067200000001, -62135423999999999, 253402300799999999, 253402300800000000}, []string{
			"1970-01-01T00:00:00.000000", "1969-12-31T23:59:59.999999", "2024-01-01T00:00:00.000001", "0001-01-03T00:00:00.000001",
			"9999-12-31T23:59:59.999999", "+10000-01-01T00:00:00.000000",
		}},
		{"extremes", p.TimestampTz, arrow.Microsecond, []int64{math.MaxInt64, math.MinInt64, math.MaxInt64}, []string{
			"+294247-01-10T04:00:54.775807+00:00", "-290308-12-21T19:59:05.224192+00:00", "+294247-01-10T04:00:54.775807+00:00",
		}},
		{"timestamptz", p.TimestampTz, arrow.Microsecond, []int64{2147483648000001}, []string{"2038-01-19T03:14:08.000001+00:00"}},
		{"from seconds", p.Timestamp, arrow.Second, []int64{-1, 253402300800}, []string{"1969-12-31T23:59:59.000000", "+10000-01-01T00:00:00.000000"}},
		{"from milliseconds", p.TimestampTz, arrow.Millisecond, []int64{-1}, []string{"1969-12-31T23:59:59.999000+00:00"}},
		{"from nanoseconds", p.Timestamp, arrow.Nanosecond, []int64{-1, 1234}, []string{"1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000001"}},
		{"timestamp_ns", p.TimestampNs, arrow.Nanosecond, []int64{-1, 1, math.MaxInt64, math.MinInt64}, []string{
			"1969-12-31T23:59:59.999999999", "1970-01-01T00:00:00.000000001", "2262-04-11T23:47:16.854775807", "1677-09-21T00:12:43.145224192",
		}},
		{"timestamptz_ns", p.TimestampTzNs, arrow.Nanosecond, []int64{1}, []string{"1970-01-01T00:00:00.000000001+00:00"}},
		{"timestamp_ns from microseconds", p.TimestampNs, arrow.Microsecond, []int64{1}, []string{"1970-01-01T00:00:00.000001000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, w := range c.want {
				want = append(want, `"`+w+`"`)
			}
			assert.Equal(t, append(want, "null"), encodeValues(t, c.typ, timestampArray(c.unit, "UTC", c.values...)))
		})
	}
}

func checkTimestamp(t testing.TB, d *timestamps, v int64) {
	d.values = []int64{v}
	year := time.UnixMicro(v).UTC().Year()
	got := string(d.append(make([]byte, 0, spare), 0))
	want := time.UnixMicro(v).UTC().Format("-01-02T15:04:05.000000")
	switch {
	case year > 9999:
		want = fmt.Sprintf(`"+%d%s"`, year, want)
	case year < 0:
		want = fmt.Sprintf(`"-%04d%s"`, -year, want)
	default:
		want = fmt.Sprintf(`"%04d%s"`, year, want)
	}
	require.Equal(t, want, got)
}

func TestTimestampsAreThoseOfPackageTime(t *testing.T) {
	d := timestampColumn(&arrow.TimestampType{Unit: arrow.Microsecond}, 6, false).(*timestamps)
	for number := int64(-800_000); number < 3_000_000; number += 97 {
		checkTimestamp(t, d, number*microsPerDay)
		checkTimestamp(t, d, number*microsPerDay-1)
	}
	for second := range int64(secondsPerDay) {
		checkTimestamp(t, d, second*1e6)
	}
	for shift := range 63 {
		for range 50 {
			checkTimestamp(t, d, rand.Int64()>>shift)
			checkTimestamp(t, d, -rand.Int64()>>shift)
		}
	}
}

func FuzzTimestamp(f *testing.F) {
	f.Add(int64(0), int64(-1))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64))
	f.Add(int64(253402300799999999), int64(253402300800000000))
	f.Fuzz(func(t *testing.T, first, second int64) {
		d := timestampColumn(&arrow.TimestampType{Unit: arrow.Microsecond}, 6, false).(*timestamps)
		checkTimestamp(t, d, first)
		checkTimestamp(t, d, second)
	})
}

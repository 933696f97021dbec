// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// marshalPlain is encoding/json without HTML escaping.
func marshalPlain(t require.TestingT, v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v))
	return strings.TrimSuffix(buf.String(), "\n")
}

var stringTypes = []arrow.DataType{
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
}

// stringArray holds the values as an Arrow type, a NULL between any two.
func stringArray(dt arrow.DataType, values ...string) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	for i, v := range values {
		if i > 0 {
			b.AppendNull()
		}
		switch b := b.(type) {
		case array.StringLikeBuilder:
			b.Append(v)
		case array.BinaryLikeBuilder:
			b.Append([]byte(v))
		}
	}
	return b.NewArray()
}

func TestStringsAreEscapedMinimally(t *testing.T) {
	values := []string{
		"", "a", "plain ASCII text of more than eight bytes", `quote"back\slash`, "tab\tnl\ncr\rnul\x00bel\x07esc\x1bdel\x7f\b\f",
		"<html> & 'more'", "héllo 世界 😀 \u202e é", "line\u2028and\u2029paragraph", "ends in \u2028", "bad\xffutf8\xc3", "\xe2\x80", "\xed\xa0\x80",
		`""""""""""""""""""""`, strings.Repeat("\x01", 50), strings.Repeat("x", 1000) + `"`, "last",
	}
	for _, dt := range stringTypes {
		t.Run(dt.Name(), func(t *testing.T) {
			arr := stringArray(dt, values...)
			got := encodeValues(t, iceberg.PrimitiveTypes.String, arr)
			require.Len(t, got, 2*len(values)-1)
			for i, v := range values {
				assert.Equal(t, marshalPlain(t, v), got[2*i])
				if i > 0 {
					assert.Equal(t, "null", got[2*i-1])
				}
			}
			assert.Equal(t, got[5:9], encodeValues(t, iceberg.PrimitiveTypes.String, array.NewSlice(arr, 5, 9)))
		})
	}
	assert.Equal(t, []string{`"tab\tnl\ncr\rnul\u0000bel\u0007esc\u001bdel` + "\x7f" + `\b\f"`},
		encodeValues(t, iceberg.PrimitiveTypes.String, stringArray(arrow.BinaryTypes.String, values[4])))
	assert.Equal(t, []string{`"bad\ufffdutf8\ufffd"`},
		encodeValues(t, iceberg.PrimitiveTypes.String, stringArray(arrow.BinaryTypes.String, values[9])))
}

// checkString compares both ways of writing a string with encoding/json. What lies behind
// the text in its array must not matter.
func checkString(t require.TestingT, s string) {
	want := marshalPlain(t, s)
	require.Equal(t, want, string(appendText(make([]byte, 0, spare), []byte(s))))
	for _, behind := range []string{"        ", `""""""""`, "\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		require.Equal(t, want, string(appendTextWords(make([]byte, 0, spare), []byte(`"`+s+behind), 1)))
	}
	if utf8.ValidString(s) {
		var back string
		require.NoError(t, json.Unmarshal([]byte(want), &back))
		require.Equal(t, s, back)
	}
}

func TestStringsAreThoseOfEncodingJSON(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			checkString(t, strings.Repeat("a", at)+string([]byte{byte(c)})+strings.Repeat("b", 16-at))
			checkString(t, strings.Repeat("é", at)+string([]byte{byte(c)}))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		checkString(t, rapid.String().Draw(t, "text"))
		checkString(t, string(rapid.SliceOf(rapid.SampledFrom([]byte("ab\"\\\n\x01\x7f\x80\xc3\xa9\xe2\x80\xa8\xf0"))).Draw(t, "bytes")))
	})
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", `q"b\`, "h\u00e9llo\u2028", "\xff", "tab\t\x00", strings.Repeat("long ", 20) + "\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkString(t, s) })
}

func TestBinaryIsLowerCaseHex(t *testing.T) {
	values := []string{"", "\x00\xff\x10", "\xde\xad\xbe\xef", strings.Repeat("\xab", 100)}
	want := []string{`""`, "null", `"00ff10"`, "null", `"deadbeef"`, "null", `"` + strings.Repeat("ab", 100) + `"`}
	for _, dt := range stringTypes {
		arr := stringArray(dt, values...)
		assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.Binary, arr))
		assert.Equal(t, want[2:5], encodeValues(t, iceberg.PrimitiveTypes.Binary, array.NewSlice(arr, 2, 5)))
		assert.Equal(t, want, encodeValues(t, iceberg.GeometryType{}, arr), "WKB")
		assert.Equal(t, want, encodeValues(t, iceberg.GeographyType{}, arr), "WKB")
	}
	fixed := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 4})
	fixed.Append([]byte{0, 0, 0, 1})
	fixed.AppendNull()
	fixed.Append([]byte{0xff, 2, 3, 4})
	arr := fixed.NewArray()
	assert.Equal(t, []string{`"00000001"`, "null", `"ff020304"`}, encodeValues(t, iceberg.FixedTypeOf(4), arr))
	assert.Equal(t, []string{`"ff020304"`}, encodeValues(t, iceberg.FixedTypeOf(4), array.NewSlice(arr, 2, 3)))
}

func TestUUIDsAreStrings(t *testing.T) {
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 16})
	b.AppendNull()
	b.Append([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255})
	b.Append(make([]byte, 16))
	arr := b.NewArray()
	want := []string{"null", `"00010203-0405-0607-0809-0a0b0c0d0eff"`, `"00000000-0000-0000-0000-000000000000"`}
	assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.UUID, arr))
	assert.Equal(t, want[1:], encodeValues(t, iceberg.PrimitiveTypes.UUID, array.NewSlice(arr, 1, 3)))
	ext := array.NewExtensionArrayWithStorage(extensions.NewUUIDType(), arr)
	assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.UUID, ext))
	assert.Equal(t, want[1:2], encodeValues(t, iceberg.PrimitiveTypes.UUID, array.NewSlice(ext, 1, 2)))
}

func TestDictionariesAreWrittenByValue(t *testing.T) {
	for _, index := range []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	} {
		dt := &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
		dict := fromJSON(t, arrow.BinaryTypes.String, `["zero","o\"ne",null,"three"]`)
		arr := array.NewDictionaryArray(dt, fromJSON(t, index, `[1,0,null,2,1,3,0]`), dict)
		want := []string{`"o\"ne"`, `"zero"`, "null", "null", `"o\"ne"`, `"three"`, `"zero"`}
		assert.Equal(t, want, encodeValues(t, iceberg.PrimitiveTypes.String, arr))
		assert.Equal(t, want[3:], encodeValues(t, iceberg.PrimitiveTypes.String, array.NewSlice(arr, 3, 7)))
	}
}

func TestDictionaryOfALaterBatchReplacesTheFormer(t *testing.T) {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int64}
	e, err := NewEncoder(iceberg.NewSchema(0, optional(1, "v", iceberg.PrimitiveTypes.Int64)))
	require.NoError(t, err)
	for range 3 {
		n := rand.Int64N(1000)
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues([]int64{n, n + 1}, nil)
		arr := array.NewDictionaryArray(dt, fromJSON(t, arrow.PrimitiveTypes.Int8, `[1,0,1]`), b.NewArray())
		rows := encodeRows(t, e, oneColumn(arr), 0, 3)
		assert.Equal(t, []string{`{"v":` + marshalPlain(t, n+1) + "}", `{"v":` + marshalPlain(t, n) + "}", `{"v":` + marshalPlain(t, n+1) + "}"}, rows)
	}
}

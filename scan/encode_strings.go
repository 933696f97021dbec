// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/hex"
	"math/bits"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// texts writes strings from an array of offsets and bytes.
type texts[O int32 | int64] struct {
	validity
	offsets []O
	data    []byte
}

func textColumn(dt arrow.DataType) column {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return &texts[int32]{}
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return &texts[int64]{}
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return &textViews{}
	}
	return nil
}

func (c *texts[O]) bind(arr arrow.Array) {
	c.validity = validityOf(arr)
	c.offsets, c.data = offsetsAndBytes[O](arr)
}

func (c *texts[O]) release() { *c = texts[O]{} }

func (c *texts[O]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	beg, end := int(c.offsets[i]), int(c.offsets[i+1])
	if end+8 > len(c.data) {
		// Whole words are read below: the array's last values have none behind them.
		return appendText(b, c.data[beg:end])
	}
	return appendTextWords(b, c.data[:end+8], beg)
}

// offsetsAndBytes are the parts of a string or binary array: value i is
// data[offsets[i]:offsets[i+1]].
func offsetsAndBytes[O int32 | int64](arr arrow.Array) (offsets []O, data []byte) {
	d := arr.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return nil, nil
	}
	offsets = arrow.GetData[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
	if buf := d.Buffers()[2]; buf != nil {
		data = buf.Bytes()
	}
	return offsets, data
}

// textViews writes strings from an array of views.
type textViews struct {
	validity
	value func(i int) []byte
}

func (c *textViews) bind(arr arrow.Array) { c.validity, c.value = validityOf(arr), viewedBytes(arr) }
func (c *textViews) release()             { *c = textViews{} }

func (c *textViews) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendText(b, c.value(i))
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// unplain marks, by the high bit, the bytes of w that can't be copied unseen: ASCII that
// JSON escapes (control characters, quote, backslash) and non-ASCII. Beyond the first mark
// there may be false ones.
func unplain(w uint64) uint64 {
	return ((w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | w) & highs
}

// appendTextWords appends data[beg:len(data)-8] as a JSON string, a word at a time: each
// word is stored before it is looked at, and where it holds a byte that needs more than a
// copy, the next store begins there. The eight bytes behind the text are read and not used.
func appendTextWords(b []byte, data []byte, beg int) []byte {
	start, end := len(b), len(data)-8
	if cap(b)-start < end-beg+spare {
		b = slices.Grow(b, end-beg+spare)
	}
	b = b[:cap(b)]
	b[start] = '"'
	n := start + 1
	for i := beg; i < end; {
		w := getWord(data, i)
		putWord(b, n, w)
		size := end - i
		if size < 8 {
			// Bytes behind the text become spaces.
			keep := uint64(1)<<(8*size) - 1
			w = w&keep | 0x20*ones&^keep
		} else {
			size = 8
		}
		mark := unplain(w)
		if mark == 0 {
			n += size
			i += size
			continue
		}
		size = bits.TrailingZeros64(mark) >> 3
		n += size
		i += size
		if data[i] >= utf8.RuneSelf {
			size = plainRune(data[i:end])
			if size == 0 {
				return appendUnicode(b[:start], data[beg:end])
			}
			putWord(b, n, getWord(data, i))
			n += size
			i += size
			continue
		}
		// An escape takes up to six bytes for one.
		if len(b)-n < end-i+spare {
			b = slices.Grow(b[:n], end-i+2*spare)
			b = b[:cap(b)]
		}
		n = len(appendEscape(b[:n], data[i]))
		i++
	}
	b[n] = '"'
	return b[:n+1]
}

// plainRune gives the size of the non-ASCII rune at the beginning of s, or 0 if it is
// invalid or one of the two line separators that encoding/json escapes for JavaScript's
// sake.
func plainRune(s []byte) int {
	if len(s) > 1 && s[0] >= 0xc2 && s[0] < 0xe0 && s[1]&0xc0 == 0x80 {
		return 2
	}
	r, size := utf8.DecodeRune(s)
	if r == utf8.RuneError && size == 1 || r&^1 == '\u2028' {
		return 0
	}
	return size
}

// appendText appends s as a JSON string, byte for byte what encoding/json writes without
// HTML escaping.
func appendText(b []byte, s []byte) []byte {
	b = slices.Grow(b, len(s)+spare)
	start := len(b)
	b = append(b, '"')
	from := 0
	for i, c := range s {
		if c >= utf8.RuneSelf {
			return appendUnicode(b[:start], s)
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[from:i]...), c)
			from = i + 1
		}
	}
	return append(append(b, s[from:]...), '"')
}

// appendUnicode appends s as a JSON string, invalid UTF-8 as \ufffd, U+2028 and U+2029
// escaped.
func appendUnicode(b []byte, s []byte) []byte {
	b = append(slices.Grow(b, len(s)+spare), '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		switch {
		case r < ' ' || r == '"' || r == '\\':
			b = appendEscape(b, s[i])
		case r == utf8.RuneError && size == 1:
			b = append(b, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, `\u202`...), "89"[r&1])
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return append(b, '"')
}

// appendEscape appends the escape of an ASCII character.
func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

const hexDigits = "0123456789abcdef"

// hexes writes binary as lower-case hex from an array of offsets and bytes.
type hexes[O int32 | int64] struct {
	validity
	offsets []O
	data    []byte
}

func hexColumn(dt arrow.DataType) column {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return &hexes[int32]{}
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return &hexes[int64]{}
	case arrow.STRING_VIEW, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return &hexViews{}
	}
	return nil
}

func (c *hexes[O]) bind(arr arrow.Array) {
	c.validity = validityOf(arr)
	c.offsets, c.data = offsetsAndBytes[O](arr)
}

func (c *hexes[O]) release() { *c = hexes[O]{} }

func (c *hexes[O]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendHex(b, c.data[c.offsets[i]:c.offsets[i+1]])
}

// hexViews writes fixed, and binary from an array of views.
type hexViews struct {
	validity
	value func(i int) []byte
}

func (c *hexViews) bind(arr arrow.Array) { c.validity, c.value = validityOf(arr), viewedBytes(arr) }
func (c *hexViews) release()             { *c = hexViews{} }

func (c *hexViews) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendHex(b, c.value(i))
}

func appendHex(b, v []byte) []byte {
	b = append(slices.Grow(b, 2*len(v)+2), '"')
	return append(hex.AppendEncode(b, v), '"')
}

// viewedBytes gives access to the values of a view or fixed-size array.
func viewedBytes(arr arrow.Array) func(i int) []byte {
	switch a := arr.(type) {
	case *array.BinaryView:
		return a.Value
	case *array.FixedSizeBinary:
		return a.Value
	case *array.StringView:
		return func(i int) []byte {
			s := a.Value(i)
			return unsafe.Slice(unsafe.StringData(s), len(s))
		}
	}
	return nil
}

// uuids writes uuid from sixteen bytes.
type uuids struct {
	validity
	data []byte
}

func (c *uuids) bind(arr arrow.Array) {
	c.validity, c.data = validityOf(arr), nil
	if d := arr.Data(); d.Len() > 0 {
		c.data = d.Buffers()[1].Bytes()[16*d.Offset():]
	}
}

func (c *uuids) release() { *c = uuids{} }

func (c *uuids) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return appendUUID(b, (*[16]byte)(c.data[16*i:16*i+16]))
}

func appendUUID(b []byte, v *[16]byte) []byte {
	b = append(b, '"')
	for k, x := range v {
		if k == 4 || k == 6 || k == 8 || k == 10 {
			b = append(b, '-')
		}
		b = append(b, hexDigits[x>>4], hexDigits[x&15])
	}
	return append(b, '"')
}

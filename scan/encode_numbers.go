// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// integers writes int and long.
type integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64] struct {
	validity
	values []T
}

func integerColumn(dt arrow.DataType) column {
	switch dt.ID() {
	case arrow.INT64:
		return &integers[int64]{}
	case arrow.INT32:
		return &integers[int32]{}
	case arrow.INT16:
		return &integers[int16]{}
	case arrow.INT8:
		return &integers[int8]{}
	case arrow.UINT64:
		return &integers[uint64]{}
	case arrow.UINT32:
		return &integers[uint32]{}
	case arrow.UINT16:
		return &integers[uint16]{}
	case arrow.UINT8:
		return &integers[uint8]{}
	}
	return nil
}

func (c *integers[T]) bind(arr arrow.Array) {
	c.validity, c.values = validityOf(arr), fixedValues[T](arr)
}

func (c *integers[T]) release() { *c = integers[T]{} }

func (c *integers[T]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	if v := c.values[i]; v >= 0 {
		return appendUint(b, uint64(v))
	}
	return appendInt(b, int64(c.values[i]))
}

// fixedValues are the values of an array of a fixed width, from its offset on.
func fixedValues[T arrow.FixedWidthType](arr arrow.Array) []T {
	data := arr.Data()
	if data.Len() == 0 || data.Buffers()[1] == nil {
		return nil
	}
	return arrow.GetData[T](data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+data.Len()]
}

type booleans struct {
	validity
	bits   []byte
	offset int
}

func (c *booleans) bind(arr arrow.Array) {
	c.validity, c.bits, c.offset = validityOf(arr), nil, arr.Data().Offset()
	if buf := arr.Data().Buffers()[1]; buf != nil {
		c.bits = buf.Bytes()
	}
}

func (c *booleans) release() { *c = booleans{} }

func (c *booleans) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	i += c.offset
	n := len(b)
	// "true" and "false" differ in length: no branch that data would mispredict.
	t := int(c.bits[i>>3] >> (i & 7) & 1)
	putWord(b, n, boolWords[t])
	return b[:n+5-t]
}

// boolWords are "false" and "true" as words in memory order.
var boolWords = [2]uint64{
	'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32,
	't' | 'r'<<8 | 'u'<<16 | 'e'<<24,
}

// putWord stores eight bytes at n, into the spare bytes behind the buffer's end.
func putWord(b []byte, n int, w uint64) {
	binary.LittleEndian.PutUint64(b[n:n+8], w)
}

const zeros = 0x3030303030303030 // "00000000"

// digits8 gives the eight decimal digits of v < 10^8 as bytes 0..9, the first lowest: a
// word that a store puts into memory in reading order. The halves, quarters and eighths
// of the word are divided at once by multiplication.
func digits8(v uint32) uint64 {
	x := uint64(v/10000) | uint64(v%10000)<<32
	hundreds := (x * 10486 >> 20) & 0x0000007f0000007f
	x = hundreds | (x-100*hundreds)<<16
	tens := (x * 103 >> 10) & 0x000f000f000f000f
	return tens | (x-10*tens)<<8
}

// appendUint appends v in decimal: at most 20 digits, and up to seven bytes beyond them
// are overwritten.
func appendUint(b []byte, v uint64) []byte {
	if v < 1e8 {
		return appendUint8(b, uint32(v))
	}
	if v < 1e16 {
		return append8Digits(appendUint8(b, uint32(v/1e8)), uint32(v%1e8))
	}
	top, rest := v/1e16, v%1e16
	b = appendUint8(b, uint32(top))
	b = append8Digits(b, uint32(rest/1e8))
	return append8Digits(b, uint32(rest%1e8))
}

func appendInt(b []byte, v int64) []byte {
	if v < 0 {
		return appendUint(append(b, '-'), -uint64(v))
	}
	return appendUint(b, uint64(v))
}

// tenTo holds the powers of ten that fit a word.
var tenTo = func() (table [20]uint64) {
	table[0] = 1
	for i := range table[1:] {
		table[i+1] = 10 * table[i]
	}
	return table
}()

// digitCount is how many decimal digits v > 0 has.
func digitCount(v uint64) int {
	n := bits.Len64(v) * 1233 >> 12 // log10, at most one too low
	if v >= tenTo[n] {
		n++
	}
	return n
}

// appendUint8 appends v < 10^8 without leading zeros.
func appendUint8(b []byte, v uint32) []byte {
	n := len(b)
	w := digits8(v)
	// Leading zeros are the lowest bytes; the last digit is always written.
	skip := bits.TrailingZeros64(w|1<<56) &^ 7
	putWord(b, n, (w+zeros)>>skip)
	return b[:n+8-skip>>3]
}

// append8Digits appends v < 10^8 with leading zeros.
func append8Digits(b []byte, v uint32) []byte {
	n := len(b)
	putWord(b, n, digits8(v)+zeros)
	return b[:n+8]
}

// getWord loads the eight bytes at n.
func getWord(b []byte, n int) uint64 {
	return binary.LittleEndian.Uint64(b[n : n+8])
}

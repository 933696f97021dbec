// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// appender writes value i of those that are ready. What column says about the buffer holds for it too.
type appender interface {
	append(b []byte, i int) []byte
}

// pageValues are the values of a data page, NULLs left out, in their order.
type pageValues interface {
	// page begins a page, or the dictionary, that holds n values.
	page(data []byte, n int)
	// ready makes the next n values the ones that the appender writes, as 0 ≤ i < n, in this order and each once.
	ready(n int) (appender, error)
}

// plainValues chooses how to write values of an Iceberg type from PLAIN pages of a Parquet column; nil where only the
// general decoder knows.
func plainValues(t iceberg.Type, n *schema.PrimitiveNode) pageValues {
	logical := n.LogicalType()
	switch t := t.(type) {
	case iceberg.BooleanType:
		if n.PhysicalType() == parquet.Types.Boolean {
			return &plainBooleans{}
		}
	case iceberg.Int32Type, iceberg.Int64Type:
		return plainIntegers(t, n)
	case iceberg.Float32Type, iceberg.Float64Type:
		return plainFloats(t, n)
	case iceberg.DateType:
		if _, ok := logical.(schema.DateLogicalType); ok && n.PhysicalType() == parquet.Types.Int32 {
			c := &dates{}
			return &plain[int32]{out: c, set: func(v []int32) { c.values = v }}
		}
	case iceberg.TimeType:
		if l, ok := logical.(schema.TimeLogicalType); ok && l.TimeUnit() == schema.TimeUnitMicros {
			c := &times[int64]{nanos: 1000}
			return &plain[int64]{out: c, set: func(v []int64) { c.values = v }}
		}
	case iceberg.TimestampType:
		return plainTimestamps(n, schema.TimeUnitMicros, false)
	case iceberg.TimestampTzType:
		return plainTimestamps(n, schema.TimeUnitMicros, true)
	case iceberg.TimestampNsType:
		return plainTimestamps(n, schema.TimeUnitNanos, false)
	case iceberg.TimestampTzNsType:
		return plainTimestamps(n, schema.TimeUnitNanos, true)
	case iceberg.StringType:
		if _, ok := logical.(schema.StringLogicalType); ok && n.PhysicalType() == parquet.Types.ByteArray {
			return &prefixed{write: appendPrefixedText}
		}
	case iceberg.BinaryType:
		if isNone(logical) && n.PhysicalType() == parquet.Types.ByteArray {
			return &prefixed{write: appendPrefixedHex}
		}
	case iceberg.UUIDType:
		if _, ok := logical.(schema.UUIDLogicalType); ok && n.TypeLength() == 16 {
			c := &uuids{}
			return &plainFixed{width: 16, out: c, set: func(v []byte) { c.data = v }}
		}
	case iceberg.FixedType:
		if isNone(logical) && n.PhysicalType() == parquet.Types.FixedLenByteArray && n.TypeLength() == t.Len() {
			c := &fixedHexes{width: t.Len()}
			return &plainFixed{width: t.Len(), out: c, set: func(v []byte) { c.data = v }}
		}
	case iceberg.DecimalType:
		return plainDecimals(t, n)
	}
	return nil
}

func isNone(l schema.LogicalType) bool { return l == nil || l.IsNone() || !l.IsValid() }

func plainIntegers(t iceberg.Type, n *schema.PrimitiveNode) pageValues {
	if l := n.LogicalType(); !isNone(l) {
		if i, ok := l.(schema.IntLogicalType); !ok || !i.IsSigned() {
			return nil
		}
	}
	switch n.PhysicalType() {
	case parquet.Types.Int32:
		c := &integers[int32]{}
		return &plain[int32]{out: c, set: func(v []int32) { c.values = v }}
	case parquet.Types.Int64:
		if _, ok := t.(iceberg.Int64Type); ok {
			c := &integers[int64]{}
			return &plain[int64]{out: c, set: func(v []int64) { c.values = v }}
		}
	}
	return nil
}

func plainFloats(t iceberg.Type, n *schema.PrimitiveNode) pageValues {
	_, double := t.(iceberg.Float64Type)
	switch {
	case !isNone(n.LogicalType()):
		return nil
	case double && n.PhysicalType() == parquet.Types.Double:
		c := &float64s{}
		return &plain[float64]{out: c, set: func(v []float64) { c.values = v }}
	case double && n.PhysicalType() == parquet.Types.Float:
		c := &widenedFloats{}
		return &plain[float32]{out: c, set: func(v []float32) { c.values = v }}
	case !double && n.PhysicalType() == parquet.Types.Float:
		c := &float32s{}
		return &plain[float32]{out: c, set: func(v []float32) { c.values = v }}
	}
	return nil
}

func plainTimestamps(n *schema.PrimitiveNode, unit schema.TimeUnitType, zoned bool) pageValues {
	l, ok := n.LogicalType().(schema.TimestampLogicalType)
	if !ok || l.TimeUnit() != unit || l.IsAdjustedToUTC() != zoned || n.PhysicalType() != parquet.Types.Int64 {
		return nil
	}
	end := `"`
	if zoned {
		end = `+00:00"`
	}
	if unit == schema.TimeUnitNanos {
		c := &timestampsIn[int64]{perDay: secondsPerDay * 1e9, perSecond: 1e9, digits: 9, end: end}
		return &plain[int64]{out: c, set: func(v []int64) { c.values = v }}
	}
	var word [8]byte
	copy(word[:], end)
	c := &timestamps{end: getWord(word[:], 0), endSize: len(end)}
	return &plain[int64]{out: c, set: func(v []int64) { c.values = v }}
}

func plainDecimals(t iceberg.DecimalType, n *schema.PrimitiveNode) pageValues {
	l, ok := n.LogicalType().(schema.DecimalLogicalType)
	if !ok || int(l.Scale()) != t.Scale() || int(l.Precision()) > t.Precision() {
		return nil
	}
	switch width := n.TypeLength(); {
	case n.PhysicalType() == parquet.Types.Int32:
		c := &smallDecimals[int32]{scale: t.Scale()}
		return &plain[int32]{out: c, set: func(v []int32) { c.values = v }}
	case n.PhysicalType() == parquet.Types.Int64:
		c := &smallDecimals[int64]{scale: t.Scale()}
		return &plain[int64]{out: c, set: func(v []int64) { c.values = v }}
	case n.PhysicalType() != parquet.Types.FixedLenByteArray || width < 1 || width > 16:
		return nil
	case width <= 8:
		c := &smallDecimals[int64]{scale: t.Scale()}
		return &plainFixed{width: width, out: c, set: func(v []byte) { c.values = bigEndian64(c.values[:0], v, width) }}
	default:
		c := &decimals{scale: t.Scale()}
		return &plainFixed{width: width, out: c, set: func(v []byte) { c.values = bigEndian128(c.values[:0], v, width) }}
	}
}

// bigEndian64 appends numbers of width ≤ 8 bytes, the most significant first.
func bigEndian64(out []int64, data []byte, width int) []int64 {
	shift := 64 - 8*width
	for ; len(data) >= 8; data = data[width:] {
		out = append(out, int64(binary.BigEndian.Uint64(data))>>shift)
	}
	for ; len(data) >= width; data = data[width:] {
		var word [8]byte
		copy(word[:], data[:width])
		out = append(out, int64(binary.BigEndian.Uint64(word[:]))>>shift)
	}
	return out
}

// bigEndian128 appends numbers of 8 < width ≤ 16 bytes, the most significant first.
func bigEndian128(out []decimal128.Num, data []byte, width int) []decimal128.Num {
	for ; len(data) >= width; data = data[width:] {
		var word [8]byte
		copy(word[:], data[:width-8])
		high := int64(binary.BigEndian.Uint64(word[:])) >> (64 - 8*(width-8))
		out = append(out, decimal128.New(high, binary.BigEndian.Uint64(data[width-8:])))
	}
	return out
}

// plain are values of a fixed width that a page holds as memory does.
type plain[T int32 | int64 | float32 | float64] struct {
	data []byte
	out  appender
	set  func([]T)
	room []T
}

func (p *plain[T]) page(data []byte, _ int) { p.data = data }

func (p *plain[T]) ready(n int) (appender, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if len(p.data)/size < n {
		return nil, errShortPage
	}
	if n == 0 {
		return p.out, nil
	}
	here := p.data[:n*size]
	p.data = p.data[n*size:]
	// Pages begin anywhere, and only aligned memory is a []T. A dictionary mostly is aligned, and too large to hold twice.
	if at := unsafe.Pointer(unsafe.SliceData(here)); uintptr(at)%unsafe.Alignof(*new(T)) == 0 {
		p.set(unsafe.Slice((*T)(at), n))
		return p.out, nil
	}
	p.room = slices.Grow(p.room[:0], n)[:n]
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(p.room))), n*size), here)
	p.set(p.room)
	return p.out, nil
}

// plainFixed are values of a fixed number of bytes.
type plainFixed struct {
	data  []byte
	width int
	out   appender
	set   func([]byte)
}

func (p *plainFixed) page(data []byte, _ int) { p.data = data }

func (p *plainFixed) ready(n int) (appender, error) {
	if len(p.data)/p.width < n {
		return nil, errShortPage
	}
	p.set(p.data[:n*p.width])
	p.data = p.data[n*p.width:]
	return p.out, nil
}

type fixedHexes struct {
	data  []byte
	width int
}

func (c *fixedHexes) append(b []byte, i int) []byte {
	return appendHex(b, c.data[i*c.width:(i+1)*c.width])
}

// plainBooleans are bits.
type plainBooleans struct {
	at  int // bit of the next value
	out booleans
}

func (p *plainBooleans) page(data []byte, _ int) { p.at, p.out.bits = 0, data }

func (p *plainBooleans) ready(n int) (appender, error) {
	if 8*len(p.out.bits) < p.at+n {
		return nil, errShortPage
	}
	p.out.offset = p.at
	p.at += n
	return &p.out, nil
}

// prefixed are byte arrays, each behind its length. They are written from where they lie in the page.
type prefixed struct {
	data  []byte
	at    int // of the next length
	write func(b, data []byte, beg, end int) []byte
}

func (p *prefixed) page(data []byte, _ int) { p.data, p.at = data, 0 }

// ready walks the lengths, so that append needs no check.
func (p *prefixed) ready(n int) (appender, error) {
	at := p.at
	for range n {
		if at+4 > len(p.data) {
			return nil, errShortPage
		}
		at += 4 + int(binary.LittleEndian.Uint32(p.data[at:]))
	}
	if at > len(p.data) {
		return nil, errShortPage
	}
	return p, nil
}

func (p *prefixed) append(b []byte, _ int) []byte {
	beg := p.at + 4
	end := beg + int(binary.LittleEndian.Uint32(p.data[p.at:]))
	p.at = end
	return p.write(b, p.data, beg, end)
}

// all makes all n values ready in any order.
func (p *prefixed) all(n int) (appender, error) {
	if _, err := p.ready(n); err != nil {
		return nil, err
	}
	out := &scattered{data: p.data, starts: make([]uint32, n), write: p.write}
	at := uint32(0)
	for i := range out.starts {
		out.starts[i] = at
		at += 4 + binary.LittleEndian.Uint32(p.data[at:])
	}
	return out, nil
}

// scattered are byte arrays of a dictionary.
type scattered struct {
	data   []byte
	starts []uint32
	write  func(b, data []byte, beg, end int) []byte
}

func (p *scattered) append(b []byte, i int) []byte {
	at := int(p.starts[i])
	beg := at + 4
	return p.write(b, p.data, beg, beg+int(binary.LittleEndian.Uint32(p.data[at:])))
}

func appendPrefixedText(b, data []byte, beg, end int) []byte {
	if end+8 > len(data) {
		return appendText(b, data[beg:end])
	}
	return appendTextWords(b, data[:end+8], beg)
}

func appendPrefixedHex(b, data []byte, beg, end int) []byte { return appendHex(b, data[beg:end]) }

// encodedValues are values that are encoded already: those of a dictionary, or those carried from page to page.
type encodedValues struct {
	text []byte // with room for a block behind the last value
	ends []uint32
}

// block is how many bytes are copied at once: most values are shorter, and a copy of a fixed size is no call.
const block = 32

// encode encodes the next n values behind those that are there.
func (e *encodedValues) encode(values pageValues, n int) error {
	from, err := values.ready(n)
	if err != nil {
		return err
	}
	for i := range n {
		e.text = from.append(withSpare(e.text), i)
		e.ends = append(e.ends, uint32(len(e.text)))
	}
	e.text = slices.Grow(e.text, block)
	return nil
}

func (e *encodedValues) reset() { e.text, e.ends = e.text[:0], e.ends[:0] }

func (e *encodedValues) append(b []byte, i int) []byte {
	beg := uint32(0)
	if i > 0 {
		beg = e.ends[i-1]
	}
	size := int(e.ends[i] - beg)
	if size > block {
		return append(b, e.text[beg:e.ends[i]]...)
	}
	n := len(b)
	*(*[block]byte)(b[n : n+block]) = *(*[block]byte)(e.text[beg : beg+block])
	return b[:n+size]
}

// reuse is how often a dictionary's values must occur on average to be encoded once instead of each time.
const reuse = 4

// indexed are the values of pages that hold indices into the column chunk's dictionary.
type indexed struct {
	values  pageValues    // of the dictionary
	encoded encodedValues // the same encoded, if they occur often
	out     appender      // writes value i of the dictionary
	size    uint32

	indices hybrid
	now     []uint32
	bad     bool
}

// dictionary begins a column chunk's dictionary of n values. often says whether they are worth encoding beforehand.
func (p *indexed) dictionary(data []byte, n int, often bool) (err error) {
	p.size = uint32(n)
	p.values.page(data, n)
	p.encoded.reset()
	if often {
		p.out = &p.encoded
		return p.encoded.encode(p.values, n)
	}
	if strings, ok := p.values.(*prefixed); ok {
		p.out, err = strings.all(n)
		return err
	}
	p.out, err = p.values.ready(n)
	return err
}

func (p *indexed) page(data []byte, _ int) {
	p.bad = p.out == nil || len(data) == 0 || data[0] > 32
	if !p.bad {
		p.indices = newHybrid(data[1:], int(data[0]))
	}
}

func (p *indexed) ready(n int) (appender, error) {
	if n == 0 {
		return p, nil
	}
	if p.bad {
		return nil, errShortPage
	}
	p.now = slices.Grow(p.now[:0], n)[:n]
	return p, p.indices.numbers(p.now, p.size)
}

func (p *indexed) append(b []byte, i int) []byte { return p.out.append(b, int(p.now[i])) }

// runBooleans are booleans in runs, behind the runs' length.
type runBooleans struct {
	runs hybrid
	room []uint8
}

func (p *runBooleans) page(data []byte, _ int) {
	p.runs = hybrid{width: 1}
	if len(data) >= 4 {
		p.runs.data = data[4:]
	}
}

func (p *runBooleans) ready(n int) (appender, error) {
	p.room = slices.Grow(p.room[:0], n)[:n]
	if err := p.runs.small(p.room); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *runBooleans) append(b []byte, i int) []byte {
	n := len(b)
	t := int(p.room[i])
	putWord(b, n, boolWords[t])
	return b[:n+5-t]
}

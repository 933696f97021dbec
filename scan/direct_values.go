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
	// ready makes the next n values the ones that the appender writes, as 0 ≤ i < n, in this order and each once. There is
	// an appender for each side, 0 and 1: it is not used any more when ready is called for its side again.
	ready(n, side int) (appender, error)
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
			return newPlain(func() (appender, *[]int32) { c := &dates{}; return c, &c.values })
		}
	case iceberg.TimeType:
		if l, ok := logical.(schema.TimeLogicalType); ok && l.TimeUnit() == schema.TimeUnitMicros {
			return newPlain(func() (appender, *[]int64) { c := &times[int64]{nanos: 1000}; return c, &c.values })
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
			return newPlainFixed(16, func() (appender, func([]byte)) {
				c := &uuids{}
				return c, func(v []byte) { c.data = v }
			})
		}
	case iceberg.FixedType:
		if isNone(logical) && n.PhysicalType() == parquet.Types.FixedLenByteArray && n.TypeLength() == t.Len() {
			return newPlainFixed(t.Len(), func() (appender, func([]byte)) {
				c := &fixedHexes{width: t.Len()}
				return c, func(v []byte) { c.data = v }
			})
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
		return newPlain(func() (appender, *[]int32) { c := &integers[int32]{}; return c, &c.values })
	case parquet.Types.Int64:
		if _, ok := t.(iceberg.Int64Type); ok {
			return newPlain(func() (appender, *[]int64) { c := &integers[int64]{}; return c, &c.values })
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
		return newPlain(func() (appender, *[]float64) { c := &float64s{}; return c, &c.values })
	case double && n.PhysicalType() == parquet.Types.Float:
		return newPlain(func() (appender, *[]float32) { c := &widenedFloats{}; return c, &c.values })
	case !double && n.PhysicalType() == parquet.Types.Float:
		return newPlain(func() (appender, *[]float32) { c := &float32s{}; return c, &c.values })
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
		return newPlain(func() (appender, *[]int64) {
			c := &timestampsIn[int64]{perDay: secondsPerDay * 1e9, perSecond: 1e9, digits: 9, end: end}
			return c, &c.values
		})
	}
	var word [8]byte
	copy(word[:], end)
	return newPlain(func() (appender, *[]int64) {
		c := &timestamps{end: getWord(word[:], 0), endSize: len(end)}
		return c, &c.values
	})
}

func plainDecimals(t iceberg.DecimalType, n *schema.PrimitiveNode) pageValues {
	l, ok := n.LogicalType().(schema.DecimalLogicalType)
	if !ok || int(l.Scale()) != t.Scale() || int(l.Precision()) > t.Precision() {
		return nil
	}
	switch width := n.TypeLength(); {
	case n.PhysicalType() == parquet.Types.Int32:
		return newPlain(func() (appender, *[]int32) { c := &smallDecimals[int32]{scale: t.Scale()}; return c, &c.values })
	case n.PhysicalType() == parquet.Types.Int64:
		return newPlain(func() (appender, *[]int64) { c := &smallDecimals[int64]{scale: t.Scale()}; return c, &c.values })
	case n.PhysicalType() != parquet.Types.FixedLenByteArray || width < 1 || width > 16:
		return nil
	case width <= 8:
		return newPlainFixed(width, func() (appender, func([]byte)) {
			c := &smallDecimals[int64]{scale: t.Scale()}
			return c, func(v []byte) { c.values = bigEndian64(c.values[:0], v, width) }
		})
	default:
		return newPlainFixed(width, func() (appender, func([]byte)) {
			c := &decimals{scale: t.Scale()}
			return c, func(v []byte) { c.values = bigEndian128(c.values[:0], v, width) }
		})
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
	data  []byte
	sides [2]struct {
		out    appender
		values *[]T // that it writes
		room   []T
	}
}

// newPlain makes the appenders of both sides.
func newPlain[T int32 | int64 | float32 | float64](side func() (appender, *[]T)) *plain[T] {
	p := &plain[T]{}
	for i := range p.sides {
		p.sides[i].out, p.sides[i].values = side()
	}
	return p
}

func (p *plain[T]) page(data []byte, _ int) { p.data = data }

func (p *plain[T]) ready(n, side int) (appender, error) {
	s := &p.sides[side]
	size := int(unsafe.Sizeof(*new(T)))
	if len(p.data)/size < n {
		return nil, errShortPage
	}
	if n == 0 {
		return s.out, nil
	}
	here := p.data[:n*size]
	p.data = p.data[n*size:]
	// Pages begin anywhere, and only aligned memory is a []T. A dictionary mostly is aligned, and too large to hold twice.
	if at := unsafe.Pointer(unsafe.SliceData(here)); uintptr(at)%unsafe.Alignof(*new(T)) == 0 {
		*s.values = unsafe.Slice((*T)(at), n)
		return s.out, nil
	}
	s.room = slices.Grow(s.room[:0], n)[:n]
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.room))), n*size), here)
	*s.values = s.room
	return s.out, nil
}

// plainFixed are values of a fixed number of bytes.
type plainFixed struct {
	data  []byte
	width int
	outs  [2]appender
	sets  [2]func([]byte)
}

func newPlainFixed(width int, side func() (appender, func([]byte))) *plainFixed {
	p := &plainFixed{width: width}
	for i := range p.outs {
		p.outs[i], p.sets[i] = side()
	}
	return p
}

func (p *plainFixed) page(data []byte, _ int) { p.data = data }

func (p *plainFixed) ready(n, side int) (appender, error) {
	if len(p.data)/p.width < n {
		return nil, errShortPage
	}
	p.sets[side](p.data[:n*p.width])
	p.data = p.data[n*p.width:]
	return p.outs[side], nil
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
	bits []byte
	at   int // bit of the next value
	outs [2]booleans
}

func (p *plainBooleans) page(data []byte, _ int) { p.at, p.bits = 0, data }

func (p *plainBooleans) ready(n, side int) (appender, error) {
	if 8*len(p.bits) < p.at+n {
		return nil, errShortPage
	}
	out := &p.outs[side]
	out.bits, out.offset = p.bits, p.at
	p.at += n
	return out, nil
}

// prefixed are byte arrays, each behind its length. They are written from where they lie in the page.
type prefixed struct {
	data  []byte
	at    int // of the next length
	write func(b, data []byte, beg, end int) []byte
	outs  [2]prefixedRun
}

func (p *prefixed) page(data []byte, _ int) { p.data, p.at = data, 0 }

// ready walks the lengths, so that append needs no check.
func (p *prefixed) ready(n, side int) (appender, error) {
	out := &p.outs[side]
	*out = prefixedRun{data: p.data, at: p.at, write: p.write}
	return out, p.pass(n)
}

func (p *prefixed) pass(n int) error {
	at := p.at
	for range n {
		if at+4 > len(p.data) {
			return errShortPage
		}
		at += 4 + int(binary.LittleEndian.Uint32(p.data[at:]))
	}
	if at > len(p.data) {
		return errShortPage
	}
	p.at = at
	return nil
}

// all makes all n values ready in any order, for both sides.
func (p *prefixed) all(n int) (appender, error) {
	if err := p.pass(n); err != nil {
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

// prefixedRun are byte arrays beside each other.
type prefixedRun struct {
	data  []byte
	at    int // of the next length
	write func(b, data []byte, beg, end int) []byte
}

func (p *prefixedRun) append(b []byte, _ int) []byte {
	beg := p.at + 4
	end := beg + int(binary.LittleEndian.Uint32(p.data[p.at:]))
	p.at = end
	return p.write(b, p.data, beg, end)
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
func (e *encodedValues) encode(values pageValues, n, side int) error {
	from, err := values.ready(n, side)
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
	outs    [2]appender   // write value i of the dictionary
	size    uint32

	indices hybrid
	bad     bool
	sides   [2]indexedRun
}

// indexedRun are values of a dictionary by their indices.
type indexedRun struct {
	out appender
	now []uint32
}

// dictionary begins a column chunk's dictionary of n values. often says whether they are worth encoding beforehand, and
// both whether both sides are used.
func (p *indexed) dictionary(data []byte, n int, often, both bool) (err error) {
	p.size = uint32(n)
	p.values.page(data, n)
	p.encoded.reset()
	if often {
		p.outs = [2]appender{&p.encoded, &p.encoded}
		return p.encoded.encode(p.values, n, 0)
	}
	if strings, ok := p.values.(*prefixed); ok {
		p.outs[0], err = strings.all(n)
		p.outs[1] = p.outs[0]
		return err
	}
	if p.outs[0], err = p.values.ready(n, 0); err != nil || !both {
		return err
	}
	p.values.page(data, n)
	p.outs[1], err = p.values.ready(n, 1)
	return err
}

func (p *indexed) page(data []byte, _ int) {
	p.bad = p.outs[0] == nil || len(data) == 0 || data[0] > 32
	if !p.bad {
		p.indices = newHybrid(data[1:], int(data[0]))
	}
}

func (p *indexed) ready(n, side int) (appender, error) {
	s := &p.sides[side]
	if n == 0 {
		return s, nil
	}
	if p.bad {
		return nil, errShortPage
	}
	s.out, s.now = p.outs[side], slices.Grow(s.now[:0], n)[:n]
	return s, p.indices.numbers(s.now, p.size)
}

func (r *indexedRun) append(b []byte, i int) []byte { return r.out.append(b, int(r.now[i])) }

// runBooleans are booleans in runs, behind the runs' length.
type runBooleans struct {
	runs  hybrid
	sides [2]booleanBytes
}

func (p *runBooleans) page(data []byte, _ int) {
	p.runs = hybrid{width: 1}
	if len(data) >= 4 {
		p.runs.data = data[4:]
	}
}

func (p *runBooleans) ready(n, side int) (appender, error) {
	s := &p.sides[side]
	*s = slices.Grow((*s)[:0], n)[:n]
	return s, p.runs.small(*s)
}

type booleanBytes []uint8

func (p *booleanBytes) append(b []byte, i int) []byte {
	n := len(b)
	t := int((*p)[i])
	putWord(b, n, boolWords[t])
	return b[:n+5-t]
}

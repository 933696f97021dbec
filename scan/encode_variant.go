// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/parquet/variant"
)

// variants writes variant values as the JSON that they stand for: numbers, decimals among
// them, as numbers; dates, times, binary and uuid as in columns of those types (Parquet
// spec, VariantEncoding). Values are read from the binary form in place.
type variants struct {
	validity
	// value gives the metadata and value bytes of row i.
	value func(i int) (meta, value []byte, err error)
	path  string
	fault *error
}

func variantColumn(dt arrow.DataType, path string, fault *error) column {
	if _, ok := dt.(*extensions.VariantType); !ok {
		return nil
	}
	return &variants{path: path, fault: fault}
}

func (c *variants) bind(arr arrow.Array) {
	a := arr.(*extensions.VariantArray)
	c.validity = validityOf(a.Storage())
	c.value = func(i int) ([]byte, []byte, error) {
		v, err := a.Value(i)
		if err != nil {
			return nil, nil, err
		}
		return v.Metadata().Bytes(), v.Bytes(), nil
	}
	if a.IsShredded() {
		return
	}
	metadata, ok := a.Metadata().(*array.Binary)
	values, ok2 := a.UntypedValues().(*array.Binary)
	if ok && ok2 {
		c.value = func(i int) ([]byte, []byte, error) { return metadata.Value(i), values.Value(i), nil }
	}
}

func (c *variants) release() { c.validity, c.value = validity{}, nil }

func (c *variants) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	meta, value, err := c.value(i)
	if err == nil {
		b, err = appendVariant(b, meta, value)
	}
	if err != nil && *c.fault == nil {
		*c.fault = fmt.Errorf("encoding column %s: reading variant of row %d: %w", c.path, i, err)
	}
	return b
}

var errVariant = errors.New("invalid variant")

// maxVariantDepth is how deep arrays and objects may lie in each other: arrow-go's bound.
const maxVariantDepth = 1024

func appendVariant(b []byte, meta, value []byte) ([]byte, error) {
	r := variantReader{left: len(value)}
	if err := r.readNames(meta); err != nil {
		return b, err
	}
	return r.append(b, value, maxVariantDepth)
}

// variantReader reads one value with the field names of its metadata.
type variantReader struct {
	count, size int
	offsets     []byte
	text        []byte
	// left is how many bytes of the value are not read yet. Elements that share bytes,
	// and so could multiply at each level, use them up.
	left int
}

func (r *variantReader) readNames(meta []byte) error {
	if len(meta) < 1 || meta[0]&0xf != 1 {
		return fmt.Errorf("%w: metadata is not of version 1", errVariant)
	}
	r.size = int(meta[0]>>6) + 1
	if len(meta) < 1+r.size {
		return fmt.Errorf("%w: metadata ends early", errVariant)
	}
	r.count, r.offsets = littleEndian(meta[1:1+r.size]), meta[1+r.size:]
	if len(r.offsets) < (r.count+1)*r.size {
		return fmt.Errorf("%w: metadata ends early", errVariant)
	}
	r.text = r.offsets[(r.count+1)*r.size:]
	return nil
}

func (r *variantReader) name(id int) ([]byte, error) {
	if id >= r.count {
		return nil, fmt.Errorf("%w: field name %d of %d", errVariant, id, r.count)
	}
	beg := littleEndian(r.offsets[id*r.size : (id+1)*r.size])
	end := littleEndian(r.offsets[(id+1)*r.size : (id+2)*r.size])
	if beg > end || end > len(r.text) {
		return nil, fmt.Errorf("%w: field name %d lies outside", errVariant, id)
	}
	return r.text[beg:end], nil
}

// littleEndian reads a number of one to four bytes.
func littleEndian(b []byte) int {
	v := 0
	for i, x := range b {
		v |= int(x) << (8 * i)
	}
	return v
}

// append appends the value at the beginning of v.
func (r *variantReader) append(b []byte, v []byte, depth int) ([]byte, error) {
	if len(v) == 0 {
		return b, fmt.Errorf("%w: value ends early", errVariant)
	}
	if depth == 0 {
		return b, fmt.Errorf("%w: nested too deep", errVariant)
	}
	if r.left--; r.left < 0 {
		return b, fmt.Errorf("%w: elements overlap", errVariant)
	}
	info := v[0] >> 2
	switch variant.BasicType(v[0] & 3) {
	case variant.BasicShortString:
		text, err := r.take(v[1:], uint64(info))
		return appendText(b, text), err
	case variant.BasicObject:
		return r.appendObject(b, v[1:], info, depth)
	case variant.BasicArray:
		return r.appendArray(b, v[1:], info, depth)
	}
	switch t := variant.PrimitiveType(info); t {
	case variant.PrimitiveString, variant.PrimitiveBinary:
		if len(v) < 5 {
			return b, fmt.Errorf("%w: value ends early", errVariant)
		}
		text, err := r.take(v[5:], uint64(binary.LittleEndian.Uint32(v[1:])))
		if t == variant.PrimitiveBinary {
			return appendHex(b, text), err
		}
		return appendText(b, text), err
	default:
		return appendPrimitive(withSpare(b), t, v[1:])
	}
}

// take takes size bytes of string or binary.
func (r *variantReader) take(v []byte, size uint64) ([]byte, error) {
	if uint64(len(v)) < size {
		return nil, fmt.Errorf("%w: value ends early", errVariant)
	}
	if r.left -= int(size); r.left < 0 {
		return nil, fmt.Errorf("%w: elements overlap", errVariant)
	}
	return v[:size], nil
}

// members are the elements of an array or object: their ids (objects only), offsets, and
// bytes.
type members struct {
	count, idSize, offsetSize int
	ids, offsets, data        []byte
}

func readMembers(v []byte, large bool, idSize, offsetSize int) (members, error) {
	countSize := 1
	if large {
		countSize = 4
	}
	if len(v) < countSize {
		return members{}, fmt.Errorf("%w: value ends early", errVariant)
	}
	m := members{count: littleEndian(v[:countSize]), idSize: idSize, offsetSize: offsetSize}
	v = v[countSize:]
	if len(v) < m.count*idSize+(m.count+1)*offsetSize {
		return members{}, fmt.Errorf("%w: value ends early", errVariant)
	}
	m.ids, v = v[:m.count*idSize], v[m.count*idSize:]
	m.offsets, m.data = v[:(m.count+1)*offsetSize], v[(m.count+1)*offsetSize:]
	return m, nil
}

func (m *members) value(i int) ([]byte, error) {
	beg := littleEndian(m.offsets[i*m.offsetSize : (i+1)*m.offsetSize])
	if beg >= len(m.data) {
		return nil, fmt.Errorf("%w: element %d lies outside", errVariant, i)
	}
	return m.data[beg:], nil
}

func (r *variantReader) appendArray(b, v []byte, info byte, depth int) ([]byte, error) {
	elements, err := readMembers(v, info>>2&1 != 0, 0, int(info&3)+1)
	if err != nil {
		return b, err
	}
	b = append(b, '[')
	for i := range elements.count {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := elements.value(i)
		if err != nil {
			return b, err
		}
		if b, err = r.append(b, value, depth-1); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func (r *variantReader) appendObject(b, v []byte, info byte, depth int) ([]byte, error) {
	fields, err := readMembers(v, info>>4&1 != 0, int(info>>2&3)+1, int(info&3)+1)
	if err != nil {
		return b, err
	}
	b = append(b, '{')
	for i := range fields.count {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := r.name(littleEndian(fields.ids[i*fields.idSize : (i+1)*fields.idSize]))
		if err != nil {
			return b, err
		}
		value, err := fields.value(i)
		if err != nil {
			return b, err
		}
		if b, err = r.append(append(appendText(b, name), ':'), value, depth-1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// primitiveSizes are the bytes behind the header of each primitive type of a fixed size.
var primitiveSizes = [...]int{
	variant.PrimitiveNull: 0, variant.PrimitiveBoolTrue: 0, variant.PrimitiveBoolFalse: 0,
	variant.PrimitiveInt8: 1, variant.PrimitiveInt16: 2, variant.PrimitiveInt32: 4, variant.PrimitiveInt64: 8,
	variant.PrimitiveDouble: 8, variant.PrimitiveDecimal4: 5, variant.PrimitiveDecimal8: 9,
	variant.PrimitiveDecimal16: 17, variant.PrimitiveDate: 4, variant.PrimitiveTimestampMicros: 8,
	variant.PrimitiveTimestampMicrosNTZ: 8, variant.PrimitiveFloat: 4,
	variant.PrimitiveTimeMicrosNTZ: 8, variant.PrimitiveTimestampNanos: 8,
	variant.PrimitiveTimestampNanosNTZ: 8, variant.PrimitiveUUID: 16,
}

func appendPrimitive(b []byte, t variant.PrimitiveType, v []byte) ([]byte, error) {
	if int(t) >= len(primitiveSizes) {
		return b, fmt.Errorf("%w: unknown primitive type %d", errVariant, t)
	}
	if len(v) < primitiveSizes[t] {
		return b, fmt.Errorf("%w: value ends early", errVariant)
	}
	le := binary.LittleEndian
	switch t {
	case variant.PrimitiveNull:
		return appendNull(b), nil
	case variant.PrimitiveBoolTrue:
		return append(b, "true"...), nil
	case variant.PrimitiveBoolFalse:
		return append(b, "false"...), nil
	case variant.PrimitiveInt8:
		return appendInt(b, int64(int8(v[0]))), nil
	case variant.PrimitiveInt16:
		return appendInt(b, int64(int16(le.Uint16(v)))), nil
	case variant.PrimitiveInt32:
		return appendInt(b, int64(int32(le.Uint32(v)))), nil
	case variant.PrimitiveInt64:
		return appendInt(b, int64(le.Uint64(v))), nil
	case variant.PrimitiveDouble:
		return appendFloat64(b, math.Float64frombits(le.Uint64(v))), nil
	case variant.PrimitiveFloat:
		return appendFloat32(b, math.Float32frombits(le.Uint32(v))), nil
	case variant.PrimitiveUUID:
		return appendUUID(b, (*[16]byte)(v)), nil
	case variant.PrimitiveDecimal4, variant.PrimitiveDecimal8, variant.PrimitiveDecimal16:
		return appendVariantDecimal(b, int(v[0]), v[1:primitiveSizes[t]])
	}
	return appendMoment(b, t, v), nil
}

func appendVariantDecimal(b []byte, scale int, v []byte) ([]byte, error) {
	if scale > 38 {
		return b, fmt.Errorf("%w: decimal scale %d", errVariant, scale)
	}
	le := binary.LittleEndian
	switch len(v) {
	case 4:
		return appendDecimal64(b, int64(int32(le.Uint32(v))), scale), nil
	case 8:
		return appendDecimal64(b, int64(le.Uint64(v)), scale), nil
	}
	return appendDecimalWide(b, []uint64{le.Uint64(v), le.Uint64(v[8:])}, scale), nil
}

// appendMoment appends a date, time or timestamp.
func appendMoment(b []byte, t variant.PrimitiveType, v []byte) []byte {
	var d day
	le := binary.LittleEndian
	switch t {
	case variant.PrimitiveDate:
		return d.append(b, int64(int32(le.Uint32(v))), '"')
	case variant.PrimitiveTimeMicrosNTZ:
		return append(appendTime(append(b, '"'), int64(le.Uint64(v))*1000), '"')
	}
	ts := timestampsIn[int64]{perSecond: 1e6, digits: 6, end: `"`}
	if t == variant.PrimitiveTimestampMicros || t == variant.PrimitiveTimestampNanos {
		ts.end = `+00:00"`
	}
	if t == variant.PrimitiveTimestampNanos || t == variant.PrimitiveTimestampNanosNTZ {
		ts.perSecond, ts.digits = 1e9, 9
	}
	ts.perDay = secondsPerDay * ts.perSecond
	return ts.appendValue(b, int64(le.Uint64(v)))
}

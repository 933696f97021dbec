// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// valueCode codes the values of one Arrow array so that equal values, and only those, have equal bytes, none of which is a
// prefix of another's.
type valueCode interface {
	bind(arr arrow.Array) error
	append(b []byte, i int) ([]byte, error)
	// read appends the first value of b to the builder and returns what follows it.
	read(b []byte, to array.Builder) ([]byte, error)
}

// The first byte of a value.
const (
	isNull  = 0
	isValue = 1
)

func newValueCode(t iceberg.Type) (valueCode, error) {
	var inner valueCode
	var err error
	switch t := t.(type) {
	case iceberg.UnknownType:
		return nullCode{}, nil
	case iceberg.BooleanType:
		inner = &boolCode{}
	case iceberg.Int32Type, iceberg.DateType, iceberg.Float32Type:
		inner = &wordCode{size: 4}
	case iceberg.Int64Type, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.Float64Type:
		inner = &wordCode{size: 8}
	case iceberg.DecimalType:
		inner = &decimalCode{}
	case iceberg.StringType, iceberg.BinaryType, iceberg.GeometryType, iceberg.GeographyType, iceberg.UUIDType, iceberg.FixedType:
		inner = &bytesCode{}
	case iceberg.VariantType:
		inner = &variantCode{}
	case *iceberg.StructType:
		inner, err = newStructCode(t)
	case *iceberg.ListType:
		inner, err = newListCode(t)
	case *iceberg.MapType:
		inner, err = newMapCode(t)
	default:
		err = fmt.Errorf("values of type %s can't be compared", t)
	}
	return &nullable{inner: inner}, err
}

func unexpected(arr arrow.Array) error {
	return fmt.Errorf("values come as Arrow type %s", arr.DataType())
}

func notWritten(to array.Builder) error {
	return fmt.Errorf("a value does not go into Arrow type %s", to.Type())
}

// nullable puts a byte before each value.
type nullable struct {
	validity
	inner valueCode
}

func (c *nullable) bind(arr arrow.Array) error {
	if v, ok := arr.(*extensions.VariantArray); ok {
		c.validity = validityOf(v.Storage())
		return c.inner.bind(arr)
	}
	arr = storage(arr)
	c.validity = validityOf(arr)
	if arr.DataType().ID() == arrow.NULL {
		c.inner = noCode{c.inner}
		return nil
	}
	if n, ok := c.inner.(noCode); ok {
		c.inner = n.valueCode
	}
	return c.inner.bind(arr)
}

func (c *nullable) append(b []byte, i int) ([]byte, error) {
	if c.null(i) {
		return append(b, isNull), nil
	}
	return c.inner.append(append(b, isValue), i)
}

func (c *nullable) read(b []byte, to array.Builder) ([]byte, error) {
	if b[0] == isNull {
		to.AppendNull()
		return b[1:], nil
	}
	inner := c.inner
	if n, ok := inner.(noCode); ok {
		inner = n.valueCode
	}
	if e, ok := to.(interface{ StorageBuilder() array.Builder }); ok {
		if _, variant := to.(*extensions.VariantBuilder); !variant {
			to = e.StorageBuilder()
		}
	}
	return inner.read(b[1:], to)
}

// noCode stands in while a column comes without values: an array of Arrow type null.
type noCode struct{ valueCode }

func (noCode) append(b []byte, _ int) ([]byte, error) { return append(b[:len(b)-1], isNull), nil }

// nullCode is for columns of type unknown, which hold only NULL.
type nullCode struct{}

func (nullCode) bind(arrow.Array) error                 { return nil }
func (nullCode) append(b []byte, _ int) ([]byte, error) { return b, nil }
func (nullCode) read(b []byte, to array.Builder) ([]byte, error) {
	to.AppendNull()
	return b, nil
}

type boolCode struct{ values *array.Boolean }

func (c *boolCode) bind(arr arrow.Array) (err error) {
	var ok bool
	if c.values, ok = arr.(*array.Boolean); !ok {
		return unexpected(arr)
	}
	return nil
}

func (c *boolCode) append(b []byte, i int) ([]byte, error) {
	if c.values.Value(i) {
		return append(b, 1), nil
	}
	return append(b, 0), nil
}

func (c *boolCode) read(b []byte, to array.Builder) ([]byte, error) {
	bools, ok := to.(*array.BooleanBuilder)
	if !ok {
		return nil, notWritten(to)
	}
	bools.Append(b[0] == 1)
	return b[1:], nil
}

// wordCode is for everything of 4 or 8 bytes.
type wordCode struct {
	size  int
	float bool
	bytes []byte // the values of the array
}

func (c *wordCode) bind(arr arrow.Array) error {
	size := 8
	switch arr.(type) {
	case *array.Int32, *array.Date32, *array.Float32:
		size = 4
	case *array.Int64, *array.Time64, *array.Timestamp, *array.Float64:
	default:
		return unexpected(arr)
	}
	if size != c.size {
		return unexpected(arr)
	}
	c.bytes = nil
	id := arr.DataType().ID()
	c.float = id == arrow.FLOAT32 || id == arrow.FLOAT64
	if values := arr.Data().Buffers()[1]; values != nil { // nil: every value is NULL
		c.bytes = values.Bytes()[arr.Data().Offset()*size:]
	}
	return nil
}

func (c *wordCode) append(b []byte, i int) ([]byte, error) {
	n := len(b)
	b = append(b, c.bytes[i*c.size:(i+1)*c.size]...)
	if !c.float {
		return b, nil
	}
	if c.size == 8 {
		if math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(b[n:]))) {
			binary.LittleEndian.PutUint64(b[n:], math.Float64bits(math.NaN()))
		}
	} else if f := math.Float32frombits(binary.LittleEndian.Uint32(b[n:])); f != f {
		binary.LittleEndian.PutUint32(b[n:], math.Float32bits(float32(math.NaN())))
	}
	return b, nil
}

func (c *wordCode) read(b []byte, to array.Builder) ([]byte, error) {
	var word uint64
	if c.size == 4 {
		word = uint64(binary.LittleEndian.Uint32(b))
	} else {
		word = binary.LittleEndian.Uint64(b)
	}
	switch to := to.(type) {
	case *array.Int32Builder:
		to.Append(int32(word))
	case *array.Date32Builder:
		to.Append(arrow.Date32(word))
	case *array.Int64Builder:
		to.Append(int64(word))
	case *array.Time64Builder:
		to.Append(arrow.Time64(word))
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(word))
	case *array.Float32Builder:
		to.Append(math.Float32frombits(uint32(word)))
	case *array.Float64Builder:
		to.Append(math.Float64frombits(word))
	default:
		return nil, notWritten(to)
	}
	return b[c.size:], nil
}

type decimalCode struct{ values []decimal128.Num }

func (c *decimalCode) bind(arr arrow.Array) error {
	a, ok := arr.(*array.Decimal128)
	if !ok {
		return unexpected(arr)
	}
	c.values = a.Values()
	return nil
}

func (c *decimalCode) append(b []byte, i int) ([]byte, error) {
	v := c.values[i]
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, v.LowBits()), uint64(v.HighBits())), nil
}

func (c *decimalCode) read(b []byte, to array.Builder) ([]byte, error) {
	decimals, ok := to.(*array.Decimal128Builder)
	if !ok {
		return nil, notWritten(to)
	}
	decimals.Append(decimal128.New(int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b)))
	return b[16:], nil
}

// bytesCode is for strings and everything binary, of a fixed size or not.
type bytesCode struct {
	value func(i int) []byte
	text  *array.String
}

func (c *bytesCode) bind(arr arrow.Array) error {
	c.text = nil
	switch a := arr.(type) {
	case *array.String:
		c.text = a
	case *array.LargeString:
		c.value = func(i int) []byte { return []byte(a.Value(i)) }
	case *array.Binary:
		c.value = a.Value
	case *array.LargeBinary:
		c.value = a.Value
	case *array.FixedSizeBinary:
		c.value = a.Value
	default:
		return unexpected(arr)
	}
	return nil
}

func (c *bytesCode) append(b []byte, i int) ([]byte, error) {
	if c.text != nil {
		v := c.text.Value(i)
		return append(binary.AppendUvarint(b, uint64(len(v))), v...), nil
	}
	v := c.value(i)
	return append(binary.AppendUvarint(b, uint64(len(v))), v...), nil
}

func (c *bytesCode) read(b []byte, to array.Builder) ([]byte, error) {
	size, n := uvarint(b)
	v := b[n : n+int(size)]
	switch to := to.(type) {
	case *array.StringBuilder:
		to.Append(string(v))
	case *array.LargeStringBuilder:
		to.Append(string(v))
	case *array.BinaryBuilder:
		to.Append(v)
	case *array.FixedSizeBinaryBuilder:
		to.Append(v)
	default:
		return nil, notWritten(to)
	}
	return b[n+len(v):], nil
}

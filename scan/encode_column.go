// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// spare is how many free bytes a column finds behind the buffer's end. It holds the
// longest value of a fixed size (a decimal of 38 digits, a timestamp of a far year), so
// that those columns write without a check, and in whole words past their end.
const spare = 64

// column appends the values of one Arrow array.
type column interface {
	// bind points the column at an array of the type that it was chosen for.
	bind(arr arrow.Array)
	// append appends value i as JSON. The buffer has at least spare free bytes on
	// entry and may have none on return.
	append(b []byte, i int) []byte
	// release forgets the array.
	release()
}

// cells are the named columns of a row or struct.
type cells []cell

type cell struct {
	field  iceberg.NestedField
	label  label
	column column
	// source is the index of the Arrow column.
	source int
}

func newCells(fields []iceberg.NestedField) cells {
	cs := make(cells, len(fields))
	for i, f := range fields {
		open := "{"
		if i > 0 {
			open = ","
		}
		cs[i] = cell{field: f, label: newLabel(append(appendText([]byte(open), []byte(f.Name)), ':'))}
	}
	return cs
}

// clone copies the cells without what was chosen or bound.
func (cs cells) clone() cells {
	out := slices.Clone(cs)
	for i := range out {
		out[i].column = nil
	}
	return out
}

// choose finds the Arrow field of each cell by name and the column for its type.
func (cs cells) choose(fields []arrow.Field, path string, fault *error) error {
	for i := range cs {
		c := &cs[i]
		name := c.field.Name
		c.source = i
		if i >= len(fields) || fields[i].Name != name {
			c.source = slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
		}
		if c.source < 0 {
			return fmt.Errorf("encoding column %s%s: the batch has no such column", path, name)
		}
		var err error
		if c.column, err = newColumn(c.field.Type, fields[c.source].Type, path+name, fault); err != nil {
			return err
		}
	}
	return nil
}

// append appends an object without its closing brace.
func (cs cells) append(b []byte, i int) []byte {
	if len(cs) == 0 {
		return append(b, '{')
	}
	for k := range cs {
		c := &cs[k]
		b = c.column.append(c.label.append(b), i)
	}
	return b
}

func (cs cells) release() {
	for i := range cs {
		cs[i].column.release()
	}
}

// label is the text before a value: separator, quoted name, colon. It is padded to
// blocks of 16 bytes, which are copied without a call; mostly there is one.
type label struct {
	first [16]byte
	rest  [][16]byte
	size  int
	// room is what to have free before a label and the value behind it.
	room int
}

func newLabel(text []byte) label {
	l := label{size: len(text), rest: make([][16]byte, (len(text)-1)/16)}
	l.room = 16*(1+len(l.rest)) + spare
	copy(l.first[:], text)
	for i := range l.rest {
		copy(l.rest[i][:], text[16*(i+1):])
	}
	return l
}

// append appends the label and leaves spare bytes behind it.
func (l *label) append(b []byte) []byte {
	n := len(b)
	if cap(b)-n < l.room {
		b = slices.Grow(b, l.room)
	}
	*(*[16]byte)(b[n : n+16]) = l.first
	for i := range l.rest {
		*(*[16]byte)(b[n+16*(i+1) : n+16*(i+2)]) = l.rest[i]
	}
	return b[:n+l.size]
}

// validity is an array's null bitmap; without one no value is NULL.
type validity struct {
	bits   []byte
	offset int
}

// validityOf asks the data, not the array: an array counts its nulls on demand, which
// two encoders must not do at once.
func validityOf(arr arrow.Array) validity {
	if arr.Data().NullN() == 0 || len(arr.NullBitmapBytes()) == 0 {
		return validity{}
	}
	return validity{arr.NullBitmapBytes(), arr.Data().Offset()}
}

func (v *validity) null(i int) bool {
	if v.bits == nil {
		return false
	}
	i += v.offset
	return v.bits[i>>3]>>(i&7)&1 == 0
}

func appendNull(b []byte) []byte { return append(b, "null"...) }

// nulls is a column whose every value is NULL: of type unknown, or absent from its file.
type nulls struct{}

func (nulls) bind(arrow.Array)              {}
func (nulls) append(b []byte, _ int) []byte { return appendNull(b) }
func (nulls) release()                      {}

// storage gives the array that holds an extension array's values. A variant is kept: its
// shredded form is more than its storage.
func storage(arr arrow.Array) arrow.Array {
	for {
		ext, ok := arr.(array.ExtensionArray)
		if !ok {
			return arr
		}
		if _, ok := ext.(*extensions.VariantArray); ok {
			return arr
		}
		arr = ext.Storage()
	}
}

func storageType(dt arrow.DataType) arrow.DataType {
	for {
		ext, ok := dt.(arrow.ExtensionType)
		if !ok {
			return dt
		}
		if _, ok := ext.(*extensions.VariantType); ok {
			return dt
		}
		dt = ext.StorageType()
	}
}

// newColumn chooses the column that writes values of an Iceberg type that are held in an
// Arrow type. path names the column in errors; fault is where it reports a bad value.
func newColumn(t iceberg.Type, dt arrow.DataType, path string, fault *error) (column, error) {
	dt = storageType(dt)
	if _, unknown := t.(iceberg.UnknownType); unknown || dt.ID() == arrow.NULL {
		return nulls{}, nil
	}
	if d, ok := dt.(*arrow.DictionaryType); ok {
		values, err := newColumn(t, d.ValueType, path, fault)
		if err != nil {
			return nil, err
		}
		return newDictionary(d.IndexType, values), nil
	}
	c, err := newPlainColumn(t, dt, path, fault)
	if err == nil && c == nil {
		err = fmt.Errorf("encoding column %s: Iceberg type %s does not come as Arrow type %s", path, t, dt)
	}
	return c, err
}

// newPlainColumn gives nil where the types do not go together.
func newPlainColumn(t iceberg.Type, dt arrow.DataType, path string, fault *error) (column, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		if dt.ID() == arrow.BOOL {
			return &booleans{}, nil
		}
	case iceberg.Int32Type, iceberg.Int64Type:
		return integerColumn(dt), nil
	case iceberg.Float32Type, iceberg.Float64Type:
		return floatColumn(t, dt), nil
	case iceberg.DecimalType:
		return decimalColumn(t, dt), nil
	case iceberg.StringType:
		return textColumn(dt), nil
	case iceberg.UUIDType:
		if f, ok := dt.(*arrow.FixedSizeBinaryType); ok && f.ByteWidth == 16 {
			return &uuids{}, nil
		}
	case iceberg.FixedType, iceberg.BinaryType, iceberg.GeometryType, iceberg.GeographyType:
		return hexColumn(dt), nil
	case iceberg.DateType, iceberg.TimeType:
		return dayOrTimeColumn(t, dt), nil
	case iceberg.TimestampType:
		return timestampColumn(dt, 6, false), nil
	case iceberg.TimestampTzType:
		return timestampColumn(dt, 6, true), nil
	case iceberg.TimestampNsType:
		return timestampColumn(dt, 9, false), nil
	case iceberg.TimestampTzNsType:
		return timestampColumn(dt, 9, true), nil
	case *iceberg.StructType:
		return structColumn(t, dt, path, fault)
	case *iceberg.ListType:
		return listColumn(t, dt, path, fault)
	case *iceberg.MapType:
		return mapColumn(t, dt, path, fault)
	case iceberg.VariantType:
		return variantColumn(dt, path, fault), nil
	}
	return nil, nil
}

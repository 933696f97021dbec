// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// arrow-go decodes DELTA_BYTE_ARRAY for values of any length only. Pages hold values of a fixed length in it in the same
// way (Parquet specification, "Delta Strings"), as parquet-java's second version writes them: so the column is declared as
// one of any length, and what is read becomes the table's type. See docs/upstream.md.

// fitDelta is fit for a column of a fixed length that has no other encoding.
func (f *footer) fitDelta(n *footerNode, t iceberg.Type) *fitting {
	width, _ := n.integer(elementLength)
	switch t := t.(type) {
	case iceberg.UUIDType:
		if width != 16 {
			return nil
		}
	case iceberg.FixedType:
		if width != int64(t.Len()) {
			return nil
		}
	case iceberg.DecimalType:
		if !n.is(elementScale, int64(t.Scale())) || width > int64(arrow.Decimal128SizeBytes) {
			return nil
		}
		if precision, ok := n.integer(elementPrecision); !ok || precision > int64(t.Precision()) {
			return nil
		}
	default:
		return nil
	}
	if width < 1 || !f.onlyDelta(n) {
		return nil
	}
	f.retype(n, physicalBytes)
	n.plain()
	n.set(elementLength, nil)
	return &fitting{read: iceberg.PrimitiveTypes.Binary, width: int(width)}
}

// onlyDelta reports whether the values of a column are in DELTA_BYTE_ARRAY wherever it has some: a dictionary, or pages
// beside it, would be of values without lengths.
func (f *footer) onlyDelta(n *footerNode) bool {
	found := false
	groups := f.root.get(4)
	if groups == nil {
		return false
	}
	for i := range groups.list {
		chunks := groups.list[i].get(1)
		if chunks == nil || n.leaf >= len(chunks.list) {
			return false
		}
		encodings := chunks.list[n.leaf].get(3).get(2)
		if encodings == nil {
			return false
		}
		for _, e := range encodings.list {
			if !slices.Contains([]int64{encodingDeltaBytes, encodingRLE, encodingBitPacked}, e.number) {
				return false
			}
			found = found || e.number == encodingDeltaBytes
		}
	}
	return found
}

// fixedData are values of any length, all of which have to be width bytes long, as values of the type. The caller releases it.
func fixedData(from arrow.ArrayData, width int, typ arrow.DataType) (arrow.ArrayData, error) {
	values := array.MakeFromData(from)
	defer values.Release()
	texts, ok := values.(interface{ Value(i int) []byte })
	if !ok {
		return nil, fmt.Errorf("values of type %s where bytes were expected", from.DataType())
	}
	stored := typ
	if extension, ok := typ.(arrow.ExtensionType); ok {
		stored = extension.StorageType()
	}
	_, decimal := stored.(*arrow.Decimal128Type)
	size := stored.(arrow.FixedWidthDataType).Bytes()
	out := memory.NewResizableBuffer(memory.DefaultAllocator)
	defer out.Release()
	out.Resize(size * (from.Offset() + from.Len()))
	clear(out.Bytes())
	for i := range from.Len() {
		if values.IsNull(i) {
			continue
		}
		value := texts.Value(i)
		if len(value) != width {
			return nil, fmt.Errorf("a value of %d bytes in a column of %d each", len(value), width)
		}
		into := out.Bytes()[(from.Offset()+i)*size:][:size]
		if decimal {
			reversed(into, value)
		} else {
			copy(into, value)
		}
	}
	return array.NewData(typ, from.Len(), []*memory.Buffer{from.Buffers()[0], out}, nil, from.NullN(), from.Offset()), nil
}

// reversed makes a two's complement number, the most significant byte first, one of as many bytes as into has, the least
// significant first.
func reversed(into, number []byte) {
	sign := byte(int8(number[0]) >> 7) //nolint:gosec // the sign, in all bits
	for i := range into {
		into[i] = sign
		if i < len(number) {
			into[i] = number[len(number)-1-i]
		}
	}
}

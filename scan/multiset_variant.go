// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/parquet/variant"
)

// variantCode codes a variant by building it anew in one way: field names in the order in which they are met, fields by
// name, integers in the fewest bytes (Parquet spec, VariantEncoding: the widths of integers are one equivalence class).
type variantCode struct{ values *extensions.VariantArray }

func (c *variantCode) bind(arr arrow.Array) error {
	var ok bool
	if c.values, ok = arr.(*extensions.VariantArray); !ok {
		return unexpected(arr)
	}
	return nil
}

func (c *variantCode) append(b []byte, i int) ([]byte, error) {
	v, err := c.values.Value(i)
	if err != nil {
		return b, fmt.Errorf("reading variant of row %d: %w", i, err)
	}
	var built variant.Builder
	if err := rebuild(&built, v, maxVariantDepth); err != nil {
		return b, fmt.Errorf("reading variant of row %d: %w", i, err)
	}
	if v, err = built.Build(); err != nil {
		return b, fmt.Errorf("reading variant of row %d: %w", i, err)
	}
	meta, value := v.Metadata().Bytes(), v.Bytes()
	b = append(binary.AppendUvarint(b, uint64(len(meta))), meta...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...), nil
}

func rebuild(to *variant.Builder, v variant.Value, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: nested too deep", errVariant)
	}
	switch value := v.Value().(type) {
	case variant.ObjectValue:
		return rebuildObject(to, value, depth)
	case variant.ArrayValue:
		start, offsets := to.Offset(), []int(nil)
		for element := range value.Values() {
			offsets = append(offsets, to.NextElement(start))
			if err := rebuild(to, element, depth-1); err != nil {
				return err
			}
		}
		return to.FinishArray(start, offsets)
	case int8:
		return to.AppendInt(int64(value))
	case int16:
		return to.AppendInt(int64(value))
	case int32:
		return to.AppendInt(int64(value))
	case int64:
		return to.AppendInt(value)
	case string:
		return to.AppendString(value)
	case float32:
		if value != value {
			value = float32(math.NaN())
		}
		return to.AppendFloat32(value)
	case float64:
		if math.IsNaN(value) {
			value = math.NaN()
		}
		return to.AppendFloat64(value)
	}
	return to.UnsafeAppendEncoded(primitiveBytes(v))
}

// primitiveBytes are the bytes of a primitive value alone: an element's bytes go on to the end of its array.
func primitiveBytes(v variant.Value) []byte {
	b := v.Bytes()
	t := variant.PrimitiveType(b[0] >> 2)
	if t == variant.PrimitiveBinary {
		return b[:5+binary.LittleEndian.Uint32(b[1:])]
	}
	return b[:1+primitiveSizes[t]]
}

func rebuildObject(to *variant.Builder, object variant.ObjectValue, depth int) error {
	fields := map[string]variant.Value{}
	var names []string
	for name, value := range object.Values() {
		fields[name] = value
		names = append(names, name)
	}
	slices.Sort(names)
	start := to.Offset()
	var entries []variant.FieldEntry
	for _, name := range slices.Compact(names) {
		entries = append(entries, to.NextField(start, name))
		if err := rebuild(to, fields[name], depth-1); err != nil {
			return err
		}
	}
	return to.FinishObject(start, entries)
}

func (c *variantCode) read(b []byte, to array.Builder) ([]byte, error) {
	variants, ok := to.(*extensions.VariantBuilder)
	if !ok {
		return nil, notWritten(to)
	}
	size, n := uvarint(b)
	meta, b := b[n:n+int(size)], b[n+int(size):]
	size, n = uvarint(b)
	value, b := b[n:n+int(size)], b[n+int(size):]
	v, err := variant.New(meta, value)
	if err != nil {
		return nil, err
	}
	variants.Append(v)
	return b, nil
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// structs writes struct as an object by field name.
type structs struct {
	validity
	fields cells
}

func structColumn(t *iceberg.StructType, dt arrow.DataType, path string, fault *error) (column, error) {
	st, ok := dt.(*arrow.StructType)
	if !ok {
		return nil, nil
	}
	fields := newCells(t.FieldList)
	return &structs{fields: fields}, fields.choose(st.Fields(), path+".", fault)
}

func (c *structs) bind(arr arrow.Array) {
	c.validity = validityOf(arr)
	st := arr.(*array.Struct)
	for i := range c.fields {
		f := &c.fields[i]
		f.column.bind(storage(st.Field(f.source)))
	}
}

func (c *structs) release() {
	c.validity = validity{}
	c.fields.release()
}

func (c *structs) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	return append(c.fields.append(b, i), '}')
}

// ranges says which elements belong to each value of a list-like array.
type ranges interface {
	bind(arr arrow.Array)
	of(i int) (beg, end int)
	release()
}

// lists writes list as an array.
type lists struct {
	validity
	ranges  ranges
	element column
}

func listColumn(t *iceberg.ListType, dt arrow.DataType, path string, fault *error) (column, error) {
	lt, ok := dt.(arrow.ListLikeType)
	if !ok || dt.ID() == arrow.MAP {
		return nil, nil
	}
	element, err := newColumn(t.Element, lt.Elem(), path+".element", fault)
	return &lists{ranges: newRanges(dt), element: element}, err
}

func (c *lists) bind(arr arrow.Array) {
	c.validity = validityOf(arr)
	c.ranges.bind(arr)
	c.element.bind(storage(arr.(array.ListLike).ListValues()))
}

func (c *lists) release() {
	c.validity = validity{}
	c.ranges.release()
	c.element.release()
}

func (c *lists) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	beg, end := c.ranges.of(i)
	if beg == end {
		return append(b, '[', ']')
	}
	b = append(b, '[')
	for j := beg; j < end; j++ {
		b = append(c.element.append(withSpare(b), j), ',')
	}
	b[len(b)-1] = ']'
	return b
}

// maps writes a map with string keys as an object, keys in their order, and any other as
// an array of {"key":…,"value":…}.
type maps struct {
	validity
	ranges     ranges
	key, value column
	object     bool
}

func mapColumn(t *iceberg.MapType, dt arrow.DataType, path string, fault *error) (column, error) {
	mt, ok := dt.(*arrow.MapType)
	if !ok {
		return nil, nil
	}
	key, err := newColumn(t.KeyType, mt.KeyType(), path+".key", fault)
	if err != nil {
		return nil, err
	}
	value, err := newColumn(t.ValueType, mt.ItemType(), path+".value", fault)
	_, object := t.KeyType.(iceberg.StringType)
	return &maps{ranges: newRanges(dt), key: key, value: value, object: object}, err
}

func (c *maps) bind(arr arrow.Array) {
	m := arr.(*array.Map)
	c.validity = validityOf(arr)
	c.ranges.bind(arr)
	c.key.bind(storage(m.Keys()))
	c.value.bind(storage(m.Items()))
}

func (c *maps) release() {
	c.validity = validity{}
	c.ranges.release()
	c.key.release()
	c.value.release()
}

func (c *maps) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	beg, end := c.ranges.of(i)
	if c.object {
		return c.appendObject(b, beg, end)
	}
	b = append(b, '[')
	for j := beg; j < end; j++ {
		if j > beg {
			b = append(b, ',')
		}
		b = c.key.append(withSpare(append(b, `{"key":`...)), j)
		b = c.value.append(withSpare(append(b, `,"value":`...)), j)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (c *maps) appendObject(b []byte, beg, end int) []byte {
	b = append(b, '{')
	for j := beg; j < end; j++ {
		if j > beg {
			b = append(b, ',')
		}
		b = c.key.append(withSpare(b), j)
		b = c.value.append(withSpare(append(b, ':')), j)
	}
	return append(b, '}')
}

// withSpare makes the room that a column needs.
func withSpare(b []byte) []byte {
	if cap(b)-len(b) < spare {
		return slices.Grow(b, spare)
	}
	return b
}

func newRanges(dt arrow.DataType) ranges {
	switch dt.ID() {
	case arrow.LARGE_LIST:
		return &offsetRanges[int64]{}
	case arrow.LIST_VIEW:
		return &viewRanges[int32]{}
	case arrow.LARGE_LIST_VIEW:
		return &viewRanges[int64]{}
	case arrow.FIXED_SIZE_LIST:
		return &fixedRanges{size: int(dt.(*arrow.FixedSizeListType).Len())}
	}
	return &offsetRanges[int32]{}
}

// offsetRanges are those of lists and maps: one begins where the last ends.
type offsetRanges[O int32 | int64] struct{ offsets []O }

func (r *offsetRanges[O]) bind(arr arrow.Array) {
	r.offsets = nil
	if d := arr.Data(); d.Len() > 0 {
		r.offsets = arrow.GetData[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
	}
}
func (r *offsetRanges[O]) of(i int) (int, int) { return int(r.offsets[i]), int(r.offsets[i+1]) }
func (r *offsetRanges[O]) release()            { r.offsets = nil }

// viewRanges are those of list views: anywhere.
type viewRanges[O int32 | int64] struct{ offsets, sizes []O }

func (r *viewRanges[O]) bind(arr arrow.Array) {
	r.release()
	if d := arr.Data(); d.Len() > 0 {
		r.offsets = arrow.GetData[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()]
		r.sizes = arrow.GetData[O](d.Buffers()[2].Bytes())[d.Offset() : d.Offset()+d.Len()]
	}
}

func (r *viewRanges[O]) of(i int) (int, int) {
	return int(r.offsets[i]), int(r.offsets[i] + r.sizes[i])
}
func (r *viewRanges[O]) release() { r.offsets, r.sizes = nil, nil }

// fixedRanges are those of fixed-size lists.
type fixedRanges struct{ size, offset int }

func (r *fixedRanges) bind(arr arrow.Array) { r.offset = arr.Data().Offset() }
func (r *fixedRanges) of(i int) (int, int) {
	return (r.offset + i) * r.size, (r.offset + i + 1) * r.size
}
func (r *fixedRanges) release() {}

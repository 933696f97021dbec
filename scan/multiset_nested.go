// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

type structCode struct{ fields []valueCode }

func newStructCode(t *iceberg.StructType) (valueCode, error) {
	c := &structCode{}
	for _, f := range t.FieldList {
		field, err := newValueCode(f.Type)
		if err != nil {
			return nil, err
		}
		c.fields = append(c.fields, field)
	}
	return c, nil
}

func (c *structCode) bind(arr arrow.Array) error {
	a, ok := arr.(*array.Struct)
	if !ok || a.NumField() != len(c.fields) {
		return unexpected(arr)
	}
	for i, field := range c.fields {
		if err := field.bind(a.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func (c *structCode) append(b []byte, i int) (_ []byte, err error) {
	for _, field := range c.fields {
		if b, err = field.append(b, i); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (c *structCode) read(b []byte, to array.Builder) (_ []byte, err error) {
	structs, ok := to.(*array.StructBuilder)
	if !ok {
		return nil, notWritten(to)
	}
	structs.Append(true)
	for i, field := range c.fields {
		if b, err = field.read(b, structs.FieldBuilder(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

type listCode struct {
	lists   array.ListLike
	element valueCode
}

func newListCode(t *iceberg.ListType) (valueCode, error) {
	element, err := newValueCode(t.Element)
	return &listCode{element: element}, err
}

func (c *listCode) bind(arr arrow.Array) error {
	var ok bool
	if c.lists, ok = arr.(array.ListLike); !ok {
		return unexpected(arr)
	}
	return c.element.bind(c.lists.ListValues())
}

func (c *listCode) append(b []byte, i int) (_ []byte, err error) {
	from, to := c.lists.ValueOffsets(i)
	b = binary.AppendUvarint(b, uint64(to-from))
	for ; from < to; from++ {
		if b, err = c.element.append(b, int(from)); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (c *listCode) read(b []byte, to array.Builder) (_ []byte, err error) {
	lists, ok := to.(array.ListLikeBuilder)
	if !ok {
		return nil, notWritten(to)
	}
	lists.Append(true)
	size, n := uvarint(b)
	b = b[n:]
	for range size {
		if b, err = c.element.read(b, lists.ValueBuilder()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// mapCode sorts the entries by their bytes: a map has no order. Two entries of one key both count.
type mapCode struct {
	maps       *array.Map
	key, value valueCode
}

func newMapCode(t *iceberg.MapType) (valueCode, error) {
	key, err := newValueCode(t.KeyType)
	if err != nil {
		return nil, err
	}
	value, err := newValueCode(t.ValueType)
	return &mapCode{key: key, value: value}, err
}

func (c *mapCode) bind(arr arrow.Array) error {
	var ok bool
	if c.maps, ok = arr.(*array.Map); !ok {
		return unexpected(arr)
	}
	if err := c.key.bind(c.maps.Keys()); err != nil {
		return err
	}
	return c.value.bind(c.maps.Items())
}

func (c *mapCode) append(b []byte, i int) ([]byte, error) {
	from, to := c.maps.ValueOffsets(i)
	b = binary.AppendUvarint(b, uint64(to-from))
	entries := make([]string, 0, to-from)
	start := len(b)
	for ; from < to; from++ {
		var err error
		if b, err = c.key.append(b[:start], int(from)); err != nil {
			return b, err
		}
		if b, err = c.value.append(b, int(from)); err != nil {
			return b, err
		}
		entries = append(entries, string(b[start:]))
	}
	slices.Sort(entries)
	b = b[:start]
	for _, e := range entries {
		b = append(b, e...)
	}
	return b, nil
}

func (c *mapCode) read(b []byte, to array.Builder) (_ []byte, err error) {
	maps, ok := to.(*array.MapBuilder)
	if !ok {
		return nil, notWritten(to)
	}
	maps.Append(true)
	size, n := uvarint(b)
	b = b[n:]
	for range size {
		if b, err = c.key.read(b, maps.KeyBuilder()); err != nil {
			return nil, err
		}
		if b, err = c.value.read(b, maps.ItemBuilder()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

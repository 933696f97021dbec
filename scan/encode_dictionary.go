// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// dictionary writes a dictionary-encoded array: each distinct value is encoded when it is
// first met in a batch, and copied from then on.
type dictionary[I int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64] struct {
	validity
	indices []I
	values  column
	// dict is ours: the array makes its own on demand, which two encoders must not do at once.
	dict arrow.Array
	// text holds the encoded values; those of an older batch are void.
	text  []byte
	spans []span
	batch uint32
}

// span is where a value's text lies, if it was written for that batch.
type span struct {
	beg, end int
	batch    uint32
}

func newDictionary(index arrow.DataType, values column) column {
	switch index.ID() {
	case arrow.INT8:
		return &dictionary[int8]{values: values}
	case arrow.INT16:
		return &dictionary[int16]{values: values}
	case arrow.INT32:
		return &dictionary[int32]{values: values}
	case arrow.UINT8:
		return &dictionary[uint8]{values: values}
	case arrow.UINT16:
		return &dictionary[uint16]{values: values}
	case arrow.UINT32:
		return &dictionary[uint32]{values: values}
	case arrow.UINT64:
		return &dictionary[uint64]{values: values}
	default:
		return &dictionary[int64]{values: values}
	}
}

func (c *dictionary[I]) bind(arr arrow.Array) {
	c.validity, c.indices = validityOf(arr), fixedValues[I](arr)
	c.text = c.text[:0]
	data := arr.Data().Dictionary()
	if data == nil || len(c.indices) == 0 {
		return
	}
	c.dict = array.MakeFromData(data)
	c.values.bind(storage(c.dict))
	if c.batch++; c.batch == 0 || len(c.spans) < data.Len() {
		c.spans, c.batch = make([]span, data.Len()), 1
	}
}

func (c *dictionary[I]) release() {
	c.validity, c.indices = validity{}, nil
	c.values.release()
	if c.dict != nil {
		c.dict.Release()
		c.dict = nil
	}
}

func (c *dictionary[I]) append(b []byte, i int) []byte {
	if c.null(i) {
		return appendNull(b)
	}
	k := int(c.indices[i])
	s := &c.spans[k]
	if s.batch != c.batch {
		s.beg, s.batch = len(c.text), c.batch
		c.text = c.values.append(withSpare(c.text), k)
		s.end = len(c.text)
	}
	return append(b, c.text[s.beg:s.end]...)
}

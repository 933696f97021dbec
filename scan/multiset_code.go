// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// rowCode turns rows of record batches into bytes that are equal exactly when the rows are, and back. What counts as equal
// is logical: every NaN is one value and -0.0 is not 0.0, a map's entries have no order, a variant's field names have none
// either and its integers no width. Row lineage (_row_id and _last_updated_sequence_number) takes no part: it is carried
// beside.
//
// A coded row is the length of its key, the key's values (none without a key), then every column's value. As the key's
// values are among the columns', they change nothing about which rows are equal. A rowCode is not safe for concurrent use.
type rowCode struct {
	schema  *iceberg.Schema
	arrow   *arrow.Schema
	columns []coded
	keys    []keyCode
	key     []byte
	size    int // bytes of a row, about
}

// coded is one column. carried ones take no part in comparisons.
type coded struct {
	name    string
	value   valueCode
	carried bool
}

// newRowCode codes rows of the schema. keys are the paths of field ids to its key columns.
func newRowCode(schema *iceberg.Schema, keys []keyPath) (*rowCode, error) {
	to, err := table.SchemaToArrowSchema(schema, nil, false, false)
	if err != nil {
		return nil, fmt.Errorf("making the Arrow schema: %w", err)
	}
	c := &rowCode{schema: schema, arrow: to}
	for _, f := range schema.Fields() {
		value, err := newValueCode(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		c.columns = append(c.columns, coded{f.Name, value, isLineage(f.ID)})
	}
	for _, path := range keys {
		key, err := newKeyCode(schema, path)
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, key)
	}
	return c, nil
}

func isLineage(id int) bool {
	return id == iceberg.RowIDFieldID || id == iceberg.LastUpdatedSequenceNumberFieldID
}

// bind points the columns at a batch. Its columns must be the schema's, in order.
func (c *rowCode) bind(rec arrow.RecordBatch) error {
	if int(rec.NumCols()) != len(c.columns) {
		return fmt.Errorf("comparing rows: a batch of %d columns instead of %d", rec.NumCols(), len(c.columns))
	}
	for i, column := range c.columns {
		if err := column.value.bind(rec.Column(i)); err != nil {
			return fmt.Errorf("comparing column %s: %w", column.name, err)
		}
	}
	for _, key := range c.keys {
		if err := key.bind(rec); err != nil {
			return fmt.Errorf("comparing key column %s: %w", key.name, err)
		}
	}
	return nil
}

// append codes row i of the bound batch.
func (c *rowCode) append(b []byte, i int) ([]byte, error) {
	c.key = c.key[:0]
	var err error
	for _, key := range c.keys {
		if c.key, err = key.append(c.key, i); err != nil {
			return b, err
		}
	}
	b = append(binary.AppendUvarint(b, uint64(len(c.key))), c.key...)
	for _, column := range c.columns {
		if column.carried {
			continue
		}
		if b, err = column.value.append(b, i); err != nil {
			return b, fmt.Errorf("comparing column %s: %w", column.name, err)
		}
	}
	return b, nil
}

// appendCarried codes what row i carries beside.
func (c *rowCode) appendCarried(b []byte, i int) ([]byte, error) {
	var err error
	for _, column := range c.columns {
		if column.carried {
			if b, err = column.value.append(b, i); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// keyOf is the key part of a coded row.
func keyOf[B []byte | string](row B) B {
	size, n := uvarint(row)
	return row[n : n+int(size)]
}

func uvarint[B []byte | string](b B) (value uint64, n int) {
	for shift := 0; n < len(b); shift += 7 {
		x := b[n]
		n++
		value |= uint64(x&0x7f) << shift
		if x < 0x80 {
			break
		}
	}
	return value, n
}

// batch makes a record batch of coded rows. The caller releases it.
func (c *rowCode) batch(rows []survivor) (rec arrow.RecordBatch, err error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, c.arrow)
	defer b.Release()
	defer func() {
		if p := recover(); p != nil { // only a spilled row that was tampered with gets here
			err = fmt.Errorf("reading a row back: %v", p)
		}
	}()
	for _, row := range rows {
		size, n := uvarint(row.row)
		values, carried := []byte(row.row[n+int(size):]), []byte(row.carried)
		for i, column := range c.columns {
			from := &values
			if column.carried {
				from = &carried
			}
			if *from, err = column.value.read(*from, b.Field(i)); err != nil {
				return nil, fmt.Errorf("reading column %s of a row back: %w", column.name, err)
			}
		}
		if len(values)+len(carried) > 0 {
			return nil, errors.New("reading a row back: it is longer than its columns")
		}
	}
	return b.NewRecordBatch(), nil
}

// keyPath leads to a key column: field ids from the top level down through structs.
type keyPath []int

// keyCode is one key column. A key in a struct that is NULL is NULL.
type keyCode struct {
	name    string
	indexes []int
	value   valueCode
	parents []validity
}

func newKeyCode(schema *iceberg.Schema, path keyPath) (keyCode, error) {
	k := keyCode{parents: make([]validity, len(path)-1)}
	fields := schema.Fields()
	for depth, id := range path {
		for i, f := range fields {
			if f.ID != id {
				continue
			}
			k.indexes = append(k.indexes, i)
			k.name += "." + f.Name
			if depth == len(path)-1 {
				var err error
				k.value, err = newValueCode(f.Type)
				k.name = k.name[1:]
				return k, err
			}
			if s, ok := f.Type.(*iceberg.StructType); ok {
				fields = s.FieldList
			}
			break
		}
	}
	return k, fmt.Errorf("schema %d has no key column with field ids %v", schema.ID, path)
}

func (k keyCode) bind(rec arrow.RecordBatch) error {
	column := rec.Column(k.indexes[0])
	for i, index := range k.indexes[1:] {
		parent, ok := column.(*array.Struct)
		if !ok {
			return fmt.Errorf("%s is no struct", column.DataType())
		}
		k.parents[i] = validityOf(parent)
		column = parent.Field(index)
	}
	return k.value.bind(column)
}

func (k keyCode) append(b []byte, i int) ([]byte, error) {
	for p := range k.parents {
		if k.parents[p].null(i) {
			return append(b, isNull), nil
		}
	}
	return k.value.append(b, i)
}

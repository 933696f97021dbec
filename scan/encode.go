// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// Encoder writes the rows of Arrow record batches as compact JSON objects: one a
// row, columns in the order of its schema, NULLs written. The form of each value is
// Iceberg's single-value JSON (Iceberg spec, appendix D) with structs as objects by
// field name and maps with string keys as objects; no HTML escaping.
//
// The appender of each column is chosen once an Arrow schema, so that a row costs one
// indirect call a column and no allocation. An Encoder keeps no reference to a batch
// after Append. It is not safe for concurrent use: Clone makes one for each worker.
type Encoder struct {
	row    cells
	schema *arrow.Schema
	// rowBytes is the mean size of the rows of the last Append: what to reserve for the next.
	rowBytes int
	// fault is set by a column that meets a value that it cannot read.
	fault error
}

// maxReserve bounds what is reserved for the rows of one Append before they are written:
// they may be smaller than the last ones were. Beyond it the buffer grows as it fills.
const maxReserve = 4 << 20

// NewEncoder makes an encoder for rows of the schema: the projected columns in order.
func NewEncoder(schema *iceberg.Schema) (*Encoder, error) {
	if schema == nil {
		return nil, errors.New("encoding rows: no schema")
	}
	return &Encoder{row: newCells(schema.Fields())}, nil
}

// Clone makes an encoder of the same schema that shares nothing that is written. It must
// not run at the same time as Append.
func (e *Encoder) Clone() *Encoder {
	return &Encoder{row: e.row.clone(), rowBytes: e.rowBytes}
}

// Append encodes rows from ≤ i < to of the batch, appends one JSON object a row to buf
// and the offset of each object's end in buf to ends, and returns both. There is nothing
// between the objects. The batch must have a column for each of the schema's, found by
// name; others are ignored. On an error the returned slices are those that came in.
func (e *Encoder) Append(buf []byte, ends []int, rec arrow.RecordBatch, from, to int) ([]byte, []int, error) {
	return e.appendRows(buf, ends, rec, from, to, "}")
}

// appendRows appends rows that end with the closing text.
func (e *Encoder) appendRows(buf []byte, ends []int, rec arrow.RecordBatch, from, to int, closing string) ([]byte, []int, error) {
	if from < 0 || to < from || int64(to) > rec.NumRows() {
		return buf, ends, fmt.Errorf("encoding rows %d to %d of a batch of %d rows", from, to, rec.NumRows())
	}
	if err := e.bind(rec); err != nil {
		return buf, ends, err
	}
	defer e.row.release()

	rows := to - from
	b := slices.Grow(buf, min(rows*e.rowBytes, maxReserve)+spare)
	out := slices.Grow(ends, rows)
	for i := from; i < to; i++ {
		b = append(e.row.append(b, i), closing...)
		out = append(out, len(b))
	}
	if err := e.fault; err != nil {
		e.fault = nil
		return buf, ends, err
	}
	if rows > 0 {
		// One 64th more than the mean: rows of one table are alike.
		mean := (len(b) - len(buf)) / rows
		e.rowBytes = mean + mean/64 + 1
	}
	return b, out, nil
}

// bind points the columns at the batch's arrays, choosing appenders anew where the
// Arrow schema is another than that of the last batch.
func (e *Encoder) bind(rec arrow.RecordBatch) error {
	if s := rec.Schema(); s != e.schema {
		if e.schema == nil || !sameTypes(s, e.schema) {
			e.schema = nil
			if err := e.row.choose(s.Fields(), "", &e.fault); err != nil {
				return err
			}
		}
		e.schema = s
	}
	for i := range e.row {
		c := &e.row[i]
		c.column.bind(storage(rec.Column(c.source)))
	}
	return nil
}

// sameTypes says whether two schemas have the same columns, metadata aside: readers make
// a new schema for each batch.
func sameTypes(a, b *arrow.Schema) bool {
	return slices.EqualFunc(a.Fields(), b.Fields(), func(x, y arrow.Field) bool {
		return x.Name == y.Name && arrow.TypeEqual(x.Type, y.Type)
	})
}

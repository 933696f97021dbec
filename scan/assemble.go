// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// assembler joins pieces into batches: small ones, of many small files, share a batch; a piece is never split. It holds
// one batch back, as only the next piece or the end tells whether it is the last.
type assembler struct {
	opts      ReadOptions
	schema    *iceberg.Schema
	first     int64
	operation string

	pieces []piece
	rows   int
	held   int64
	weight int64
}

// heldBatch is a batch and the weight that it gives back to the flow.
type heldBatch struct {
	Batch
	weight int64
}

// add takes the next piece, or none at the end. It returns the batch that is full with it, if one is.
func (a *assembler) add(p piece, end bool) (batch heldBatch, full bool, err error) {
	if end || (a.rows > 0 && (a.rows+p.rows > a.opts.BatchRows || a.held+p.held > a.opts.BatchBytes)) {
		if full = a.rows > 0; full {
			batch, err = a.take(end)
		}
	}
	if !end {
		a.pieces = append(a.pieces, p)
		a.rows += p.rows
		a.held += p.held
		a.weight += p.weight()
	}
	return batch, full && err == nil, err
}

// take makes a batch of the pieces.
func (a *assembler) take(last bool) (heldBatch, error) {
	b := heldBatch{weight: a.weight, Batch: Batch{First: a.first, Rows: a.rows, Operation: a.operation, Last: last}}
	var err error
	if b.Messages, err = a.messages(); err != nil {
		return heldBatch{}, err
	}
	for _, m := range b.Messages {
		b.Bytes += int64(len(m))
	}
	a.first += int64(a.rows)
	a.drop()
	return b, nil
}

func (a *assembler) messages() ([][]byte, error) {
	switch {
	case a.opts.Format == FormatArrow:
		body, err := a.arrowStream()
		return [][]byte{body}, err
	case a.opts.Format == FormatNDJSON && len(a.pieces) == 1:
		return [][]byte{a.pieces[0].body}, nil
	case a.opts.Format == FormatNDJSON:
		body := make([]byte, 0, a.held)
		for _, p := range a.pieces {
			body = append(body, p.body...)
		}
		return [][]byte{body}, nil
	case len(a.pieces) == 1:
		return a.pieces[0].messages, nil
	}
	messages := make([][]byte, 0, a.rows)
	for _, p := range a.pieces {
		messages = append(messages, p.messages...)
	}
	return messages, nil
}

// arrowStream writes the records under one schema: field metadata and nullability can differ from file to file.
func (a *assembler) arrowStream() ([]byte, error) {
	schema, err := table.SchemaToArrowSchema(a.schema, nil, false, false)
	if err != nil {
		return nil, fmt.Errorf("making the Arrow schema: %w", err)
	}
	var records []arrow.RecordBatch
	defer func() { piece{records: records}.drop() }()
	for _, p := range a.pieces {
		for _, r := range p.records {
			record, err := declared(schema, r)
			if err != nil {
				return nil, err
			}
			records = append(records, record)
		}
	}
	return EncodeArrowStream(schema, records)
}

// declared is a batch in the types of a schema. The caller releases it.
func declared(schema *arrow.Schema, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, schema.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, f := range schema.Fields() {
		data, ok := declaredData(batch.Column(i).Data(), f.Type)
		if !ok {
			return nil, fmt.Errorf("column %s has Arrow type %s instead of %s", f.Name, batch.Column(i).DataType(), f.Type)
		}
		columns = append(columns, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(schema, columns, batch.NumRows()), nil
}

// declaredData gives data another type, which differs only in what it says of NULLs inside of nested values, as decoders
// do not always keep that. The caller releases it.
func declaredData(data arrow.ArrayData, want arrow.DataType) (_ arrow.ArrayData, ok bool) {
	if arrow.TypeEqual(data.DataType(), want) {
		data.Retain()
		return data, true
	}
	nested, ok := want.(arrow.NestedType)
	if !ok || data.DataType().ID() != want.ID() || len(nested.Fields()) != len(data.Children()) {
		return nil, false
	}
	children := make([]arrow.ArrayData, 0, len(data.Children()))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i, f := range nested.Fields() {
		if from, ok := data.DataType().(*arrow.StructType); ok && from.Field(i).Name != f.Name {
			return nil, false
		}
		child, ok := declaredData(data.Children()[i], f.Type)
		if !ok {
			return nil, false
		}
		children = append(children, child)
	}
	return array.NewData(want, data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), true
}

// drop forgets the pieces.
func (a *assembler) drop() {
	for _, p := range a.pieces {
		p.drop()
	}
	clear(a.pieces)
	a.pieces, a.rows, a.held, a.weight = a.pieces[:0], 0, 0, 0
}

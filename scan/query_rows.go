// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/iceberg-go"
)

// delivered yields a task's rows that the plan delivers: all live ones, or those that pass the query. The consumer releases
// each batch.
func (p *Plan) delivered(ctx context.Context, t Task, rows int) iter.Seq2[arrow.RecordBatch, error] {
	if p.filter == nil {
		return p.decode(ctx, t, p.columns, rows)
	}
	columns := p.columns
	if len(columns) > 0 {
		columns = slices.Concat(columns, p.filter.columns)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range p.decodeWhere(ctx, t, columns, rows) {
			if err != nil {
				yield(nil, err)
				return
			}
			passing, err := batch.take(ctx, p)
			batch.Release()
			if err != nil {
				yield(nil, fmt.Errorf("filtering %s: %w", t.File.path, err))
				return
			}
			if passing.NumRows() == 0 {
				passing.Release()
				continue
			}
			if !yield(passing, nil) {
				return
			}
		}
	}
}

// countWhere reads how many rows of a task pass.
func (p *Plan) countWhere(ctx context.Context, t Task) (total int64, err error) {
	columns := p.filter.columns
	if len(columns) == 0 {
		columns = countColumns(p.schema)
	}
	for batch, err := range p.decodeWhere(ctx, t, columns, defaultDecodeRows) {
		if err != nil {
			return 0, err
		}
		total += int64(batch.passing)
		batch.Release()
	}
	return total, nil
}

// judgedBatch is a batch of rows and whether each passes.
type judgedBatch struct {
	arrow.RecordBatch
	outcome []truth
	passing int
}

// decodeWhere decodes the row groups that may hold rows that pass, and judges their rows. The filter's columns must be
// among the columns.
func (p *Plan) decodeWhere(ctx context.Context, t Task, columns []string, rows int) iter.Seq2[judgedBatch, error] {
	return func(yield func(judgedBatch, error) bool) {
		parts, err := p.groupsWhere(ctx, t)
		if err != nil {
			yield(judgedBatch{}, err)
			return
		}
		for _, part := range parts {
			for batch, err := range p.decode(ctx, part, columns, rows) {
				var judged judgedBatch
				if err == nil {
					if judged, err = p.filter.judge(batch); err != nil {
						batch.Release()
						err = fmt.Errorf("%s: %w", t.File.path, err)
					}
				}
				if !yield(judged, err) || err != nil {
					return
				}
			}
		}
	}
}

func (f *filter) judge(batch arrow.RecordBatch) (judgedBatch, error) {
	j := judgedBatch{RecordBatch: batch}
	var err error
	if j.outcome, err = f.root.evaluate(&rowSet{batch: batch}); err != nil {
		return j, err
	}
	for _, t := range j.outcome {
		if t == yes {
			j.passing++
		}
	}
	return j, nil
}

// take is the rows that pass, with the plan's columns alone.
func (j judgedBatch) take(ctx context.Context, p *Plan) (arrow.RecordBatch, error) {
	narrow, err := narrowBatch(j.RecordBatch, p.Schema)
	if err != nil {
		return nil, err
	}
	defer narrow.Release()
	return onlyRows(ctx, narrow, j.passing, func(row int) bool { return j.outcome[row] == yes })
}

// onlyRows is a batch of the count rows to keep. It copies none where all are kept or none is. The caller releases it, and
// still has to release the batch that was given.
func onlyRows(ctx context.Context, batch arrow.RecordBatch, count int, keep func(row int) bool) (arrow.RecordBatch, error) {
	rows := int(batch.NumRows())
	switch count {
	case rows:
		batch.Retain()
		return batch, nil
	case 0:
		return batch.NewSlice(0, 0), nil
	}
	mask := array.NewBooleanBuilder(compute.GetAllocator(ctx))
	defer mask.Release()
	mask.Reserve(rows)
	for row := range rows {
		mask.UnsafeAppend(keep(row))
	}
	kept := mask.NewBooleanArray()
	defer kept.Release()
	return compute.FilterRecordBatch(ctx, batch, kept, compute.DefaultFilterOptions())
}

// narrowBatch is the columns of a schema alone, inside of structs too. The caller releases it.
func narrowBatch(batch arrow.RecordBatch, schema *iceberg.Schema) (arrow.RecordBatch, error) {
	var fields []arrow.Field
	var columns []arrow.Array
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, f := range schema.Fields() {
		i := slices.IndexFunc(batch.Schema().Fields(), func(a arrow.Field) bool { return a.Name == f.Name })
		if i < 0 {
			return nil, fmt.Errorf("the batch has no column %s", f.Name)
		}
		data := narrowData(batch.Column(i).Data(), f.Type)
		columns = append(columns, array.MakeFromData(data))
		data.Release()
		field := batch.Schema().Field(i)
		field.Type = data.DataType()
		fields = append(fields, field)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows()), nil
}

// narrowData leaves out the fields of structs that a type has not. Filters read no columns inside of lists and maps, so
// that there is nothing to leave out of those. The caller releases it.
func narrowData(data arrow.ArrayData, t iceberg.Type) arrow.ArrayData {
	from, isStruct := data.DataType().(*arrow.StructType)
	to, wanted := t.(*iceberg.StructType)
	if !isStruct || !wanted {
		data.Retain()
		return data
	}
	var fields []arrow.Field
	var children []arrow.ArrayData
	for _, f := range to.FieldList {
		i, ok := from.FieldIdx(f.Name)
		if !ok {
			continue
		}
		child := narrowData(data.Children()[i], f.Type)
		defer child.Release()
		field := from.Field(i)
		field.Type = child.DataType()
		fields, children = append(fields, field), append(children, child)
	}
	return array.NewData(arrow.StructOf(fields...), data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

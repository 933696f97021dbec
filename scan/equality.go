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
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// Equality deletes apply to rows that have been read, under the schema they are read with: both sides of a comparison have
// the column's present type and its default where a file does not hold it (Iceberg spec, "Equality Delete Files" and
// "Column Projection"). iceberg-go compares what the files hold: the 3 of a delete that was written as a long misses the 3
// of a row from before the column was widened, and files from before it was added are refused. See docs/upstream.md.

// equality is how the equality deletes of a task are applied.
type equality struct {
	view   *Plan    // reads the columns that have left the schema too
	wanted []string // of the view's columns; nil: all
	beside []string // those of them that only the comparisons need
	files  []File
}

// equalityOf is the way to apply a task's equality deletes. nil: iceberg-go has to, as one compares a value inside of a struct
// that is not read, or nothing that can be compared.
func (p *Plan) equalityOf(t Task, columns []string) *equality {
	e := &equality{files: t.Deletes.Equality, wanted: slices.Clone(columns)}
	fields := p.schema.Fields() // a copy
	paths := pathsByID(fields)
	for _, f := range e.files {
		for _, id := range f.Data.EqualityFieldIDs() {
			path, known := paths[id]
			if !known {
				gone, ok := goneColumn(p.source.Meta.Schemas(), id)
				if !ok {
					return nil
				}
				path = keyPath{id}
				paths[id], fields = path, append(fields, gone)
			}
			name := fields[slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == path[0] })].Name
			switch {
			case len(columns) == 0 && known, slices.Contains(e.wanted, name), slices.Contains(e.beside, name):
				continue
			case len(path) > 1:
				return nil
			}
			e.beside = append(e.beside, name)
			if len(columns) > 0 {
				e.wanted = append(e.wanted, name)
			}
		}
	}
	view := *p
	view.schema = iceberg.NewSchemaWithIdentifiers(p.schema.ID, p.schema.IdentifierFieldIDs, fields...)
	e.view = &view
	return e
}

func pathsByID(fields []iceberg.NestedField) map[int]keyPath {
	paths := map[int]keyPath{}
	for _, path := range keyPaths(nil, nil, fields) {
		paths[path[len(path)-1]] = path
	}
	return paths
}

// goneColumn is a column that has left the schema, as the newest schema that holds it has it, under a name that no column has.
func goneColumn(schemas []*iceberg.Schema, id int) (iceberg.NestedField, bool) {
	for _, s := range slices.Backward(schemas) {
		for _, f := range s.Fields() {
			if _, primitive := f.Type.(iceberg.PrimitiveType); primitive && f.ID == id {
				f.Name, f.Required = fmt.Sprintf("column %d of schema %d", f.ID, s.ID), false
				return f, true
			}
		}
	}
	return iceberg.NestedField{}, false
}

// decode is Plan.decode of the task.
func (e *equality) decode(ctx context.Context, t Task, rows int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		sets, err := e.sets(ctx, rows)
		if err != nil {
			yield(nil, err)
			return
		}
		t.Deletes.Equality = nil
		for batch, err := range e.view.decode(ctx, t, e.wanted, rows) {
			if err == nil {
				batch, err = e.left(ctx, batch, sets)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if batch.NumRows() == 0 {
				batch.Release()
				continue
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// equalitySet are the deletes on one choice of columns.
type equalitySet struct {
	ids    []int
	keys   map[string]struct{}
	ofRows []keyCode // the same columns in the batches of data files
}

// sets reads the delete files.
func (e *equality) sets(ctx context.Context, rows int) ([]*equalitySet, error) {
	var sets []*equalitySet
	read, err := project(e.view.source.Meta, e.view.schema, e.wanted)
	if err != nil {
		return nil, err
	}
	for _, f := range e.files {
		ids := slices.Clone(f.Data.EqualityFieldIDs())
		slices.Sort(ids)
		ids = slices.Compact(ids)
		i := slices.IndexFunc(sets, func(s *equalitySet) bool { return slices.Equal(s.ids, ids) })
		if i < 0 {
			codes, err := e.codes(read, ids)
			if err != nil {
				return nil, err
			}
			i, sets = len(sets), append(sets, &equalitySet{ids, map[string]struct{}{}, codes})
		}
		if err := e.load(ctx, f, sets[i], rows); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// codes code the columns in the batches of a schema.
func (e *equality) codes(schema *iceberg.Schema, ids []int) ([]keyCode, error) {
	codes := make([]keyCode, len(ids))
	paths := pathsByID(schema.Fields())
	for i, id := range ids {
		var err error
		if codes[i], err = newKeyCode(schema, paths[id]); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

// load adds the deletes of a file.
func (e *equality) load(ctx context.Context, f File, set *equalitySet, rows int) error {
	var names []string
	for _, id := range set.ids {
		name, _ := e.view.schema.FindColumnName(id)
		names = append(names, name)
	}
	schema, err := project(e.view.source.Meta, e.view.schema, names)
	if err != nil {
		return err
	}
	codes, err := e.codes(schema, set.ids)
	if err != nil {
		return err
	}
	f.Data = asData{f.Data}
	for batch, err := range e.view.decode(ctx, Task{File: f}, names, rows) {
		if err != nil {
			return err
		}
		err = eachKey(batch, codes, func(_ int, key []byte) { set.keys[string(key)] = struct{}{} })
		batch.Release()
		if err != nil {
			return &CorruptFileError{Kind: DeleteFileKind, Path: f.path, Err: err}
		}
	}
	return nil
}

// eachKey visits the coded values of each row. The key is only good during the visit.
func eachKey(batch arrow.RecordBatch, codes []keyCode, visit func(row int, key []byte)) error {
	for _, code := range codes {
		if err := code.bind(batch); err != nil {
			return err
		}
	}
	var key []byte
	for row := range int(batch.NumRows()) {
		key = key[:0]
		for _, code := range codes {
			var err error
			if key, err = code.append(key, row); err != nil {
				return err
			}
		}
		visit(row, key)
	}
	return nil
}

// left are the rows of a batch that nothing deletes, without the columns that were read for that. It releases the batch.
func (e *equality) left(ctx context.Context, batch arrow.RecordBatch, sets []*equalitySet) (arrow.RecordBatch, error) {
	defer func() { batch.Release() }()
	gone := make([]bool, batch.NumRows())
	count := 0
	for _, set := range sets {
		err := eachKey(batch, set.ofRows, func(row int, key []byte) {
			if _, hit := set.keys[string(key)]; hit && !gone[row] {
				gone[row] = true
				count++
			}
		})
		if err != nil {
			return nil, fmt.Errorf("applying equality deletes: %w", err)
		}
	}
	if len(e.beside) > 0 {
		narrow := without(batch, e.beside)
		batch.Release()
		batch = narrow
	}
	if count == 0 {
		batch.Retain()
		return batch, nil
	}
	mask := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer mask.Release()
	for _, g := range gone {
		mask.Append(!g)
	}
	keep := mask.NewBooleanArray()
	defer keep.Release()
	return compute.FilterRecordBatch(ctx, batch, keep, compute.DefaultFilterOptions())
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// Equality deletes apply to rows that have been read, under the schema they are read with: both sides of a comparison have
// the column's present type and its default where a file does not hold it (Iceberg spec, "Equality Delete Files" and
// "Column Projection"). iceberg-go compares what the files hold: the 3 of a delete that was written as a long misses the 3
// of a row from before the column was widened, and files from before it was added are refused. See docs/upstream.md.

// equality is how the equality deletes of a task are applied.
type equality struct {
	plan   *Plan
	view   *Plan    // reads the columns that have left the schema too
	wanted []string // of the view's columns; nil: all
	// only are the columns that are delivered, where the comparisons need others; nil: they need none.
	only *iceberg.Schema
}

// equalityOf is the way to apply a task's equality deletes. nil: iceberg-go has to, as one compares what no schema of the
// table knows as a primitive value outside of lists and maps.
func (p *Plan) equalityOf(t Task, columns []string) (*equality, error) {
	ids := comparedIDs(t.Deletes.Equality)
	schema := p.schemaWith(ids)
	if schema == nil {
		return nil, nil
	}
	delivered, err := project(p.source.Meta, p.schema, columns)
	if err != nil {
		return nil, err
	}
	view := *p
	view.schema = schema
	e := &equality{plan: p, view: &view, wanted: slices.Clone(columns)}
	for _, id := range ids {
		if _, ok := delivered.FindFieldByID(id); ok {
			continue
		}
		e.only = delivered
		if name, ok := schema.FindColumnName(id); ok && len(columns) > 0 {
			e.wanted = append(e.wanted, name)
		}
	}
	return e, nil
}

// comparedIDs are the field ids that equality deletes compare.
func comparedIDs(files []File) []int {
	var ids []int
	for _, f := range files {
		for _, id := range f.Data.EqualityFieldIDs() {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// schemaWith is the plan's schema with the values of those ids, which may have left it. nil: one can't be compared.
func (p *Plan) schemaWith(ids []int) *iceberg.Schema {
	fields := p.schema.Fields() // a copy
	paths, added := pathsByID(fields), false
	for _, id := range ids {
		if paths[id] != nil {
			continue
		}
		var ok bool
		if fields, ok = withGone(fields, p.source.Meta.Schemas(), id); !ok {
			return nil
		}
		added = true
	}
	if !added {
		return p.schema
	}
	return iceberg.NewSchemaWithIdentifiers(p.schema.ID, p.schema.IdentifierFieldIDs, fields...)
}

func pathsByID(fields []iceberg.NestedField) map[int]keyPath {
	paths := map[int]keyPath{}
	for _, path := range keyPaths(nil, nil, fields) {
		paths[path[len(path)-1]] = path
	}
	return paths
}

// withGone adds a value that has left the schema, as the newest schema that holds it has it.
func withGone(fields []iceberg.NestedField, schemas []*iceberg.Schema, id int) (_ []iceberg.NestedField, ok bool) {
	for _, s := range slices.Backward(schemas) {
		if path := pathsByID(s.Fields())[id]; path != nil {
			return graft(fields, s.Fields(), path, s.ID)
		}
	}
	return nil, false
}

// decode is Plan.decode of the task.
func (e *equality) decode(ctx context.Context, t Task, rows int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		equality := t.Deletes.Equality
		t.Deletes.Equality = nil
		for read, err := range e.compare(ctx, t, equality, rows) {
			var batch arrow.RecordBatch
			if err == nil {
				batch, err = e.left(ctx, read)
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

// comparedBatch is a batch of a task's rows, and which of them the deletes remove that they were compared with.
type comparedBatch struct {
	arrow.RecordBatch
	gone []bool
}

// compare yields the rows that a task's own deletes leave, compared with equality deletes. The consumer releases each
// batch.
func (e *equality) compare(ctx context.Context, t Task, equality []File, rows int) iter.Seq2[comparedBatch, error] {
	return func(yield func(comparedBatch, error) bool) {
		applied, free, err := e.applied(ctx, equality)
		defer free()
		if err != nil {
			yield(comparedBatch{}, err)
			return
		}
		for batch, err := range e.view.decode(ctx, t, e.wanted, rows) {
			var gone []bool
			if err == nil {
				if gone, err = marked(batch, applied); err != nil {
					batch.Release()
				}
			}
			if err != nil {
				yield(comparedBatch{}, err)
				return
			}
			if !yield(comparedBatch{batch, gone}, nil) {
				return
			}
		}
	}
}

// applied are the deletes, read and bound to the columns of the task's rows. free is to be called when nothing compares any
// more, also on an error.
func (e *equality) applied(ctx context.Context, files []File) (applied []*appliedDeletes, free func(), err error) {
	reader, free := e.plan.equality, func() {}
	var complete bool
	if reader != nil {
		applied, complete = reader.applying(files)
	}
	if !complete {
		reader = newEqualityReader(e.plan, []Task{{Deletes: Deletes{Equality: files}}}, keyMemory(ReadOptions{}), "")
		free = func() { _ = reader.close() }
		applied, _ = reader.applying(files)
	}
	read, err := project(e.view.source.Meta, e.view.schema, e.wanted)
	if err != nil {
		return nil, free, err
	}
	for _, a := range applied {
		if a.ofRows, err = keyCodes(read, a.scope.ids); err != nil {
			return nil, free, err
		}
		if err := reader.load(ctx, a.scope); err != nil {
			return nil, free, err
		}
	}
	return applied, free, nil
}

// keyCodes code the values of those ids in the batches of a schema.
func keyCodes(schema *iceberg.Schema, ids []int) ([]keyCode, error) {
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

// eachKey visits the coded values of each row until a visit fails. The key is only good during the visit.
func eachKey(batch arrow.RecordBatch, codes []keyCode, visit func(row int, key []byte) error) error {
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
		if err := visit(row, key); err != nil {
			return err
		}
	}
	return nil
}

// marked tells which rows of a batch are deleted.
func marked(batch arrow.RecordBatch, applied []*appliedDeletes) ([]bool, error) {
	gone := make([]bool, batch.NumRows())
	for _, a := range applied {
		if err := a.mark(batch, gone); err != nil {
			return nil, fmt.Errorf("applying equality deletes: %w", err)
		}
	}
	return gone, nil
}

// left are the rows of a batch that nothing deletes, without the columns that were read for that. It releases the batch.
func (e *equality) left(ctx context.Context, compared comparedBatch) (arrow.RecordBatch, error) {
	batch, gone := compared.RecordBatch, compared.gone
	defer func() { batch.Release() }()
	count := 0
	for _, g := range gone {
		if !g {
			count++
		}
	}
	if e.only != nil {
		narrow, err := narrowBatch(batch, e.only)
		if err != nil {
			return nil, fmt.Errorf("applying equality deletes: %w", err)
		}
		batch.Release()
		batch = narrow
	}
	return onlyRows(ctx, batch, count, func(row int) bool { return !gone[row] })
}

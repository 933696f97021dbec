// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// A projection can consist of columns that a data file has none of, because they were added later: every row of the file
// then has their defaults. iceberg-go, which counts rows by the columns that it decodes, fails with "no leaf column
// readers matched col indices". In the same way a struct can have fields that the file's has none of: "cannot find … in
// expected partner_struct type". Such a file is read again with every other column and field beside, which are then left
// out; as the file's own may have left the schema since, those of all other schemas are among them.

// readFunc reads one file with a schema and a projection of it.
type readFunc func(schema *iceberg.Schema, columns []string) (iter.Seq2[arrow.RecordBatch, error], error)

// withAbsentColumns is read, also where the file has none of the columns, or of the fields of one.
func withAbsentColumns(read readFunc, schema *iceberg.Schema, columns []string, meta table.Metadata) (iter.Seq2[arrow.RecordBatch, error], error) {
	batches, err := read(schema, columns)
	if err != nil {
		return nil, err
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		begun := false
		for batch, err := range batches {
			if err != nil && !begun && lacksColumns(err) {
				readBeside(yield, read, schema, columns, meta)
				return
			}
			begun = true
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}, nil
}

func lacksColumns(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no leaf column readers matched") || strings.Contains(text, "in expected partner_struct type")
}

// readBeside reads the columns with all others beside them and yields the columns alone.
func readBeside(yield func(arrow.RecordBatch, error) bool, read readFunc, schema *iceberg.Schema, columns []string, meta table.Metadata) {
	only, err := project(meta, schema, columns)
	if err != nil {
		yield(nil, err)
		return
	}
	wide := widen(schema, meta.Schemas())
	all := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return !isLineageName(c) })
	for _, f := range wide.Fields() {
		all = append(all, f.Name)
	}
	batches, err := read(wide, all)
	if err != nil {
		yield(nil, err)
		return
	}
	for batch, err := range batches {
		if err != nil {
			yield(nil, err)
			return
		}
		narrow, err := narrowBatch(batch, only)
		batch.Release()
		if !yield(narrow, err) || err != nil {
			return
		}
	}
}

// widen adds the columns and fields of other schemas to a schema, as the newest has them, under names that none has.
func widen(schema *iceberg.Schema, schemas []*iceberg.Schema) *iceberg.Schema {
	fields := schema.Fields()
	known, values := map[int]bool{}, pathsByID(fields)
	for _, f := range fields {
		known[f.ID] = true
	}
	for _, s := range slices.Backward(schemas) {
		for _, f := range s.Fields() {
			if known[f.ID] {
				continue
			}
			known[f.ID] = true
			f.Name, f.Required = fmt.Sprintf("column %d of schema %d", f.ID, s.ID), false
			fields = append(fields, f)
			for _, path := range keyPaths(nil, nil, []iceberg.NestedField{f}) {
				values[path[len(path)-1]] = path
			}
		}
		for _, path := range keyPaths(nil, nil, s.Fields()) {
			if id := path[len(path)-1]; values[id] == nil {
				values[id] = path
				if with, ok := graft(fields, s.Fields(), path, s.ID); ok {
					fields = with
				}
			}
		}
	}
	return iceberg.NewSchema(schema.ID, fields...)
}

// graft adds what the path leads to in other fields, and the structs around it, under names that no column has.
func graft(to, from []iceberg.NestedField, path keyPath, schema int) (_ []iceberg.NestedField, ok bool) {
	withID := func(f iceberg.NestedField) bool { return f.ID == path[0] }
	field := from[slices.IndexFunc(from, withID)]
	i := slices.IndexFunc(to, withID)
	to = slices.Clone(to)
	if i < 0 {
		field.Name, field.Required = fmt.Sprintf("column %d of schema %d", field.ID, schema), false
		i, to = len(to), append(to, field)
		if len(path) > 1 {
			to[i].Type = &iceberg.StructType{}
		}
	}
	if len(path) == 1 {
		return to, true
	}
	inside, isStruct := to[i].Type.(*iceberg.StructType)
	if !isStruct {
		return nil, false
	}
	grown, ok := graft(inside.FieldList, field.Type.(*iceberg.StructType).FieldList, path[1:], schema)
	to[i].Type = &iceberg.StructType{FieldList: grown}
	return to, ok
}

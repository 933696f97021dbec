// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// A projection can consist of columns that a data file has none of, because they were added later: every row of the file
// then has their defaults. iceberg-go, which counts rows by the columns that it decodes, fails with "no leaf column
// readers matched col indices". Such a file is read again with every other column beside, which are then dropped; as the
// file's own columns may have left the schema since, those of all other schemas are among them.

// readFunc reads one file with a schema and a projection of it.
type readFunc func(schema *iceberg.Schema, columns []string) (iter.Seq2[arrow.RecordBatch, error], error)

// withAbsentColumns is read, also where the file has none of the columns.
func withAbsentColumns(read readFunc, schema *iceberg.Schema, columns []string, schemas []*iceberg.Schema) (iter.Seq2[arrow.RecordBatch, error], error) {
	batches, err := read(schema, columns)
	if err != nil {
		return nil, err
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range batches {
			if err != nil && strings.Contains(err.Error(), "no leaf column readers matched") {
				readBeside(yield, read, schema, columns, schemas)
				return
			}
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}, nil
}

// readBeside reads the columns with all others beside them and yields the columns alone.
func readBeside(yield func(arrow.RecordBatch, error) bool, read readFunc, schema *iceberg.Schema, columns []string, schemas []*iceberg.Schema) {
	if len(columns) == 0 {
		for _, f := range schema.Fields() {
			columns = append(columns, f.Name)
		}
	}
	wide, others := widen(schema, columns, schemas)
	batches, err := read(wide, slices.Concat(columns, others))
	if err != nil {
		yield(nil, err)
		return
	}
	for batch, err := range batches {
		if err != nil {
			yield(nil, err)
			return
		}
		narrow := without(batch, others)
		batch.Release()
		if !yield(narrow, nil) {
			return
		}
	}
}

// widen adds the columns of other schemas to a schema, under names that no column has, and lists all columns that are
// wholly outside of the projection.
func widen(schema *iceberg.Schema, columns []string, schemas []*iceberg.Schema) (wide *iceberg.Schema, others []string) {
	fields := schema.Fields()
	known := map[int]bool{}
	for _, f := range fields {
		known[f.ID] = true
		inside := slices.ContainsFunc(columns, func(c string) bool { return c == f.Name || strings.HasPrefix(c, f.Name+".") })
		if !inside {
			others = append(others, f.Name)
		}
	}
	for _, s := range schemas {
		for _, f := range s.Fields() {
			if !known[f.ID] {
				known[f.ID] = true
				f.Name, f.Required = fmt.Sprintf("column %d of schema %d", f.ID, s.ID), false
				fields = append(fields, f)
				others = append(others, f.Name)
			}
		}
	}
	return iceberg.NewSchema(schema.ID, fields...), others
}

func without(batch arrow.RecordBatch, names []string) arrow.RecordBatch {
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range batch.Schema().Fields() {
		if !slices.Contains(names, f.Name) {
			fields = append(fields, f)
			columns = append(columns, batch.Column(i))
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows())
}

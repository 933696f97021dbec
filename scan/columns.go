// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// project is the schema of the rows: the named columns in table order, or all. The row lineage columns _row_id and
// _last_updated_sequence_number may be named too; they come last.
func project(meta table.Metadata, schema *iceberg.Schema, columns []string) (*iceberg.Schema, error) {
	if len(columns) == 0 {
		return schema, nil
	}
	for _, column := range columns {
		if _, ok := schema.FindFieldByName(column); ok || isLineageName(column) {
			continue
		}
		return nil, &UnknownColumnError{Column: column, Schema: schema.ID, Close: closeNames(column, columnNames(schema))}
	}
	return newScan(stepMetadata{meta, schema}, nil, columns).Projection()
}

func isLineageName(column string) bool {
	return column == iceberg.RowIDColumnName || column == iceberg.LastUpdatedSequenceNumberColumnName
}

// knowingLineage makes iceberg-go know the row lineage columns of a table of any format version: a table that is followed
// may be upgraded on the way. They are NULL before, as the files have no row ids.
func knowingLineage(meta table.Metadata, columns []string) table.Metadata {
	asked := slices.ContainsFunc(columns, func(column string) bool {
		_, own := meta.CurrentSchema().FindFieldByName(column)
		return isLineageName(column) && !own
	})
	if asked && meta.Version() < 3 {
		return version3{meta}
	}
	return meta
}

// newScan is iceberg-go's scan of the columns, one file at a time: parallelism is ours.
func newScan(meta table.Metadata, files iceio.IO, columns []string, opts ...table.ScanOption) (scan *table.Scan) {
	fsF := func(context.Context) (iceio.IO, error) {
		if files == nil {
			return nil, errors.New("this scan only projects")
		}
		wanted, err := scan.Projection()
		if err != nil {
			return nil, err
		}
		return guardedIO{files, columnIDs(wanted)}, nil
	}
	opts = append(opts, table.WithMaxConcurrency(1))
	if len(columns) > 0 {
		opts = append(opts, table.WithSelectedFields(columns...))
	}
	scan = table.New(nil, knowingLineage(meta, columns), "", fsF, nil).Scan(opts...)
	return scan
}

func columnIDs(schema *iceberg.Schema) []int {
	var ids []int
	for _, f := range schema.Fields() {
		ids = appendFieldIDs(ids, f.ID, f.Type)
	}
	return ids
}

func appendFieldIDs(ids []int, id int, typ iceberg.Type) []int {
	ids = append(ids, id)
	if nested, ok := typ.(iceberg.NestedType); ok {
		for _, f := range nested.Fields() {
			ids = appendFieldIDs(ids, f.ID, f.Type)
		}
	}
	return ids
}

func columnNames(schema *iceberg.Schema) []string {
	var names []string
	for _, id := range columnIDs(schema) {
		if name, ok := schema.FindColumnName(id); ok {
			names = append(names, name)
		}
	}
	return names
}

// closeNames picks at most three names that someone who typed name may have meant, the closest first.
func closeNames(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	for _, n := range names {
		d := editDistance(strings.ToLower(name), strings.ToLower(n))
		if d <= max(2, len(name)/3) || strings.HasSuffix(n, "."+name) {
			candidates = append(candidates, candidate{n, d})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range candidates[:min(3, len(candidates))] {
		out = append(out, c.name)
	}
	return out
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}

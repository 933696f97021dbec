// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// groupsWhere are the parts of a data file whose row groups may hold rows that pass, by the statistics in its footer: the
// whole task where that is all of it, none where no row group may. Files of one row group are not asked again: what their
// manifest said is what their footer says.
func (p *Plan) groupsWhere(ctx context.Context, t Task) (parts []Task, err error) {
	if len(t.File.Data.SplitOffsets()) == 1 {
		return []Task{t}, nil
	}
	defer t.panicsInto(&err)
	files := watch(ctx, p.source.FS)
	defer func() { err = files.explain(err, p.after.SnapshotID, t.kindOf) }()
	source, err := guardedIO{files, []int{}}.Open(t.File.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, err := file.NewParquetReader(source)
	if err != nil {
		return nil, err
	}
	leaves := leavesByID(r.MetaData().Schema)
	keep := make([]bool, r.NumRowGroups())
	groups := make([]rowGroup, r.NumRowGroups())
	for i := range keep {
		meta := r.MetaData().RowGroup(i)
		groups[i] = rowGroup{offset: beginning(meta), rows: meta.NumRows()}
		keep[i] = p.filter.mayPass(groupFacts(meta, leaves))
	}
	return t.cut(groups, keep), nil
}

// cut makes a task of each run of row groups to keep.
func (t Task) cut(groups []rowGroup, keep []bool) []Task {
	if !slices.Contains(keep, true) {
		return nil
	}
	size := t.File.Data.FileSizeBytes()
	for i, g := range groups {
		if g.offset <= 0 || g.offset >= size || (i > 0 && g.offset <= groups[i-1].offset) {
			return []Task{t} // no order to cut at
		}
	}
	if !slices.Contains(keep, false) {
		return []Task{t}
	}
	var tasks []Task
	for i, g := range groups {
		if !keep[i] {
			continue
		}
		end := size
		if i+1 < len(groups) {
			end = groups[i+1].offset
		}
		if i > 0 && keep[i-1] {
			last := &tasks[len(tasks)-1].part
			last.length = end - last.start
			continue
		}
		part := part{g.offset, end - g.offset}
		tasks = append(tasks, Task{File: t.File, Deletes: t.Deletes, part: part})
		tasks[len(tasks)-1].File.Data = withoutOffsets{t.File.Data}
	}
	return tasks
}

// leavesByID finds the columns of a file by field id; those that occur many times in a row are left out.
func leavesByID(s *schema.Schema) map[int]int {
	leaves := map[int]int{}
	for i := range s.NumColumns() {
		if c := s.Column(i); c.MaxRepetitionLevel() == 0 && c.SchemaNode().FieldID() >= 0 {
			leaves[int(c.SchemaNode().FieldID())] = i
		}
	}
	return leaves
}

func groupFacts(g *metadata.RowGroupMetaData, leaves map[int]int) factsOf {
	return func(c boundColumn) facts {
		f := unknownFacts()
		i, ok := leaves[c.id]
		if !ok {
			return f
		}
		chunk, err := g.ColumnChunk(i)
		if err != nil {
			return f
		}
		if set, err := chunk.StatsSet(); err != nil || !set {
			return f
		}
		stats, err := chunk.Statistics()
		if err != nil || stats == nil {
			return f
		}
		if stats.HasNullCount() {
			f.null = stats.NullCount() != 0
			if g.NumRows() > 0 && stats.NullCount() == g.NumRows() {
				return facts{null: true}
			}
		}
		if stats.HasMinMax() {
			f.low = statisticBound(stats.EncodeMin(), stats.Descr(), c.typ)
			f.high = statisticBound(stats.EncodeMax(), stats.Descr(), c.typ)
		}
		return f
	}
}

// statisticBound decodes a bound of a footer. It is nil unless the file's column is surely in the unit of the table's.
func statisticBound(b []byte, d *schema.Column, t iceberg.Type) any {
	physical, logical := d.PhysicalType(), d.LogicalType()
	fits := false
	switch t := t.(type) {
	case iceberg.BooleanType:
		fits = physical == parquet.Types.Boolean
	case iceberg.Int32Type, iceberg.Int64Type:
		integer, ok := logical.(schema.IntLogicalType)
		fits = isNone(logical) || (ok && integer.IsSigned())
		fits = fits && (physical == parquet.Types.Int32 || physical == parquet.Types.Int64)
	case iceberg.Float32Type, iceberg.Float64Type:
		fits = physical == parquet.Types.Float || physical == parquet.Types.Double
	case iceberg.DecimalType:
		return decimalStatistic(b, physical, logical, t.Scale())
	case iceberg.DateType:
		_, fits = logical.(schema.DateLogicalType)
	case iceberg.TimeType:
		l, ok := logical.(schema.TimeLogicalType)
		fits = ok && l.TimeUnit() == schema.TimeUnitMicros
	case iceberg.TimestampType, iceberg.TimestampTzType:
		l, ok := logical.(schema.TimestampLogicalType)
		fits = ok && l.TimeUnit() == schema.TimeUnitMicros && physical == parquet.Types.Int64
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		l, ok := logical.(schema.TimestampLogicalType)
		fits = ok && l.TimeUnit() == schema.TimeUnitNanos && physical == parquet.Types.Int64
	case iceberg.StringType, iceberg.BinaryType:
		fits = physical == parquet.Types.ByteArray
	case iceberg.UUIDType, iceberg.FixedType:
		fits = physical == parquet.Types.FixedLenByteArray
	}
	if !fits {
		return nil
	}
	if _, ok := t.(iceberg.StringType); ok {
		return string(b) // footers order strings by their bytes
	}
	return decodeBound(b, t)
}

func decimalStatistic(b []byte, physical parquet.Type, logical schema.LogicalType, scale int) any {
	l, ok := logical.(schema.DecimalLogicalType)
	if !ok || int(l.Scale()) != scale {
		return nil
	}
	switch {
	case physical == parquet.Types.Int32 && len(b) == 4:
		return decimal128.FromI64(int64(int32(binary.LittleEndian.Uint32(b))))
	case physical == parquet.Types.Int64 && len(b) == 8:
		return decimal128.FromI64(int64(binary.LittleEndian.Uint64(b)))
	case physical == parquet.Types.FixedLenByteArray || physical == parquet.Types.ByteArray:
		return bounded(decimalDomain, b)
	}
	return nil
}

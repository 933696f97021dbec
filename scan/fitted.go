// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// fitting is how a column of a file becomes one of the table.
type fitting struct {
	read    iceberg.Type
	convert func(from []byte) (int64, error) // one value: 4, 8 or 12 bytes, the least significant first
	width   int                              // without convert: of each value, in bytes
}

// fitted is one file with a footer that iceberg-go can read it by.
type fitted struct {
	*watchedIO
	path     string
	footer   *footer
	schema   *iceberg.Schema // to read it with
	fittings map[int]*fitting
}

// fit reads a data file's footer and changes it to fit the table. It fails where that leads nowhere.
func fit(files *watchedIO, path string, schema *iceberg.Schema, mapping iceberg.NameMapping) (*fitted, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	out := &fitted{watchedIO: files, path: path, fittings: map[int]*fitting{}}
	if out.footer, err = readFooter(file); err != nil {
		return nil, err
	}
	if err := out.footer.identify(mapping, schema); err != nil {
		return nil, &UnsupportedError{What: err.Error(), Path: path}
	}
	out.footer.dropArrowSchema()
	types := map[int]iceberg.Type{}
	for _, f := range schema.Fields() {
		collectTypes(types, f)
	}
	for _, n := range out.footer.nodes[1:] {
		id, _ := n.integer(elementFieldID)
		if t, ok := types[int(id)]; ok && n.leaf >= 0 {
			if fitting := out.footer.fit(n, t); fitting != nil {
				out.fittings[int(id)] = fitting
			}
		}
	}
	fields := schema.Fields() // a copy
	for i := range fields {
		fields[i] = out.readable(fields[i])
	}
	out.schema = iceberg.NewSchemaWithIdentifiers(schema.ID, schema.IdentifierFieldIDs, fields...)
	return out, nil
}

func collectTypes(types map[int]iceberg.Type, f iceberg.NestedField) {
	types[f.ID] = f.Type
	if nested, ok := f.Type.(iceberg.NestedType); ok {
		for _, inner := range nested.Fields() {
			collectTypes(types, inner)
		}
	}
}

// readable is the column with the types that the file has for iceberg-go.
func (f *fitted) readable(field iceberg.NestedField) iceberg.NestedField {
	if fitting := f.fittings[field.ID]; fitting != nil {
		field.Type, field.InitialDefault, field.WriteDefault = fitting.read, nil, nil
		return field
	}
	switch t := field.Type.(type) {
	case *iceberg.StructType:
		copied := &iceberg.StructType{FieldList: slices.Clone(t.FieldList)}
		for i := range copied.FieldList {
			copied.FieldList[i] = f.readable(copied.FieldList[i])
		}
		field.Type = copied
	case *iceberg.ListType:
		copied := *t
		copied.Element = f.readable(t.ElementField()).Type
		field.Type = &copied
	case *iceberg.MapType:
		copied := *t
		copied.KeyType, copied.ValueType = f.readable(t.KeyField()).Type, f.readable(t.ValueField()).Type
		field.Type = &copied
	}
	return field
}

// Open gives the file its other footer.
func (f *fitted) Open(name string) (iceio.File, error) {
	file, err := f.watchedIO.Open(name)
	if err != nil || name != f.path {
		return file, err
	}
	return f.footer.over(file)
}

// comparable refuses equality deletes that compare a column whose type is not the table's while they do.
func (f *fitted) comparable(t Task) error {
	for _, d := range t.Deletes.Equality {
		for _, id := range d.Data.EqualityFieldIDs() {
			if f.fittings[id] != nil {
				return &UnsupportedError{What: fmt.Sprintf("equality delete on column %d, which the data file holds in another unit,", id), Path: f.path}
			}
		}
	}
	return nil
}

// read is iceberg-go's scan of the file, brought to the table's types.
func (f *fitted) read(ctx context.Context, r reading) (iter.Seq2[arrow.RecordBatch, error], error) {
	if err := f.comparable(r.task); err != nil {
		return nil, err
	}
	meta := r.plan.source.Meta
	read := func(schema *iceberg.Schema, columns []string) (iter.Seq2[arrow.RecordBatch, error], error) {
		scan := newScan(stepMetadata{meta, schema}, f, columns, table.WithArrowBatchSize(r.rows))
		_, batches, err := scan.ReadTasks(ctx, []table.FileScanTask{r.task.scanTask()})
		return batches, err
	}
	batches, err := withAbsentColumns(read, f.schema, r.columns, meta)
	if err != nil || len(f.fittings) == 0 {
		return batches, err
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range batches {
			if err == nil {
				var converted arrow.RecordBatch
				converted, err = f.convert(batch, r.schema)
				batch.Release()
				batch = converted
			}
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}, nil
}

// reading is one task's file as it is being read.
type reading struct {
	plan    *Plan
	files   *watchedIO
	task    Task
	schema  *iceberg.Schema
	columns []string
	rows    int // in a batch
}

// orFitted is batches, or where these fail before the first what is read of the file with a fitted footer.
func (r reading) orFitted(ctx context.Context, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		begun := false
		for batch, err := range batches {
			if err != nil && !begun && mayFit(err) && !r.files.failed() && ctx.Err() == nil {
				r.fitted(ctx, err)(yield)
				return
			}
			begun = true
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// mayFit reports whether iceberg-go refused the file for what another footer may mend. A corrupt file stays one.
func mayFit(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{
		"cannot promote", "unsupported arrow type", "missing field_id", "INT96", "cast_extension", deltaOfFixed,
		"nil pointer dereference", // of a list of fixed size
	}, func(part string) bool { return strings.Contains(text, part) })
}

// fitted is what is read of the file with a fitted footer, or cause where it can't be fitted.
func (r reading) fitted(ctx context.Context, cause error) iter.Seq2[arrow.RecordBatch, error] {
	fail := func(err error) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
	}
	f, err := fit(r.files, r.task.File.path, r.schema, r.plan.source.Meta.NameMapping())
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return fail(unsupported)
	case err != nil:
		return fail(cause)
	}
	batches, err := f.read(ctx, r)
	if err != nil {
		return fail(err)
	}
	return batches
}

func (f *fitted) convert(batch arrow.RecordBatch, wanted *iceberg.Schema) (arrow.RecordBatch, error) {
	fields, columns := batch.Schema().Fields(), make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i := range fields {
		k := slices.IndexFunc(wanted.Fields(), func(w iceberg.NestedField) bool { return w.Name == fields[i].Name })
		if k < 0 { // of row lineage
			batch.Column(i).Retain()
			columns = append(columns, batch.Column(i))
			continue
		}
		data, err := f.data(batch.Column(i).Data(), wanted.Fields()[k])
		if err != nil {
			return nil, err
		}
		columns = append(columns, array.MakeFromData(data))
		data.Release()
		fields[i].Type = data.DataType()
	}
	metadata := batch.Schema().Metadata()
	return array.NewRecordBatch(arrow.NewSchema(fields, &metadata), columns, batch.NumRows()), nil
}

// data is the column's data in the table's type. The caller releases it.
func (f *fitted) data(from arrow.ArrayData, column iceberg.NestedField) (arrow.ArrayData, error) {
	if fitting := f.fittings[column.ID]; fitting != nil {
		return fitting.data(from, column.Type)
	}
	var inner []iceberg.NestedField
	if nested, ok := column.Type.(iceberg.NestedType); ok {
		inner = nested.Fields()
	}
	typ := from.DataType()
	switch t := typ.(type) {
	case *arrow.StructType:
		return f.structData(from, t, inner)
	case *arrow.MapType:
		entries, err := f.structData(from.Children()[0], t.Elem().(*arrow.StructType), inner)
		if err != nil {
			return nil, err
		}
		defer entries.Release()
		pair := entries.DataType().(*arrow.StructType)
		typ = arrow.MapOfFields(pair.Field(0), pair.Field(1))
		return array.NewData(typ, from.Len(), from.Buffers(), []arrow.ArrayData{entries}, from.NullN(), from.Offset()), nil
	case *arrow.ListType:
		elements, err := f.data(from.Children()[0], inner[0])
		if err != nil {
			return nil, err
		}
		defer elements.Release()
		field := t.ElemField()
		field.Type = elements.DataType()
		return array.NewData(arrow.ListOfField(field), from.Len(), from.Buffers(), []arrow.ArrayData{elements}, from.NullN(), from.Offset()), nil
	}
	from.Retain()
	return from, nil
}

// structData converts by position where the fields are a map's key and value, and by name otherwise.
func (f *fitted) structData(from arrow.ArrayData, t *arrow.StructType, inner []iceberg.NestedField) (arrow.ArrayData, error) {
	fields, children := slices.Clone(t.Fields()), make([]arrow.ArrayData, 0, t.NumFields())
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range fields {
		k := slices.IndexFunc(inner, func(n iceberg.NestedField) bool { return n.Name == fields[i].Name })
		if k < 0 {
			return nil, fmt.Errorf("the struct has a field %s that the table does not have", fields[i].Name)
		}
		child, err := f.data(from.Children()[i], inner[k])
		if err != nil {
			return nil, err
		}
		children = append(children, child)
		fields[i].Type = child.DataType()
	}
	return array.NewData(arrow.StructOf(fields...), from.Len(), from.Buffers(), children, from.NullN(), from.Offset()), nil
}

// data converts each value. The caller releases it.
func (c *fitting) data(from arrow.ArrayData, to iceberg.Type) (arrow.ArrayData, error) {
	typ, err := table.TypeToArrowType(to, false, false)
	if err != nil {
		return nil, err
	}
	if c.convert == nil {
		return fixedData(from, c.width, typ)
	}
	width := from.DataType().(arrow.FixedWidthDataType).Bytes()
	out := memory.NewResizableBuffer(memory.DefaultAllocator)
	defer out.Release()
	out.Resize(8 * (from.Offset() + from.Len()))
	values := arrow.Int64Traits.CastFromBytes(out.Bytes())
	valid := array.MakeFromData(from)
	defer valid.Release()
	for i := range from.Len() {
		if valid.IsNull(i) {
			values[from.Offset()+i] = 0
			continue
		}
		at := (from.Offset() + i) * width
		if values[from.Offset()+i], err = c.convert(from.Buffers()[1].Bytes()[at : at+width]); err != nil {
			return nil, err
		}
	}
	return array.NewData(typ, from.Len(), []*memory.Buffer{from.Buffers()[0], out}, nil, from.NullN(), from.Offset()), nil
}

func microsOfMillis(b []byte) (int64, error) {
	return int64(int32(binary.LittleEndian.Uint32(b))) * 1000, nil
}

// microsOfNanos rounds down, towards the past.
func microsOfNanos(b []byte) (int64, error) {
	n := int64(binary.LittleEndian.Uint64(b))
	micros := n / 1000
	if n%1000 < 0 {
		micros--
	}
	return micros, nil
}

func scaledBy(factor int64) func([]byte) (int64, error) {
	return func(b []byte) (int64, error) {
		n := int64(binary.LittleEndian.Uint64(b))
		if out := n * factor; out/factor == n {
			return out, nil
		}
		return 0, fmt.Errorf("the timestamp %d is beyond what 64 bits hold times %d", n, factor)
	}
}

// timestampFactors are the conversions to microseconds or, with true, nanoseconds by the file's unit.
var timestampFactors = map[bool]map[int16]func([]byte) (int64, error){
	false: {1: scaledBy(1000), 2: scaledBy(1), 3: microsOfNanos},
	true:  {1: scaledBy(1_000_000), 2: scaledBy(1000), 3: scaledBy(1)},
}

const unixEpochJulianDay = 2_440_588

// int96 is an INT96 timestamp: nanoseconds of the day, then the Julian day. Days are not bounded by the nanosecond.
func int96(b []byte) (day, nanos int64) {
	return int64(int32(binary.LittleEndian.Uint32(b[8:]))) - unixEpochJulianDay, int64(binary.LittleEndian.Uint64(b))
}

func microsOfInt96(b []byte) (int64, error) {
	day, nanos := int96(b)
	return day*secondsPerDay*1_000_000 + nanos/1000, nil
}

func nanosOfInt96(b []byte) (int64, error) {
	day, nanos := int96(b)
	high, low := bits.Mul64(uint64(max(day, -day)), secondsPerDay*1e9)
	if high != 0 || low > math.MaxInt64 {
		return 0, fmt.Errorf("the timestamp on day %d is beyond what nanoseconds in 64 bits hold", day)
	}
	return day*secondsPerDay*1e9 + nanos, nil
}

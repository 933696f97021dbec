// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// decode yields a task's live rows in file order as record batches of the plan's schema, at most rows rows each. The
// consumer releases each batch. It is the one place that knows the decoder: everything else sees batches. A task is read
// by a call of its own, as iceberg-go looks deletion vectors up by data file path across a whole call.
func (p *Plan) decode(ctx context.Context, t Task, columns []string, rows int) iter.Seq2[arrow.RecordBatch, error] {
	if len(t.Deletes.Equality) > 0 {
		e, err := p.equalityOf(t, columns)
		if err != nil {
			return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
		}
		if e != nil {
			return e.decode(ctx, t, rows)
		}
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		ctx, cancel := context.WithCancel(ctx) // the decoder only stops reading when its context ends
		defer cancel()
		files := watch(ctx, p.source.FS)
		fail := func(err error) {
			yield(nil, files.explain(err, p.after.SnapshotID, t.kindOf))
		}
		schema, err := withPartitionValues(p.schema, p.source.Meta, t.File)
		if err != nil {
			fail(err)
			return
		}
		read := func(schema *iceberg.Schema, columns []string) (iter.Seq2[arrow.RecordBatch, error], error) {
			scan := newScan(stepMetadata{p.source.Meta, schema}, files, columns, table.WithArrowBatchSize(rows))
			_, batches, err := scan.ReadTasks(ctx, []table.FileScanTask{t.scanTask()})
			return batches, err
		}
		batches, err := withAbsentColumns(read, schema, columns, p.source.Meta)
		if err != nil {
			fail(err)
			return
		}
		batches = reading{p, files, t, schema, columns, rows}.orFitted(ctx, batches)
		var total int64
		for batch, err := range batches {
			if err != nil {
				fail(err)
				return
			}
			if err := coherent(batch); err != nil {
				batch.Release()
				yield(nil, &CorruptFileError{Kind: DataFileKind, Path: t.File.path, Err: err})
				return
			}
			total += batch.NumRows()
			if !yield(batch, nil) {
				cancel() // before the decoder is drained, so that it stops reading
				return
			}
		}
		if ctx.Err() != nil {
			fail(context.Cause(ctx))
			return
		}
		if want := t.Rows(); want >= 0 && total != want {
			yield(nil, &CorruptFileError{
				Kind: DataFileKind, Path: t.File.path,
				Err: fmt.Errorf("it holds %d rows and its manifest says %d", total, want),
			})
		}
	}
}

// kindOf tells the task's data file from its delete files.
func (t Task) kindOf(path string) FileKind {
	_, deletes := t.File.Data.(asData)
	if !deletes && (path == t.File.path || path == "") {
		return DataFileKind
	}
	return DeleteFileKind
}

func (t Task) scanTask() table.FileScanTask {
	task := table.FileScanTask{
		File:       t.File.Data,
		Length:     t.File.Data.FileSizeBytes(),
		FirstRowID: t.File.Data.FirstRowID(),
	}
	if task.FirstRowID != nil { // before that, rows have no lineage at all, as the Java library reads them
		task.DataSequenceNumber = &t.File.Sequence
	}
	if t.part != (part{}) {
		task.Start, task.Length = t.part.start, t.part.length
	}
	if v := t.Deletes.Vector; v != nil {
		task.DeletionVectorFiles = []iceberg.DataFile{v.Data}
	}
	for _, f := range t.Deletes.Position {
		task.DeleteFiles = append(task.DeleteFiles, f.Data)
	}
	for _, f := range t.Deletes.Equality {
		task.EqualityDeleteFiles = append(task.EqualityDeleteFiles, f.Data)
	}
	return task
}

// count reads how many rows of a task the plan delivers.
func (p *Plan) count(ctx context.Context, t Task) (int64, error) {
	if p.filter != nil {
		return p.countWhere(ctx, t)
	}
	var total int64
	for batch, err := range p.decode(ctx, t, countColumns(p.schema), defaultDecodeRows) {
		if err != nil {
			return 0, err
		}
		total += batch.NumRows()
		batch.Release()
	}
	return total, nil
}

// countColumns is a projection that is cheap to decode: one primitive column, where there is one.
func countColumns(schema *iceberg.Schema) []string {
	for _, f := range schema.Fields() {
		if _, ok := f.Type.(iceberg.PrimitiveType); ok {
			return []string{f.Name}
		}
	}
	return nil
}

// undecodable types a decoder's error that no I/O error explains.
func undecodable(kind FileKind, path string, err error) error {
	if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
		return &UnsupportedError{What: unsupported.What, Path: cmp.Or(unsupported.Path, path)}
	}
	text := err.Error()
	_, types, promotion := strings.Cut(text, "cannot promote ")
	_, codec, found := strings.Cut(text, "compression for ")
	codec, unimplemented := strings.CutSuffix(codec, " unimplemented")
	refused, byDefault := refusedDefault(text)
	switch {
	case byDefault:
		return &UnsupportedError{What: refused, Path: path}
	case found && unimplemented:
		return &UnsupportedError{What: fmt.Sprintf("%s compression (%s)", codec, kind), Path: path}
	case errors.Is(err, iceberg.ErrNotImplemented):
		return &UnsupportedError{What: fmt.Sprintf("%s (%v)", kind, err), Path: path}
	case strings.Contains(text, "decrypt"):
		return &UnsupportedError{What: fmt.Sprintf("encrypted %s", kind), Path: path}
	case promotion:
		from, to, _ := strings.Cut(types, " to ")
		return &UnsupportedError{What: fmt.Sprintf("a column of type %s where the table has %s (%s)", from, to, kind), Path: path}
	case strings.Contains(text, "missing field_id"):
		return &UnsupportedError{What: "data file without field ids in a table without schema.name-mapping.default", Path: path}
	}
	return &CorruptFileError{Kind: kind, Path: path, Err: err}
}

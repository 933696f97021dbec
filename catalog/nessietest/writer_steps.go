// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// Step is one thing that a commit does to a table, staged in the commit's transaction. The constructors below cover
// what engines do; any other use of iceberg-go's transaction can be written as a Step too.
type Step func(ctx context.Context, tx *table.Transaction) error

// Append adds the rows in one snapshot. Without rows it makes a snapshot that holds no new file.
func Append(rows ...string) Step {
	return func(ctx context.Context, tx *table.Transaction) error {
		reader, err := stagedReader(tx, rows)
		if err != nil {
			return err
		}
		defer reader.Release()
		return tx.Append(ctx, reader, nil)
	}
}

// AppendFiles adds one data file for each group of rows, all in one snapshot.
func AppendFiles(groups ...[]string) Step {
	return func(ctx context.Context, tx *table.Transaction) error {
		var files []iceberg.DataFile
		for _, rows := range groups {
			written, err := writeFiles(ctx, tx, rows)
			if err != nil {
				return err
			}
			files = append(files, written...)
		}
		return tx.AddDataFiles(ctx, files, nil)
	}
}

// Overwrite deletes the rows that match the filter (nil: all) and adds others.
func Overwrite(filter iceberg.BooleanExpression, rows ...string) Step {
	return func(ctx context.Context, tx *table.Transaction) error {
		reader, err := stagedReader(tx, rows)
		if err != nil {
			return err
		}
		defer reader.Release()
		var opts []table.OverwriteOption
		if filter != nil {
			opts = append(opts, table.WithOverwriteFilter(filter))
		}
		return tx.Overwrite(ctx, reader, nil, opts...)
	}
}

// Delete removes the rows that match. Its files are rewritten, or with the table property write.delete.mode =
// merge-on-read get position deletes (format version 2) or deletion vectors (3).
func Delete(filter iceberg.BooleanExpression) Step {
	return func(ctx context.Context, tx *table.Transaction) error { return tx.Delete(ctx, filter, nil) }
}

// RowDelta adds rows and equality deletes in one snapshot, as streaming upserts do. Each key is a JSON object of the
// key columns; rows that the same snapshot adds are not deleted by it.
func RowDelta(rows []string, keyColumns []string, keys []string) Step {
	return func(ctx context.Context, tx *table.Transaction) error {
		delta := tx.NewRowDelta(nil)
		if len(rows) > 0 {
			files, err := writeFiles(ctx, tx, rows)
			if err != nil {
				return err
			}
			delta.AddRows(files...)
		}
		if len(keys) > 0 {
			files, err := writeEqualityDeletes(ctx, tx, keyColumns, keys)
			if err != nil {
				return err
			}
			delta.AddDeletes(files...)
		}
		return delta.Commit(ctx)
	}
}

// Compact rewrites all data files of each partition into one: a replace snapshot that changes no row.
func Compact() Step {
	return func(ctx context.Context, tx *table.Transaction) error {
		scan, err := tx.Scan()
		if err != nil {
			return err
		}
		tasks, err := scan.PlanFiles(ctx)
		if err != nil {
			return err
		}
		byPartition := map[string]int{}
		var groups []table.CompactionTaskGroup
		for _, task := range tasks {
			key := fmt.Sprint(task.File.SpecID(), task.File.Partition())
			at, ok := byPartition[key]
			if !ok {
				at = len(groups)
				byPartition[key] = at
				groups = append(groups, table.CompactionTaskGroup{PartitionKey: key})
			}
			groups[at].Tasks = append(groups[at].Tasks, task)
			groups[at].TotalSizeBytes += task.File.FileSizeBytes()
		}
		_, err = tx.RewriteDataFiles(ctx, groups, table.RewriteDataFilesOptions{})
		return err
	}
}

// Expire removes all but the newest keep snapshots, and after the commit the files that only they used.
func Expire(keep int) Step {
	return func(_ context.Context, tx *table.Transaction) error {
		return tx.ExpireSnapshots(table.WithRetainLast(keep), table.WithOlderThan(0))
	}
}

// Rollback makes an ancestor of the current snapshot the current one.
func Rollback(snapshotID int64) Step {
	return func(_ context.Context, tx *table.Transaction) error { return tx.RollbackToSnapshot(snapshotID) }
}

// ChangeSchema applies what change says: columns added, dropped, renamed, widened, moved.
func ChangeSchema(change func(*table.UpdateSchema) *table.UpdateSchema) Step {
	return func(_ context.Context, tx *table.Transaction) error {
		return change(tx.UpdateSchema(true, false)).Commit()
	}
}

// ChangeSpec applies what change says to the partition spec.
func ChangeSpec(change func(*table.UpdateSpec) *table.UpdateSpec) Step {
	return func(_ context.Context, tx *table.Transaction) error {
		return change(tx.UpdateSpec(true)).Commit()
	}
}

// SetProperties sets table properties.
func SetProperties(props iceberg.Properties) Step {
	return func(_ context.Context, tx *table.Transaction) error { return tx.SetProperties(props) }
}

// Upgrade raises the table's format version.
func Upgrade(version int) Step {
	return func(_ context.Context, tx *table.Transaction) error { return tx.UpgradeFormatVersion(version) }
}

// Records turns rows, each a JSON object, into one Arrow batch of the schema. Absent columns are null. The caller
// releases it.
func Records(schema *iceberg.Schema, rows ...string) (arrow.RecordBatch, error) {
	arrowSchema, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		return nil, fmt.Errorf("converting schema: %w", err)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrowSchema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		return nil, fmt.Errorf("reading rows: %w", err)
	}
	return rec, nil
}

// stagedReader takes the rows by the schema that the transaction has by now. The caller releases it.
func stagedReader(tx *table.Transaction, rows []string) (array.RecordReader, error) {
	staged, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	rec, err := Records(staged.Schema(), rows...)
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	return array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
}

func writeFiles(ctx context.Context, tx *table.Transaction, rows []string) ([]iceberg.DataFile, error) {
	staged, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	rec, err := Records(staged.Schema(), rows...)
	if err != nil {
		return nil, err
	}
	var files []iceberg.DataFile
	for file, err := range table.WriteRecords(ctx, staged.Table, rec.Schema(), one(rec)) {
		if err != nil {
			return nil, fmt.Errorf("writing data files: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func writeEqualityDeletes(ctx context.Context, tx *table.Transaction, columns, keys []string) ([]iceberg.DataFile, error) {
	staged, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	schema, err := staged.Schema().Select(true, columns...)
	if err != nil {
		return nil, fmt.Errorf("selecting key columns: %w", err)
	}
	var ids []int
	for _, field := range schema.Fields() {
		ids = append(ids, field.ID)
	}
	rec, err := Records(schema, keys...)
	if err != nil {
		return nil, err
	}
	return tx.WriteEqualityDeletes(ctx, ids, one(rec))
}

// one yields a batch whose ownership goes to the consumer.
func one(rec arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }
}

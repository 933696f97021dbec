// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

const (
	changedRows      = 1_000_000
	changedRowGroups = 40
	changedRow       = 623_456
)

// rowChanges changes one row of a file of a million in two ways, and compares what the change costs with reading the file.
func rowChanges(ctx context.Context, _ settings) (result measured, err error) {
	folder, err := os.MkdirTemp("", "rpk-nessie-bench-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	only := iceberg.EqualTo(iceberg.Reference("id"), int64(changedRow))
	for _, change := range []struct {
		what, mode string
		version    int
		step       nessietest.Step
		messages   int64
	}{
		{"deleted by a vector", "merge-on-read", 3, nessietest.Delete(only), 1},
		{"updated by copy-on-write", "copy-on-write", 2, nessietest.Overwrite(only, fmt.Sprintf(`{"id":%d,"user":"another"}`, changedRow)), 2},
	} {
		costs, err := costsOf(ctx, filepath.Join(folder, change.mode), change.mode, change.version, change.step)
		if err != nil {
			return result, fmt.Errorf("a row %s: %w", change.what, err)
		}
		if costs.file.rows != changedRows || costs.change.rows != change.messages {
			return result, fmt.Errorf("a row %s: %d messages of %d rows", change.what, costs.change.rows, costs.file.rows)
		}
		result.Rows += costs.change.rows
		result.Values = append(result.Values,
			milliseconds("reading the file, before a row is "+change.what, costs.file.took),
			milliseconds("its change", costs.change.took),
			value{"time of the change against reading the file", float64(costs.change.took) / float64(costs.file.took), ""},
			value{"bytes of the change against reading the file", float64(costs.change.bytes) / float64(costs.file.bytes), ""})
	}
	return result, nil
}

// cost is what reading took.
type cost struct {
	rows, bytes int64
	took        time.Duration
}

type costs struct{ file, change cost }

// costsOf makes a table of one file, changes it, and reads both the file and the change.
func costsOf(ctx context.Context, folder, mode string, version int, step nessietest.Step) (c costs, err error) {
	written, err := writeChange(ctx, folder, mode, version, step)
	if err != nil {
		return c, err
	}
	var bytes atomic.Int64
	storage, err := catalog.NewStorage(catalog.StorageConfig{LocalRoot: folder, OnBytes: func(n int64) { bytes.Add(n) }})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, storage.Close()) }()
	loaded, err := catalog.LoadTable(ctx, storage.FS(), written.Content.MetadataLocation, written.Content.ID)
	if err != nil {
		return c, err
	}
	after, _ := loaded.State(written.Content.SnapshotID)
	before, ok := loaded.State(loaded.Meta.Snapshots()[0].SnapshotID)
	if !ok {
		return c, errors.New("the first snapshot is not in the metadata")
	}
	source := scan.Source{FS: storage.FS(), Meta: loaded.Meta}
	count := func(read func() (int64, error)) (cost, error) {
		from, start := bytes.Load(), time.Now()
		rows, err := read()
		return cost{rows, bytes.Load() - from, time.Since(start)}, err
	}
	c.file, err = count(func() (int64, error) {
		plan, err := scan.PlanStep(ctx, source, scan.Step{Way: scan.WayTableScan, After: before})
		if err != nil {
			return 0, err
		}
		return countRows(plan.Read(ctx, scan.ReadOptions{}))
	})
	if err != nil {
		return c, err
	}
	c.change, err = count(func() (int64, error) {
		plan, err := scan.PlanChanges(ctx, source, scan.Step{Way: scan.WayBridge, Before: &before, After: after}, scan.ChangeOptions{IdentifierFields: []string{"id"}})
		if err != nil {
			return 0, err
		}
		return countRows(plan.Read(ctx, scan.ReadOptions{}))
	})
	return c, err
}

func countRows(batches func(func(scan.Batch, error) bool)) (rows int64, err error) {
	for b, err := range batches {
		if err != nil {
			return rows, err
		}
		rows += int64(b.Rows)
	}
	return rows, nil
}

func writeChange(ctx context.Context, folder, mode string, version int, step nessietest.Step) (written nessietest.Written, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return written, err
	}
	server, err := nessietest.Start(nessietest.Options{})
	if err != nil {
		return written, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	if err != nil {
		return written, err
	}
	defer client.Close()
	w, err := nessietest.NewWriter(ctx, nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + folder})
	if err != nil {
		return written, err
	}
	rows := make([]string, changedRows)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"user":"user%d","price":%d.25,"note":"the %d. note, of some length"}`, i, i*7919%100_003, i%1000, i)
	}
	p := iceberg.PrimitiveTypes
	field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	schema := iceberg.NewSchema(0, field(1, "id", p.Int64), field(2, "user", p.String), field(3, "price", p.Float64), field(4, "note", p.String))
	key := catalog.Key{"ns", "changed"}
	_, err = w.Create(ctx, key, schema, nessietest.TableOptions{FormatVersion: version, Properties: iceberg.Properties{
		"write.delete.mode": mode, "write.parquet.row-group-limit": fmt.Sprint(changedRows / changedRowGroups),
	}}, nessietest.Append(rows...))
	if err != nil {
		return written, err
	}
	return w.Commit(ctx, key, nessietest.Change{Steps: []nessietest.Step{step}})
}

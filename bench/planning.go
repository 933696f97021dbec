// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

const (
	manyManifests = 10_000
	plannings     = 20
)

// planning times what a poll does that finds one new snapshot: load the metadata, plan. Both readers in turn, cold each
// time.
func planning(ctx context.Context, _ settings) (measured, error) {
	dir, err := os.MkdirTemp("", "bench-planning")
	if err != nil {
		return measured{}, err
	}
	defer os.RemoveAll(dir)
	location, err := writeManyManifests(dir)
	if err != nil {
		return measured{}, err
	}
	var ours, theirs []time.Duration
	opened := 0
	for range plannings {
		start := time.Now()
		if opened, err = planOurs(ctx, dir, location); err != nil {
			return measured{}, err
		}
		ours = append(ours, time.Since(start))
		start = time.Now()
		if err := planTheirs(ctx, location); err != nil {
			return measured{}, err
		}
		theirs = append(theirs, time.Since(start))
	}
	a, b := middle(ours), middle(theirs)
	return measured{Values: []value{
		milliseconds("here", a), milliseconds("iceberg-go, incremental append scan", b),
		{"here against iceberg-go", float64(a) / float64(b), "times"},
		{"manifests opened here", float64(opened), ""},
	}}, nil
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func planOurs(ctx context.Context, dir, location string) (opened int, err error) {
	storage, err := catalog.NewStorage(catalog.StorageConfig{LocalRoot: dir})
	if err != nil {
		return 0, err
	}
	defer storage.Close() //nolint:errcheck // only read
	loaded, err := catalog.LoadTable(ctx, storage.FS(), "file://"+location, "")
	if err != nil {
		return 0, err
	}
	plan, err := scan.PlanStep(ctx, scan.Source{FS: storage.FS(), Meta: loaded.Meta}, scan.Step{Way: scan.WaySnapshot, After: loaded.Current()})
	if err != nil {
		return 0, err
	}
	if len(plan.Tasks) != 1 {
		return 0, fmt.Errorf("%d files are planned here instead of 1", len(plan.Tasks))
	}
	return plan.ManifestsOpened, nil
}

func planTheirs(ctx context.Context, location string) error {
	t, err := table.NewFromLocation(ctx, table.Identifier{"ns", "t"}, location, icebergio.LoadFSFunc(nil, location), nil)
	if err != nil {
		return err
	}
	tasks, err := t.NewIncrementalAppendScan().FromSnapshotExclusive(parentSnapshot).PlanFiles(ctx)
	if err == nil && len(tasks) != 1 {
		err = fmt.Errorf("iceberg-go plans %d files instead of 1", len(tasks))
	}
	return err
}

const (
	parentSnapshot = 1_000_000_000_000_009_998
	newSnapshot    = parentSnapshot + 1
)

// writeManyManifests writes the metadata of a table as 10,000 fast appends leave it. Of the manifests only the newest
// exists, as no other may be opened; so planning fails where one is.
func writeManyManifests(dir string) (location string, err error) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	path := func(name string) string { return filepath.Join(dir, name) }
	manifests := make([]iceberg.ManifestFile, 0, manyManifests)
	newest, err := writeManifest(path, schema)
	if err != nil {
		return "", err
	}
	for i := manyManifests - 1; i > 0; i-- {
		snapshot := int64(newSnapshot - manyManifests + i)
		manifests = append(manifests, iceberg.NewManifestFile(2, path(fmt.Sprintf("%08d-4d9c-4a8e-9d1c-7a3e5f-m0.avro", i)), 5000, 0, snapshot).
			SequenceNum(int64(i), int64(i)).AddedFiles(1).AddedRows(10).Build())
	}
	for i, list := range [][]iceberg.ManifestFile{manifests, append([]iceberg.ManifestFile{newest}, manifests...)} {
		var buf bytes.Buffer
		snapshot, sequence := int64(parentSnapshot+i), int64(manyManifests-1+i)
		parent := snapshot - 1
		if err := iceberg.WriteManifestList(2, &buf, snapshot, &parent, &sequence, 0, list); err != nil {
			return "", err
		}
		if err := os.WriteFile(path(fmt.Sprintf("snap-%d.avro", snapshot)), buf.Bytes(), 0o600); err != nil {
			return "", err
		}
	}
	snapshot := `{"snapshot-id": %d, "parent-snapshot-id": %d, "sequence-number": %d, "timestamp-ms": %d, "manifest-list": "file://%s", "summary": {"operation": "append"}, "schema-id": 0}`
	text := fmt.Sprintf(`{"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file://%s", "last-sequence-number": %d,
		"last-updated-ms": 1700000001000, "last-column-id": 1, "current-schema-id": 0, "last-partition-id": 999, "default-spec-id": 0,
		"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": false, "type": "long"}]}],
		"partition-specs": [{"spec-id": 0, "fields": []}], "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
		"current-snapshot-id": %d, "refs": {"main": {"snapshot-id": %[3]d, "type": "branch"}}, "snapshots": [`, dir, manyManifests, newSnapshot) +
		fmt.Sprintf(snapshot, int64(parentSnapshot), int64(parentSnapshot-1), manyManifests-1, int64(1700000000000), path(fmt.Sprintf("snap-%d.avro", int64(parentSnapshot)))) + "," +
		fmt.Sprintf(snapshot, int64(newSnapshot), int64(parentSnapshot), manyManifests, int64(1700000001000), path(fmt.Sprintf("snap-%d.avro", int64(newSnapshot)))) + "]}"
	location = path("1.metadata.json")
	return location, os.WriteFile(location, []byte(text), 0o600)
}

func writeManifest(path func(string) string, schema *iceberg.Schema) (iceberg.ManifestFile, error) {
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "file://"+path("new.parquet"), iceberg.ParquetFile, nil, nil, nil, 10, 5000)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &buf, *iceberg.UnpartitionedSpec, schema, newSnapshot)
	if err != nil {
		return nil, err
	}
	snapshot := int64(newSnapshot)
	if err := w.Add(iceberg.NewManifestEntryBuilder(iceberg.EntryStatusADDED, &snapshot, b.Build()).Build()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	name := path("new-m0.avro")
	if err := os.WriteFile(name, buf.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return w.ToManifestFile(name, int64(buf.Len()))
}

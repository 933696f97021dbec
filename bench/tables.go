// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// tableFiles is one table that make_tables.py made: its metadata file and data files on the local disk.
type tableFiles struct {
	Metadata string   `json:"metadata"`
	Files    []string `json:"files"`
	Rows     int64    `json:"rows"`
	Stored   int64    `json:"parquet_bytes"`
}

func loadTables(cache string) (map[string]tableFiles, error) {
	raw, err := os.ReadFile(filepath.Join(cache, "paths.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for the tables (bench/prepare makes them): %w", err)
	}
	tables := map[string]tableFiles{}
	if err := json.Unmarshal(raw, &tables); err != nil {
		return nil, fmt.Errorf("reading paths.json: %w", err)
	}
	return tables, nil
}

// root is the folder that all of the table's files are below.
func (t tableFiles) root() string { return filepath.Dir(filepath.Dir(t.Metadata)) }

// plan is the plan of a scan of the whole table.
func (t tableFiles) plan(ctx context.Context) (*scan.Plan, func() error, error) {
	storage, err := catalog.NewStorage(catalog.StorageConfig{LocalRoot: t.root()})
	if err != nil {
		return nil, nil, err
	}
	loaded, err := catalog.LoadTable(ctx, storage.FS(), "file://"+t.Metadata, "")
	if err != nil {
		return nil, nil, err
	}
	plan, err := scan.PlanStep(ctx, scan.Source{FS: storage.FS(), Meta: loaded.Meta},
		scan.Step{Way: scan.WayTableScan, After: loaded.Current()})
	return plan, storage.Close, err
}

// register starts an in-memory Nessie that knows the table as ns.t.
func (t tableFiles) register(ctx context.Context) (*nessietest.Server, error) {
	server, err := nessietest.Start(nessietest.Options{})
	if err != nil {
		return nil, err
	}
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	raw, err := os.ReadFile(t.Metadata)
	if err != nil {
		return nil, err
	}
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, err
	}
	content := catalog.Content{
		Type: catalog.ContentTypeIceberg, MetadataLocation: "file://" + t.Metadata, SnapshotID: catalog.NoSnapshot,
		SchemaID: meta.CurrentSchema().ID,
	}
	if s := meta.CurrentSnapshot(); s != nil {
		content.SnapshotID = s.SnapshotID
	}
	main, err := client.Reference(ctx, "main")
	if err != nil {
		return nil, err
	}
	_, err = client.Commit(ctx, main, "register", []catalog.Operation{
		{Type: catalog.Put, Key: catalog.Key{"ns"}, Content: catalog.Content{Type: catalog.ContentTypeNamespace}},
		{Type: catalog.Put, Key: catalog.Key{"ns", "t"}, Content: content},
	})
	return server, err
}

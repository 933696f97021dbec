// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// rewriteSummaries makes the table's metadata files say what another writer would say of its snapshots, oldest first. Each
// of the metadata's snapshots has an entry in order.
func (s *stage) rewriteSummaries(summaries ...map[string]string) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.warehouse, "*", "*", "metadata", "*.metadata.json"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, files)
	for _, path := range files {
		body, err := os.ReadFile(path)
		require.NoError(s.t, err)
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		var meta map[string]any
		require.NoError(s.t, decoder.Decode(&meta))
		snapshots, _ := meta["snapshots"].([]any)
		for i, snapshot := range snapshots {
			snapshot.(map[string]any)["summary"] = summaries[i]
		}
		body, err = json.Marshal(meta)
		require.NoError(s.t, err)
		require.NoError(s.t, os.WriteFile(path, body, 0o600))
	}
}

// Some writers count nothing, and some begin at nothing with every snapshot.
func TestRowsAreCountedWhereSummariesAreWrongOrSilent(t *testing.T) {
	s := newStage(t, "orders")
	ids := []string{s.add("orders", 1, 2), s.add("orders", 3), s.add("orders", 4, 5, 6), s.add("orders", 7)}
	s.rewriteSummaries(
		map[string]string{"operation": "append", "added-records": "2", "added-data-files": "1", "total-records": "2"},
		map[string]string{"operation": "append", "added-records": "1", "added-data-files": "1", "total-records": "1"},
		map[string]string{"operation": "append"},
		map[string]string{"operation": "append", "added-records": "1", "added-data-files": "1", "total-records": "7"},
	)
	path := s.file("pipeline.yaml", s.pipeline(s.input("orders"), "{ drop: {} }"))

	got := execute(t, "lineage", "--config", path, "--json")
	require.Equal(t, 0, got.code, got.all())
	var g struct {
		Rows []struct {
			Snapshot *struct {
				ID     string `json:"snapshot_id"`
				Counts struct {
					By    string `json:"by"`
					Added *int64 `json:"added_rows"`
					Total *int64 `json:"total_rows"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &g))
	type count struct {
		By           string
		Added, Total int64
	}
	counted := map[string]count{}
	for _, r := range g.Rows {
		if r.Snapshot != nil {
			require.NotNil(t, r.Snapshot.Counts.Added, got.stdout)
			require.NotNil(t, r.Snapshot.Counts.Total, got.stdout)
			counted[r.Snapshot.ID] = count{r.Snapshot.Counts.By, *r.Snapshot.Counts.Added, *r.Snapshot.Counts.Total}
		}
	}
	assert.Equal(t, map[string]count{
		ids[0]: {"summary", 2, 2}, ids[1]: {"summary", 1, 3}, ids[2]: {"manifests", 3, 6}, ids[3]: {"summary", 1, 7},
	}, counted)

	got = execute(t, "inspect", "snapshots", "--config", path, "--json")
	require.Equal(t, 0, got.code, got.all())
	var rows []struct {
		ID    string `json:"snapshot_id"`
		Total *int64 `json:"total_rows"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows), got.stdout)
	totals := map[string]int64{}
	for _, r := range rows {
		require.NotNil(t, r.Total, got.stdout)
		totals[r.ID] = *r.Total
	}
	assert.Equal(t, map[string]int64{ids[0]: 2, ids[1]: 3, ids[2]: 6, ids[3]: 7}, totals)
}

// Summaries that leave delete files out, or that begin to count at nothing, do not hide them.
func TestRowsThatDeleteFilesTakeAreToldApart(t *testing.T) {
	const less = "rows in data files, less what delete files take"
	said := func(s *stage, added map[string]string) (lineage, snapshots string) {
		if added != nil {
			s.rewriteSummaries(map[string]string{"operation": "append", "added-records": "2", "total-records": "2"}, added)
		}
		path := s.file("pipeline.yaml", s.pipeline(s.input("orders"), "{ drop: {} }"))
		graph, table := execute(t, "lineage", "--config", path), execute(t, "inspect", "snapshots", "--config", path)
		require.Equal(t, 0, graph.code, graph.all())
		require.Equal(t, 0, table.code, table.all())
		return graph.stdout, table.stdout
	}
	plain := newStage(t, "orders")
	plain.add("orders", 1, 2)
	graph, snapshots := said(plain, nil)
	assert.Contains(t, graph, "2 rows in all")
	assert.NotContains(t, snapshots, "not subtracted")

	for name, summary := range map[string]map[string]string{
		"as written":               nil,
		"without the delete files": {"operation": "overwrite", "added-records": "1", "total-records": "3"},
		"counted from nothing":     {"operation": "overwrite", "added-records": "1", "total-records": "1", "total-delete-files": "0"},
		"silent":                   {"operation": "overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "orders")
			s.add("orders", 1, 2)
			_, err := s.Writer.Commit(t.Context(), catalog.Key{"shop", "orders"}, nessietest.Change{Message: "upsert", Steps: []nessietest.Step{nessietest.RowDelta(rowsOf(3), []string{"id"}, rowsOf(1))}})
			require.NoError(t, err)
			graph, snapshots := said(s, summary)
			assert.Contains(t, graph, "3 "+less)
			assert.Contains(t, graph, "2 rows in all", "the snapshot before it has no delete files")
			assert.Contains(t, snapshots, "not subtracted")
		})
	}
}

// A snapshot that only a commit names has no manifests to count in, which is not the same as no rows.
func TestRowsOfAnUnknownSnapshotAreUnknown(t *testing.T) {
	assert.Nil(t, newTotals(nil).of(t.Context(), catalog.State{SnapshotID: 5, Records: -1}, nil, nil, nil))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInspectShowsTheSameInEveryForm(t *testing.T) {
	for _, i := range inspections {
		for _, table := range []string{"mor", "rest_multi"} {
			t.Run(i.name+" of "+table, func(t *testing.T) {
				text := onCorpus(t, "inspect "+i.name, table)
				require.Equal(t, 0, text.code, text.all())
				golden(t, "inspect/"+table+"_"+i.name+".txt", text.stdout)
				if table != "mor" {
					return
				}
				asCSV := onCorpus(t, "inspect "+i.name, table, "--output", "csv")
				require.Equal(t, 0, asCSV.code, asCSV.all())
				records, err := csv.NewReader(strings.NewReader(asCSV.stdout)).ReadAll()
				require.NoError(t, err)

				var rows []map[string]any
				require.NoError(t, json.Unmarshal([]byte(onCorpus(t, "inspect "+i.name, table, "--json").stdout), &rows))
				require.Len(t, rows, len(records)-1)
				for _, row := range rows {
					assert.Len(t, row, len(records[0]))
				}
			})
		}
	}
}

func TestMisspeltSubcommandsAreUsageErrors(t *testing.T) {
	for _, tc := range []struct{ command, wrong, there string }{
		{"inspect", "filez", "snapshots, history, refs, manifests, entries, files, partitions, schemas, checkpoint\n"},
		{"checkpoint", "gat", "get, set, rewind, delete\n"},
	} {
		got := execute(t, tc.command, tc.wrong, "--config", "pipeline.yaml")
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.stderr, "rpk-nessie "+tc.command+` has no "`+tc.wrong+`": there is `+tc.there)
		assert.Equal(t, 0, execute(t, tc.command).code, "help")
	}
}

func TestReferencesAreListedWhereTheConfiguredOneIsNotThere(t *testing.T) {
	for name, args := range map[string][]string{
		"no branch": {"rest_branch", "--branch", "mian"}, "no storage": {"rest_branch", "--branch", "mian", "--s3-endpoint", closedPort(t)},
	} {
		got := onCorpus(t, "inspect refs", args[0], append(args[1:], "--json")...)
		require.Equal(t, 0, got.code, name+got.all())
		var rows []map[string]any
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows))
		var main map[string]any
		for _, r := range rows {
			if r["name"] == "main" {
				main = r
			}
		}
		require.NotNil(t, main, got.stdout)
		assert.NotNil(t, main["snapshot_id"])
		assert.Nil(t, main["same_table"], "as what is not known")
	}
	got := onCorpus(t, "inspect refs", "rest_branch", "--at", "mian")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "mian")
}

func TestInspectAtASnapshotATagAndACommit(t *testing.T) {
	files := func(table string, args ...string) int {
		got := onCorpus(t, "inspect files", table, append(args, "--json")...)
		require.Equal(t, 0, got.code, got.all())
		var rows []any
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows))
		return len(rows)
	}
	ids := committed(t, "rest_multi")
	assert.Equal(t, 1, files("rest_multi", "--at", ids[0]))
	assert.Equal(t, 4, files("rest_multi"))
	assert.Equal(t, 3, files("rest_multi", "--at", "@"+commitBeforeTheLast()))
	assert.Equal(t, files("tagged", "--at", chain(t, "tagged_v1.0")[3]), files("tagged", "--at", "v1.0"))

	unknown := onCorpus(t, "inspect files", "rest_multi", "--at", "12345")
	assert.Equal(t, 1, unknown.code)
	assert.Contains(t, unknown.stderr, "snapshot 12345 of demo.rest_multi was not found")
	form := onCorpus(t, "inspect files", "rest_multi", "--output", "xml")
	assert.Equal(t, 1, form.code)
	assert.Contains(t, form.stderr, "table, json or csv")
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

func chain(t *testing.T, name string) []string {
	t.Helper()
	e, err := corpus.Load(name)
	require.NoError(t, err)
	ids := make([]string, len(e.HeadChain))
	for i, id := range e.HeadChain {
		ids[i] = fmt.Sprint(id)
	}
	return ids
}

// committed are the snapshots that commits of the corpus' table have, oldest first; chain also has those between.
func committed(t *testing.T, name string) []string {
	t.Helper()
	e, err := corpus.Load(name)
	require.NoError(t, err)
	var ids []string
	for _, c := range e.Commits {
		if id := fmt.Sprint(c.SnapshotID); c.Op == "PUT" && c.SnapshotID >= 0 && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestPlanSaysWhatTheNextPollWouldDeliver(t *testing.T) {
	tests := []struct {
		name, table string
		fields      []string
		at          string // the checkpoint's snapshot; "" for none
		code        int
		json        bool
	}{
		{"first_run", "events", nil, "", 0, true},
		{"first_run_earliest", "rest_multi", []string{"start_from: earliest"}, "", 0, false},
		{"first_run_latest", "events", []string{"start_from: latest"}, "", exitPlanEmpty, false},
		{"caught_up", "events", nil, chain(t, "events")[5], exitPlanEmpty, false},
		{"behind", "rest_only", nil, chain(t, "rest_only")[1], 0, false},
		{"across_a_merge", "rest_branch", nil, committed(t, "rest_branch")[0], 0, false},
		{"removes_rows", "cow", nil, chain(t, "cow")[0], exitPlanRefused, true},
		{"removes_rows_skipped", "cow", []string{"on_overwrite: skip", "on_delete: skip"}, chain(t, "cow")[0], 0, false},
		{"changelog", "mor", []string{"changes: changelog"}, chain(t, "mor")[0], 0, false},
		{"across_a_hole", "expired", nil, chain(t, "expired")[1], 0, true},
		{"compacted", "compacted", nil, chain(t, "compacted")[0], 0, false},
		{"ends", "events", []string{`end_snapshot_id: "` + chain(t, "events")[3] + `"`}, chain(t, "events")[1], 0, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := newCorpusPipeline(t, tc.table, tc.fields...)
			if tc.at != "" {
				set := p.on("checkpoint set", "--yes", tc.at)
				require.Equal(t, 0, set.code, set.all())
			}
			got := p.on("plan")
			assert.Equal(t, tc.code, got.code, got.all())
			golden(t, "plan/"+tc.name+".txt", got.stdout)
			if tc.json {
				asJSON := p.on("plan", "--json")
				assert.Equal(t, tc.code, asJSON.code)
				golden(t, "plan/"+tc.name+".json", asJSON.stdout)
			}
		})
	}
}

func TestPlanAfterAReset(t *testing.T) {
	for policy, code := range map[string]int{"start": 0, "ancestor": 0, "fail": exitPlanRefused} {
		t.Run(policy, func(t *testing.T) {
			p := newCorpusPipeline(t, "reset", "branch: r1_before", "checkpoint_cache_key: shared")
			require.Equal(t, 0, p.on("checkpoint set", "--yes", chain(t, "reset_before")[4]).code)
			p.path = p.write("reset", "branch: r1", "checkpoint_cache_key: shared", "on_lost_lineage: "+policy)
			got := p.on("plan")
			assert.Equal(t, code, got.code, got.all())
			golden(t, "plan/reset_"+policy+".txt", got.stdout)
		})
	}
}

// The branch goes back to before a delete: its rows come again, and no file does.
func TestPlanDoesNotCountRowsThatComeBack(t *testing.T) {
	e, err := corpus.Load("mor")
	require.NoError(t, err)
	ids := chain(t, "mor")
	commit := ""
	for _, c := range e.Commits {
		if fmt.Sprint(c.SnapshotID) == ids[1] {
			commit = c.Hash
		}
	}
	shared := []string{"checkpoint_cache_key: shared", "changes: changelog"}
	p := newCorpusPipeline(t, "mor", shared...)
	require.Equal(t, 0, p.on("checkpoint set", "--yes", ids[2]).code)
	p.path = p.write("mor", append(shared, "branch: main@"+commit, "on_lost_lineage: bridge")...)
	got := p.on("plan")
	assert.Equal(t, 0, got.code, got.all())
	golden(t, "plan/rows_come_back.txt", got.stdout)
	run := withKeys(t, "run", p.path)
	require.Equal(t, 0, run.code, run.all())
	assert.NotEmpty(t, objectsOf(run.stdout))
}

// TestARunDeliversWhatPlanSaid holds the forecast to the input itself.
func TestARunDeliversWhatPlanSaid(t *testing.T) {
	for _, table := range []string{"rest_only", "rest_multi", "rest_branch"} {
		t.Run(table, func(t *testing.T) {
			p := newCorpusPipeline(t, table)
			require.Equal(t, 0, p.on("checkpoint set", "--yes", committed(t, table)[0]).code)
			require.Equal(t, 0, p.on("plan").code)
			e, err := corpus.Load(table)
			require.NoError(t, err)
			run := withKeys(t, "run", p.path)
			require.Equal(t, 0, run.code, run.all())
			assert.Len(t, objectsOf(run.stdout), int(e.Head().RowCount)-5)
			assert.Equal(t, exitPlanEmpty, p.on("plan").code)
		})
	}
}

func TestPlanOfFullScansAndFailures(t *testing.T) {
	full := onCorpus(t, "plan", "events")
	assert.Equal(t, 0, full.code, full.all())
	got := onCorpus(t, "plan", "evnts")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "events")
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// stored reads the one value in the pipeline's checkpoint folder; nil where there is none.
func (p *corpusPipeline) stored() *cache.Checkpoint {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.folder, "*"))
	require.NoError(p.t, err)
	if len(files) == 0 {
		return nil
	}
	require.Len(p.t, files, 1)
	value, err := os.ReadFile(files[0])
	require.NoError(p.t, err)
	c, err := cache.Decode(files[0], value)
	require.NoError(p.t, err)
	return c
}

func TestCheckpointsMoveAndTheirOrdinalsGoUp(t *testing.T) {
	ids := committed(t, "rest_multi")
	p := newCorpusPipeline(t, "rest_multi")
	get := p.on("checkpoint get")
	require.Equal(t, 0, get.code, get.all())
	assert.Contains(t, get.stdout, "absent: the next start is a first run")
	assert.Nil(t, p.stored(), "looking writes nothing")

	for step, move := range []struct{ command, to, says string }{
		{"checkpoint set", ids[2], "Ahead of it then: 0 snapshots."},
		{"checkpoint rewind", ids[0], "Delivered a second time"},
		{"checkpoint set", ids[1], "Never delivered, as the new place lies behind them"},
		{"checkpoint rewind", "none", "Delivered a second time"},
	} {
		got := p.on(move.command, "--yes", move.to)
		require.Equal(t, 0, got.code, got.all())
		assert.Contains(t, got.stdout, move.says)
		stored := p.stored()
		assert.Equal(t, int64(step), stored.Step)
		if move.to == "none" {
			move.to = ""
		}
		assert.Equal(t, move.to, stored.Last.SnapshotID)
	}

	e, err := corpus.Load("rest_multi")
	require.NoError(t, err)
	run := withKeys(t, "run", p.path)
	require.Equal(t, 0, run.code, run.all())
	assert.Len(t, objectsOf(run.stdout), int(e.Head().RowCount), "from the table's beginning")
	assert.Greater(t, p.stored().Step, int64(3))

	get = p.on("checkpoint get", "--json")
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(get.stdout), &value))
	assert.Equal(t, ids[len(ids)-1], value["lastAckedSnapshotID"])
}

func TestARewoundPipelineDeliversAgainWhatCameAfter(t *testing.T) {
	ids := chain(t, "events")
	p := newCorpusPipeline(t, "events")
	require.Equal(t, 0, p.on("checkpoint set", "--yes", ids[5]).code)
	require.Empty(t, objectsOf(withKeys(t, "run", p.path).stdout))
	require.Equal(t, 0, p.on("checkpoint rewind", "--yes", ids[3]).code)
	assert.Len(t, objectsOf(withKeys(t, "run", p.path).stdout), 40)
}

func TestCheckpointRefusesWhatCannotBeReachedUnlessForced(t *testing.T) {
	e, err := corpus.Load("rolled_back")
	require.NoError(t, err)
	var abandoned string
	for _, s := range e.Snapshots {
		if on := chain(t, "rolled_back"); !contains(on, s.ID) {
			abandoned = snapshotID(s.ID).String()
		}
	}
	require.NotEmpty(t, abandoned)
	p := newCorpusPipeline(t, "rolled_back")
	got := p.on("checkpoint set", "--yes", abandoned)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "is not on the line of the head's snapshot")
	assert.Nil(t, p.stored())
	got = p.on("checkpoint set", "--yes", "--force", abandoned)
	require.Equal(t, 0, got.code, got.all())
	assert.Equal(t, abandoned, p.stored().Last.SnapshotID)

	got = p.on("checkpoint set", "--yes", "--force", "12345")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "was not found", "there is nothing to write")
}

func contains(ids []string, id int64) bool {
	for _, have := range ids {
		if have == snapshotID(id).String() {
			return true
		}
	}
	return false
}

func TestCheckpointWritesOnlyWhenToldTo(t *testing.T) {
	ids := committed(t, "rest_multi")
	p := newCorpusPipeline(t, "rest_multi")
	unasked := p.on("checkpoint set", ids[0])
	assert.Equal(t, 1, unasked.code)
	assert.Contains(t, unasked.stderr, "--yes")
	dry := p.on("checkpoint set", "--dry-run", ids[0])
	assert.Equal(t, 0, dry.code, dry.all())
	forward := p.on("checkpoint rewind", "--yes", ids[0])
	assert.Equal(t, 1, forward.code)
	assert.Contains(t, forward.stderr, "there is no checkpoint to go back from")
	for _, arguments := range [][]string{nil, {ids[0], ids[1]}} {
		unnamed := p.on("checkpoint rewind", arguments...)
		assert.Equal(t, 1, unnamed.code)
		assert.Contains(t, unnamed.stderr, "checkpoint rewind takes one argument, behind the flags: the id of a snapshot")
	}
	assert.Nil(t, p.stored())

	require.Equal(t, 0, p.on("checkpoint set", "--yes", ids[0]).code)
	forward = p.on("checkpoint rewind", "--yes", ids[2])
	assert.Equal(t, 1, forward.code)
	assert.Contains(t, forward.stderr, "no ancestor")
	assert.Equal(t, ids[0], p.stored().Last.SnapshotID)
}

func TestCheckpointDeleteAndDamagedValues(t *testing.T) {
	ids := committed(t, "rest_multi")
	p := newCorpusPipeline(t, "rest_multi")
	require.Equal(t, 0, p.on("checkpoint set", "--yes", ids[0]).code)
	files, err := filepath.Glob(filepath.Join(p.folder, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("{}"), 0o600))

	assert.Equal(t, 1, p.on("checkpoint get").code)
	refused := p.on("checkpoint set", "--yes", ids[1])
	assert.Equal(t, 1, refused.code)
	assert.Contains(t, refused.stderr, "can't be used")
	doctor := p.on("doctor")
	assert.Equal(t, 1, doctor.code)
	assert.Contains(t, doctor.stdout, "checkpoint set --force")
	forced := p.on("checkpoint set", "--yes", "--force", ids[1])
	require.Equal(t, 0, forced.code, forced.all())
	assert.Equal(t, ids[1], p.stored().Last.SnapshotID)

	deleted := p.on("checkpoint delete", "--yes")
	require.Equal(t, 0, deleted.code, deleted.all())
	assert.Nil(t, p.stored())
}

func TestCheckpointNeedsOne(t *testing.T) {
	got := onCorpus(t, "checkpoint get", "events")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "keeps no checkpoint")
	got = onCorpus(t, "inspect checkpoint", "events", "--checkpoint-dir", filepath.Join(t.TempDir(), "c"), "--json")
	assert.Equal(t, 0, got.code, got.all())
	assert.Contains(t, got.stdout, "first run")
}

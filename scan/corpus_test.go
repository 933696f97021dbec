// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// corpusTable is one table of the corpus with every state that its metadata files name.
type corpusTable struct {
	*corpus.Expected
	files  *corpus.Files
	metas  map[string]table.Metadata // by location
	states map[int64]catalog.State
}

func openCorpus(t *testing.T, name string) *corpusTable {
	t.Helper()
	expected, err := corpus.Load(name)
	require.NoError(t, err)
	files, err := corpus.NewFiles()
	require.NoError(t, err)
	c := &corpusTable{Expected: expected, files: files, metas: map[string]table.Metadata{}, states: map[int64]catalog.State{}}
	for _, commit := range expected.Commits {
		location := commit.MetadataLocation
		if location == "" || c.metas[location] != nil {
			continue
		}
		tbl, err := table.NewFromLocation(t.Context(), nil, location, func(context.Context) (iceio.IO, error) { return files, nil }, nil)
		require.NoError(t, err)
		c.metas[location] = tbl.Metadata()
		for _, s := range tbl.Metadata().Snapshots() {
			c.states[s.SnapshotID] = stateOf(tbl.Metadata(), s, location)
		}
	}
	return c
}

// stateOf is the state that a snapshot of a metadata file is.
func stateOf(meta table.Metadata, s table.Snapshot, location string) catalog.State {
	state := catalog.State{
		TableUUID: meta.TableUUID().String(), SnapshotID: s.SnapshotID, ParentID: s.ParentSnapshotID, Sequence: s.SequenceNumber,
		TimestampMs: s.TimestampMs, ManifestList: s.ManifestList, SchemaID: meta.CurrentSchema().ID, Records: -1,
		MetadataLocation: location, FormatVersion: meta.Version(),
	}
	if s.SchemaID != nil {
		state.SchemaID = *s.SchemaID
	}
	if s.Summary != nil {
		state.Operation = string(s.Summary.Operation)
		state.Records = int64(s.Summary.Properties.GetInt("total-records", -1))
	}
	return state
}

func (c *corpusTable) source(state catalog.State) Source {
	return Source{FS: c.files, Meta: c.metas[state.MetadataLocation]}
}

// parent is the proved parent of a snapshot: ok is false where it is in no metadata file.
func (c *corpusTable) parent(s corpus.Snapshot) (parent *catalog.State, ok bool) {
	id := s.ParentInMetadata
	if id == nil {
		id = s.ParentInHeader
	}
	if id == nil {
		return &catalog.State{SnapshotID: catalog.NoSnapshot}, true
	}
	state, ok := c.states[*id]
	return &state, ok
}

// rowsOf reads tasks whole as canonical rows.
func rowsOf(t *testing.T, plan *Plan, tasks []Task, schema *corpus.Schema) []string {
	t.Helper()
	part := *plan
	part.Tasks = tasks
	var rows [][]byte
	for batch, err := range part.Read(t.Context(), ReadOptions{BatchRows: 7}) {
		require.NoError(t, err)
		rows = append(rows, batch.Messages...)
	}
	return canon(t, schema, rows)
}

func canon[R ~[]byte](t *testing.T, schema *corpus.Schema, rows []R) []string {
	t.Helper()
	if len(rows) == 0 {
		return []string{}
	}
	texts, err := corpus.CanonAll(schema, rows)
	require.NoError(t, err)
	return texts
}

// net subtracts multisets of rows: what is left on both sides.
func net(plus, minus []string) (inserted, deleted []string) {
	counts := map[string]int{}
	for _, r := range plus {
		counts[r]++
	}
	for _, r := range minus {
		counts[r]--
	}
	inserted, deleted = []string{}, []string{}
	for r, n := range counts {
		inserted = append(inserted, slices.Repeat([]string{r}, max(n, 0))...)
		deleted = append(deleted, slices.Repeat([]string{r}, max(-n, 0))...)
	}
	slices.Sort(inserted)
	slices.Sort(deleted)
	return inserted, deleted
}

func eachCorpusTable(t *testing.T, test func(t *testing.T, c *corpusTable)) {
	names, err := corpus.Names()
	require.NoError(t, err)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, openCorpus(t, name)) })
	}
}

// refused reports whether a step is rightly refused: files of the corpus that are gone, and formats that are not read.
func refused(err error) bool {
	var unsupported *UnsupportedError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &unsupported)
}

func TestASnapshotThatAddsRowsYieldsThem(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, s := range c.Snapshots {
			state := c.states[s.ID]
			plan, err := PlanStep(t.Context(), c.source(state), Step{Way: WaySnapshot, After: state})
			if err != nil {
				require.True(t, refused(err), "%d: %v", s.ID, err)
				continue
			}
			assert.Equal(t, expectedKind(s), plan.Kind, "snapshot %d", s.ID)
			if s.Inserted == nil || plan.Kind != KindAppend {
				continue
			}
			schema := c.SnapshotSchema(s)
			assert.Equal(t, canon(t, schema, s.Inserted), rowsOf(t, plan, plan.Tasks, schema), "snapshot %d", s.ID)
		}
	})
}

// expectedKind works a kind out from the files that another reader saw in the snapshot.
func expectedKind(s corpus.Snapshot) Kind {
	var added, removed, deletes int
	for _, f := range s.Files {
		switch {
		case f.Content == "data" && f.Status == "ADDED":
			added++
		case f.Content == "data":
			removed++
		default:
			deletes++
		}
	}
	switch {
	case added+removed+deletes == 0:
		return KindEmpty
	case s.Operation == "replace":
		return KindReplace
	case added == 0:
		return KindDelete
	case removed+deletes > 0:
		return KindOverwrite
	}
	return KindAppend
}

func TestATableScanYieldsWhatTheTableHolds(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, commit := range c.Commits {
			meta := c.metas[commit.MetadataLocation]
			if meta == nil || commit.Rows == nil {
				continue
			}
			state := catalog.State{SnapshotID: catalog.NoSnapshot, MetadataLocation: commit.MetadataLocation}
			if commit.SnapshotID != catalog.NoSnapshot {
				state = c.states[commit.SnapshotID]
			}
			plan, err := PlanStep(t.Context(), Source{FS: c.files, Meta: meta},
				Step{Way: WayTableScan, After: state, Schema: meta.CurrentSchema()})
			if err != nil {
				require.True(t, refused(err), "%s: %v", commit.Hash, err)
				continue
			}
			assert.Equal(t, KindTableScan, plan.Kind)
			if plan.Records >= 0 {
				assert.Equal(t, commit.RowCount, plan.Records)
			}
			schema := c.CommitSchema(commit)
			assert.Equal(t, canon(t, schema, commit.Rows), rowsOf(t, plan, plan.Tasks, schema), "commit %s", commit.Hash)
		}
	})
}

func TestTheDifferenceOfTwoStatesIsExactInRows(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, s := range c.Snapshots {
			state := c.states[s.ID]
			parent, ok := c.parent(s)
			if !ok || s.Inserted == nil {
				continue
			}
			plan, err := PlanStep(t.Context(), c.source(state), Step{Way: WayBridge, Before: parent, After: state})
			if err != nil {
				require.True(t, refused(err), "%d: %v", s.ID, err)
				continue
			}
			schema := c.SnapshotSchema(s)
			plus, minus := plan.Tasks, plan.Removed
			for _, change := range plan.Changed {
				plus = append(plus, Task{File: change.File, Deletes: change.After})
				minus = append(minus, Task{File: change.File, Deletes: change.Before})
			}
			inserted, deleted := net(rowsOf(t, plan, plus, schema), rowsOf(t, plan, minus, schema))
			assert.Equal(t, canon(t, schema, s.Inserted), inserted, "snapshot %d", s.ID)
			assert.Equal(t, canon(t, schema, s.Deleted), deleted, "snapshot %d", s.ID)
		}
	})
}

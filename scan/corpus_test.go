// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
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
		meta := parseOnce(t, files, location)
		c.metas[location] = meta
		for _, s := range meta.Snapshots() {
			if _, ok := c.states[s.SnapshotID]; !ok { // later files may give it a later schema
				c.states[s.SnapshotID] = stateOf(meta, s, location)
			}
		}
	}
	return c
}

var parsed sync.Map // metadata by location: hundreds of files, and each test opens every table

func parseOnce(t *testing.T, files iceio.IO, location string) table.Metadata {
	t.Helper()
	if meta, ok := parsed.Load(location); ok {
		return meta.(table.Metadata)
	}
	tbl, err := table.NewFromLocation(t.Context(), nil, location, func(context.Context) (iceio.IO, error) { return files, nil }, nil)
	require.NoError(t, err)
	parsed.Store(location, tbl.Metadata())
	return tbl.Metadata()
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

// rowsOf reads tasks whole as canonical rows. It is nil where a file is rightly refused.
func rowsOf(t *testing.T, plan *Plan, tasks []Task, schema *corpus.Schema) []string {
	t.Helper()
	part := *plan
	part.Tasks = tasks
	var rows [][]byte
	for batch, err := range part.Read(t.Context(), ReadOptions{BatchRows: 7}) {
		if refused(err) {
			return nil
		}
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

// assertRows compares multisets of rows and says in a few lines how they differ. Rows that are nil were refused.
func assertRows(t *testing.T, schema *corpus.Schema, want []json.RawMessage, got []string, step any) {
	t.Helper()
	if got == nil {
		return
	}
	missing, extra := net(canon(t, schema, want), got)
	if len(missing)+len(extra) > 0 {
		t.Errorf("%v: %d rows are missing, like %.300q; %d are too many, like %.300q", step,
			len(missing), missing[:min(2, len(missing))], len(extra), extra[:min(2, len(extra))])
	}
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
			assertRows(t, schema, s.Inserted, rowsOf(t, plan, plan.Tasks, schema), s.ID)
		}
	})
}

// expectedKind works a kind out from the files that another reader saw in the snapshot.
func expectedKind(s corpus.Snapshot) Kind {
	var added, deletes int
	removed, _ := strconv.Atoi(s.Summary["deleted-data-files"]) // PyIceberg's deleted entries name another snapshot
	for _, f := range s.Files {
		switch {
		case f.Content == "data" && f.Status == "ADDED":
			added++
		case f.Content == "data":
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
			assertRows(t, schema, commit.Rows, rowsOf(t, plan, plan.Tasks, schema), commit.Hash)
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
			came, went := rowsOf(t, plan, plus, schema), rowsOf(t, plan, minus, schema)
			if came == nil || went == nil {
				continue
			}
			inserted, deleted := net(came, went)
			assertRows(t, schema, s.Inserted, inserted, s.ID)
			assertRows(t, schema, s.Deleted, deleted, s.ID)
		}
	})
}

func TestFilesThatAreNotReadAreRefusedByName(t *testing.T) {
	for name, refusals := range map[string][]string{
		"formats":     {"Avro data file", "ORC data file"},
		"expired":     {"gone"},
		"expired_cow": {"gone"},
	} {
		t.Run(name, func(t *testing.T) {
			c := openCorpus(t, name)
			var got []string
			for _, s := range c.Snapshots {
				state := c.states[s.ID]
				err := readAll(t, c.source(state), Step{Way: WaySnapshot, After: state})
				var unsupported *UnsupportedError
				var missing *MissingFileError
				switch {
				case errors.As(err, &unsupported):
					got = append(got, unsupported.What)
					assert.NotEmpty(t, unsupported.Path)
				case errors.As(err, &missing):
					got = append(got, "gone")
					assert.Equal(t, s.ID, missing.Snapshot)
					assert.Equal(t, ManifestListKind, missing.Kind)
					require.ErrorIs(t, err, fs.ErrNotExist)
				default:
					require.NoError(t, err)
				}
			}
			assert.Equal(t, refusals, slices.Compact(got))
		})
	}
}

func readAll(t *testing.T, source Source, step Step) error {
	t.Helper()
	plan, err := PlanStep(t.Context(), source, step)
	if err != nil {
		return err
	}
	for _, err := range plan.Read(t.Context(), ReadOptions{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestRowLineageColumnsAreReadOnRequest(t *testing.T) {
	c := openCorpus(t, "dv")
	dir, err := corpus.Dir()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "expected", "dv.json"))
	require.NoError(t, err)
	var expected struct {
		Commits []struct {
			SnapshotID int64      `json:"snapshotId"`
			Lineage    [][3]int64 `json:"lineage"` // id, _row_id, _last_updated_sequence_number
		} `json:"commits"`
	}
	require.NoError(t, json.Unmarshal(text, &expected))
	checked := 0
	for _, commit := range expected.Commits {
		if commit.Lineage == nil {
			continue
		}
		checked++
		state := c.states[commit.SnapshotID]
		plan, err := PlanStep(t.Context(), c.source(state), Step{
			Way: WayTableScan, After: state, Columns: []string{"id", "_row_id", "_last_updated_sequence_number"},
		})
		require.NoError(t, err)
		var got [][3]int64
		for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
			require.NoError(t, err)
			for _, m := range batch.Messages {
				var row struct {
					ID       int64 `json:"id"`
					RowID    int64 `json:"_row_id"`
					Sequence int64 `json:"_last_updated_sequence_number"`
				}
				require.NoError(t, json.Unmarshal(m, &row))
				got = append(got, [3]int64{row.ID, row.RowID, row.Sequence})
			}
		}
		assert.ElementsMatch(t, commit.Lineage, got, "snapshot %d", commit.SnapshotID)
	}
	assert.NotZero(t, checked)
}

func TestPlanningOpensOnlyTheManifestsOfTheSnapshot(t *testing.T) {
	c := openCorpus(t, "many")
	for _, s := range c.Snapshots {
		state := c.states[s.ID]
		c.files.Opened()
		plan, err := PlanStep(t.Context(), c.source(state), Step{Way: WaySnapshot, After: state})
		require.NoError(t, err)
		assert.Equal(t, KindAppend, plan.Kind)
		assert.Equal(t, 1, plan.ManifestsOpened)
		assert.Len(t, c.files.Opened(), 2, "the manifest list and one manifest")
	}
}

// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// stories are all expected files, and every snapshot that any of them knows: a branch's file can know more of a snapshot
// than that of the branch which it was merged into.
type stories struct {
	all   []*corpus.Expected
	snaps map[int64]known
}

type known struct {
	corpus.Snapshot
	schema *corpus.Schema
}

var loadTables = sync.OnceValues(func() (*stories, error) {
	all, err := corpus.LoadAll()
	k := &stories{all: all, snaps: map[int64]known{}}
	for _, e := range all {
		for _, s := range e.Snapshots {
			if had, ok := k.snaps[s.ID]; !ok || had.Inserted == nil {
				k.snaps[s.ID] = known{s, e.SnapshotSchema(s)}
			}
		}
	}
	return k, err
})

func (k *stories) named(t *testing.T, name string) *story {
	t.Helper()
	at := slices.IndexFunc(k.all, func(e *corpus.Expected) bool { return e.Name == name })
	require.GreaterOrEqual(t, at, 0, name)
	return &story{k.all[at], k}
}

// story is what one expected file says of its table, from the first commit to the last.
type story struct {
	*corpus.Expected
	k *stories
}

// puts are the commits that leave the table there.
func (s *story) puts() []corpus.Commit {
	return slices.DeleteFunc(slices.Clone(s.Commits), func(c corpus.Commit) bool { return c.Op != string(catalog.Put) })
}

func (s *story) commitOf(t *testing.T, snapshot int64) corpus.Commit {
	t.Helper()
	for _, c := range s.puts() {
		if c.SnapshotID == snapshot {
			return c
		}
	}
	require.Fail(t, "no commit", "%s has none with snapshot %d", s.Name, snapshot)
	return corpus.Commit{}
}

// chain lists the snapshots from the root to this one, by parents that metadata or headers name. A snapshot that is in no
// metadata file is in there too; below it goes on what the table held before the commit that brought it.
func (s *story) chain(id int64) []int64 {
	var chain []int64
	for child := id; id != catalog.NoSnapshot; {
		chain = append(chain, id)
		snap, ok := s.k.snaps[id]
		switch {
		case !ok:
			id = s.before(s.firstCommit(child))
		case snap.ParentInMetadata != nil:
			child, id = id, *snap.ParentInMetadata
		case snap.ParentInHeader != nil:
			child, id = id, *snap.ParentInHeader
		default:
			id = catalog.NoSnapshot
		}
	}
	slices.Reverse(chain)
	return chain
}

// before is the snapshot that the table had before a commit.
func (s *story) before(hash string) int64 {
	held := catalog.NoSnapshot
	for _, c := range s.puts() {
		if c.Hash == hash {
			break
		}
		held = c.SnapshotID
	}
	return held
}

// firstCommit is the first on the reference's own log that holds the snapshot.
func (s *story) firstCommit(id int64) string {
	if snap, ok := s.Snapshot(id); ok {
		return snap.FirstCommit
	}
	for _, c := range s.puts() {
		if snap, ok := s.k.snaps[c.SnapshotID]; ok && snap.ParentInHeader != nil && *snap.ParentInHeader == id {
			return c.Hash // hidden, or from a merged line and the last of it
		}
		if _, ok := s.k.snaps[id]; ok && slices.Contains(s.chain(c.SnapshotID), id) {
			return c.Hash
		}
	}
	return ""
}

func (s *story) canon(t *testing.T, schema *corpus.Schema, rows []corpusRow) []string {
	t.Helper()
	if len(rows) == 0 {
		return []string{}
	}
	require.NotNil(t, schema)
	texts, err := corpus.CanonAll(schema, rows)
	require.NoError(t, err)
	return texts
}

// removes tells how a snapshot removes rows as far as its files say, "" where it does not: by delete files or by leaving
// data files out. PyIceberg's deleted entries name another snapshot, so that only the summary counts them.
func (s known) removes() string {
	added := false
	removed := s.Summary["deleted-data-files"] != ""
	for _, f := range s.Files {
		switch {
		case f.Status == "ADDED" && f.Content == "data":
			added = true
		default:
			removed = true
		}
	}
	switch {
	case !removed || s.Operation == "replace":
		return ""
	case added:
		return "overwrite"
	}
	return "delete"
}

// childOf is the snapshot whose header names the one that is in no metadata file.
func (s *story) childOf(hidden int64) int64 {
	for id, snap := range s.k.snaps {
		if snap.ParentInHeader != nil && *snap.ParentInHeader == hidden {
			return id
		}
	}
	return catalog.NoSnapshot
}

// hiddenRows splits what the commit of two snapshots in rest_multi inserted. Both took a file that the same writer had
// written for another table: the first, with the ids 5 to 9, is in the snapshot that is known, and the second, with the ids
// 10 to 14, in the one that is in no metadata file.
func hiddenRows(c corpus.Commit, hidden bool) []corpusRow {
	return slices.DeleteFunc(slices.Clone(c.Inserted), func(row corpusRow) bool {
		var r struct{ ID int64 }
		err := json.Unmarshal(row, &r)
		return err != nil || (r.ID >= 10) != hidden
	})
}

// due is what is to be delivered under one snapshot id.
type due struct {
	id, sequence int64
	schemaID     int
	commit       string
	operation    string
	from         int64 // snapshot_from, NoSnapshot where there must be none
	schema       *corpus.Schema
	rows         []string // canonical
}

// after are the snapshots of a state's chain behind another's, each with its rows; those that remove rows are left out.
func (s *story) after(t *testing.T, from, to int64) []due {
	t.Helper()
	chain := s.chain(to)
	chain = chain[slices.Index(chain, from)+1:]
	var dues []due
	for _, id := range chain {
		snap, ok := s.k.snaps[id]
		d := due{
			id: id, operation: "insert", from: catalog.NoSnapshot, commit: s.firstCommit(id),
			sequence: snap.Sequence, schema: snap.schema, schemaID: snap.SchemaID,
		}
		rows := snap.Inserted
		switch {
		case !ok:
			child := s.k.snaps[s.childOf(id)]
			d.sequence, d.schema, d.schemaID = child.Sequence-1, child.schema, child.SchemaID
			rows = hiddenRows(s.commitOf(t, child.ID), true)
		case snap.removes() != "" || snap.Operation == "replace":
			continue
		case rows == nil:
			rows = hiddenRows(s.commitOf(t, id), false)
		}
		d.rows = s.canon(t, d.schema, rows)
		dues = append(dues, d)
	}
	return dues
}

// whole is a table scan of a snapshot.
func (s *story) whole(t *testing.T, id int64, head string) due {
	t.Helper()
	snap := s.k.snaps[id]
	d := due{
		id: id, sequence: snap.Sequence, schemaID: snap.SchemaID, schema: snap.schema, commit: head, operation: "read",
		from: catalog.NoSnapshot,
	}
	for _, c := range s.puts() {
		if c.SnapshotID == id && c.Rows != nil && c.CurrentSchemaID == snap.SchemaID {
			d.rows = s.canon(t, snap.schema, c.Rows)
			return d
		}
	}
	for _, step := range s.after(t, catalog.NoSnapshot, id) {
		require.Equal(t, snap.schema, step.schema)
		d.rows = append(d.rows, step.rows...)
	}
	return d
}

// bridged is the difference of two states of one chain under the later one's id.
func (s *story) bridged(t *testing.T, from, to int64) due {
	t.Helper()
	steps := s.after(t, from, to)
	d := steps[len(steps)-1]
	d.id, d.from, d.rows = to, from, nil
	for _, step := range steps {
		d.rows = append(d.rows, step.rows...)
	}
	return d
}

// requireRows compares what came with what was due, in order: nothing is missed, nothing comes twice.
func requireRows(t *testing.T, s *story, r *rig, want []due, got []received, at ...any) {
	t.Helper()
	groups := map[int64][]received{}
	var order []int64
	for _, row := range got {
		id := row.snapshot(t)
		if len(order) == 0 || order[len(order)-1] != id {
			require.NotContains(t, order, id, "%v: snapshot %d came in two pieces", at, id)
			order = append(order, id)
		}
		groups[id] = append(groups[id], row)
	}
	var due []int64
	for _, d := range want {
		require.Empty(t, corpus.Diff(d.rows, canonical(t, d.schema, groups[d.id])), "%s %v: snapshot %d", s.Name, at, d.id)
		if len(d.rows) > 0 {
			due = append(due, d.id)
		}
		for _, row := range groups[d.id] {
			d.requireMetadata(t, row, s, r)
		}
	}
	require.Equal(t, due, order, "%s %v: snapshots in chain order", s.Name, at)
}

func canonical(t *testing.T, schema *corpus.Schema, rows []received) []string {
	t.Helper()
	bodies := make([][]byte, len(rows))
	for i, row := range rows {
		bodies[i] = row.body
	}
	texts, err := corpus.CanonAll(schema, bodies)
	require.NoError(t, err)
	return texts
}

func (d due) requireMetadata(t *testing.T, row received, s *story, r *rig) {
	t.Helper()
	want := map[string]any{
		"snapshot_id": fmt.Sprint(d.id), "namespace": strings.Join(r.key[:len(r.key)-1], "."), "table": r.key[len(r.key)-1],
		"branch": r.branch, "operation": d.operation, "schema_id": fmt.Sprint(d.schemaID), "commit_hash": d.commit,
		"snapshot_sequence": fmt.Sprint(d.sequence),
	}
	if snap, ok := s.k.snaps[d.id]; ok {
		want["table_uuid"] = snap.TableUUID
	}
	if d.from != catalog.NoSnapshot {
		want["snapshot_from"] = fmt.Sprint(d.from)
	} else {
		assert.NotContains(t, row.meta, "snapshot_from")
	}
	got := map[string]any{}
	for name := range want {
		got[name] = fmt.Sprint(row.meta[name])
	}
	require.Equal(t, want, got, "%s: metadata of %s", s.Name, row.body)
}

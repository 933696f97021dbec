// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The History of a real catalog.
var _ History = (*catalog.History)(nil)

const none = catalog.NoSnapshot

// model is a history that knows the truth and shows only part of it.
type model struct {
	states map[int64]catalog.State
	parent map[int64]int64 // the truth; none for a root
	// hidden snapshots are in no metadata file; logged ones are in another than the head's.
	hidden, logged map[int64]bool
	// silent snapshots have no parent in metadata, as Nessie's REST catalog writes them.
	silent map[int64]bool
	// unnamed snapshots have no parent in their manifest list either: the log tells what the branch held before.
	unnamed map[int64]bool
	// expired snapshots have lost their manifest list, forgotten ones their place in every metadata file too.
	expired, forgotten map[int64]bool
	// noListing withholds list permission.
	noListing bool
	commits   []catalog.TableCommit // first-parent log, newest first
	former    []catalog.TableCommit // of other tables under the name, newest first
	ancestors map[string]bool       // merge parents included

	parents, finds, reads, logs int // calls
}

func newModel() *model {
	return &model{
		states: map[int64]catalog.State{}, parent: map[int64]int64{}, hidden: map[int64]bool{}, logged: map[int64]bool{},
		silent: map[int64]bool{}, unnamed: map[int64]bool{}, expired: map[int64]bool{}, forgotten: map[int64]bool{}, ancestors: map[string]bool{},
	}
}

// add makes a snapshot; its sequence number is its id unless said otherwise.
func (m *model) add(id, parent int64) catalog.State {
	s := catalog.State{
		TableUUID: "u1", ContentID: "c1", SnapshotID: id, Sequence: id, TimestampMs: id * 1_000_000, Records: id * 10,
		ManifestList: fmt.Sprintf("snap-%d.avro", id), MetadataLocation: fmt.Sprintf("m%d.json", id), FormatVersion: 2,
	}
	m.states[id], m.parent[id] = s, parent
	return s
}

// chain makes snapshots of which each is the parent of the next, from a root.
func chain(ids ...int64) *model {
	m := newModel()
	parent := none
	for _, id := range ids {
		m.add(id, parent)
		parent = id
	}
	return m
}

func (m *model) edit(id int64, change func(*catalog.State)) *model {
	s := m.states[id]
	change(&s)
	m.states[id] = s
	return m
}

// commit puts a snapshot on the branch.
func (m *model) commit(hash string, id int64) *model {
	c := catalog.TableCommit{Hash: hash, Op: catalog.Put, Content: catalog.Content{ID: "c1", SnapshotID: id}}
	if s, ok := m.states[id]; ok {
		c.Content.ID, c.Content.MetadataLocation = s.ContentID, s.MetadataLocation
	}
	m.commits = append([]catalog.TableCommit{c}, m.commits...)
	m.ancestors[hash] = true
	return m
}

func (m *model) state(id int64) catalog.State {
	if id == none {
		return catalog.State{TableUUID: "u1", ContentID: "c1", SnapshotID: none, MetadataLocation: "m0.json"}
	}
	s, ok := m.states[id]
	if !ok {
		panic(fmt.Sprintf("no snapshot %d in the model", id))
	}
	return s
}

func (m *model) place(id int64) Place {
	return Place{State: m.state(id), Commit: fmt.Sprintf("k%d", id)}
}

// line is the true line from a snapshot to its root, newest first.
func (m *model) line(id int64) []int64 {
	var ids []int64
	for id != none {
		ids = append(ids, id)
		id = m.parent[id]
	}
	return ids
}

func (m *model) Parent(_ context.Context, s catalog.State) (catalog.Link, error) {
	m.parents++
	id := s.SnapshotID
	known := !m.hidden[id] && !m.forgotten[id]
	p, ok := m.parent[id]
	switch {
	case !ok:
		return catalog.Link{}, fmt.Errorf("asked for the parent of %d, which does not exist", id)
	case m.unnamed[id] && p != none:
		return catalog.Link{ParentID: p, Followed: true, By: FoundByLog}, nil
	case m.unnamed[id]:
		return catalog.Link{Unknown: true, Why: "nothing names one"}, nil
	case known && !m.silent[id]:
		return catalog.Link{ParentID: p, Root: p == none, By: FoundByMetadata}, nil
	case !m.expired[id]:
		return catalog.Link{ParentID: p, Root: p == none, By: FoundByHeader}, nil
	}
	return catalog.Link{Unknown: true, Why: fmt.Sprintf("snap-%d.avro does not exist", id)}, nil
}

func (m *model) Find(_ context.Context, id int64, _ catalog.State) (catalog.Found, error) {
	m.finds++
	s, ok := m.states[id]
	switch {
	case !ok || m.forgotten[id]:
		return catalog.Found{Why: "in no metadata file"}, nil
	case m.hidden[id] && m.noListing:
		return catalog.Found{Why: "listing was refused"}, nil
	case m.hidden[id] && m.expired[id]:
		return catalog.Found{Why: "no manifest list has its name"}, nil
	case m.hidden[id]:
		return catalog.Found{State: s, OK: true, By: FoundByListing}, nil
	case m.logged[id]:
		return catalog.Found{State: s, OK: true, By: FoundByLog}, nil
	}
	return catalog.Found{State: s, OK: true, By: FoundByMetadata}, nil
}

func (m *model) Readable(_ context.Context, s catalog.State) (bool, error) {
	m.reads++
	return !m.expired[s.SnapshotID], nil
}

func (m *model) Commits(_ context.Context, stop func(catalog.TableCommit) bool) ([]catalog.TableCommit, error) {
	m.logs++
	for i, c := range m.commits {
		if stop(c) {
			return m.commits[:i+1], nil
		}
	}
	return m.commits, nil
}

func (m *model) Former(_ context.Context, snapshot int64) (catalog.TableCommit, bool, error) {
	i := slices.IndexFunc(m.former, func(c catalog.TableCommit) bool { return puts(c, snapshot) })
	if i < 0 {
		return catalog.TableCommit{}, false, nil
	}
	return m.former[i], true, nil
}

func (m *model) IsAncestor(_ context.Context, commit string) (bool, error) {
	return m.ancestors[commit], nil
}

// show writes steps as "kind before>after" for comparison.
func show(steps []Step) []string {
	var out []string
	for _, s := range steps {
		before := "-"
		if s.Before != nil {
			before = fmt.Sprint(s.Before.SnapshotID)
		}
		out = append(out, fmt.Sprintf("%s %s>%d", s.Kind, before, s.After.SnapshotID))
	}
	return out
}

func foundBys(steps []Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.FoundBy)
	}
	return out
}

func ids(steps []Step) []int64 {
	out := make([]int64, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.After.SnapshotID)
	}
	return out
}

func reversed(s []int64) []int64 {
	out := append(make([]int64, 0, len(s)), s...)
	slices.Reverse(out)
	return out
}

// golden compares a text with its file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got+"\n")
}

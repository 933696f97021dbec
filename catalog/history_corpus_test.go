// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// corpusLog is the commit log of the corpus' Nessie, put together from what is expected of each table. Commits that touch
// no table (namespaces) are not in there: a line that leads to one goes on with what was on main before.
type corpusLog struct {
	commits map[string]Commit
	main    []Commit // oldest first
	queries int
}

func newCorpusLog(t *testing.T) (*corpusLog, []*corpus.Expected) {
	t.Helper()
	all, err := corpus.LoadAll()
	require.NoError(t, err)
	log := &corpusLog{commits: map[string]Commit{}}
	onMain := map[string]bool{}
	for _, e := range all {
		for _, c := range e.Commits {
			commit := log.commits[c.Hash]
			commit.Hash, commit.Time, commit.Parents = c.Hash, c.Time, c.ParentHashes
			op := Operation{Type: OperationType(c.Op), Key: c.Key}
			if op.Type == Put {
				op.Content = Content{Type: ContentTypeIceberg, ID: c.ContentID, MetadataLocation: c.MetadataLocation, SnapshotID: c.SnapshotID}
			}
			if !slices.ContainsFunc(commit.Operations, func(o Operation) bool { return o.Key.Equal(op.Key) }) {
				commit.Operations = append(commit.Operations, op)
			}
			log.commits[c.Hash] = commit
			onMain[c.Hash] = onMain[c.Hash] || e.Ref == "main"
		}
	}
	for hash := range onMain {
		if onMain[hash] {
			log.main = append(log.main, log.commits[hash])
		}
	}
	slices.SortFunc(log.main, func(a, b Commit) int { return a.Time.Compare(b.Time) })
	return log, all
}

func (l *corpusLog) Log(_ context.Context, q LogQuery) iter.Seq2[Commit, error] {
	l.queries++
	return func(yield func(Commit, error) bool) {
		c, ok := l.commits[q.From.Hash]
		if !ok {
			c, ok = l.before(q.From.Hash)
		}
		if !ok {
			yield(Commit{}, fmt.Errorf("commit %s: %w", q.From.Hash, ErrUnknownReference))
			return
		}
		for ok {
			if c.changes(q.Keys) && !yield(c, nil) {
				return
			}
			parent := firstParent(c)
			if c, ok = l.commits[parent]; !ok {
				c, ok = l.before(parent)
			}
		}
	}
}

// before is the commit on main before the unknown one.
func (l *corpusLog) before(unknown string) (Commit, bool) {
	at := slices.IndexFunc(l.main, func(c Commit) bool { return firstParent(c) == unknown })
	if at < 0 {
		return Commit{}, false
	}
	child := l.main[at]
	for at--; at >= 0; at-- {
		if l.main[at].Time.Before(child.Time) {
			return l.main[at], true
		}
	}
	return Commit{}, false
}

// corpusHistory is the history of a table at its last commit in the corpus.
func corpusHistory(t *testing.T, log Log, e *corpus.Expected, files *corpus.Files) (*History, State) {
	t.Helper()
	head := e.Head()
	require.Equal(t, string(Put), head.Op)
	table, err := LoadTable(t.Context(), files, head.MetadataLocation, head.ContentID)
	require.NoError(t, err)
	state, ok := table.State(head.SnapshotID)
	require.True(t, ok)
	h := NewHistory(HistoryConfig{
		Log: log, FS: files, Key: e.Key(), Table: table,
		Head: Head{
			Reference: Reference{Type: Branch, Name: e.Ref, Hash: head.Hash},
			Content:   Content{ID: head.ContentID, MetadataLocation: head.MetadataLocation, SnapshotID: head.SnapshotID},
		},
	})
	return h, state
}

type walked struct {
	chain   []int64 // from the head
	hidden  []int64
	foundBy map[string]int
	root    bool
	why     string
}

// walk goes from a state to its parents for as long as they are found.
func walk(t *testing.T, h *History, s State) walked {
	t.Helper()
	w := walked{chain: []int64{}, foundBy: map[string]int{}}
	if s.Empty() {
		w.root = true
		return w
	}
	w.chain = append(w.chain, s.SnapshotID)
	for {
		link, err := h.Parent(t.Context(), s)
		require.NoError(t, err)
		if link.Root || link.Unknown {
			w.root, w.why = link.Root, link.Why
			return w
		}
		found, err := h.Find(t.Context(), link.ParentID, s)
		require.NoError(t, err)
		if !found.OK {
			w.why = found.Why
			return w
		}
		require.Equal(t, link.ParentID, found.State.SnapshotID)
		w.foundBy[found.By]++
		if s = found.State; found.By == "listing" {
			w.hidden = append(w.hidden, s.SnapshotID)
		}
		w.chain = append(w.chain, s.SnapshotID)
	}
}

// endsOpen are the tables whose chain has no provable beginning: what older metadata files list has lost its lists.
var endsOpen = []string{"expired", "expired_cow"}

func TestCorpusChainsAreFoundFromTheHead(t *testing.T) {
	log, all := newCorpusLog(t)
	hidden := map[string]int{}
	for _, e := range all {
		if e.Head().Op != string(Put) {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			files, err := corpus.NewFiles()
			require.NoError(t, err)
			h, head := corpusHistory(t, log, e, files)
			w := walk(t, h, head)
			t.Logf("%d snapshots, root %v, by %v, hidden %d, %s", len(w.chain), w.root, w.foundBy, len(w.hidden), w.why)

			want := append([]int64{}, e.HeadChain...)
			slices.Reverse(want)
			assert.Len(t, slices.Compact(slices.Sorted(slices.Values(w.chain))), len(w.chain), "no snapshot twice")
			require.GreaterOrEqual(t, len(w.chain), len(want))
			assert.Equal(t, want, w.chain[:len(want)], "the corpus' chain ends with the first that is in no metadata file of its line")
			for _, id := range w.hidden {
				_, known := e.Snapshot(id)
				assert.False(t, known, "what a metadata file lists is found there")
			}
			if len(w.hidden) > 0 {
				hidden[e.Name] = len(w.hidden)
			}
			assert.Equal(t, !slices.Contains(endsOpen, e.Name), w.root, w.why)
		})
	}
	assert.Equal(t, map[string]int{"rest_multi": 1, "pyice": 1}, hidden)
}

func TestCorpusStatesSayWhatTheSnapshotsAre(t *testing.T) {
	log, all := newCorpusLog(t)
	for _, e := range all {
		if e.Head().Op != string(Put) {
			continue
		}
		files, err := corpus.NewFiles()
		require.NoError(t, err)
		h, s := corpusHistory(t, log, e, files)
		for !s.Empty() {
			want, known := e.Snapshot(s.SnapshotID)
			link, err := h.Parent(t.Context(), s)
			require.NoError(t, err, e.Name)
			if known {
				assert.Equal(t, want.Sequence, s.Sequence, e.Name)
				assert.Equal(t, want.Operation, s.Operation, e.Name)
				assert.Equal(t, want.TableUUID, s.TableUUID, e.Name)
				assert.Equal(t, want.SchemaID, s.SchemaID, e.Name)
				assert.Equal(t, want.Summary["total-records"], cmp.Or(fmt.Sprint(s.Records), "-1"), e.Name)
				parent := cmp.Or(want.ParentInMetadata, want.ParentInHeader)
				assert.Equal(t, parent == nil, link.Root || link.Unknown, e.Name)
				if parent != nil {
					assert.Equal(t, *parent, link.ParentID, e.Name)
				}
			}
			found, err := h.Find(t.Context(), link.ParentID, s)
			require.NoError(t, err, e.Name)
			if link.Root || !found.OK {
				break
			}
			s = found.State
		}
	}
}

func TestCorpusCommitsAreThoseOfTheTable(t *testing.T) {
	log, all := newCorpusLog(t)
	for _, e := range all {
		if e.Head().Op != string(Put) {
			continue
		}
		files, err := corpus.NewFiles()
		require.NoError(t, err)
		h, _ := corpusHistory(t, log, e, files)
		commits, err := h.Commits(t.Context(), func(TableCommit) bool { return false })
		require.NoError(t, err, e.Name)
		var got, want []string
		for _, c := range commits {
			got = append(got, c.Hash)
		}
		for _, c := range e.Commits {
			if c.NewTable && c.ContentID == e.Head().ContentID {
				want = nil
			}
			if c.Op == string(Put) {
				want = append(want, c.Hash)
			}
		}
		slices.Reverse(want)
		assert.Equal(t, want, got, e.Name)
		if len(want) < 2 {
			continue
		}
		some, err := h.Commits(t.Context(), func(c TableCommit) bool { return c.Hash == want[1] })
		require.NoError(t, err, e.Name)
		assert.Len(t, some, 2, e.Name)
	}
}

func TestCorpusHistoryStaysWithinWhatItNeeds(t *testing.T) {
	log, all := newCorpusLog(t)
	for _, e := range all {
		if e.Name != "many" && e.Name != "mixed" && e.Name != "rest_only" {
			continue
		}
		files, err := corpus.NewFiles()
		require.NoError(t, err)
		h, head := corpusHistory(t, log, e, files)
		files.Opened()
		log.queries = 0
		walk(t, h, head)
		opened := files.Opened()
		slices.Sort(opened)
		assert.Len(t, slices.Compact(slices.Clone(opened)), len(opened), "%s: no file is read twice", e.Name)
		if e.Name == "many" {
			assert.Zero(t, log.queries, "a native table's metadata says all")
			assert.Len(t, opened, 1, "the root's header")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var fixedTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeLog is a commit graph. yielded counts the commits that were handed out, queries how often the log was asked.
type fakeLog struct {
	commits map[string]Commit
	yielded int
	queries int
}

func newFakeLog() *fakeLog { return &fakeLog{commits: map[string]Commit{}} }

// add makes a commit after its parents, a minute later than the newest of them.
func (l *fakeLog) add(hash string, parents []string, ops ...Operation) string {
	at := fixedTime
	for _, p := range parents {
		if c := l.commits[p]; !c.Time.Before(at) {
			at = c.Time.Add(time.Minute)
		}
	}
	l.commits[hash] = Commit{Hash: hash, Time: at, Parents: parents, Operations: ops}
	return hash
}

func (l *fakeLog) Log(_ context.Context, q LogQuery) iter.Seq2[Commit, error] {
	l.queries++
	return func(yield func(Commit, error) bool) {
		c, ok := l.commits[q.From.Hash]
		if !ok {
			yield(Commit{}, fmt.Errorf("commit %s: %w", q.From.Hash, ErrUnknownReference))
			return
		}
		for ok {
			if c.changes(q.Keys) {
				l.yielded++
				if !yield(c, nil) {
					return
				}
			}
			c, ok = l.commits[firstParent(c)]
		}
	}
}

func put(key string, id string, snapshot int64, location string) Operation {
	return Operation{Type: Put, Key: Key{"ns", key}, Content: Content{Type: ContentTypeIceberg, ID: id, SnapshotID: snapshot, MetadataLocation: location}}
}

func drop(key string) Operation { return Operation{Type: Delete, Key: Key{"ns", key}} }

// restFiles are the files that a table leaves which is written through the REST catalog: n snapshots, 1 to n, one commit
// each, a metadata file that lists only it, and a manifest list whose header names the one before. They are made when
// they are read, and counted.
type restFiles struct {
	mu     sync.Mutex
	opened map[string]int
}

func restMetadata(n int64) string { return fmt.Sprintf("rest://t/metadata/%d.metadata.json", n) }

func restList(n int64) string { return fmt.Sprintf("rest://t/metadata/snap-%d-1-x.avro", n) }

func (r *restFiles) Open(location string) (iceio.File, error) {
	r.mu.Lock()
	r.opened[location]++
	r.mu.Unlock()
	var n int64
	content := ""
	if _, err := fmt.Sscanf(location, "rest://t/metadata/snap-%d-1-x.avro", &n); err == nil {
		parent := "null"
		if n > 1 {
			parent = fmt.Sprint(n - 1)
		}
		content = string(avroFile("snapshot-id", fmt.Sprint(n), "parent-snapshot-id", parent, "sequence-number", fmt.Sprint(n)))
	} else if _, err := fmt.Sscanf(location, "rest://t/metadata/%d.metadata.json", &n); err == nil {
		content = metadataJSON(n, restSnapshot(n))
	}
	m := iceio.NewMemFS()
	if err := m.WriteFile(location, []byte(content)); err != nil {
		return nil, err
	}
	return m.Open(location)
}

func (r *restFiles) Remove(string) error { return errors.ErrUnsupported }

func restSnapshot(n int64) string {
	return fmt.Sprintf(`{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s","summary":{"operation":"append"},"schema-id":0}`,
		n, n, 1700000000000+n, restList(n))
}

// restHistory is the history of such a table at its n-th snapshot.
func restHistory(t *testing.T, n int64, until *int64) (*History, State, *fakeLog, *restFiles) {
	t.Helper()
	log := newFakeLog()
	var parents []string
	for i := range n {
		hash := fmt.Sprint("c", i+1)
		log.add(hash, parents, put("t", "id", i+1, restMetadata(i+1)))
		parents = []string{hash}
	}
	files := &restFiles{opened: map[string]int{}}
	table, err := LoadTable(t.Context(), files, restMetadata(n), "id")
	require.NoError(t, err)
	h := NewHistory(HistoryConfig{
		Log: log, FS: files, Key: Key{"ns", "t"}, Table: table, Until: until,
		Head: Head{Reference: Reference{Type: Branch, Name: "main", Hash: fmt.Sprint("c", n)}, Content: Content{ID: "id", SnapshotID: n}},
	})
	return h, table.Current(), log, files
}

func TestALongBacklogIsReadOnceEach(t *testing.T) {
	h, head, log, files := restHistory(t, 3000, nil)
	w := walk(t, h, head)
	require.Len(t, w.chain, 3000)
	assert.True(t, w.root)
	assert.Equal(t, map[string]int{"log": 2999}, w.foundBy)
	assert.Equal(t, 3000, log.yielded, "each commit is fetched once")
	assert.Len(t, files.opened, 6000)
	for location, n := range files.opened {
		require.Equal(t, 1, n, location)
	}
	assert.LessOrEqual(t, len(h.tables.tables), keptTables, "documents are not kept")
}

func TestABacklogIsReadNoFartherThanTheKnownSnapshot(t *testing.T) {
	h, s, log, files := restHistory(t, 1000, new(int64(995)))
	for s.SnapshotID > 996 {
		link, err := h.Parent(t.Context(), s)
		require.NoError(t, err)
		found, err := h.Find(t.Context(), link.ParentID, s)
		require.NoError(t, err)
		require.True(t, found.OK)
		s = found.State
	}
	link, err := h.Parent(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, int64(995), link.ParentID)
	assert.Equal(t, 6, log.yielded)
	assert.Equal(t, 1, log.queries)
	for n := int64(1); n <= 995; n++ {
		require.Zero(t, files.opened[restMetadata(n)], "snapshot %d is known or older", n)
	}
	assert.Len(t, files.opened, 10, "five metadata files and five headers")
}

func TestASnapshotBeforeTheKnownOneIsFoundToo(t *testing.T) {
	h, head, _, _ := restHistory(t, 50, new(int64(45)))
	found, err := h.Find(t.Context(), 20, head)
	require.NoError(t, err)
	require.True(t, found.OK)
	assert.Equal(t, int64(20), found.State.SnapshotID)
	found, err = h.Find(t.Context(), 4711, head)
	require.NoError(t, err)
	assert.False(t, found.OK)
	assert.Contains(t, found.Why, "no commit in the log")
	assert.Contains(t, found.Why, "can't be listed")
}

// historyAt is the history of table ns.t, content "id", at a commit of log, its metadata being what the commit put.
func historyAt(t *testing.T, log *fakeLog, fsys iceio.IO, key, hash string) (*History, State) {
	t.Helper()
	op, ok := operationOn(log.commits[hash], Key{"ns", key})
	require.True(t, ok)
	table, err := LoadTable(t.Context(), fsys, op.Content.MetadataLocation, op.Content.ID)
	require.NoError(t, err)
	h := NewHistory(HistoryConfig{
		Log: log, FS: fsys, Key: Key{"ns", key}, Table: table,
		Head: Head{Reference: Reference{Type: Branch, Name: "main", Hash: hash}, Content: op.Content},
	})
	s, ok := table.State(op.Content.SnapshotID)
	require.True(t, ok)
	return h, s
}

func hashes(t *testing.T, h *History) []string {
	t.Helper()
	commits, err := h.Commits(t.Context(), func(TableCommit) bool { return false })
	require.NoError(t, err)
	var all []string
	for _, c := range commits {
		all = append(all, c.Hash)
	}
	return all
}

func TestCommitsFollowRenamesAndStopAtOtherTables(t *testing.T) {
	fsys := &restFiles{opened: map[string]int{}}
	log := newFakeLog()
	log.add("other", nil, put("t", "other", 9, restMetadata(9)))
	log.add("dropped", []string{"other"}, drop("t"))
	log.add("created", []string{"dropped"}, put("t", "id", 1, restMetadata(1)))
	log.add("renamed", []string{"created"}, drop("t"), put("u", "id", 1, restMetadata(1)))
	log.add("bystander", []string{"renamed"}, put("t", "third", 7, restMetadata(7)))
	log.add("unrelated", []string{"bystander"}, drop("t"), put("u", "id", 2, restMetadata(2)))
	log.add("lost", []string{"unrelated"}, drop("u"))
	log.add("restored", []string{"lost"}, put("u", "id", 2, restMetadata(2)))
	log.add("back", []string{"restored"}, drop("u"), put("t", "id", 3, restMetadata(3)))

	h, head := historyAt(t, log, fsys, "t", "back")
	assert.Equal(t, []string{"back", "restored", "lost", "unrelated", "renamed", "created"}, hashes(t, h))
	w := walk(t, h, head)
	assert.Equal(t, []int64{3, 2, 1}, w.chain)
	found, err := h.Find(t.Context(), 9, head)
	require.NoError(t, err)
	assert.False(t, found.OK, "it is of the table that was dropped")

	some, err := h.Commits(t.Context(), func(c TableCommit) bool { return c.Hash == "lost" })
	require.NoError(t, err)
	require.Len(t, some, 3)
	assert.Equal(t, Delete, some[2].Op)
	assert.Equal(t, "ns.u", some[2].Key.String())
}

func TestMergedLinesAreSearchedEachCommitOnce(t *testing.T) {
	fsys := &restFiles{opened: map[string]int{}}
	log := newFakeLog()
	log.add("c1", nil, put("t", "id", 1, restMetadata(1)))
	log.add("b2", []string{"c1"}, put("t", "id", 2, restMetadata(2)))
	log.add("n3", []string{"b2"}, put("t", "id", 3, restMetadata(3)))
	log.add("b3", []string{"b2", "n3"}, put("t", "id", 3, restMetadata(3)))
	log.add("m4", []string{"c1", "b3"}, put("t", "id", 3, restMetadata(3)))
	log.add("c5", []string{"m4"}, put("t", "id", 4, restMetadata(4)))
	h, head := historyAt(t, log, fsys, "t", "c5")
	assert.Equal(t, []string{"c5", "m4", "c1"}, hashes(t, h), "first parents only")
	w := walk(t, h, head)
	assert.Equal(t, []int64{4, 3, 2, 1}, w.chain)
	assert.True(t, w.root)
	assert.Equal(t, map[string]int{"log": 3}, w.foundBy)

	known := HistoryConfig{Log: log, FS: fsys, Key: Key{"ns", "t"}, Head: h.cfg.Head, Table: h.cfg.Table, Until: new(int64(1))}
	found, err := NewHistory(known).Find(t.Context(), 2, head)
	require.NoError(t, err)
	assert.Equal(t, "log", found.By)
}

func TestTheCommitThatBroughtASnapshotIsBelieved(t *testing.T) {
	later := strings.Replace(restSnapshot(2), `"schema-id":0`, `"schema-id":1`, 1)
	fsys := mem(t, map[string]string{
		"mem://1": metadataJSON(1, restSnapshot(1)), "mem://2": metadataJSON(2, restSnapshot(2)), "mem://2b": metadataJSON(2, later),
		"mem://3": metadataJSON(3, restSnapshot(3)),
	})
	log := newFakeLog()
	log.add("c1", nil, put("t", "id", 1, "mem://1"))
	log.add("c2", []string{"c1"}, put("t", "id", 2, "mem://2"))
	log.add("c2b", []string{"c2"}, put("t", "id", 2, "mem://2b"))
	log.add("c3", []string{"c2b"}, put("t", "id", 3, "mem://3"))

	h, head := historyAt(t, log, fsys, "t", "c3")
	found, err := h.Find(t.Context(), 2, head)
	require.NoError(t, err)
	assert.Zero(t, found.State.SchemaID)
	assert.Equal(t, "mem://2", found.State.MetadataLocation)

	h, head = historyAt(t, log, fsys, "t", "c2b")
	require.Equal(t, 1, head.SchemaID)
	original, err := h.Original(t.Context(), head)
	require.NoError(t, err)
	assert.Zero(t, original.SchemaID)
	require.NoError(t, fsys.Remove("mem://2"))
	h, head = historyAt(t, log, fsys, "t", "c2b")
	original, err = h.Original(t.Context(), head)
	require.NoError(t, err)
	assert.Equal(t, head, original, "the file is gone")
}

func TestTheCommitsThatBroughtSnapshotsAreBelievedWhereFilesAreReadAhead(t *testing.T) {
	const snapshots = 12
	log := newFakeLog()
	files := map[string]string{}
	var before []string
	for n := range int64(snapshots) {
		n++
		brought, later := fmt.Sprintf("mem://%d", n), fmt.Sprintf("mem://%db", n)
		files[brought] = metadataJSON(n, restSnapshot(n))
		files[later] = metadataJSON(n, strings.Replace(restSnapshot(n), `"schema-id":0`, `"schema-id":1`, 1))
		log.add(brought, before, put("t", "id", n, brought))
		log.add(later, []string{brought}, put("t", "id", n, later))
		before = []string{later}
	}
	h, head := historyAt(t, log, mem(t, files), "t", before[0])
	for n := int64(snapshots - 1); n > 0; n-- {
		found, err := h.Find(t.Context(), n, head)
		require.NoError(t, err)
		require.True(t, found.OK)
		assert.Zero(t, found.State.SchemaID, n)
		assert.Equal(t, fmt.Sprintf("mem://%d", n), found.State.MetadataLocation)
		head = found.State
	}
}

func TestMetadataFilesThatAreGoneAreGoneAround(t *testing.T) {
	log := newFakeLog()
	log.add("c1", nil, put("t", "id", 1, "mem://1"))
	log.add("c1b", []string{"c1"}, put("t", "id", 1, "mem://1b"))
	log.add("c2", []string{"c1b"}, put("t", "id", 2, "mem://2"))
	files := map[string]string{"mem://2": metadataJSON(2, restSnapshot(2)), "mem://1b": metadataJSON(1, restSnapshot(1))}
	h, head := historyAt(t, log, mem(t, files), "t", "c2")
	found, err := h.Find(t.Context(), 1, head)
	require.NoError(t, err)
	assert.Equal(t, "mem://1b", found.State.MetadataLocation)

	delete(files, "mem://1b")
	h, head = historyAt(t, log, mem(t, files), "t", "c2")
	found, err = h.Find(t.Context(), 1, head)
	require.NoError(t, err)
	assert.False(t, found.OK)
	assert.Contains(t, found.Why, "metadata files of the commits that have it as their snapshot are gone")

	files["mem://1b"] = "{"
	h, head = historyAt(t, log, mem(t, files), "t", "c2")
	_, err = h.Find(t.Context(), 1, head)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
}

func TestSourcesThatDisagreeStopTheSearch(t *testing.T) {
	withParent := func(n, parent int64) string {
		return strings.Replace(restSnapshot(n), `"sequence-number"`, fmt.Sprintf(`"parent-snapshot-id":%d,"sequence-number"`, parent), 1)
	}
	log := newFakeLog()
	log.add("c1", nil, put("t", "id", 1, "mem://1"))
	log.add("c3", []string{"c1"}, put("t", "id", 3, "mem://3"))
	fsys := mem(t, map[string]string{
		"mem://1": metadataJSON(1, restSnapshot(1), withParent(3, 2)), "mem://3": metadataJSON(3, withParent(3, 1)),
		restList(3): string(avroFile("snapshot-id", "33", "parent-snapshot-id", "1")),
	})
	h, head := historyAt(t, log, fsys, "t", "c3")
	_, err := h.Find(t.Context(), 1, head)
	var disagree *DisagreementError
	require.ErrorAs(t, err, &disagree)
	assert.Equal(t, int64(3), disagree.SnapshotID)
	require.ErrorContains(t, err, "mem://1")
	require.ErrorContains(t, err, "mem://3")

	h, head = historyAt(t, log, fsys, "t", "c3")
	head.ParentID = nil
	_, err = h.Parent(t.Context(), head)
	require.ErrorAs(t, err, &disagree)
	assert.Equal(t, "snapshot id", disagree.What)

	require.NoError(t, fsys.WriteFile(restList(3), avroFile("snapshot-id", "3", "parent-snapshot-id", "2")))
	h, head = historyAt(t, log, fsys, "t", "c3")
	_, err = h.Readable(t.Context(), head)
	require.NoError(t, err)
	_, err = h.Parent(t.Context(), head)
	require.ErrorAs(t, err, &disagree)
	assert.Equal(t, "parent", disagree.What)
}

func TestParentIsAProofOrUnknown(t *testing.T) {
	log := newFakeLog()
	log.add("c3", nil, put("t", "id", 3, "mem://3"))
	fsys := mem(t, map[string]string{"mem://3": metadataJSON(3, restSnapshot(3)), "mem://dir/silent.avro": string(avroFile("snapshot-id", "3")), "mem://m1": "x"})
	parent := func(change func(*State)) Link {
		h, s := historyAt(t, log, fsys, "t", "c3")
		change(&s)
		link, err := h.Parent(t.Context(), s)
		require.NoError(t, err)
		return link
	}
	assert.Equal(t, Link{Root: true, By: "metadata"}, parent(func(s *State) { s.SnapshotID = NoSnapshot }))
	assert.Equal(t, Link{ParentID: 2, By: "metadata"}, parent(func(s *State) { s.ParentID = new(int64(2)) }))
	for want, change := range map[string]func(*State){
		"is gone":                       func(*State) {},
		"no manifest list that could":   func(s *State) { s.ManifestList = "" },
		"or says that there is none":    func(s *State) { s.ManifestList = "mem://dir/silent.avro" },
		"manifest list mem://none/l is": func(s *State) { s.ManifestList = "mem://none/l" },
	} {
		link := parent(change)
		assert.True(t, link.Unknown, want)
		assert.Contains(t, link.Why, want)
	}
}

func TestReadableLooksForTheFiles(t *testing.T) {
	log := newFakeLog()
	log.add("c3", nil, put("t", "id", 3, "mem://3"))
	fsys := mem(t, map[string]string{"mem://3": metadataJSON(3, restSnapshot(3)), restList(4): string(avroFile("snapshot-id", "4")), "mem://m1": "x"})
	h, s := historyAt(t, log, fsys, "t", "c3")
	h.cfg.Gone = map[int64]string{5: "mem://d.parquet"}
	for _, test := range []struct {
		state State
		want  bool
	}{
		{State{SnapshotID: NoSnapshot}, true},
		{s, false},
		{State{SnapshotID: 4, ManifestList: restList(4)}, true},
		{State{SnapshotID: 5, ManifestList: restList(4)}, false},
		{State{SnapshotID: 6, Manifests: []string{"mem://m1"}}, true},
		{State{SnapshotID: 6, Manifests: []string{"mem://m1", "mem://m2"}}, false},
	} {
		got, err := h.Readable(t.Context(), test.state)
		require.NoError(t, err)
		assert.Equal(t, test.want, got, test.state)
	}
}

// brokenLog fails after some commits, once.
type brokenLog struct {
	*fakeLog
	after int
}

func (l *brokenLog) Log(ctx context.Context, q LogQuery) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		for c, err := range l.fakeLog.Log(ctx, q) {
			if l.after--; l.after == 0 {
				yield(Commit{}, ErrUnavailable)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func TestASearchGoesOnWhereTheLogFailed(t *testing.T) {
	h, head, log, _ := restHistory(t, 40, nil)
	broken := &brokenLog{fakeLog: log, after: 20}
	h.log.log = broken
	_, err := h.Find(t.Context(), 1, head)
	require.ErrorIs(t, err, ErrUnavailable)
	found, err := h.Find(t.Context(), 1, head)
	require.NoError(t, err)
	assert.True(t, found.OK)
	assert.LessOrEqual(t, log.yielded, 41)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

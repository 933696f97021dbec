// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

const (
	// backlogLength is the number of snapshots of the tables below, 1 to backlogLength, each with its own commit.
	backlogLength = 10_000
	// backlogHeap bounds what resolving the backlog keeps alive at any moment: two kilobytes a snapshot, and room. As documents
	// the metadata files would take ten times as much.
	backlogHeap = 32 << 20
	// storeLatency is what the store takes for each file, so that reading in parallel shows.
	storeLatency = time.Millisecond
	// atOnce is how many metadata files a History reads in parallel.
	atOnce = 8
)

// backlog is a table in an in-memory Nessie, with files that are made when they are read, and counted.
type backlog struct {
	*tables.Place
	t     *testing.T
	key   catalog.Key
	whole bool // each metadata file lists every snapshot with its parent, as native writers leave them

	mu       sync.Mutex
	opened   map[string]int
	now      int // metadata files that are open
	most     int // the most that ever were
	heap     uint64
	heapMost uint64 // the most that was alive at any look
}

// newBacklog commits one snapshot after another.
func newBacklog(t *testing.T, whole bool) *backlog {
	t.Helper()
	b := &backlog{Place: tables.Open(t, nessietest.Options{}, nessietest.WriterConfig{}), t: t, key: catalog.Key{"orders"}, whole: whole, opened: map[string]int{}}
	main, err := b.Client.Reference(t.Context(), "main")
	require.NoError(t, err)
	id := ""
	for n := int64(1); n <= backlogLength; n++ {
		content := catalog.Content{Type: catalog.ContentTypeIceberg, ID: id, SnapshotID: n, MetadataLocation: metadataFile(n)}
		main, err = b.Client.Commit(t.Context(), main, "append", []catalog.Operation{{Type: catalog.Put, Key: b.key, Content: content}})
		require.NoError(t, err)
		if id == "" {
			head, err := b.Client.Head(t.Context(), main.Ref(), b.key)
			require.NoError(t, err)
			id = head.Content.ID
		}
	}
	return b
}

func metadataFile(n int64) string { return fmt.Sprintf("mem://orders/metadata/%d.metadata.json", n) }

func listFile(n int64) string { return fmt.Sprintf("mem://orders/metadata/snap-%d-1-x.avro", n) }

// resolve looks at the head and resolves what lies between it and a snapshot, with the number of requests that this took.
func (b *backlog) resolve(from int64) (lineage.Resolution, map[string]int) {
	b.t.Helper()
	ctx := b.t.Context()
	b.Server.Requests()
	b.mu.Lock()
	b.opened, b.most, b.heapMost = map[string]int{}, 0, 0
	b.heap = liveHeap()
	b.mu.Unlock()
	head, err := b.Client.Head(ctx, catalog.Ref{Name: "main"}, b.key)
	require.NoError(b.t, err)
	table, err := catalog.LoadTable(ctx, b, head.Content.MetadataLocation, head.Content.ID)
	require.NoError(b.t, err)
	state, ok := table.State(head.Content.SnapshotID)
	require.True(b.t, ok)
	history := catalog.NewHistory(catalog.HistoryConfig{
		Log: b.Client, FS: b, Key: b.key, Head: head, Table: table, Until: &from, Parallelism: atOnce,
	})
	place := lineage.Place{State: catalog.State{
		SnapshotID: from, Sequence: from, ContentID: head.Content.ID, TableUUID: state.TableUUID, Records: -1, ManifestList: listFile(from),
	}}
	res, err := lineage.Resolve(ctx, place, state, history, lineage.Policy{})
	require.NoError(b.t, err)
	b.look()
	calls := map[string]int{}
	for _, r := range b.Server.Requests() {
		calls[r.Call]++
	}
	return res, calls
}

// requireSteps asserts that each snapshot behind one is a step of its own.
func (b *backlog) requireSteps(res lineage.Resolution, from int64) {
	b.t.Helper()
	require.Equal(b.t, lineage.Continuous, res.Verdict)
	require.Len(b.t, res.Steps, int(backlogLength-from))
	for i, s := range res.Steps {
		require.Equal(b.t, lineage.Snapshot, s.Kind)
		require.Equal(b.t, from+int64(i)+1, s.After.SnapshotID)
		require.Equal(b.t, listFile(s.After.SnapshotID), s.After.ManifestList)
	}
}

// requireOpened asserts that the files from one snapshot to another were opened once each, and no other of the kind.
func (b *backlog) requireOpened(file func(int64) string, from, to int64) {
	b.t.Helper()
	want := map[string]int{}
	for n := from; n <= to; n++ {
		want[file(n)] = 1
	}
	kind := file(0)[strings.LastIndexByte(file(0), '.'):]
	got := maps.Clone(b.opened)
	maps.DeleteFunc(got, func(location string, _ int) bool { return !strings.HasSuffix(location, kind) })
	require.Equal(b.t, want, got)
}

// Of a backlog of 10,000 commits that forget their parents each metadata file and each manifest list is asked for once,
// many at once but not too many, and none that lies before the checkpoint; what is kept of them is small.
func TestABacklogOfTenThousandRESTCommits(t *testing.T) {
	b := newBacklog(t, false)
	res, calls := b.resolve(1)
	b.requireSteps(res, 1)
	b.requireOpened(metadataFile, 2, backlogLength)
	b.requireOpened(listFile, 2, backlogLength)
	pages := 4 + (backlogLength-16-32-64-128+249)/250 // of 16, 32, 64, 128, and then 250 commits
	assert.Equal(t, map[string]int{"content": 1, "history": pages}, calls)
	assert.Equal(t, atOnce, b.most, "metadata files at once")
	assert.Less(t, b.heapMost-b.heap, uint64(backlogHeap), "bytes alive")
	t.Logf("%d kB alive at most, %d requests", (b.heapMost-b.heap)>>10, pages+1)

	res, calls = b.resolve(backlogLength - 10)
	b.requireSteps(res, backlogLength-10)
	b.requireOpened(metadataFile, backlogLength-9, backlogLength)
	b.requireOpened(listFile, backlogLength-9, backlogLength)
	assert.Equal(t, map[string]int{"content": 1, "history": 1}, calls, "a restart ten commits before the head")

	res, calls = b.resolve(backlogLength)
	assert.Equal(t, lineage.Unchanged, res.Verdict)
	b.requireOpened(metadataFile, backlogLength, backlogLength)
	b.requireOpened(listFile, 0, -1)
	assert.Equal(t, map[string]int{"content": 1}, calls, "a restart at the head")
}

// The metadata of a native table names every snapshot and its parent: nothing else is read.
func TestABacklogOfTenThousandNativeCommits(t *testing.T) {
	b := newBacklog(t, true)
	for _, from := range []int64{1, backlogLength - 10} {
		res, calls := b.resolve(from)
		b.requireSteps(res, from)
		b.requireOpened(metadataFile, backlogLength, backlogLength)
		b.requireOpened(listFile, 0, -1)
		assert.Equal(t, map[string]int{"content": 1}, calls)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// look notes how much is alive.
func (b *backlog) look() {
	alive := liveHeap()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heapMost = max(b.heapMost, alive)
}

// Open makes a file.
func (b *backlog) Open(location string) (iceio.File, error) {
	b.mu.Lock()
	b.opened[location]++
	count := len(b.opened)
	b.mu.Unlock()
	if count%2000 == 0 {
		b.look()
	}
	file := &madeFile{name: location}
	var n int64
	if _, err := fmt.Sscanf(location, "mem://orders/metadata/snap-%d-1-x.avro", &n); err == nil {
		file.Reader = bytes.NewReader(manifestList(b.t, n))
		return file, nil
	}
	if _, err := fmt.Sscanf(location, "mem://orders/metadata/%d.metadata.json", &n); err != nil {
		return nil, fs.ErrNotExist
	}
	b.mu.Lock()
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	file.closed = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now--
	}
	<-time.After(storeLatency)
	file.Reader = bytes.NewReader(b.metadata(n))
	return file, nil
}

// Remove is not asked for.
func (b *backlog) Remove(string) error { return errors.ErrUnsupported }

// metadata is a metadata file of the table at its n-th snapshot.
func (b *backlog) metadata(n int64) []byte {
	var snapshots []string
	first := n
	if b.whole {
		first = 1
	}
	for id := first; id <= n; id++ {
		parent := ""
		if b.whole && id > 1 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, id-1)
		}
		snapshots = append(snapshots, fmt.Sprintf(`{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s","summary":{"operation":"append","total-records":"%d"},"schema-id":0}`,
			id, parent, id, 1700000000000+id, listFile(id), id))
	}
	return fmt.Appendf(nil, `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"mem://orders","last-sequence-number":%d,
"last-updated-ms":%d,"last-column-id":1,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}],
"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],
"properties":{},"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%[3]d,"type":"branch"}},"snapshots":[%[4]s],"snapshot-log":[],"metadata-log":[]}`,
		n, 1700000000000+n, n, strings.Join(snapshots, ","))
}

// manifestList is the list of the n-th snapshot: its header names the one before.
func manifestList(t *testing.T, n int64) []byte {
	var out bytes.Buffer
	var parent *int64
	if n > 1 {
		parent = new(n - 1)
	}
	assert.NoError(t, iceberg.WriteManifestList(2, &out, n, parent, &n, 0, nil))
	return out.Bytes()
}

// madeFile is a file in memory.
type madeFile struct {
	*bytes.Reader
	name   string
	closed func()
}

func (f *madeFile) Close() error {
	if f.closed != nil {
		f.closed()
	}
	return nil
}

func (f *madeFile) Stat() (fs.FileInfo, error) { return madeInfo{f}, nil }

type madeInfo struct{ f *madeFile }

func (i madeInfo) Name() string       { return i.f.name }
func (i madeInfo) Size() int64        { return i.f.Size() }
func (i madeInfo) Mode() fs.FileMode  { return 0o400 }
func (i madeInfo) ModTime() time.Time { return time.Time{} }
func (i madeInfo) IsDir() bool        { return false }
func (i madeInfo) Sys() any           { return nil }

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// distantFiles is a store where each request takes a while: opening a file, which brings its last 64 KiB along, and each
// read of what lies before.
type distantFiles struct {
	iceio.LocalFS
	trip     time.Duration
	requests atomic.Int64
}

func (d *distantFiles) request() {
	d.requests.Add(1)
	time.Sleep(d.trip)
}

func (d *distantFiles) Open(name string) (iceio.File, error) {
	d.request()
	f, err := d.LocalFS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return &distantFile{File: f, store: d, tail: info.Size() - 64<<10}, err
}

type distantFile struct {
	iceio.File
	store *distantFiles
	tail  int64
}

func (f *distantFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.tail {
		f.store.request()
	}
	return f.File.ReadAt(p, off)
}

// waited reads a plan and says how long requests held it up: in the bubble nothing else takes time.
func waited(t *testing.T, plan *Plan, store *distantFiles) (took time.Duration, rows int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		on := *plan
		on.source.FS = store
		start := time.Now()
		for batch, err := range on.Read(t.Context(), ReadOptions{Parallelism: 2}) {
			require.NoError(t, err)
			rows += batch.Rows
		}
		took = time.Since(start)
	})
	return took, rows
}

func TestManySmallFilesAreFetchedAtOnce(t *testing.T) {
	const count, trip = 2000, 20 * time.Millisecond
	f := newFixture(t, "")
	small := f.dataFile("small.parquet", 0, none, numbered(0, 10)...)
	body, err := os.ReadFile(f.path("small.parquet"))
	require.NoError(t, err)
	var group []change
	for i := range count {
		name := fmt.Sprintf("%d.parquet", i)
		require.NoError(t, os.WriteFile(f.path(name), body, 0o600))
		file := f.dataEntry(name, 0, none)
		require.Equal(t, small.Count(), file.Count())
		group = append(group, added(file))
	}
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", group)})
	store := &distantFiles{trip: trip}
	took, rows := waited(t, plan, store)
	assert.Equal(t, 10*count, rows)
	assert.EqualValues(t, count, store.requests.Load(), "one request a file")
	assert.Less(t, took, count*trip/100, "more than a hundred files are under way at once")
}

// objectsFromTheStart is distantFiles that also read a file's first bytes at once, as object stores do.
type objectsFromTheStart struct{ distantFiles }

func (o *objectsFromTheStart) ReadPrefix(name string, n int64) ([]byte, error) {
	o.request()
	body, err := os.ReadFile(name)
	return body[:min(int64(len(body)), n)], err
}

func TestAFileLongerThanTheTailThatOpeningBringsTakesOneRequestAhead(t *testing.T) {
	f := newFixture(t, "")
	stored := f.dataFile("middling.parquet", 0, none, numbered(0, 20_000)...)
	require.Greater(t, stored.FileSizeBytes(), int64(64<<10))
	require.Less(t, stored.FileSizeBytes(), int64(aheadLargest))
	store := &objectsFromTheStart{}
	a := &ahead{ctx: t.Context(), fs: store}
	got, err := a.whole(f.path("middling.parquet"))
	require.NoError(t, err)
	want, err := os.ReadFile(f.path("middling.parquet"))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.EqualValues(t, 1, store.requests.Load())
}

func TestAFileThatIsLargerThanItsManifestSaysIsNotHeldWhole(t *testing.T) {
	f := newFixture(t, "")
	f.dataFile("large.parquet", 0, none, numbered(0, 500_000)...)
	store := &objectsFromTheStart{}
	a := &ahead{ctx: t.Context(), fs: store}
	_, err := a.whole(f.path("large.parquet"))
	require.ErrorIs(t, err, errLargerThanSaid)
}

func TestALargeFileIsReadInFewRequests(t *testing.T) {
	f := newFixture(t, "")
	file := f.dataFile("large.parquet", 0, none, numbered(0, 500_000)...)
	require.Greater(t, file.FileSizeBytes(), int64(aheadLargest))
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", []change{added(file)})})
	store := &distantFiles{trip: time.Millisecond}
	_, rows := waited(t, plan, store)
	assert.Equal(t, 500_000, rows)
	blocks := file.FileSizeBytes()/(2<<20) + 1 + 3
	assert.LessOrEqual(t, store.requests.Load(), blocks, "opening, and one for each block of the three columns")
}

func TestAFileThatCannotBeFetchedAheadFailsWhenItsTurnComes(t *testing.T) {
	f := newFixture(t, "")
	first := f.dataFile("0.parquet", 0, none, numbered(0, 10)...)
	second := f.dataFile("1.parquet", 0, none, numbered(10, 20)...)
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", []change{added(first), added(second)})})
	f.remove("1.parquet")
	rows := 0
	var failed error
	for batch, err := range plan.Read(t.Context(), ReadOptions{BatchRows: 5}) {
		if err != nil {
			failed = err
			break
		}
		rows += batch.Rows
	}
	missing := &MissingFileError{}
	require.ErrorAs(t, failed, &missing)
	assert.Equal(t, f.path("1.parquet"), missing.Path)
	assert.GreaterOrEqual(t, rows, 5, "the rows before it came")
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const million = 1_000_000

// A row that a vector deletes in a file of a million rows costs the row group that holds it, not the file.
func TestARowDeletedOfAMillionCostsItsRowGroup(t *testing.T) {
	h := &handmade{fixture: newFixture(t, "")}
	a := h.bigFile("a.parquet", million, numberedRow)
	groups, err := readRowGroups(t.Context(), h.fs, File{Data: a, path: h.path("a.parquet")}, 1)
	require.NoError(t, err)
	require.Len(t, groups, 40)
	h.data = append(h.data, handmadeData{name: "a.parquet", file: a, sequence: 1})
	before := h.save()
	const gone = 623_456
	h.deletes = append(h.deletes, handmadeDelete{file: h.vector("v.puffin", "a.parquet", gone), sequence: 2, target: "a.parquet", vector: true})
	after := h.save()

	counted := &countedFiles{IO: h.fs}
	source := Source{FS: counted, Meta: h.meta}
	plan, err := PlanChanges(t.Context(), source, Step{Way: WayBridge, Before: &before, After: after}, ChangeOptions{IdentifierFields: []string{"id"}})
	require.NoError(t, err)
	_, text := numberedRow(gone)
	assert.Equal(t, []string{fmt.Sprintf(`delete {"id":%d,"name":%q,"cat":null}`, gone, text)}, h.said(plan, ReadOptions{}))

	at := gone / (million / 40)
	group := groups[at+1].offset - groups[at].offset
	require.Greater(t, a.FileSizeBytes(), 30*group)
	// The row group once; beside it the file's footer, the manifests and the vector.
	assert.Less(t, counted.bytes.Load(), group+group/4, "of a row group of %d bytes in a file of %d", group, a.FileSizeBytes())
}

// An update of one row in a file of a million rows that is written anew is one pair of messages and stays under the
// memory that it is given, wherever the rows are in the new file.
func TestAnUpdateOfOneRowInAMillionStaysUnderItsMemory(t *testing.T) {
	rows, changed := million, 777_777
	if testing.Short() {
		rows, changed = million/5, 77_777 // the race detector takes ten times as long, and memory is not its matter
	}
	text := func(i int) (int, string) {
		if i == changed {
			return i, "other"
		}
		return numberedRow(i)
	}
	_, old := numberedRow(changed)
	was := fmt.Sprintf(`{"id":%d,"name":%q,"cat":null}`, changed, old)
	is := fmt.Sprintf(`{"id":%d,"name":"other","cat":null}`, changed)
	const memory = 96 << 20
	for name, order := range map[string]func(i int) int{
		"in the same order": func(i int) int { return i },
		"in another order":  func(i int) int { return i * 7919 % rows },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			step := f.rewritten(rows, func(i int) (int, string) { return text(order(i)) })
			dir := f.path("spill")
			require.NoError(t, os.Mkdir(dir, 0o700))
			for _, want := range []struct {
				keys []string
				said []string
			}{
				{[]string{"id"}, []string{"update_before " + was, "update_after " + is}},
				{[]string{}, []string{"delete " + was, "insert " + is}},
			} {
				plan := f.changes(step, ChangeOptions{IdentifierFields: want.keys})
				var said []string
				peak := peakHeap(func() { said = f.said(plan, ReadOptions{Memory: memory, Parallelism: 2, SpillDir: dir}) })
				assert.Equal(t, want.said, said)
				t.Logf("keys %v: %d KiB of %d", want.keys, peak>>10, memory>>10)
				assert.Less(t, peak, int64(memory), "keys %v", want.keys)
			}
			assertEmptyFolder(t, dir)
		})
	}
}

// peakHeap is the most that is live while f runs of what it has allocated. It has the collector run all the time. The
// heap's size alone would count what is allocated while the collector runs; the profile tells what a collection found.
func peakHeap(f func()) int64 {
	const rate = 4 << 10
	before := runtime.MemProfileRate
	runtime.MemProfileRate = rate
	defer func() { runtime.MemProfileRate = before }()
	runtime.GC()
	known := liveBytes(before)
	done, found := make(chan struct{}), make(chan int64)
	go func() {
		var peak int64
		for {
			select {
			case <-done:
				found <- peak
				return
			default:
				runtime.GC()
				peak = max(peak, liveBytes(rate)-known)
			}
		}
	}()
	f()
	close(done)
	return <-found
}

// liveBytes is what the heap profile estimates from its samples, as pprof does.
func liveBytes(rate int) int64 {
	records := make([]runtime.MemProfileRecord, 10_000)
	n, _ := runtime.MemProfile(records, false)
	var live float64
	for _, r := range records[:min(n, len(records))] {
		if objects := r.InUseObjects(); objects > 0 {
			size := float64(r.InUseBytes()) / float64(objects)
			live += float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(rate)))
		}
	}
	return int64(live)
}

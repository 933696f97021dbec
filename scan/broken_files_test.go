// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// within fails with every goroutine's stack where f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		stacks := make([]byte, 4<<20)
		t.Fatalf("reading hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// spoiled draws what happened to a file: it was cut, bytes of it changed, or a stretch of it was never written. The footer,
// which is small beside the pages, gets its share.
func spoiled(t *rapid.T, raw []byte) []byte {
	out := append([]byte{}, raw...)
	switch rapid.SampledFrom([]string{"cut", "bytes", "footer", "hole"}).Draw(t, "damage") {
	case "cut":
		return out[:rapid.IntRange(0, len(out)-1).Draw(t, "length")]
	case "hole":
		from := rapid.IntRange(0, len(out)-1).Draw(t, "from")
		clear(out[from:min(from+rapid.IntRange(1, 4096).Draw(t, "bytes"), len(out))])
		return out
	case "footer":
		length := int(out[len(out)-8]) | int(out[len(out)-7])<<8 | int(out[len(out)-6])<<16
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			out[len(out)-1-rapid.IntRange(0, min(length+7, len(out)-1)).Draw(t, "from the end")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		}
		return out
	}
	for range rapid.IntRange(1, 4).Draw(t, "faults") {
		out[rapid.IntRange(0, len(out)-1).Draw(t, "where")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
	}
	return out
}

// A data file that was damaged ends in an error that names it, or yields as many rows as its manifest says: Parquet has no
// checksums that would tell one value from another. It never hangs, and it never panics in arrow-go's goroutines, which
// would end this process: see docs/upstream.md.
func FuzzDamagedFilesAreNamedOrReadInFull(fuzz *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		seed := make([]byte, 4096)
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		fuzz.Add(seed)
	}
	fuzz.Fuzz(func(t *testing.T, draws []byte) {
		f := newFixture(t, "")
		rapid.MakeFuzz(func(rt *rapid.T) { readDamagedFile(t, rt, f) })(t, draws)
	})
}

func readDamagedFile(t *testing.T, rt *rapid.T, f *fixture) {
	id := 0
	next := func() int { id++; return id }
	schema := iceberg.NewSchema(7, randomField(rt, "a", 2, next), randomField(rt, "b", 1, next))
	plan, task := randomFile(rt, f, schema, schema)
	plan.Schema, plan.Tasks = schema, []Task{task}
	raw, err := os.ReadFile(f.path("a.parquet"))
	require.NoError(rt, err)
	require.NoError(rt, os.WriteFile(f.path("a.parquet"), spoiled(rt, raw), 0o600))
	opts := ReadOptions{Format: rapid.SampledFrom([]Format{FormatJSON, FormatNDJSON, FormatArrow}).Draw(rt, "format"), BatchRows: rapid.SampledFrom([]int{7, 4096}).Draw(rt, "batch rows"), ahead: aheadOrNot(rt), Parallelism: 2}
	var rows int64
	var failed error
	within(t, func() {
		for batch, err := range plan.Read(t.Context(), opts) {
			if err != nil {
				failed = err
				return
			}
			rows += int64(batch.Rows)
		}
	})
	if failed == nil {
		require.Equal(rt, task.Rows(), rows, "rows")
		return
	}
	require.Contains(rt, failed.Error(), f.path("a.parquet"))
	var corrupt *CorruptFileError
	var unsupported *UnsupportedError
	require.True(rt, errors.As(failed, &corrupt) || errors.As(failed, &unsupported), "%T: %v", failed, failed)
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestASetOfKeysKnowsTheLargestNumberOfEach(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "keys"))
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // the test is over
	rapid.Check(t, func(t *rapid.T) {
		seed := maphash.MakeSeed()
		// A hash of few bits makes keys collide, in tables and in blocks.
		bits := rapid.SampledFrom([]int{0, 4, 32}).Draw(t, "bits")
		hash := func(key string) uint32 { return uint32(maphash.String(seed, key)) >> (32 - bits) << (32 - bits) }
		keys := rapid.Custom(func(t *rapid.T) string {
			if long := rapid.IntRange(0, 20).Draw(t, "long"); long == 0 {
				return fmt.Sprintf("%5000d", rapid.IntRange(0, 9).Draw(t, "key"))
			}
			return rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 6, -1).Draw(t, "key")
		})
		var s keySet
		var end int64
		want := map[string]int{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key, number := keys.Draw(t, "key"), rapid.IntRange(0, 5).Draw(t, "number")
			before := s.table.bytes()
			require.Equal(t, s.table.add(hash(key), []byte(key), uint32(number)), s.table.bytes()-before)
			want[key] = max(want[key], number)
			if rapid.IntRange(0, 30).Draw(t, "move") == 0 {
				run, err := s.table.write(file, end)
				require.NoError(t, err)
				end = run.end()
				s.runs, s.table = append(s.runs, run), keyTable{}
			}
		}
		var block []byte
		for _, key := range append(rapid.SliceOfN(keys, 0, 50).Draw(t, "others"), "a", "b") {
			if _, ok := want[key]; !ok {
				want[key] = -1
			}
		}
		for key, number := range want {
			var got int
			got, block, err = s.find(hash(key), []byte(key), block)
			require.NoError(t, err)
			require.Equal(t, number, got, "%q", key)
		}
	})
}

// numberedKey is what a delete of a long column is coded as.
func numberedKey(b []byte, n int) []byte {
	return binary.LittleEndian.AppendUint64(append(b[:0], isValue), uint64(n))
}

func TestAKeyOfALongColumnTakesThirtyBytes(t *testing.T) {
	const keys = 1_000_000
	seed := maphash.MakeSeed()
	var table keyTable
	var key []byte
	for i := range keys {
		key = numberedKey(key, i)
		table.add(uint32(maphash.Bytes(seed, key)>>32), key, 0)
	}
	require.Equal(t, keys, table.count)
	assert.LessOrEqual(t, table.bytes(), int64(35*keys))
	file, err := os.Create(filepath.Join(t.TempDir(), "keys"))
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // the test is over
	run, err := table.write(file, 0)
	require.NoError(t, err)
	assert.Equal(t, int64(14*keys), run.end(), "on disk")
	assert.LessOrEqual(t, int64(8*(len(run.bloom)+len(run.ends))), int64(2*keys), "and in memory still")
	missed := 0
	for i := range 100_000 {
		key = numberedKey(key, keys+i)
		word, bits := run.filter(uint32(maphash.Bytes(seed, key) >> 32))
		if run.bloom[word]&bits == bits {
			missed++
		}
	}
	assert.Less(t, missed, 5000, "looks at the file for keys that are not in it")
	t.Logf("%d bytes in memory, %d beside the file, %d of 100000 in vain", table.bytes(), 8*(len(run.bloom)+len(run.ends)), missed)
}

// BenchmarkFindKey looks for keys among 5 million, of which each tenth is held, in memory and in eight parts on disk.
func BenchmarkFindKey(b *testing.B) {
	const keys = 5_000_000
	file, err := os.Create(filepath.Join(b.TempDir(), "keys"))
	require.NoError(b, err)
	defer file.Close() //nolint:errcheck // the benchmark is over
	seed := maphash.MakeSeed()
	hash := func(key []byte) uint32 { return uint32(maphash.Bytes(seed, key) >> 32) }
	var inMemory, onDisk keySet
	var end int64
	var key []byte
	for i := range keys {
		key = numberedKey(key, 10*i)
		inMemory.table.add(hash(key), key, 0)
		onDisk.table.add(hash(key), key, 0)
		if (i+1)%(keys/8) == 0 {
			run, err := onDisk.table.write(file, end)
			require.NoError(b, err)
			end = run.end()
			onDisk.runs, onDisk.table = append(onDisk.runs, run), keyTable{}
		}
	}
	for name, set := range map[string]*keySet{"memory": &inMemory, "disk": &onDisk} {
		b.Run(name, func(b *testing.B) {
			var block []byte
			i := 0
			for b.Loop() {
				key = numberedKey(key, i*7919%(10*keys))
				i++
				if _, block, err = set.find(hash(key), key, block); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(set.table.bytes())/keys, "B/key")
		})
	}
}

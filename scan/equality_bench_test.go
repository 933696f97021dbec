// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// upserts are commits of a stream of upserts: each deletes the ids that it writes, and every second one those of the commit
// before.
func (f *fixture) upserts(commits, rows int) *Plan {
	f.Helper()
	var data, deletes []change
	for i := range commits {
		first := i / 2 * rows
		var ids []int64
		for id := range rows {
			ids = append(ids, int64(first+id))
		}
		sequence := int64(i + 1)
		data = append(data, addedAt(f.dataFile(fmt.Sprintf("d%d.parquet", i), 0, none, numbered(first, first+rows)...), sequence))
		deletes = append(deletes, addedAt(f.equalityDeletes(fmt.Sprintf("e%d.parquet", i), 0, none, ids...), sequence))
	}
	f.state.Sequence = int64(commits)
	return f.plan(Step{Way: WayTableScan, After: f.commit("overwrite", data, deletes)})
}

// BenchmarkReadUpserts scans 300 commits of a stream of upserts: 300 data files with an equality delete file each.
func BenchmarkReadUpserts(b *testing.B) {
	f := newFixture(b, "")
	plan := f.upserts(300, 100)
	for b.Loop() {
		rows := 0
		for batch, err := range plan.Read(b.Context(), ReadOptions{}) {
			require.NoError(b, err)
			rows += batch.Rows
		}
		require.Equal(b, 150*100, rows)
	}
}

// BenchmarkReadDeletedByKey scans a file of 500,000 rows of which an equality delete file removes a thousand, directly and
// by the general decoder.
func BenchmarkReadDeletedByKey(b *testing.B) {
	f := newFixture(b, "")
	data := addedAt(f.inGroups("a.parquet", 500_000, 100_000), 1)
	var ids []int64
	for id := range int64(1000) {
		ids = append(ids, 499*id)
	}
	f.state.Sequence = 2
	gone := addedAt(f.equalityDeletes("e.parquet", 0, none, ids...), 2)
	plan := f.plan(Step{Way: WayTableScan, After: f.commit("overwrite", []change{data}, []change{gone})})
	for name, from := range map[string]int64{"directly": 1, "by the general decoder": 1 << 40} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rows := 0
				for batch, err := range plan.Read(b.Context(), ReadOptions{Format: FormatNDJSON, equality: from}) {
					require.NoError(b, err)
					rows += batch.Rows
				}
				require.Equal(b, 499_000, rows)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// among appends one file to a table of so many older manifests, of which none exists.
func (f *fixture) among(manifests int) catalog.State {
	f.Helper()
	var carried []iceberg.ManifestFile
	for i := range manifests {
		carried = append(carried, iceberg.NewManifestFile(2, f.path(fmt.Sprintf("old-%d.avro", i)), 5000, 0, 7).
			SequenceNum(1, 1).AddedFiles(1).AddedRows(10).Build())
	}
	f.state.Sequence = 1
	return f.commitOn(carried, "append", []change{added(f.dataEntry("a.parquet", 0, none))})
}

func TestOneNewFileAmongManyManifestsOpensOne(t *testing.T) {
	f := newFixture(t, "")
	state := f.among(10_000)
	var plan *Plan
	opened := f.openedBy(func() { plan = f.plan(Step{Way: WaySnapshot, After: state}) })
	assert.Equal(t, []string{"a.parquet"}, names(plan.Tasks))
	assert.Equal(t, 1, plan.ManifestsOpened)
	assert.Equal(t, map[string]int{"snap-1002.avro": 1, "m-1002-0.avro": 1}, opened)
}

// BenchmarkPlanAmong10000Manifests plans an append whose manifest list carries 10,000 older manifests over.
func BenchmarkPlanAmong10000Manifests(b *testing.B) {
	f := newFixture(b, "")
	state := f.among(10_000)
	for b.Loop() {
		plan, err := PlanStep(b.Context(), f.source(), Step{Way: WaySnapshot, After: state})
		require.NoError(b, err)
		require.Equal(b, 1, plan.ManifestsOpened)
	}
}

// BenchmarkRead reads one file of 200,000 rows in each format.
func BenchmarkRead(b *testing.B) {
	f := newFixture(b, "")
	state := f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, numbered(0, 200_000)...))})
	plan := f.plan(Step{Way: WaySnapshot, After: state})
	for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
		b.Run(string(format), func(b *testing.B) {
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				for batch, err := range plan.Read(b.Context(), ReadOptions{Format: format}) {
					require.NoError(b, err)
					rows += batch.Rows
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkReadManySmallFiles reads 1,000 files of ten rows.
func BenchmarkReadManySmallFiles(b *testing.B) {
	f := newFixture(b, "")
	f.dataFile("a.parquet", 0, none, numbered(0, 10)...)
	body, err := os.ReadFile(f.path("a.parquet"))
	require.NoError(b, err)
	var group []change
	for i := range 1000 {
		name := fmt.Sprintf("%d.parquet", i)
		require.NoError(b, os.WriteFile(f.path(name), bytes.Clone(body), 0o600))
		group = append(group, added(f.dataEntry(name, 0, none)))
	}
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", group)})
	for b.Loop() {
		for _, err := range plan.Read(b.Context(), ReadOptions{}) {
			require.NoError(b, err)
		}
	}
}

// BenchmarkReadWithVector reads a file of 200,000 rows of which a vector deletes each hundredth, and the same through
// iceberg-go's decoder.
func BenchmarkReadWithVector(b *testing.B) {
	f := newFixture(b, "")
	f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, numbered(0, 200_000)...))})
	var deleted []int64
	for i := int64(0); i < 200_000; i += 100 {
		deleted = append(deleted, i)
	}
	plan := f.plan(Step{Way: WayTableScan, After: f.state})
	vector := f.file(f.vector("v.puffin", "a.parquet", deleted...), 2)
	plan.Tasks[0].Deletes.Vector = &vector
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			for _, err := range plan.Read(b.Context(), ReadOptions{}) {
				require.NoError(b, err)
			}
		}
	})
	b.Run("general", func(b *testing.B) {
		encoder, err := NewEncoder(plan.Schema)
		require.NoError(b, err)
		for b.Loop() {
			for batch, err := range plan.decode(b.Context(), plan.Tasks[0], nil, defaultDecodeRows) {
				require.NoError(b, err)
				_, _, err = encoder.Append(nil, nil, batch, 0, int(batch.NumRows()))
				require.NoError(b, err)
				batch.Release()
			}
		}
	})
}

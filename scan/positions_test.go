// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A damaged position delete file may still be one that can be read. Its deletes must not be missed without a word.
func TestAPositionDeleteFileHoldsWhatItsManifestSays(t *testing.T) {
	f := newFixture(t, "")
	one := func(b *iceberg.DataFileBuilder) { b.ReferencedDataFile(f.path("a.parquet")) }
	for name, c := range map[string]struct {
		target  string
		records int64
		options []fileOption
		deleted []uint64
		wrong   string
	}{
		"what it says":                         {"a.parquet", 2, nil, []uint64{3, 5}, ""},
		"what it says, of one data file":       {"a.parquet", 2, []fileOption{one}, []uint64{3, 5}, ""},
		"deletes of other data files":          {"b.parquet", 2, nil, []uint64{}, ""},
		"fewer rows":                           {"a.parquet", 3, nil, nil, "it has 2 rows, its manifest says 3"},
		"more rows":                            {"a.parquet", 1, nil, nil, "it has 2 rows, its manifest says 1"},
		"fewer rows, of one data file":         {"a.parquet", 3, []fileOption{one}, nil, "it has 2 rows, its manifest says 3"},
		"deletes of another than its one file": {"b.parquet", 2, []fileOption{one}, nil, "all of it is about " + f.path("a.parquet")},
	} {
		t.Run(name, func(t *testing.T) {
			f.positionDeletes("p.parquet", 0, nil, c.target, 3, 5)
			deletes := f.file(f.entryFile("p.parquet", iceberg.EntryContentPosDeletes, 0, nil, c.records, c.options...), 2)
			data := f.file(f.dataEntry("a.parquet", 0, nil), 1)
			r := newPositionReader(f.fs, f.meta, []Change{{File: data}})
			got, err := r.of(t.Context(), data, Deletes{Position: []File{deletes}}, 7)
			if c.wrong != "" {
				var corrupt *CorruptFileError
				require.ErrorAs(t, err, &corrupt)
				assert.Equal(t, DeleteFileKind, corrupt.Kind)
				assert.Equal(t, f.path("p.parquet"), corrupt.Path)
				assert.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.deleted, got.ToArray())
		})
	}
}

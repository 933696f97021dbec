// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// file makes the File that a live manifest entry gives.
func (f *fixture) file(data iceberg.DataFile, sequence int64) File {
	f.Helper()
	key, err := partitionKey(data.Partition())
	require.NoError(f, err)
	return File{Data: data, Sequence: sequence, path: data.FilePath(), partition: key}
}

func TestWhichDeletesApplyToADataFile(t *testing.T) {
	f := newFixture(t, "")
	referenced := func(name string) fileOption {
		return func(b *iceberg.DataFileBuilder) { b.ReferencedDataFile(f.path(name)) }
	}
	boundsOf := func(field int, lower, upper string) fileOption {
		return func(b *iceberg.DataFileBuilder) {
			b.LowerBoundValues(map[int][]byte{field: []byte(f.path(lower))})
			b.UpperBoundValues(map[int][]byte{field: []byte(f.path(upper))})
		}
	}
	bounds := func(lower, upper string) fileOption { return boundsOf(filePathField, lower, upper) }
	position := func(name string, spec int, partition map[int]any, opts ...fileOption) iceberg.DataFile {
		return f.deleteEntry(name, iceberg.EntryContentPosDeletes, spec, partition, opts...)
	}
	equality := func(name string, spec int, partition map[int]any) iceberg.DataFile {
		return f.deleteEntry(name, iceberg.EntryContentEqDeletes, spec, partition)
	}
	x := func(sequence int64) File { return f.file(f.dataEntry("x.parquet", 1, cat("x")), sequence) }

	for name, test := range map[string]struct {
		data    File
		deletes []File
		want    string
	}{
		"position deletes of its partition": {
			x(3),
			[]File{f.file(position("d", 1, cat("x")), 3), f.file(position("e", 1, cat("y")), 3), f.file(position("g", 2, map[int]any{1000: "x", 1001: int64(1)}), 3)},
			"x.parquet -d",
		},
		"position deletes that are older do not": {x(3), []File{f.file(position("d", 1, cat("x")), 2)}, "x.parquet"},
		"position deletes that name it": {
			x(3),
			[]File{f.file(position("d", 1, cat("x"), referenced("x.parquet")), 3), f.file(position("e", 1, cat("x"), referenced("other.parquet")), 3)},
			"x.parquet -d",
		},
		"bounds of one path name it too": {
			x(3),
			[]File{f.file(position("d", 1, cat("y"), bounds("x.parquet", "x.parquet")), 3), f.file(position("e", 1, cat("x"), bounds("y.parquet", "y.parquet")), 3)},
			"x.parquet -d",
		},
		"bounds of one path under the id of _file name it too, whatever the spec": {
			x(3),
			[]File{
				f.file(position("d", 2, map[int]any{1000: nil, 1001: nil}, boundsOf(fileField, "x.parquet", "x.parquet")), 3),
				f.file(position("e", 1, cat("x"), boundsOf(fileField, "y.parquet", "y.parquet")), 3),
			},
			"x.parquet -d",
		},
		"bounds of several paths can exclude it": {
			x(3),
			[]File{f.file(position("d", 1, cat("x"), bounds("a.parquet", "z.parquet")), 3), f.file(position("e", 1, cat("x"), bounds("y.parquet", "z.parquet")), 3)},
			"x.parquet -d",
		},
		"a vector, and then no position deletes": {
			x(3),
			[]File{
				f.file(position("v.puffin", 1, cat("x"), referenced("x.parquet")), 4), f.file(position("d", 1, cat("x")), 5),
				f.file(position("w.puffin", 1, cat("x"), referenced("other.parquet")), 5), f.file(equality("e", 1, cat("x")), 5),
			},
			"x.parquet -v.puffin -e",
		},
		"a vector that is older does not": {
			x(3),
			[]File{f.file(position("v.puffin", 1, cat("x"), referenced("x.parquet")), 2), f.file(position("d", 1, cat("x")), 5)},
			"x.parquet -d",
		},
		"equality deletes that are newer": {
			x(3),
			[]File{f.file(equality("same", 1, cat("x")), 3), f.file(equality("newer", 1, cat("x")), 4), f.file(equality("other", 1, cat("y")), 4)},
			"x.parquet -newer",
		},
		"equality deletes without a partition, whatever the spec": {
			x(3),
			[]File{f.file(equality("global", 0, none), 4), f.file(equality("old", 0, none), 3)},
			"x.parquet -global",
		},
		"partitions of null are equal": {
			f.file(f.dataEntry("x.parquet", 1, cat(nil)), 1),
			[]File{f.file(equality("d", 1, cat(nil)), 2), f.file(equality("e", 1, cat("")), 2)},
			"x.parquet -d",
		},
		"in order of sequence numbers and paths": {
			x(1),
			[]File{f.file(equality("c", 1, cat("x")), 3), f.file(equality("b", 1, cat("x")), 2), f.file(equality("a", 0, none), 3)},
			"x.parquet -b -a -c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			index, err := newDeleteIndex(test.deletes, specsOf(f.meta))
			require.NoError(t, err)
			tasks, err := index.tasks([]File{test.data})
			require.NoError(t, err)
			assert.Equal(t, []string{test.want}, names(tasks))
		})
	}

	t.Run("two vectors of one file are an error", func(t *testing.T) {
		v := position("v.puffin", 1, cat("x"), referenced("x.parquet"))
		index, err := newDeleteIndex([]File{f.file(v, 3), f.file(v, 4)}, specsOf(f.meta))
		require.NoError(t, err)
		_, err = index.of(x(3))
		require.ErrorContains(t, err, "two deletion vectors")
	})
}

func TestPartitionsAreEqualByValue(t *testing.T) {
	decimal := func(text string) any {
		d, err := iceberg.DecimalTypeOf(9, 2), error(nil)
		require.NoError(t, err)
		lit, err := iceberg.NewLiteral(text).To(d)
		require.NoError(t, err)
		return lit.Any()
	}
	groups := [][]any{ // equal within a group, and to no other
		{nil},
		{int32(1), int64(1), iceberg.Date(1), iceberg.Timestamp(1)}, // one field has one type: widths and names of it
		{int64(-1)},
		{float32(1.5), 1.5},
		{math.NaN(), float32(math.NaN()), math.Float64frombits(0x7ff8000000000002)},
		{0.0},
		{math.Copysign(0, -1), float32(math.Copysign(0, -1))},
		{""},
		{"1"},
		{"a\x00"},
		{"a"},
		{"1.00"},
		{true},
		{false},
		{decimal("1.00")},
		{decimal("-1.00")},
		{decimal("0.00")},
	}
	var keys []string
	for _, group := range groups {
		first, err := partitionKey(map[int]any{1000: group[0], 1001: "z"})
		require.NoError(t, err)
		assert.NotContains(t, keys, first, "%v", group)
		keys = append(keys, first)
		for _, value := range group {
			key, err := partitionKey(map[int]any{1001: "z", 1000: value})
			require.NoError(t, err)
			assert.Equal(t, first, key, "%v", value)
		}
	}
	_, err := partitionKey(map[int]any{1000: struct{}{}})
	require.ErrorContains(t, err, "partition field 1000")
}

func TestPartitionKeysOfStringsNeverCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.Custom(func(t *rapid.T) [2]string {
			s := rapid.StringOfN(rapid.RuneFrom([]rune("a\x00s\x01")), 0, 3, -1)
			return [2]string{s.Draw(t, "first"), s.Draw(t, "second")}
		})
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		keyA, errA := partitionKey(map[int]any{1000: a[0], 1001: a[1]})
		keyB, errB := partitionKey(map[int]any{1000: b[0], 1001: b[1]})
		if errA != nil || errB != nil || (keyA == keyB) != (a == b) {
			t.Fatalf("%q %q", a, b)
		}
	})
}

func TestManifestSummariesNeverHideAMatch(t *testing.T) {
	f := newFixture(t, "")
	values := []any{nil, "", "a", "b", "zz", "\uE000", "\U0001F600", "\uFFFD"}
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "held")
		asked := rapid.SampledFrom(values).Draw(t, "asked")
		var group []change
		for _, v := range held {
			group = append(group, added(f.dataEntry("a.parquet", 1, cat(v))))
		}
		m := f.manifest("m.avro", 1, group)
		for _, v := range held {
			if v == asked && !mayHold(m, specsOf(f.meta), f.file(f.dataEntry("x.parquet", 1, cat(asked)), 1)) {
				t.Fatalf("%q hidden by %v", asked, held)
			}
		}
	})
	m := f.manifest("m.avro", 1, []change{added(f.dataEntry("a.parquet", 1, cat("b")))})
	for _, v := range []any{nil, "a", "c"} {
		assert.False(t, mayHold(m, specsOf(f.meta), f.file(f.dataEntry("x.parquet", 1, cat(v)), 1)), "%v", v)
	}
}

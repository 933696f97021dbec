// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// severalFiles has three data files of 100 rows with ids 0 to 299 in order; where withDeletes, ids divisible by 3 of the
// second are gone by position, and 250 by equality.
func severalFiles(t *testing.T, withDeletes bool) (*fixture, catalog.State) {
	f := newFixture(t, "")
	state := f.commit("append", []change{
		added(f.dataFile("a.parquet", 0, none, numbered(0, 100)...)),
		added(f.dataFile("b.parquet", 0, none, numbered(100, 200)...)),
		added(f.dataFile("c.parquet", 0, none, numbered(200, 300)...)),
	})
	if withDeletes {
		var positions []int64
		for i := int64(2); i < 100; i += 3 {
			positions = append(positions, i)
		}
		state = f.commit("delete",
			[]change{added(f.positionDeletes("d.parquet", 0, none, "b.parquet", positions...))},
			[]change{added(f.equalityDeletes("e.parquet", 0, none, 250))})
	}
	return f, state
}

func sequence(from, to int64, drop func(int64) bool) []int64 {
	ids := []int64{}
	for i := from; i < to; i++ {
		if drop == nil || !drop(i) {
			ids = append(ids, i)
		}
	}
	return ids
}

func TestRowsComeInOneOrderWithDeletesApplied(t *testing.T) {
	f, state := severalFiles(t, true)
	got := f.ids(f.plan(Step{Way: WayTableScan, After: state}))
	assert.Equal(t, sequence(0, 300, func(i int64) bool { return (i > 100 && i < 200 && i%3 == 0) || i == 250 }), got)
}

func TestADeletionVectorDeletes(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, numbered(0, 10)...))})
	v := f.vector("v.puffin", "a.parquet", 0, 3, 9)
	plan := f.plan(Step{Way: WayTableScan, After: f.state})
	plan.Tasks[0].Deletes.Vector = &File{Data: v, Sequence: 2, path: v.FilePath()}
	assert.Equal(t, []int64{1, 2, 4, 5, 6, 7, 8}, f.ids(plan))
}

// lines turns the messages of any format back into rows, in order.
func lines(t require.TestingT, format Format, batch Batch) []string {
	var rows []string
	for _, m := range batch.Messages {
		switch format {
		case FormatNDJSON:
			rows = append(rows, strings.Split(strings.TrimSuffix(string(m), "\n"), "\n")...)
		case FormatArrow:
			r, err := ipc.NewReader(bytes.NewReader(m))
			require.NoError(t, err)
			for r.Next() {
				var buf bytes.Buffer
				require.NoError(t, array.RecordToJSON(r.RecordBatch(), &buf))
				for line := range strings.SplitSeq(strings.TrimSpace(buf.String()), "\n") {
					rows = append(rows, strings.NewReplacer(`"cat":"a",`, "", `}`, `,"cat":"a"}`).Replace(line))
				}
			}
			r.Release()
		default:
			rows = append(rows, string(m))
		}
	}
	return rows
}

func TestAnySplitOfAStepYieldsTheSameRows(t *testing.T) {
	f, state := severalFiles(t, true)
	plan := f.plan(Step{Way: WayTableScan, After: state})
	var all []string
	for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
		require.NoError(t, err)
		all = append(all, lines(t, FormatJSON, batch)...)
	}
	require.Len(t, all, 300-33-1)
	rapid.Check(t, func(rt *rapid.T) {
		opts := ReadOptions{
			From:        rapid.Int64Range(0, int64(len(all))).Draw(rt, "from"),
			Format:      rapid.SampledFrom([]Format{FormatJSON, FormatNDJSON, FormatArrow}).Draw(rt, "format"),
			BatchRows:   rapid.IntRange(1, 120).Draw(rt, "rows"),
			BatchBytes:  rapid.Int64Range(1, 5000).Draw(rt, "bytes"),
			Parallelism: rapid.IntRange(1, 4).Draw(rt, "parallelism"),
			Memory:      rapid.Int64Range(1, 20000).Draw(rt, "memory"),
		}
		got := []string{}
		next, last := opts.From, opts.From == int64(len(all))
		for batch, err := range plan.Read(t.Context(), opts) {
			require.NoError(rt, err)
			require.False(rt, last, "a batch after the last")
			rows := lines(rt, opts.Format, batch)
			require.Len(rt, rows, batch.Rows)
			require.NotZero(rt, batch.Rows)
			require.LessOrEqual(rt, batch.Rows, opts.BatchRows)
			if opts.Format != FormatArrow && batch.Rows > 1 {
				require.LessOrEqual(rt, batch.Bytes, opts.BatchBytes)
			}
			require.Equal(rt, next, batch.First)
			next += int64(batch.Rows)
			last = batch.Last
			got = append(got, rows...)
		}
		require.True(rt, last)
		require.Equal(rt, all[opts.From:], got)
	})
}

func TestSmallFilesShareABatch(t *testing.T) {
	f := newFixture(t, "")
	var group []change
	for i := range 10 {
		group = append(group, added(f.dataFile(fmt.Sprintf("%d.parquet", i), 0, none, numbered(i, i+1)...)))
	}
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", group)})
	var sizes []int
	for batch, err := range plan.Read(t.Context(), ReadOptions{BatchRows: 4}) {
		require.NoError(t, err)
		sizes = append(sizes, batch.Rows)
		assert.Equal(t, OperationInsert, batch.Operation)
	}
	assert.Equal(t, []int{4, 4, 2}, sizes)
}

func TestARowLargerThanABatchGoesAlone(t *testing.T) {
	f := newFixture(t, "")
	big := fmt.Sprintf(`{"id": 1, "name": %q, "cat": "a"}`, strings.Repeat("x", 5000))
	rows := []string{numbered(0, 1)[0], big, numbered(2, 3)[0], numbered(3, 4)[0]}
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, rows...))})})
	for _, format := range []Format{FormatJSON, FormatNDJSON} {
		var sizes []int
		for batch, err := range plan.Read(t.Context(), ReadOptions{Format: format, BatchBytes: 200}) {
			require.NoError(t, err)
			sizes = append(sizes, batch.Rows)
		}
		assert.Equal(t, []int{1, 1, 2}, sizes, format)
	}
}

func TestMessagesCanBeAppendedToWithoutHarm(t *testing.T) {
	f, state := severalFiles(t, false)
	plan := f.plan(Step{Way: WayTableScan, After: state})
	for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
		require.NoError(t, err)
		want := slices.Clone(batch.Messages[1])
		_ = append(batch.Messages[0], "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
		assert.Equal(t, string(want), string(batch.Messages[1]))
	}
}

func TestASkippedFileIsNotOpened(t *testing.T) {
	f, state := severalFiles(t, false)
	plan := f.plan(Step{Way: WayTableScan, After: state})
	assert.Equal(t, int64(300), plan.Records)
	f.fs.opened = nil
	for _, err := range plan.Read(t.Context(), ReadOptions{From: 200}) {
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"c.parquet"}, slices.Compact(f.fs.opened))
}

func TestResumingBehindTheEndIsAnError(t *testing.T) {
	f, state := severalFiles(t, false)
	plan := f.plan(Step{Way: WayTableScan, After: state})
	for _, err := range plan.Read(t.Context(), ReadOptions{From: 301}) {
		require.ErrorContains(t, err, "ends 1 rows before the row to resume at")
	}
}

func TestFilesThatAreGoneOrBrokenAreNamed(t *testing.T) {
	read := func(f *fixture, state catalog.State) error {
		plan := f.plan(Step{Way: WayTableScan, After: state})
		var rows int
		for batch, err := range plan.Read(f.Context(), ReadOptions{}) {
			rows += batch.Rows
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, file := range []struct {
		name string
		kind FileKind
	}{{"b.parquet", DataFileKind}, {"d.parquet", DeleteFileKind}, {"e.parquet", DeleteFileKind}} {
		t.Run(file.name, func(t *testing.T) {
			f, state := severalFiles(t, true)
			f.truncate(file.name)
			var corrupt *CorruptFileError
			require.ErrorAs(t, read(f, state), &corrupt)
			assert.Equal(t, file.kind, corrupt.Kind)
			assert.Equal(t, f.path(file.name), corrupt.Path)

			f.remove(file.name)
			err := read(f, state)
			var missing *MissingFileError
			require.ErrorAs(t, err, &missing)
			require.ErrorIs(t, err, fs.ErrNotExist)
			assert.Equal(t, MissingFileError{Snapshot: state.SnapshotID, Path: f.path(file.name), Kind: file.kind}, *missing)
		})
	}
	t.Run("storage that fails is not a corrupt file", func(t *testing.T) {
		f, state := severalFiles(t, false)
		broken := errors.New("connection reset")
		f.fs.before = func(name string) error {
			if filepath.Base(name) == "b.parquet" {
				return broken
			}
			return nil
		}
		err := read(f, state)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "reading data file "+f.path("b.parquet"))
	})
	t.Run("fewer rows than the manifest says", func(t *testing.T) {
		f := newFixture(t, "")
		f.dataFile("a.parquet", 0, none, numbered(0, 9)...)
		state := f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
		require.ErrorContains(t, read(f, state), "it holds 9 rows and its manifest says 10")
	})
}

func TestBreakingOutAndCancellingEndEverything(t *testing.T) {
	f, state := severalFiles(t, true)
	plan := f.plan(Step{Way: WayTableScan, After: state})
	t.Run("break", func(t *testing.T) {
		for batch, err := range plan.Read(t.Context(), ReadOptions{BatchRows: 10}) {
			require.NoError(t, err)
			assert.Equal(t, 10, batch.Rows)
			break
		}
	})
	t.Run("cancel while rows wait", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		cause := errors.New("enough")
		var got error
		for batch, err := range plan.Read(ctx, ReadOptions{BatchRows: 1, Memory: 1}) {
			if err != nil {
				got = err
				break
			}
			if batch.First == 5 {
				cancel(cause)
			}
		}
		require.ErrorIs(t, got, cause)
	})
	t.Run("cancel while storage hangs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f.fs.before = func(string) error { cancel(); <-ctx.Done(); return ctx.Err() }
		defer func() { f.fs.before = nil }()
		for _, err := range plan.Read(ctx, ReadOptions{}) {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

func TestFilesWithoutFieldIDsNeedTheNameMapping(t *testing.T) {
	write := func(f *fixture) catalog.State {
		schema, err := table.SchemaToArrowSchema(f.meta.CurrentSchema(), nil, false, false)
		require.NoError(t, err)
		size := f.writeParquet("a.parquet", schema, numbered(0, 2))
		b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("a.parquet"), iceberg.ParquetFile, nil, nil, nil, 2, size)
		require.NoError(t, err)
		return f.commit("append", []change{added(b.Build())})
	}
	mapping := `[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}, {"field-id": 3, "names": ["cat"]}]`
	mapped := newFixture(t, fmt.Sprintf(`{"schema.name-mapping.default": %q}`, mapping))
	assert.Equal(t, []int64{0, 1}, mapped.ids(mapped.plan(Step{Way: WaySnapshot, After: write(mapped)})))

	bare := newFixture(t, "")
	plan := bare.plan(Step{Way: WaySnapshot, After: write(bare)})
	for _, err := range plan.Read(t.Context(), ReadOptions{}) {
		var unsupported *UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		assert.Contains(t, unsupported.What, "schema.name-mapping.default")
	}
}

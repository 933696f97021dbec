// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// gatedFiles counts what is open, and lets tests hold reads up.
type gatedFiles struct {
	iceio.LocalFS
	opened, open atomic.Int64
	read         func(off int64)
}

func (g *gatedFiles) Open(name string) (iceio.File, error) {
	f, err := g.LocalFS.Open(name)
	if err != nil {
		return nil, err
	}
	g.opened.Add(1)
	g.open.Add(1)
	return &gatedFile{File: f, files: g}, nil
}

type gatedFile struct {
	iceio.File
	files *gatedFiles
}

func (f *gatedFile) ReadAt(p []byte, off int64) (int, error) {
	if f.files.read != nil {
		f.files.read(off)
	}
	return f.File.ReadAt(p, off)
}

func (f *gatedFile) Close() error {
	f.files.open.Add(-1)
	return f.File.Close()
}

// inGroups writes a file of so many rows, a few in each row group, with every string of its own.
func (f *fixture) inGroups(name string, rows, groupRows int, properties ...parquet.WriterProperty) iceberg.DataFile {
	f.Helper()
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrowSchema(f.TB, f.meta.CurrentSchema()), strings.NewReader("["+strings.Join(numbered(0, rows), ",")+"]"))
	require.NoError(f, err)
	defer record.Release()
	return f.written(name, record, append(properties, parquet.WithMaxRowGroupLength(int64(groupRows)))...)
}

// written writes a record as a data file.
func (f *fixture) written(name string, record arrow.RecordBatch, properties ...parquet.WriterProperty) iceberg.DataFile {
	f.Helper()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(record.Schema(), &buf, parquet.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	require.NoError(f, err)
	require.NoError(f, w.Write(record))
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
	return f.sized(name, record.NumRows())
}

// sized describes a file that is there.
func (f *fixture) sized(name string, rows int64) iceberg.DataFile {
	f.Helper()
	info, err := os.Stat(f.path(name))
	require.NoError(f, err)
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, nil, nil, nil, rows, info.Size())
	require.NoError(f, err)
	return b.Build()
}

// offsetFile is a data file with other split offsets.
type offsetFile struct {
	iceberg.DataFile
	offsets []int64
}

func (o offsetFile) SplitOffsets() []int64 { return o.offsets }

// Whatever the row groups, the deletes, the place to resume at, the bytes in memory and what the manifest says of splits:
// one worker and four give the same batches, and their rows are those of the general decoder.
func TestAnyNumberOfWorkersGivesTheSameBatches(t *testing.T) {
	f := newFixture(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		id := 0
		next := func() int { id++; return id }
		schema := iceberg.NewSchema(7, randomField(rt, "a", 2, next), randomField(rt, "b", 1, next))
		plan, task := randomFile(rt, f, schema, schema)
		task.Deletes = randomDeletes(rt, f, task.File.Data.Count())
		task.File.Data = offsetFile{task.File.Data, rapid.SliceOfN(rapid.Int64Range(-1, 2*task.File.Data.FileSizeBytes()), 0, 5).Draw(rt, "split offsets")}
		plan.Tasks = []Task{task, task}
		want, err := generalRows(rt, t, plan, task)
		require.NoError(rt, err)
		want = append(append([]string{}, want...), want...)
		opts := ReadOptions{
			From: rapid.Int64Range(0, int64(len(want))).Draw(rt, "from"), BatchRows: rapid.SampledFrom([]int{3, 100, 4096}).Draw(rt, "batch rows"),
			Memory: rapid.SampledFrom([]int64{1, 20_000, 1 << 28}).Draw(rt, "memory"), stretch: rapid.SampledFrom([]int64{1, 2000, 1 << 20}).Draw(rt, "stretch"),
			ahead: aheadOrNot(rt), Parallelism: 1,
		}
		rows, one := allRows(t.Context(), rt, plan, opts)
		require.Equal(rt, want[opts.From:], rows)
		opts.Parallelism = 4
		_, four := allRows(t.Context(), rt, plan, opts)
		require.Equal(rt, one, four)
	})
}

// allRows reads a plan as JSON.
func allRows(ctx context.Context, t require.TestingT, plan *Plan, opts ReadOptions) (rows []string, batches []Batch) {
	rows = []string{}
	for batch, err := range plan.Read(ctx, opts) {
		require.NoError(t, err)
		for _, m := range batch.Messages {
			rows = append(rows, string(m))
		}
		batches = append(batches, batch)
	}
	return rows, batches
}

func TestReadingGoesOnAtEachRowOfAFileOfManyRowGroups(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.inGroups("a.parquet", 60, 10))})
	var gone []int64 // the third row group, and some of the others
	for i := range int64(60) {
		if i/10 == 2 || i%7 == 0 {
			gone = append(gone, i)
		}
	}
	f.commit("delete", []change{added(f.positionDeletes("d.parquet", 0, none, "a.parquet", gone...))})
	plan := f.plan(Step{Way: WayTableScan, After: f.state})
	want, _ := allRows(t.Context(), t, plan, ReadOptions{})
	require.Len(t, want, 60-len(gone))
	for from := range want {
		for _, stretch := range []int64{1, 1200, 1 << 20} {
			rows, batches := allRows(t.Context(), t, plan, ReadOptions{From: int64(from), Parallelism: 3, BatchRows: 4, stretch: stretch})
			require.Equal(t, want[from:], rows)
			require.Equal(t, int64(from), batches[0].First)
			require.True(t, batches[len(batches)-1].Last)
		}
	}
}

// The reader of the first row group waits until somebody reads the second.
func TestWorkersReadOneFileBesideEachOther(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.inGroups("a.parquet", 60_000, 30_000))})
	plan := f.plan(Step{Way: WayTableScan, After: f.state})
	require.Greater(t, plan.Tasks[0].File.Data.FileSizeBytes(), int64(aheadLargest), "smaller files are fetched whole before")
	groups, err := readRowGroups(t.Context(), f.fs, plan.Tasks[0].File, 1)
	require.NoError(t, err)
	require.Len(t, groups, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := make(chan struct{})
	var once sync.Once
	footer := f.footerStart("a.parquet")
	files := &gatedFiles{read: func(off int64) {
		switch {
		case off >= footer:
		case off >= groups[1].offset:
			once.Do(func() { close(second) })
		default:
			select {
			case <-second:
			case <-ctx.Done():
			}
		}
	}}
	plan.source.FS = files
	within(t, func() {
		defer cancel() // a single worker would wait for ever
		rows, _ := allRows(ctx, t, plan, ReadOptions{Parallelism: 2, stretch: 1})
		assert.Len(t, rows, 60_000)
		assert.Equal(t, `{"id":59999,"name":"name 59999","cat":"a"}`, rows[len(rows)-1])
	})
	assert.Equal(t, int64(1), files.opened.Load(), "opened once for all")
	assert.Zero(t, files.open.Load())
}

func TestAFileIsClosedWhenItsRestIsNotRead(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.inGroups("a.parquet", 600, 10))})
	plan := f.plan(Step{Way: WayTableScan, After: f.state})
	files := &gatedFiles{}
	plan.source.FS = files
	for batch, err := range plan.Read(t.Context(), ReadOptions{Parallelism: 2, BatchRows: 10, Memory: 1, stretch: 1}) {
		require.NoError(t, err)
		assert.Equal(t, 10, batch.Rows)
		break
	}
	assert.Positive(t, files.opened.Load())
	assert.Zero(t, files.open.Load())
}

// footerStart is where a file's footer begins.
func (f *fixture) footerStart(name string) int64 {
	f.Helper()
	raw, err := os.ReadFile(f.path(name))
	require.NoError(f, err)
	return int64(len(raw)) - 8 - int64(binary.LittleEndian.Uint32(raw[len(raw)-8:]))
}

// Numbers of fields in a footer, by parquet.thrift.
const (
	footerRows, footerGroups                    = 3, 4
	groupColumns, groupRowsField, groupOffset   = 1, 3, 5
	chunkOffset, chunkMeta                      = 2, 3
	metaEncodings, metaDataPage, metaDictionary = 2, 9, 11
	metaEncodingStats                           = 13
)

// splice appends the row groups of the second file to the first's and names the result. Where it lies, the footer says of
// them what it says of the first's.
func (f *fixture) splice(name, first, second string, lies bool) iceberg.DataFile {
	f.Helper()
	bodies, roots := [2][]byte{}, [2]*thriftValue{}
	for i, from := range []string{first, second} {
		raw, err := os.ReadFile(f.path(from))
		require.NoError(f, err)
		start := f.footerStart(from)
		bodies[i] = raw[:start]
		roots[i], err = parseThrift(raw[start : len(raw)-8])
		require.NoError(f, err)
	}
	shift := int64(len(bodies[0]) - 4)
	model := roots[0].get(footerGroups).list[0].get(groupColumns).list
	for g := range roots[1].get(footerGroups).list {
		group := &roots[1].get(footerGroups).list[g]
		move(group, groupOffset, shift)
		for c := range group.get(groupColumns).list {
			chunk := &group.get(groupColumns).list[c]
			move(chunk, chunkOffset, shift)
			meta := chunk.get(chunkMeta)
			move(meta, metaDataPage, shift)
			move(meta, metaDictionary, shift)
			if lies {
				meta.set(metaEncodings, model[c].get(chunkMeta).get(metaEncodings))
				meta.set(metaEncodingStats, nil)
			}
		}
	}
	out := roots[0]
	out.get(footerGroups).list = append(out.get(footerGroups).list, roots[1].get(footerGroups).list...)
	out.get(footerRows).number += roots[1].get(footerRows).number
	tail := out.appendTo(nil)
	raw := append(bodies[0], bodies[1][4:]...)
	raw = append(raw, tail...)
	raw = append(binary.LittleEndian.AppendUint32(raw, uint32(len(tail))), "PAR1"...)
	require.NoError(f, os.WriteFile(f.path(name), raw, 0o600))
	return f.sized(name, out.get(footerRows).number)
}

func move(v *thriftValue, field int16, by int64) {
	if n := v.get(field); n != nil && n.number > 0 {
		n.number += by
	}
}

// deltas makes a writer encode numbers in a way that is not read directly.
func deltas() []parquet.WriterProperty {
	return []parquet.WriterProperty{parquet.WithDictionaryFor("id", false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked)}
}

func TestARowGroupOfAnotherEncodingIsReadOnceAndInOrder(t *testing.T) {
	f := newFixture(t, "")
	f.inGroups("plain.parquet", 60, 10)
	f.inGroups("delta.parquet", 30, 10, deltas()...)
	var gone []int64
	for i := int64(0); i < 150; i += 4 {
		gone = append(gone, i)
	}
	for _, c := range []struct {
		name  string
		lies  bool
		opens int64 // of the data file: directly, by the general decoder once or by each worker, and to look for broken pages
	}{
		{"as the footer says", false, 2},
		{"against the footer", true, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.splice("half.parquet", "plain.parquet", "delta.parquet", c.lies)
			data := f.splice("a.parquet", "half.parquet", "plain.parquet", false)
			require.Equal(t, int64(150), data.Count())
			for _, deletes := range []bool{false, true} {
				f.manifests = nil
				f.commit("append", []change{added(data)})
				if deletes {
					f.commit("delete", []change{added(f.positionDeletes("d.parquet", 0, none, "a.parquet", gone...))})
				}
				plan := f.plan(Step{Way: WayTableScan, After: f.state})
				want, err := generalRows(t, t, plan, plan.Tasks[0])
				require.NoError(t, err)
				for _, from := range []int64{0, 55, int64(len(want)) - 3} {
					for _, workers := range []int{1, 4} {
						files := &gatedFiles{}
						plan.source.FS = files
						rows, _ := allRows(t.Context(), t, plan, ReadOptions{From: from, Parallelism: workers, BatchRows: 7, stretch: 1})
						require.Equal(t, want[from:], rows, "%d workers from row %d", workers, from)
						require.Eventually(t, func() bool { return files.open.Load() == 0 }, time.Minute, time.Millisecond, "a decoder that is stopped closes its file a little later")
						if from == 0 && !deletes && workers == 1 {
							assert.LessOrEqual(t, files.opened.Load(), c.opens)
						}
					}
				}
			}
		})
	}
}

func TestADamagedRowGroupIsNamedAfterTheRowsBeforeIt(t *testing.T) {
	f := newFixture(t, "")
	data := f.inGroups("a.parquet", 600, 100, parquet.WithCompression(compress.Codecs.Zstd))
	raw, err := os.ReadFile(f.path("a.parquet"))
	require.NoError(t, err)
	r, err := file.NewParquetReader(bytes.NewReader(raw))
	require.NoError(t, err)
	begin := beginning(r.MetaData().RowGroup(3))
	for i := begin; i < begin+300; i++ {
		raw[i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(f.path("a.parquet"), raw, 0o600))
	plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", []change{added(data)})})
	for _, workers := range []int{1, 4} {
		rows := 0
		var failed error
		for batch, err := range plan.Read(t.Context(), ReadOptions{Parallelism: workers, BatchRows: 50, stretch: 1}) {
			if err != nil {
				failed = err
				break
			}
			rows += batch.Rows
		}
		var corrupt *CorruptFileError
		require.ErrorAs(t, failed, &corrupt)
		assert.Equal(t, f.path("a.parquet"), corrupt.Path)
		assert.Equal(t, 250, rows, "one batch is held back until what follows is known")
	}
}

// Files of one table whose columns are alike and whose structs are not: which of two is missing, the same level says.
func TestStructsThatMayBeMissingInOneFileAndNotInAnother(t *testing.T) {
	field := func(id int, name string, required bool, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t, Required: required}
	}
	nested := func(outer, inner bool) *iceberg.Schema {
		leaf := &iceberg.StructType{FieldList: []iceberg.NestedField{field(3, "x", true, iceberg.PrimitiveTypes.Int64)}}
		middle := &iceberg.StructType{FieldList: []iceberg.NestedField{field(2, "b", inner, leaf)}}
		return iceberg.NewSchema(0, field(1, "a", outer, middle))
	}
	f := withSchema(t, nested(false, false))
	var files []change
	for i, c := range []struct {
		schema *iceberg.Schema
		row    string
	}{
		{nested(true, false), `{"a":{"b":null}}`},
		{nested(false, true), `{"a":null}`},
	} {
		record, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrowSchema(t, c.schema), strings.NewReader("["+c.row+`,{"a":{"b":{"x":1}}}]`))
		require.NoError(t, err)
		files = append(files, added(f.written(fmt.Sprintf("%d.parquet", i), record)))
		record.Release()
	}
	rows, _ := allRows(t.Context(), t, f.whole(files...), ReadOptions{Parallelism: 1})
	assert.Equal(t, []string{`{"a":{"b":null}}`, `{"a":{"b":{"x":1}}}`, `{"a":null}`, `{"a":{"b":{"x":1}}}`}, rows)
}

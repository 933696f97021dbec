// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// bigFile writes rows in many row groups. order gives the id at each position.
func (f *fixture) bigFile(name string, rows int, text func(i int) (id int, name string)) iceberg.DataFile {
	f.Helper()
	schema := arrowSchema(f.TB, f.meta.CurrentSchema())
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range rows {
		id, text := text(i)
		b.Field(0).(*array.Int64Builder).Append(int64(id))
		b.Field(1).(*array.StringBuilder).Append(text)
		b.Field(2).AppendNull()
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(int64(max(rows/40, 1))), parquet.WithDictionaryDefault(false)),
		pqarrow.DefaultWriterProps())
	require.NoError(f, err)
	require.NoError(f, w.Write(rec))
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(f.path(name), buf.Bytes(), 0o600))
	data, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, none, nil, nil, int64(rows), int64(buf.Len()))
	require.NoError(f, err)
	return data.Build()
}

func numberedRow(i int) (int, string) { return i, fmt.Sprintf("name of %d", i*7919%100_003) }

// countedFiles counts the bytes that are read.
type countedFiles struct {
	iceio.IO
	bytes atomic.Int64
}

func (c *countedFiles) Open(name string) (iceio.File, error) {
	f, err := c.IO.Open(name)
	if err != nil {
		return nil, err
	}
	return countedFile{f, c}, nil
}

type countedFile struct {
	iceio.File
	counter *countedFiles
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.counter.bytes.Add(int64(n))
	return n, err
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.counter.bytes.Add(int64(n))
	return n, err
}

func (f *fixture) changes(step Step, opts ChangeOptions) *ChangePlan {
	f.Helper()
	plan, err := PlanChanges(f.Context(), f.source(), step, opts)
	require.NoError(f, err)
	return plan
}

// said is a step's messages as "operation body".
func (f *fixture) said(plan *ChangePlan, opts ReadOptions) []string {
	f.Helper()
	m, err := readChanges(f.TB, plan, opts)
	require.NoError(f, err)
	said := []string{}
	for i, body := range m.bodies {
		said = append(said, m.operations[i]+" "+string(body))
	}
	return said
}

func TestARowDeletedByPositionCostsItsRowGroup(t *testing.T) {
	for name, deletes := range map[string]func(f *fixture) (*File, []File){
		"vector": func(f *fixture) (*File, []File) {
			return &File{Data: f.vector("v.puffin", "a.parquet", 123_456), path: f.path("v.puffin")}, nil
		},
		"position deletes": func(f *fixture) (*File, []File) {
			return nil, []File{{Data: f.positionDeletes("p.parquet", 0, none, "a.parquet", 123_456), path: f.path("p.parquet")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			a := f.bigFile("a.parquet", 200_000, numberedRow)
			f.commit("append", []change{added(a)})
			before := f.state
			plan := f.changes(Step{Way: WayBridge, Before: &before, After: f.commit("append")}, ChangeOptions{})
			vector, position := deletes(f)
			plan.Changed = []Change{{File: File{Data: a, path: f.path("a.parquet"), Sequence: 1}, After: Deletes{Vector: vector, Position: position}}}
			plan.Kind = KindDelete
			counted := &countedFiles{IO: f.fs}
			plan.source.FS, plan.before.source.FS = counted, counted
			_, text := numberedRow(123_456)
			assert.Equal(t, []string{fmt.Sprintf(`delete {"id":123456,"name":%q,"cat":null}`, text)}, f.said(plan, ReadOptions{}))
			assert.Less(t, counted.bytes.Load(), a.FileSizeBytes()/10, "of a file of %d bytes", a.FileSizeBytes())
		})
	}
}

// rewritten is the step that replaces a file of numbered rows by another.
func (f *fixture) rewritten(rows int, text func(i int) (int, string)) Step {
	a := f.bigFile("a.parquet", rows, numberedRow)
	before := f.commit("append", []change{added(a)})
	b := f.bigFile("b.parquet", rows, text)
	after := f.commitOn(nil, "overwrite", []change{added(b), deleted(a, 1)})
	return Step{Way: WaySnapshot, Before: &before, After: after}
}

func changedRow(i int) (int, string) {
	if i == 77_777 {
		return i, "other"
	}
	return numberedRow(i)
}

func TestARewrittenFileNeedsMemoryForWhatMoved(t *testing.T) {
	f := newFixture(t, "")
	step := f.rewritten(100_000, changedRow)
	_, text := numberedRow(77_777)
	plan := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}})
	nowhere := ReadOptions{Memory: 12 << 20, SpillDir: f.path("nowhere")}
	assert.Equal(t, []string{
		fmt.Sprintf(`update_before {"id":77777,"name":%q,"cat":null}`, text),
		`update_after {"id":77777,"name":"other","cat":null}`,
	}, f.said(plan, nowhere), "rows in the same order never reach the disk")
}

func TestRowsInAnotherOrderGoToDisk(t *testing.T) {
	f := newFixture(t, "")
	const rows = 100_000
	step := f.rewritten(rows, func(i int) (int, string) { return changedRow(rows - 1 - i) })
	plan := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}, DeletePayload: PayloadKey})
	nowhere := f.path("nowhere")
	_, err := readChanges(t, plan, ReadOptions{Memory: 4 << 20, SpillDir: nowhere})
	var spill *SpillError
	require.ErrorAs(t, err, &spill)
	assert.Equal(t, nowhere, spill.Dir)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.Mkdir(nowhere, 0o700))
	said := f.said(plan, ReadOptions{Memory: 4 << 20, SpillDir: nowhere})
	require.Len(t, said, 2)
	assert.Equal(t, `update_after {"id":77777,"name":"other","cat":null}`, said[1])
	assertEmptyFolder(t, nowhere)
	assert.Equal(t, said, f.said(plan, ReadOptions{Memory: 64 << 10, SpillDir: nowhere}), "several levels of partitions")
}

func assertEmptyFolder(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestCancellingRemovesWhatWasSpilled(t *testing.T) {
	f := newFixture(t, "")
	const rows = 20_000
	step := f.rewritten(rows, func(i int) (int, string) { return i + rows, "new" })
	plan := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}})
	dir := f.path("spill")
	require.NoError(t, os.Mkdir(dir, 0o700))
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var batches int
	var last error
	for _, err := range plan.Read(ctx, ReadOptions{Memory: 64 << 10, SpillDir: dir, BatchRows: 10}) {
		if last = err; err == nil {
			batches++
			cancel(stop)
		}
	}
	require.ErrorIs(t, last, stop)
	assert.Less(t, batches, 10)
	assertEmptyFolder(t, dir)
	for _, err := range plan.Read(t.Context(), ReadOptions{Memory: 64 << 10, SpillDir: dir}) {
		require.NoError(t, err)
		break
	}
	assertEmptyFolder(t, dir)
}

func TestAKeyWithSeveralRowsPairsInRowOrder(t *testing.T) {
	row := func(id int, name string) string { return fmt.Sprintf(`{"id": %d, "name": %q, "cat": null}`, id, name) }
	f := newFixture(t, "")
	a := f.dataFile("a.parquet", 0, none, row(1, "a"), row(2, "kept"), row(1, "b"), row(3, "x"), row(4, "y"))
	before := f.commit("append", []change{added(a)})
	b := f.dataFile("b.parquet", 0, none, row(2, "kept"), row(1, "c"), row(3, "x1"), row(3, "x2"), row(5, "z"))
	after := f.commitOn(nil, "overwrite", []change{added(b), deleted(a, 1)})
	step := Step{Way: WaySnapshot, Before: &before, After: after}
	out := func(id int, name string) string { return fmt.Sprintf(`{"id":%d,"name":%q,"cat":null}`, id, name) }
	want := []string{
		`delete {"id":1}`, "update_before " + out(1, "a"), "update_after " + out(1, "c"),
		"update_before " + out(3, "x"), "update_after " + out(3, "x1"), "insert " + out(3, "x2"),
		`delete {"id":4}`, "insert " + out(5, "z"),
	}
	keyed := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}, DeletePayload: PayloadKey})
	assert.Equal(t, []string{"id"}, keyed.Keys)
	assert.Equal(t, want, f.said(keyed, ReadOptions{}))
	assert.Equal(t, want, f.said(keyed, ReadOptions{BatchRows: 1, Memory: 1}))
	for from := range want {
		assert.Equal(t, want[from:], f.said(keyed, ReadOptions{From: int64(from)}))
	}
	_, err := readChanges(t, keyed, ReadOptions{From: int64(len(want)) + 1})
	require.ErrorContains(t, err, "1 messages before")
	_, err = readChanges(t, keyed, ReadOptions{Format: FormatNDJSON})
	var key *KeyError
	require.ErrorAs(t, err, &key)

	plain := f.changes(step, ChangeOptions{})
	assert.Equal(t, []string{
		"delete " + out(1, "a"), "delete " + out(1, "b"), "delete " + out(3, "x"), "delete " + out(4, "y"),
		"insert " + out(1, "c"), "insert " + out(3, "x1"), "insert " + out(3, "x2"), "insert " + out(5, "z"),
	}, f.said(plain, ReadOptions{}))
	assert.NotEqual(t, keyed.Digest, plain.Digest)
	var lines []string
	for b, err := range plain.Read(t.Context(), ReadOptions{Format: FormatNDJSON, BatchRows: 3}) {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprint(b.First, " ", b.Operation, " ", b.Rows, " ", bytes.Count(b.Messages[0], []byte("\n"))))
	}
	assert.Equal(t, []string{"0 delete 3 3", "3 delete 1 1", "4 insert 3 3", "7 insert 1 1"}, lines)

	addedRows := f.changes(step, ChangeOptions{Mode: AddedRows})
	assert.Equal(t, []string{
		"insert " + out(1, "c"), "insert " + out(3, "x1"), "insert " + out(3, "x2"), "insert " + out(5, "z"),
	}, f.said(addedRows, ReadOptions{}))
}

func TestAStepThatOnlyDeletesReadsNoMoreThanItDelivers(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataFile("a.parquet", 0, none, numbered(0, 5)...)
	before := f.commit("append", []change{added(a)})
	after := f.commitOn(nil, "delete", []change{deleted(a, 1)})
	step := Step{Way: WaySnapshot, Before: &before, After: after}
	keys := f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}, DeletePayload: PayloadKey})
	assert.Equal(t, []string{`delete {"id":0}`, `delete {"id":1}`, `delete {"id":2}`, `delete {"id":3}`, `delete {"id":4}`}, f.said(keys, ReadOptions{BatchRows: 2}))
	rows := f.changes(step, ChangeOptions{})
	assert.Len(t, f.said(rows, ReadOptions{BatchRows: 2}), 5)
	assert.Len(t, f.said(rows, ReadOptions{From: 3}), 2)
	inserted, deletedRows, err := rows.Net(t.Context(), ReadOptions{})
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 5}, []int64{inserted, deletedRows})
}

func TestFilesOfEitherSideThatAreGoneStopTheStep(t *testing.T) {
	for name, test := range map[string]struct {
		gone     string
		kind     FileKind
		snapshot int64
	}{
		"removed file":             {"a.parquet", DataFileKind, 1001},
		"added file":               {"b.parquet", DataFileKind, 1002},
		"file of changed deletes":  {"c.parquet", DataFileKind, 1001},
		"delete file":              {"p.parquet", DeleteFileKind, 1002},
		"delete file of equality":  {"e.parquet", DeleteFileKind, 1002},
		"manifest list before":     {"snap-1001.avro", ManifestListKind, 1001},
		"manifest of before alone": {"m-1001-0.avro", ManifestKind, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			a, c := f.dataFile("a.parquet", 0, none, numbered(0, 3)...), f.dataFile("c.parquet", 0, none, numbered(5, 9)...)
			before := f.commit("append", []change{added(a), added(c)})
			after := f.commitOn(nil, "overwrite",
				[]change{added(f.dataFile("b.parquet", 0, none, numbered(1, 4)...)), deleted(a, 1), existing(c, 1001, 1)},
				[]change{
					added(f.positionDeletes("p.parquet", 0, none, "c.parquet", 1)),
					added(f.equalityDeletes("e.parquet", 0, none, 7)),
				})
			f.remove(test.gone)
			plan, err := PlanChanges(t.Context(), f.source(), Step{Way: WayBridge, Before: &before, After: after}, ChangeOptions{})
			if err == nil {
				for b, err2 := range plan.Read(t.Context(), ReadOptions{BatchRows: 1}) {
					assert.Empty(t, b.Messages)
					err = err2
				}
			}
			var missing *MissingFileError
			require.ErrorAs(t, err, &missing)
			assert.Equal(t, test.kind, missing.Kind)
			assert.Equal(t, test.snapshot, missing.Snapshot)
			assert.Equal(t, f.path(test.gone), missing.Path)
		})
	}
}

func TestNothingCancelsWhereTheTableOrAColumnIsAnother(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataFile("a.parquet", 0, none, numbered(0, 2)...)
	before := f.commit("append", []change{added(a)})
	other, err := table.ParseMetadataString(strings.Replace(fmt.Sprintf(tableText, f.dir, "{}"),
		`{"id": 2, "name": "name", "required": false, "type": "string"}`, `{"id": 2, "name": "num", "required": false, "type": "double"}`, 1))
	require.NoError(t, err)
	meta := f.meta
	f.meta = other
	b := f.writeParquet("b.parquet", arrowSchema(t, other.CurrentSchema()), []string{`{"id": 0, "num": 1.5, "cat": null}`})
	data, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("b.parquet"), iceberg.ParquetFile, none, nil, nil, 1, b)
	require.NoError(t, err)
	after := f.commitOn(nil, "overwrite", []change{added(data.Build()), deleted(a, 1)})
	step := Step{Way: WayBridge, Before: &before, After: after, BeforeMeta: meta}
	want := []string{
		`delete {"id":0,"name":"name 0","cat":"a"}`, `delete {"id":1,"name":"name 1","cat":"a"}`, `insert {"id":0,"num":1.5,"cat":null}`,
	}
	plan := f.changes(step, ChangeOptions{})
	assert.Equal(t, want, f.said(plan, ReadOptions{}))
	for from := range want {
		assert.Equal(t, want[from:], f.said(plan, ReadOptions{From: int64(from)}))
	}
	assert.Equal(t, []string{`delete {"id":0}`, `delete {"id":1}`, want[2]},
		f.said(f.changes(step, ChangeOptions{IdentifierFields: []string{"id"}, DeletePayload: PayloadKey}), ReadOptions{}))
	assert.Equal(t, want[2:], f.said(f.changes(step, ChangeOptions{Mode: AddedRows}), ReadOptions{}))

	replaced := before
	replaced.TableUUID, step.Before = "another", &replaced
	step.After.TableUUID, step.After.ManifestList = "this", before.ManifestList
	f.meta = meta
	assert.Empty(t, f.said(f.changes(Step{Way: WayBridge, Before: &replaced, After: step.After}, ChangeOptions{}), ReadOptions{}), "kept files are not read")
}

func TestKeysThatCanNotBeKeysAreRefused(t *testing.T) {
	f := newFixture(t, "")
	state := f.commit("append", []change{added(f.dataFile("a.parquet", 0, none, numbered(0, 2)...))})
	empty := catalog.State{SnapshotID: catalog.NoSnapshot}
	step := Step{Way: WayBridge, Before: &empty, After: state, Columns: []string{"id"}}
	_, err := PlanChanges(t.Context(), f.source(), step, ChangeOptions{IdentifierFields: []string{"name"}})
	var key *KeyError
	require.ErrorAs(t, err, &key)
	assert.Equal(t, "name", key.Column)
	_, err = PlanChanges(t.Context(), f.source(), step, ChangeOptions{IdentifierFields: []string{"nme"}})
	var unknown *UnknownColumnError
	require.ErrorAs(t, err, &unknown)
}

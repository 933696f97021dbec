// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

var none map[int]any

func cat(value any) map[int]any { return map[int]any{1000: value} }

func (f *fixture) deleteEntry(name string, content iceberg.ManifestEntryContent, spec int, partition map[int]any, opts ...fileOption) iceberg.DataFile {
	return f.entryFile(name, content, spec, partition, 1, opts...)
}

func TestASnapshotYieldsWhatItAddedAndNothingThatWasThere(t *testing.T) {
	f := newFixture(t, "")
	first := f.dataEntry("a.parquet", 0, none)
	f.commit("append", []change{added(first)})
	state := f.commitOn(nil, "append", []change{
		existing(first, 1001, 1), added(f.dataEntry("b.parquet", 0, none)),
	})
	plan := f.plan(Step{Way: WaySnapshot, After: state})
	assert.Equal(t, KindAppend, plan.Kind)
	assert.Equal(t, []string{"b.parquet"}, names(plan.Tasks))
	assert.Equal(t, int64(10), plan.Records)
	assert.Equal(t, int64(1000), plan.Bytes)
	assert.Equal(t, 1, plan.Files)
}

func TestManifestsOfOtherSnapshotsStayClosed(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
	f.commit("delete", []change{added(f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 0, none))})
	state := f.commit("append", []change{added(f.dataEntry("b.parquet", 0, none))})
	f.fs.opened = nil
	plan := f.plan(Step{Way: WaySnapshot, After: state})
	assert.Equal(t, []string{"b.parquet"}, names(plan.Tasks))
	assert.Equal(t, []string{"snap-1003.avro", "m-1003-0.avro"}, f.fs.opened)
	assert.Equal(t, 1, plan.ManifestsOpened)
}

func TestDeletesOfTheSameSnapshotApplyToItsOwnFiles(t *testing.T) {
	for name, test := range map[string]struct {
		content iceberg.ManifestEntryContent
		want    string
	}{
		"position deletes": {iceberg.EntryContentPosDeletes, "a.parquet -d.parquet"},
		"equality deletes only reach lower sequence numbers": {iceberg.EntryContentEqDeletes, "a.parquet"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			state := f.commit("overwrite",
				[]change{added(f.dataEntry("a.parquet", 0, none))},
				[]change{added(f.deleteEntry("d.parquet", test.content, 0, none))})
			plan := f.plan(Step{Way: WaySnapshot, After: state})
			assert.Equal(t, KindOverwrite, plan.Kind)
			assert.Equal(t, []string{test.want}, names(plan.Tasks))
		})
	}
}

func TestAFileAddedAgainWithItsOldSequenceNumberKeepsOlderDeletes(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataEntry("a.parquet", 1, cat("x"))
	f.commit("append", []change{added(a)})
	f.commit("delete", []change{added(f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 1, cat("x")))})
	f.commit("delete", []change{added(f.deleteEntry("other.parquet", iceberg.EntryContentPosDeletes, 1, cat("y")))})
	f.commit("delete", []change{added(f.deleteEntry("global.parquet", iceberg.EntryContentEqDeletes, 0, none))})
	state := f.commit("append", []change{addedAt(a, 1)})
	plan := f.plan(Step{Way: WaySnapshot, After: state})
	assert.Equal(t, KindAppend, plan.Kind)
	assert.Equal(t, []string{"a.parquet -d.parquet -global.parquet"}, names(plan.Tasks))
	assert.Equal(t, int64(-1), plan.Records)
	assert.Equal(t, 3, plan.ManifestsOpened, "the other partition's deletes stay closed")
}

func TestTheKindComesFromEntries(t *testing.T) {
	f := newFixture(t, "")
	data := f.dataEntry("a.parquet", 0, none)
	position := f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 0, none)
	for name, test := range map[string]struct {
		groups [][]change
		want   Kind
	}{
		"nothing":                           {nil, KindEmpty},
		"data files came":                   {[][]change{{added(data)}}, KindAppend},
		"data files went":                   {[][]change{{deleted(data, 1)}}, KindDelete},
		"delete files came":                 {[][]change{{added(position)}}, KindDelete},
		"data files came and went":          {[][]change{{added(data), deleted(data, 1)}}, KindOverwrite},
		"data files and delete files came":  {[][]change{{added(data)}, {added(position)}}, KindOverwrite},
		"delete files went":                 {[][]change{{deleted(position, 1)}}, KindOverwrite},
		"files were only carried over":      {[][]change{{existing(data, 7, 1)}, {existing(position, 7, 1)}}, KindEmpty},
		"delete files went and came for it": {[][]change{{added(position), deleted(position, 1)}}, KindDelete},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			f.state.Sequence = 5
			state := f.commitOn(nil, "append", test.groups...)
			assert.Equal(t, test.want, f.plan(Step{Way: WaySnapshot, After: state}).Kind)
		})
	}
}

func TestADeletedEntryCountsThoughItNamesTheSnapshotThatAddedTheFile(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataEntry("a.parquet", 0, none)
	f.commit("append", []change{added(a)})
	state := f.commitOn(nil, "overwrite",
		[]change{added(f.dataEntry("b.parquet", 0, none))},
		[]change{{status: iceberg.EntryStatusDELETED, file: a, snapshot: 1001, sequence: 1}})
	assert.Equal(t, KindOverwrite, f.plan(Step{Way: WaySnapshot, After: state}).Kind)
}

func TestAReplaceIsTrustedWhenItKeepsTheNumberOfRows(t *testing.T) {
	old := numbered(0, 10)
	for name, test := range map[string]struct {
		operation string
		deletes   []int64
		rows      int
		want      Kind
	}{
		"same number of rows":               {"replace", nil, 10, KindReplace},
		"other number of rows":              {"replace", nil, 9, KindOverwrite},
		"deletes went into the new file":    {"replace", []int64{1, 2, 2}, 8, KindReplace},
		"deleted rows came back":            {"replace", []int64{1, 2}, 10, KindOverwrite},
		"an overwrite is not taken for one": {"overwrite", nil, 10, KindOverwrite},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			a := f.dataFile("a.parquet", 0, none, old...)
			f.commit("append", []change{added(a)})
			if test.deletes != nil {
				f.commit("delete", []change{added(f.positionDeletes("d.parquet", 0, none, "a.parquet", test.deletes...))})
			}
			state := f.commit(test.operation, []change{
				added(f.dataFile("b.parquet", 0, none, numbered(0, test.rows)...)), deleted(a, 1),
			})
			assert.Equal(t, test.want, f.plan(Step{Way: WaySnapshot, After: state}).Kind)
		})
	}
}

func TestAReplaceWhoseFilesAreGoneStaysAnOverwrite(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataEntry("a.parquet", 0, none)
	f.commit("append", []change{added(a)})
	f.commit("delete", []change{added(f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 0, none))})
	state := f.commit("replace", []change{added(f.dataEntry("b.parquet", 0, none)), deleted(a, 1)})
	assert.Equal(t, KindOverwrite, f.plan(Step{Way: WaySnapshot, After: state}).Kind)
}

func TestEmbeddedManifestsOfFormatVersion1AreRead(t *testing.T) {
	f := newFixture(t, "")
	snapshot, old := int64(7), int64(6)
	a, b := f.dataEntry("a.parquet", 1, cat("x")), f.dataEntry("b.parquet", 1, cat("x"))
	f.writeV1("m.avro", snapshot, iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &old, nil, nil, a),
		iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snapshot, nil, nil, b))
	state := catalog.State{SnapshotID: snapshot, SchemaID: 1, Manifests: []string{f.path("m.avro")}, FormatVersion: 1}
	plan := f.plan(Step{Way: WaySnapshot, After: state})
	assert.Equal(t, KindAppend, plan.Kind)
	assert.Equal(t, []string{"b.parquet"}, names(plan.Tasks))
	assert.Equal(t, []string{"a.parquet", "b.parquet"}, names(f.plan(Step{Way: WayTableScan, After: state}).Tasks))
}

func TestASnapshotWithEmbeddedManifestsIsComparedWithTheOneBefore(t *testing.T) {
	f := newFixture(t, "")
	first, second := int64(6), int64(7)
	a, b := f.dataEntry("a.parquet", 1, cat("x")), f.dataEntry("b.parquet", 1, cat("x"))
	f.writeV1("m.avro", first, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &first, nil, nil, a))
	f.writeV1("n.avro", second, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &second, nil, nil, b))
	before := catalog.State{SnapshotID: first, SchemaID: 1, Manifests: []string{f.path("m.avro")}, FormatVersion: 1}
	after := catalog.State{SnapshotID: second, SchemaID: 1, Manifests: []string{f.path("n.avro")}, FormatVersion: 1}
	plan := f.plan(Step{Way: WaySnapshot, Before: &before, After: after})
	assert.Equal(t, KindOverwrite, plan.Kind)
	assert.Equal(t, []string{"b.parquet"}, names(plan.Tasks))
	assert.Equal(t, []string{"a.parquet"}, names(plan.Removed))
}

func TestNoSnapshotHoldsNothing(t *testing.T) {
	f := newFixture(t, "")
	empty := catalog.State{SnapshotID: catalog.NoSnapshot}
	plan := f.plan(Step{Way: WayTableScan, After: empty})
	assert.Empty(t, plan.Tasks)
	assert.Equal(t, int64(0), plan.Records)
	state := f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
	assert.Equal(t, KindAppend, f.plan(Step{Way: WayBridge, Before: &empty, After: state}).Kind)
	back := f.plan(Step{Way: WayBridge, Before: &state, After: empty})
	assert.Equal(t, KindDelete, back.Kind)
	assert.Equal(t, []string{"a.parquet"}, names(back.Removed))
}

func TestABridgeLeavesSharedManifestsClosed(t *testing.T) {
	f := newFixture(t, "")
	for range 5 {
		f.commit("append", []change{added(f.dataEntry("old.parquet", 0, none))})
	}
	before := f.state
	f.commit("append", []change{added(f.dataEntry("b.parquet", 0, none))})
	after := f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
	plan := f.plan(Step{Way: WayBridge, Before: &before, After: after})
	assert.Equal(t, KindAppend, plan.Kind)
	assert.Equal(t, []string{"b.parquet", "a.parquet"}, names(plan.Tasks), "in order of data sequence numbers")
	assert.Equal(t, 2, plan.ManifestsOpened)
}

func TestABridgeFindsFilesWhoseDeletesChanged(t *testing.T) {
	f := newFixture(t, "")
	f.commit("append", []change{added(f.dataEntry("x.parquet", 1, cat("x")))})
	f.commit("append", []change{added(f.dataEntry("y.parquet", 1, cat("y")))})
	f.commit("delete", []change{added(f.deleteEntry("d1.parquet", iceberg.EntryContentPosDeletes, 1, cat("x")))})
	before := f.state
	after := f.commit("delete", []change{added(f.deleteEntry("d2.parquet", iceberg.EntryContentPosDeletes, 1, cat("x")))})
	plan := f.plan(Step{Way: WayBridge, Before: &before, After: after})
	assert.Equal(t, KindDelete, plan.Kind)
	require.Len(t, plan.Changed, 1)
	change := plan.Changed[0]
	assert.Equal(t, []string{"x.parquet -d1.parquet"}, names([]Task{{File: change.File, Deletes: change.Before}}))
	assert.Equal(t, []string{"x.parquet -d1.parquet -d2.parquet"}, names([]Task{{File: change.File, Deletes: change.After}}))
	assert.Equal(t, 3, plan.ManifestsOpened, "the manifest of partition y stays closed")

	back := f.plan(Step{Way: WayBridge, Before: &after, After: before})
	assert.Equal(t, KindOverwrite, back.Kind, "rows come back")
	assert.Len(t, back.Changed, 1)
}

func TestABridgeKeepsAPathThatIsLiveTwice(t *testing.T) {
	f := newFixture(t, "")
	a := f.dataEntry("a.parquet", 0, none)
	before := f.commit("append", []change{added(a)})
	after := f.commit("append", []change{added(a)})
	plan := f.plan(Step{Way: WayBridge, Before: &before, After: after})
	assert.Equal(t, []string{"a.parquet"}, names(plan.Tasks))
	scan := f.plan(Step{Way: WayTableScan, After: after})
	assert.Equal(t, []string{"a.parquet", "a.parquet"}, names(scan.Tasks))
}

func TestARewrittenManifestChangesNothing(t *testing.T) {
	f := newFixture(t, "")
	a, b := f.dataEntry("a.parquet", 0, none), f.dataEntry("b.parquet", 0, none)
	f.commit("append", []change{added(a)})
	before := f.commit("append", []change{added(b)})
	after := f.commitOn(nil, "replace", []change{existing(a, 1001, 1), existing(b, 1002, 2)})
	plan := f.plan(Step{Way: WayBridge, Before: &before, After: after})
	assert.Equal(t, KindEmpty, plan.Kind)
	assert.Equal(t, KindEmpty, f.plan(Step{Way: WaySnapshot, After: after}).Kind)
}

func TestCatchingUpNeedsAProof(t *testing.T) {
	build := func(t *testing.T) (*fixture, catalog.State) {
		f := newFixture(t, "")
		f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
		before := f.commit("append", []change{added(f.dataEntry("b.parquet", 0, none))})
		before.Records = 20
		f.commit("append", []change{added(f.dataEntry("c.parquet", 0, none))})
		return f, before
	}
	t.Run("files above the sequence number", func(t *testing.T) {
		f, before := build(t)
		plan := f.plan(Step{Way: WayCatchUp, Before: &before, After: f.state})
		assert.Equal(t, KindAppend, plan.Kind)
		assert.Equal(t, []string{"c.parquet"}, names(plan.Tasks))
	})
	for name, test := range map[string]struct {
		spoil  func(f *fixture, before *catalog.State)
		reason string
	}{
		"rows went":        {func(_ *fixture, b *catalog.State) { b.Records = 21 }, "of the 21 records of snapshot 1002, 20 are in live files"},
		"number not known": {func(_ *fixture, b *catalog.State) { b.Records = -1 }, "it is not known how many records snapshot 1002 held"},
		"format version 1": {func(_ *fixture, b *catalog.State) { b.Sequence = 0 }, "snapshot 1002 has no sequence number (format version 1)"},
		"a newer delete file": {func(f *fixture, _ *catalog.State) {
			f.commit("delete", []change{added(f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 0, none))})
		}, "d.parquet is newer than snapshot 1002"},
	} {
		t.Run(name, func(t *testing.T) {
			f, before := build(t)
			test.spoil(f, &before)
			_, err := PlanStep(t.Context(), f.source(), Step{Way: WayCatchUp, Before: &before, After: f.state})
			var refusal *CatchUpError
			require.ErrorAs(t, err, &refusal)
			assert.Contains(t, refusal.Reason, test.reason)
		})
	}
}

func TestColumnsAreProjectedInTableOrder(t *testing.T) {
	f := newFixture(t, "")
	state := f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
	plan := f.plan(Step{Way: WayTableScan, After: state, Columns: []string{"cat", "id"}})
	assert.Equal(t, []string{"id", "cat"}, columnNames(plan.Schema))
	_, err := PlanStep(t.Context(), f.source(), Step{Way: WayTableScan, After: state, Columns: []string{"Nmae"}})
	var unknown *UnknownColumnError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, []string{"name"}, unknown.Close)
	require.EqualError(t, err, `schema 1 has no column "Nmae"; it has name`)
}

func TestTheDigestNamesWhatIsReadAndInWhichOrder(t *testing.T) {
	f := newFixture(t, "")
	a, b := f.dataEntry("a.parquet", 0, none), f.dataEntry("b.parquet", 0, none)
	one := f.commitOn(nil, "append", []change{added(a), added(b)})
	digest := f.plan(Step{Way: WayTableScan, After: one}).Digest
	assert.Equal(t, digest, f.plan(Step{Way: WaySnapshot, After: one}).Digest, "found another way, the same rows")

	other := newFixture(t, "")
	other.dir = f.dir
	assert.Equal(t, digest, other.plan(Step{Way: WayTableScan, After: other.commit("append", []change{added(b)}, []change{added(a)})}).Digest)

	digests := []string{digest}
	for _, step := range []Step{
		{Way: WayTableScan, After: one, Columns: []string{"id"}},
		{Way: WayTableScan, After: one, Schema: f.meta.Schemas()[0]},
		{Way: WayTableScan, After: f.commit("delete", []change{added(f.deleteEntry("d.parquet", iceberg.EntryContentPosDeletes, 0, none))})},
	} {
		d := f.plan(step).Digest
		assert.False(t, slices.Contains(digests, d))
		digests = append(digests, d)
	}
}

func TestWhatCannotBeReadIsRefusedWhilePlanning(t *testing.T) {
	encrypted := func(b *iceberg.DataFileBuilder) { b.KeyMetadata([]byte{1}) }
	for name, test := range map[string]struct {
		file func(f *fixture) iceberg.DataFile
		what string
	}{
		"Avro": {func(f *fixture) iceberg.DataFile { return f.dataEntry("a.avro", 0, none) }, "Avro data file"},
		"ORC":  {func(f *fixture) iceberg.DataFile { return f.dataEntry("a.orc", 0, none) }, "ORC data file"},
		"encrypted": {func(f *fixture) iceberg.DataFile {
			return f.entryFile("a.parquet", iceberg.EntryContentData, 0, none, 1, encrypted)
		}, "encrypted data file"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			state := f.commit("append", []change{added(test.file(f))})
			_, err := PlanStep(t.Context(), f.source(), Step{Way: WaySnapshot, After: state})
			var unsupported *UnsupportedError
			require.ErrorAs(t, err, &unsupported)
			assert.Equal(t, test.what, unsupported.What)
			assert.NotEmpty(t, unsupported.Path)
		})
	}
	t.Run("an encrypted table", func(t *testing.T) {
		f := newFixture(t, `{"encryption.key-id": "k"}`)
		_, err := PlanStep(t.Context(), f.source(), Step{Way: WayTableScan, After: f.state})
		require.EqualError(t, err, "encrypted table is not supported")
	})
	t.Run("an overwrite is left to the caller, and to Read", func(t *testing.T) {
		f := newFixture(t, "")
		state := f.commit("overwrite", []change{added(f.dataEntry("b.orc", 0, none)), deleted(f.dataEntry("a.orc", 0, none), 1)})
		plan := f.plan(Step{Way: WaySnapshot, After: state})
		assert.Equal(t, KindOverwrite, plan.Kind)
		for _, err := range plan.Read(t.Context(), ReadOptions{}) {
			require.ErrorContains(t, err, "ORC data file is not supported")
		}
	})
}

func TestMetadataThatIsGoneOrBrokenIsNamed(t *testing.T) {
	setup := func(t *testing.T) *fixture {
		f := newFixture(t, "")
		f.commit("append", []change{added(f.dataEntry("a.parquet", 0, none))})
		return f
	}
	for _, file := range []struct {
		name string
		kind FileKind
	}{{"snap-1001.avro", ManifestListKind}, {"m-1001-0.avro", ManifestKind}} {
		t.Run(string(file.kind), func(t *testing.T) {
			f := setup(t)
			f.truncate(file.name)
			_, err := PlanStep(t.Context(), f.source(), Step{Way: WayTableScan, After: f.state})
			var corrupt *CorruptFileError
			require.ErrorAs(t, err, &corrupt)
			assert.Equal(t, file.kind, corrupt.Kind)
			assert.Equal(t, f.path(file.name), corrupt.Path)

			f.remove(file.name)
			_, err = PlanStep(t.Context(), f.source(), Step{Way: WayTableScan, After: f.state})
			var missing *MissingFileError
			require.ErrorAs(t, err, &missing)
			assert.Equal(t, MissingFileError{Snapshot: 1001, Path: f.path(file.name), Kind: file.kind}, *missing)
		})
	}
	t.Run("a schema", func(t *testing.T) {
		f := setup(t)
		f.state.SchemaID = 5
		_, err := PlanStep(t.Context(), f.source(), Step{Way: WayTableScan, After: f.state})
		require.EqualError(t, err, "snapshot 1001 has schema 5, which its metadata file does not hold")
	})
}

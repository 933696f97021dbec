// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

func TestStarts(t *testing.T) {
	s := newShop(t)
	s.add(1)
	second := s.add(2)
	s.add(3)
	tests := map[string]struct {
		fields []string
		want   []string
		kind   []any
	}{
		"table scan":        {nil, orders(1, 2, 3), []any{"read", "read", "read", "insert"}},
		"earliest":          {[]string{"start_from: earliest"}, orders(1, 2, 3), []any{"insert", "insert", "insert", "insert"}},
		"latest":            {[]string{"start_from: latest"}, nil, []any{"insert"}},
		"a snapshot of old": {[]string{fmt.Sprintf("start_snapshot_id: %q", snapshotOf(second))}, orders(2, 3), []any{"insert", "insert", "insert"}},
	}
	rigs := map[string]*rig{}
	for name, tc := range tests {
		rigs[name] = newRig(t)
		rigs[name].run(s.increments(tc.fields...))
		assert.ElementsMatch(t, tc.want, rigs[name].out.bodies(), name)
		rigs[name].run(s.increments(tc.fields...))
		assert.ElementsMatch(t, tc.want, rigs[name].out.bodies(), "%s: a restart delivers nothing again", name)
	}
	s.add(4)
	for name, tc := range tests {
		r := rigs[name]
		r.run(s.increments(tc.fields...))
		assert.ElementsMatch(t, append(tc.want, tables.Order(4)), r.out.bodies(), "%s: then increments", name)
		var kinds []any
		for _, row := range r.out.all() {
			kinds = append(kinds, row.meta["operation"])
		}
		assert.Equal(t, tc.kind, kinds, name)
	}
}

func TestLatestOnAQuietTableSurvivesARestart(t *testing.T) {
	s := newShop(t)
	first := s.add(1)
	r := newRig(t)
	l := r.start(s.increments("start_from: latest", "poll_interval: 1ms"))
	r.eventually(func() bool { return r.cache.at(snapshotOf(first)) }, "the start is stored")
	l.stop()
	s.add(2)
	r.run(s.increments("start_from: latest"))
	assert.Equal(t, orders(2), r.out.bodies())
}

func TestAnEmptyTableGetsItsFirstSnapshot(t *testing.T) {
	for _, start := range []string{"table_scan", "earliest", "latest"} {
		t.Run(start, func(t *testing.T) {
			s := newShop(t)
			r := newRig(t)
			fields := s.increments("start_from: " + start)
			r.run(fields)
			assert.True(t, r.cache.at(""), "no snapshot is a state too")
			s.add(1, 2)
			r.run(fields)
			assert.Equal(t, orders(1, 2), r.out.bodies())
			assert.Equal(t, "insert", r.out.all()[0].meta["operation"])
		})
	}
}

// The output takes one batch of a step in the first life. What happens to the
// table before the second is no matter: the step is finished from its own
// files.
func TestAStepInProgressIsFinishedFromItsOwnFiles(t *testing.T) {
	tests := map[string]struct {
		start string
		steps func(*shop)
		want  []string
	}{
		"a scan, compacted meanwhile":    {"table_scan", func(s *shop) { s.commit(nessietest.Compact()) }, orders(span(1, 6)...)},
		"a scan, more rows meanwhile":    {"table_scan", func(s *shop) { s.add(7) }, orders(span(1, 7)...)},
		"an append, compacted meanwhile": {"earliest", func(s *shop) { s.commit(nessietest.Compact()) }, orders(span(1, 6)...)},
		"an append, more rows meanwhile": {"earliest", func(s *shop) { s.add(7) }, orders(span(1, 7)...)},
		"an append, compaction and more": {"earliest", func(s *shop) { s.commit(nessietest.Compact(), nessietest.Append(tables.Order(7))) }, orders(span(1, 7)...)},
		"metadata alone changed":         {"earliest", func(s *shop) { s.commit(nessietest.SetProperties(iceberg.Properties{"a": "b"})) }, orders(span(1, 6)...)},
		"another column meanwhile":       {"earliest", func(s *shop) { s.commit(nessietest.ChangeSchema(addColumn("note"))) }, orders(span(1, 6)...)},
		"nothing happened":               {"earliest", func(*shop) {}, orders(span(1, 6)...)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.commit(nessietest.AppendFiles(orders(1, 2, 3), orders(4, 5, 6)))
			r := newRig(t)
			fields := s.increments("batch_rows: 2", "start_from: "+tc.start)
			interrupt(r, fields, 1)
			require.Equal(t, 2, r.out.count())
			tc.steps(s)
			r.run(fields)
			assert.ElementsMatch(t, tc.want, r.out.bodies())
			assert.Empty(t, r.logs.at(slog.LevelWarn))
		})
	}
}

func addColumn(name string) func(*table.UpdateSchema) *table.UpdateSchema {
	return func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn([]string{name}, iceberg.PrimitiveTypes.String, "", false, nil)
	}
}

// interrupt runs a pipeline until the output has accepted n batches, and kills
// it at the next.
func interrupt(r *rig, fields []string, n int) {
	r.t.Helper()
	full := make(chan struct{})
	taken := 0
	r.out.decide(func(ctx context.Context, _ service.MessageBatch) error {
		if taken++; taken == n+1 {
			close(full)
		}
		if taken > n {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	l := r.start(fields)
	<-full
	r.eventually(func() bool { p := r.cache.place().Position; return p != nil && p.Row == int64(r.out.count()) }, "the checkpoint in the step")
	l.kill()
	r.out.decide(nil)
}

func TestChangedColumnsBeginTheStepAnew(t *testing.T) {
	s := newShop(t)
	s.add(span(1, 3)...)
	r := newRig(t)
	interrupt(r, s.increments("batch_rows: 2", "start_from: earliest"), 1)
	r.out.forget()
	r.run(s.increments("batch_rows: 2", "start_from: earliest", "columns: [ id ]"))
	assert.Equal(t, []string{`{"id":1}`, `{"id":2}`, `{"id":3}`}, r.out.bodies())
	assert.True(t, r.logs.has("2 rows of it a second time"), r.logs)
}

func TestSnapshotsThatRemoveRows(t *testing.T) {
	is := func(id int64) iceberg.BooleanExpression { return iceberg.EqualTo(iceberg.Reference("id"), id) }
	remove := nessietest.Delete(is(1))
	replace := nessietest.Overwrite(is(1), tables.Order(10))
	inPart := nessietest.Delete(is(2))
	tests := map[string]struct {
		step   nessietest.Step
		field  string
		passes bool
		reason string
	}{
		"a delete fails":       {remove, "on_delete: fail", false, "snapshot %s removes rows (delete), which messages of added rows cannot express: set on_delete: skip to go past such snapshots, or changes: changelog to be told of every change"},
		"a delete skipped":     {remove, "on_delete: skip", true, ""},
		"an overwrite fails":   {replace, "on_overwrite: fail", false, "snapshot %s removes rows (overwrite), which messages of added rows cannot express: set on_overwrite: added_rows or skip to go past such snapshots, or changes: changelog to be told of every change"},
		"an overwrite skipped": {replace, "on_overwrite: skip", true, ""},
		"the other policy":     {replace, "on_delete: skip", false, "set on_overwrite: added_rows or skip"},
		"a rewrite of a file":  {inPart, "on_delete: skip", false, "set on_overwrite: added_rows or skip"},
		"a compaction":         {nessietest.Compact(), "on_overwrite: fail", true, ""},
		"an empty append":      {nessietest.Append(), "on_overwrite: fail", true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.add(1)
			before := s.add(2, 3)
			r := newRig(t)
			fields := s.increments("start_from: earliest", tc.field)
			r.run(fields)
			removing := s.commit(tc.step)
			after := s.add(4)
			l := r.run(fields)
			if tc.passes {
				assert.Equal(t, orders(1, 2, 3, 4), r.out.bodies())
				assert.True(t, r.cache.at(snapshotOf(after)))
				assert.Empty(t, l.reported())
				return
			}
			assert.Equal(t, orders(1, 2, 3), r.out.bodies())
			assert.Equal(t, snapshotOf(before), *r.cache.place().Snapshot, "the place stays before the snapshot")
			require.Len(t, l.reported(), 1)
			want := tc.reason
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, snapshotOf(removing))
			}
			assert.Contains(t, l.reported()[0].Error(), want)
			assert.Len(t, onlyOurs(r.logs.at(slog.LevelError)), 1)

			r.run(s.increments("start_from: earliest", "on_delete: skip", "on_overwrite: skip"))
			assert.Equal(t, orders(1, 2, 3, 4), r.out.bodies(), "the policy that the error names leads on")
		})
	}
}

func TestSkippedSnapshotsAreCountedAndWarnedOf(t *testing.T) {
	s := newShop(t)
	s.add(1, 2)
	w := s.commit(nessietest.Overwrite(iceberg.EqualTo(iceberg.Reference("id"), int64(1)), tables.Order(10)))
	r := newRig(t)
	r.run(s.increments("start_from: earliest", "on_overwrite: skip"))
	warned := strings.Join(r.logs.at(slog.LevelWarn), "\n")
	assert.Contains(t, warned, "Skipping snapshot "+snapshotOf(w)+", which removes rows (overwrite), because of on_overwrite: skip")
	assert.Positive(t, r.numbers.of("nessie_rows_skipped", "reason=on_overwrite"))
}

func TestAddedRowsOfAnOverwriteAreDelivered(t *testing.T) {
	s := newShop(t)
	s.add(1, 2)
	r := newRig(t)
	fields := s.increments("start_from: earliest", "on_overwrite: added_rows")
	r.run(fields)
	last := s.commit(nessietest.Overwrite(iceberg.EqualTo(iceberg.Reference("id"), int64(1)), tables.Order(10)))
	l := r.run(fields)
	assert.Empty(t, l.reported())
	assert.Equal(t, orders(1, 2, 10), r.out.bodies(), "row 2 was rewritten, not added")
	assert.True(t, r.cache.at(snapshotOf(last)))
}

func TestAChangelogTellsWhatASnapshotRemoved(t *testing.T) {
	s := newShop(t)
	s.add(1, 2)
	r := newRig(t)
	fields := s.increments("start_from: earliest", "changes: changelog", "identifier_fields: [ id ]")
	r.run(fields)
	r.out.forget()
	s.commit(nessietest.Delete(iceberg.EqualTo(iceberg.Reference("id"), int64(2))))
	last := s.commit(nessietest.Overwrite(iceberg.EqualTo(iceberg.Reference("id"), int64(1)), `{"id":1,"item":"better"}`))
	l := r.run(fields)
	assert.Empty(t, l.reported())
	var got []string
	for _, row := range r.out.all() {
		got = append(got, fmt.Sprint(row.meta["operation"], " ", row.body))
	}
	assert.Equal(t, []string{"delete " + tables.Order(2), "update_before " + tables.Order(1), `update_after {"id":1,"item":"better"}`}, got)
	assert.True(t, r.cache.at(snapshotOf(last)))
}

func TestTheEndIsInclusiveAndEndsTheInput(t *testing.T) {
	s := newShop(t)
	s.add(1)
	second := s.add(2)
	s.add(3)
	r := newRig(t)
	fields := s.increments("start_from: earliest", "poll_interval: 1ms", fmt.Sprintf("end_snapshot_id: %q", snapshotOf(second)))
	for range 2 {
		l := r.start(fields)
		l.await()
		assert.Empty(t, l.reported())
		assert.Equal(t, orders(1, 2), r.out.bodies(), "and once more delivers nothing")
		assert.True(t, r.cache.at(snapshotOf(second)))
	}
}

func TestAReplacedTable(t *testing.T) {
	for name, replace := range map[string]func(*shop) nessietest.Written{
		"dropped and made again": func(s *shop) nessietest.Written {
			_, err := s.Writer.Drop(s.t.Context(), s.key)
			require.NoError(s.t, err)
			return s.create(nessietest.TableOptions{}, nessietest.Append(tables.Order(7)))
		},
		"recreated in one commit": func(s *shop) nessietest.Written {
			w, err := s.Writer.Recreate(s.t.Context(), s.key, tables.OrdersSchema(), nessietest.TableOptions{}, nessietest.Append(tables.Order(7)))
			require.NoError(s.t, err)
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			old := s.add(1)
			r := newRig(t)
			r.run(s.increments())
			now := replace(s)
			stored := r.cache.raw("place")
			l := r.run(s.increments())
			require.Len(t, l.reported(), 1)
			assert.Equal(t, fmt.Sprintf("the table was replaced: the checkpoint's snapshot %s is of table uuid %s (content id %s), the head's snapshot %s is of table uuid %s (content id %s); set on_table_replaced: restart to read the new table as on a first run, or give the input another checkpoint_cache_key",
				snapshotOf(old), old.Metadata.TableUUID(), old.Content.ID, snapshotOf(now), now.Metadata.TableUUID(), now.Content.ID), l.reported()[0].Error())
			assert.Equal(t, orders(1), r.out.bodies())
			assert.JSONEq(t, withoutOwner(t, stored), withoutOwner(t, r.cache.raw("place")), "the place stays")

			r.run(s.increments("on_table_replaced: restart"))
			assert.Equal(t, orders(1, 7), r.out.bodies())
			assert.Equal(t, "read", r.out.all()[1].meta["operation"])
			assert.True(t, r.cache.at(snapshotOf(now)))
			s.add(8)
			r.run(s.increments("on_table_replaced: restart"))
			assert.Equal(t, orders(1, 7, 8), r.out.bodies())
		})
	}
}

// A reset: the checkpoint stands at an abandoned snapshot, and the branch has
// two others since the ancestor of both.
func TestLostLineage(t *testing.T) {
	tests := map[string]struct {
		fields []string
		want   []int
		warns  string
	}{
		"start":            {[]string{"on_lost_lineage: start"}, []int{5}, "start goes on; snapshots skipped: 2, abandoned: 1"},
		"start at a place": {nil, []int{4, 5}, "start goes on; snapshots skipped: 1, abandoned: 1"},
		"ancestor":         {[]string{"on_lost_lineage: ancestor"}, []int{3, 4, 5}, "ancestor goes on; snapshots skipped: 0, abandoned: 1"},
		"table_scan":       {[]string{"on_lost_lineage: table_scan"}, []int{1, 3, 4, 5}, "table_scan goes on; snapshots skipped: 0, abandoned: 1"},
		"fail":             {[]string{"on_lost_lineage: fail"}, nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			base := s.add(1)
			lost := s.add(2)
			r := newRig(t)
			r.run(s.increments())
			r.out.forget()
			s.reset(base.Commit)
			s.add(3)
			fourth := s.add(4)
			if tc.fields == nil {
				tc.fields = []string{fmt.Sprintf("start_snapshot_id: %q", snapshotOf(fourth))}
			}
			l := r.run(s.increments(tc.fields...))
			if name == "fail" {
				require.Len(t, l.reported(), 1)
				assert.Contains(t, l.reported()[0].Error(), "lost lineage: ")
				assert.Contains(t, l.reported()[0].Error(), "set on_lost_lineage to get past it: start (")
				assert.True(t, r.cache.at(snapshotOf(lost)))
				assert.Empty(t, r.out.bodies())
				return
			}
			s.add(5)
			r.run(s.increments(tc.fields...))
			assert.ElementsMatch(t, orders(tc.want...), r.out.bodies())
			warnings := r.logs.at(slog.LevelWarn)
			require.Len(t, warnings, 1, r.logs)
			assert.Contains(t, warnings[0], "The lineage between the checkpoint and the head of main is lost: ")
			assert.Contains(t, warnings[0], snapshotOf(lost))
			assert.Contains(t, warnings[0], "on_lost_lineage: "+tc.warns)
			policy, _, _ := strings.Cut(tc.warns, " ")
			assert.Equal(t, int64(1), r.numbers.of("nessie_lost_lineage", "policy="+policy))
		})
	}
}

// The ids are what a checkpoint is of: a branch can be renamed, or another be
// configured, and reading goes on from what the other one was read to.
func TestACheckpointOfAnotherBranchIsFollowed(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	r.run(s.increments())
	assert.Empty(t, r.logs.at(slog.LevelWarn))
	main, err := s.Client.Reference(t.Context(), "main")
	require.NoError(t, err)
	_, err = s.Client.CreateReference(t.Context(), catalog.Branch, "renamed", main.Ref())
	require.NoError(t, err)
	_, err = s.Writer.OnBranch("renamed").Append(t.Context(), s.key, orders(2)...)
	require.NoError(t, err)
	s.add(3)

	r.run(s.increments("branch: renamed"))
	assert.Equal(t, orders(1, 2), r.out.bodies())
	warnings := r.logs.at(slog.LevelWarn)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], `The checkpoint under key "place" was written for branch "main", namespace "shop", table "orders". Branch "renamed", namespace "shop", table "orders" holds the same table (content id `)

	r.run(s.increments("branch: renamed"))
	assert.Len(t, r.logs.at(slog.LevelWarn), 1, "told once")
}

func TestARenamedTableIsFollowed(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	r.run(s.increments())
	_, err := s.Writer.Rename(t.Context(), s.key, catalog.Key{"shop", "sales"})
	require.NoError(t, err)
	s.key = catalog.Key{"shop", "sales"}
	s.add(2)
	fields := s.increments()
	for i, f := range fields {
		fields[i] = strings.Replace(f, "table: orders", "table: sales", 1)
	}
	r.run(fields)
	assert.Equal(t, orders(1, 2), r.out.bodies())
	assert.Equal(t, "sales", r.out.all()[1].meta["table"])
	assert.Equal(t, "sales", r.cache.place().Table)
}

func TestATagThatMovesIsFollowedAndAHashIsFixed(t *testing.T) {
	s := newShop(t)
	first := s.add(1)
	tag, err := s.Client.CreateReference(t.Context(), catalog.Tag, "released", catalog.Ref{Name: "main", Hash: first.Commit})
	require.NoError(t, err)
	second := s.add(2)

	fixed, tagged := newRig(t), newRig(t)
	atTag := s.increments("branch: released", "poll_interval: 1ms")
	atHash := s.increments("branch: main@"+first.Commit, "poll_interval: 1ms")
	a, b := tagged.start(atTag), fixed.start(atHash)
	tagged.delivered(1)
	fixed.delivered(1)
	_, err = s.Client.AssignReference(t.Context(), tag, catalog.Ref{Name: "main", Hash: second.Commit})
	require.NoError(t, err)
	tagged.delivered(2)
	before := fixed.numbers.of("nessie_polls", "result=unchanged")
	fixed.eventually(func() bool { return fixed.numbers.of("nessie_polls", "result=unchanged") > before+2 }, "polls of the fixed commit")
	a.stop()
	b.stop()
	assert.Equal(t, orders(1, 2), tagged.out.bodies())
	assert.Equal(t, "released", tagged.out.all()[0].meta["branch"])
	assert.Equal(t, orders(1), fixed.out.bodies())
	assert.Equal(t, "main@"+first.Commit, fixed.out.all()[0].meta["branch"])
}

func TestACommitOfMetadataAloneDeliversNothing(t *testing.T) {
	s := newShop(t)
	first := s.add(1)
	r := newRig(t)
	l := r.start(s.increments("poll_interval: 1ms"))
	r.eventually(func() bool { return r.cache.at(snapshotOf(first)) }, "the first snapshot")
	changed := r.numbers.of("nessie_polls", "result=changed")
	s.commit(nessietest.ChangeSchema(addColumn("note")))
	r.eventually(func() bool { return r.numbers.of("nessie_polls", "result=changed") > changed }, "the change is seen")
	s.commit(nessietest.Append(`{"id":2,"item":"b","note":"n"}`))
	r.delivered(2)
	l.stop()
	assert.Equal(t, append(orders(1), `{"id":2,"item":"b","note":"n"}`), r.out.bodies())
	assert.Equal(t, 1, r.out.all()[1].meta["schema_id"])
}

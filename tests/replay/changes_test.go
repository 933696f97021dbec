// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// change is something that happens to the table.
type change struct {
	name   string
	weight int
	do     func(*world, *rapid.T) error
}

var changes = []change{
	{"append", 4, (*world).append},
	{"append files", 2, (*world).appendFiles},
	{"delete", 4, (*world).delete},
	{"update and insert", 5, (*world).merge},
	{"upsert", 5, (*world).upsert},
	{"overwrite all", 1, (*world).overwrite},
	{"compact", 3, (*world).compact},
	{"several at once", 3, (*world).severalUpserts},
	{"schema", 3, (*world).evolve},
	{"properties", 1, (*world).touch},
	{"upgrade", 1, (*world).upgrade},
	{"expire", 2, (*world).expire},
	{"roll back", 2, (*world).rollback},
	{"reset", 5, (*world).reset},
	{"recreate", 1, (*world).recreate},
}

// keys are few, so that they come and go and come again.
const keys = 12

// happen makes a change. A writer that stumbles over files that an expiry took
// is given them back.
func (w *world) happen(t *rapid.T) {
	var names []string
	byName := map[string]change{}
	for _, c := range changes {
		byName[c.name] = c
		names = append(names, slices.Repeat([]string{c.name}, c.weight)...)
	}
	c := byName[rapid.SampledFrom(names).Draw(t, "change")]
	w.tell("%s", c.name)
	if err := c.do(w, t); err != nil {
		w.tell("    the writer failed (%v), %d files are put back", err, w.vault.Restore())
		if err := c.do(w, t); err != nil {
			w.rt.Fatalf("the test itself: %s: %v\n%s", c.name, err, strings.Join(w.told, "\n"))
		}
	}
	w.vault.Secure()
	w.observe()
}

func (w *world) commit(t *rapid.T, steps ...nessietest.Step) error {
	c := nessietest.Change{Steps: steps, Form: nessietest.Whole}
	if rapid.IntRange(0, 3).Draw(t, "form") == 0 {
		c.Form = nessietest.Truncated
	}
	written, err := w.Writer.Commit(w.ctx, w.key, c)
	if err == nil {
		w.record(written)
	}
	return err
}

func (w *world) create(t *rapid.T) {
	rows := w.rows(t, w.shape.schema(), w.some(t, w.absent(nil), 4))
	written, err := w.Writer.Create(w.ctx, w.key, w.shape.schema(), w.shape.options(), nessietest.Append(rows...))
	histories.Check(w.rt, err)
	w.record(written)
}

// schema is the one that the writer writes with.
func (w *world) schema() *iceberg.Schema {
	tbl, err := w.Writer.Table(w.ctx, w.key)
	histories.Check(w.rt, err)
	return tbl.Schema()
}

// live are the ids of the rows at the head.
func (w *world) live() []int64 {
	var ids []int64
	for _, row := range w.of(w.head().snapshot).rows {
		id, err := strconv.ParseInt(row[fieldID], 10, 64)
		histories.Check(w.rt, err)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *world) version() int {
	tbl, err := w.Writer.Table(w.ctx, w.key)
	histories.Check(w.rt, err)
	return tbl.Metadata().Version()
}

func (w *world) absent(live []int64) []int64 {
	var ids []int64
	for id := range int64(keys) {
		if !slices.Contains(live, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// some picks at most so many ids.
func (w *world) some(t *rapid.T, from []int64, most int) []int64 {
	if len(from) == 0 {
		return nil
	}
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, min(most, len(from)), rapid.ID).Draw(t, "ids")
	slices.Sort(ids)
	return ids
}

// rows are random rows with these ids. A key's partition is always the same.
func (w *world) rows(t *rapid.T, schema *iceberg.Schema, ids []int64) []string {
	var rows []string
	for _, id := range ids {
		var fields []string
		for _, f := range schema.Fields() {
			var value string
			switch f.ID {
			case fieldID:
				value = strconv.FormatInt(id, 10)
			case fieldPart:
				value = strconv.Quote(part(id))
			case fieldNumber:
				value = strconv.Itoa(rapid.IntRange(-2, 2).Draw(t, "number"))
			case fieldScore:
				value = rapid.SampledFrom([]string{"null", "0", "-0.0", "2.5"}).Draw(t, "score")
			default:
				value = rapid.SampledFrom([]string{"null", `""`, `"x"`, `"y"`}).Draw(t, "text")
			}
			fields = append(fields, strconv.Quote(f.Name)+":"+value)
		}
		rows = append(rows, "{"+strings.Join(fields, ",")+"}")
	}
	return rows
}

func part(id int64) string { return string(rune('a' + id%2)) }

func within(ids []int64) iceberg.BooleanExpression {
	return iceberg.IsIn(iceberg.Reference("id"), ids...)
}

func (w *world) append(t *rapid.T) error {
	ids := w.some(t, w.absent(w.live()), 4)
	return w.commit(t, nessietest.Append(w.rows(t, w.schema(), ids)...))
}

func (w *world) appendFiles(t *rapid.T) error {
	rows := w.rows(t, w.schema(), w.some(t, w.absent(w.live()), 6))
	if len(rows) < 2 || w.version() > 2 { // iceberg-go adds no files to tables of version 3
		return nil
	}
	return w.commit(t, nessietest.AppendFiles(rows[:1], rows[1:]))
}

func (w *world) delete(t *rapid.T) error {
	ids := w.some(t, w.live(), 3)
	if len(ids) == 0 {
		return nil
	}
	vectors := w.version() > 2
	if w.shape.deletes == "copy-on-write" || vectors && w.aimed {
		if err := w.purge(t); err != nil {
			return err
		}
	}
	if w.shape.deletes == "merge-on-read" {
		w.marked, w.aimed = true, w.aimed || !vectors
	}
	return w.commit(t, nessietest.Delete(within(ids)))
}

// merge replaces rows by others of their keys, and adds some.
func (w *world) merge(t *rapid.T) error {
	live := w.live()
	gone := w.some(t, live, 4)
	if len(gone) == 0 {
		return nil
	}
	ids := slices.Concat(gone[:rapid.IntRange(0, len(gone)).Draw(t, "updated")], w.some(t, w.absent(live), 2))
	if len(ids) == 0 {
		return nil
	}
	if err := w.purge(t); err != nil {
		return err
	}
	return w.commit(t, nessietest.Overwrite(within(gone), w.rows(t, w.schema(), ids)...))
}

// upsert writes rows and equality deletes of their keys, whether they are there
// or not, as streaming writers do.
func (w *world) upsert(t *rapid.T) error { return w.several(t, 1) }

// several makes several snapshots in one commit; in a truncated metadata file
// all but the last are hidden.
func (w *world) severalUpserts(t *rapid.T) error { return w.several(t, 2) }

func (w *world) several(t *rapid.T, n int) error {
	w.marked = true
	schema := w.schema()
	var steps []nessietest.Step
	for range n {
		steps = append(steps, w.upserting(t, schema))
	}
	return w.commit(t, steps...)
}

func (w *world) upserting(t *rapid.T, schema *iceberg.Schema) nessietest.Step {
	ids := w.some(t, w.absent(nil), 4)
	written := ids[:rapid.IntRange(0, len(ids)).Draw(t, "written")]
	columns := []string{"id"}
	if w.shape.partitioned {
		columns = append(columns, "part")
	}
	var gone []string
	for _, id := range ids {
		if w.shape.partitioned {
			gone = append(gone, fmt.Sprintf(`{"id":%d,"part":%q}`, id, part(id)))
		} else {
			gone = append(gone, fmt.Sprintf(`{"id":%d}`, id))
		}
	}
	return nessietest.RowDelta(w.rows(t, schema, written), columns, gone)
}

func (w *world) overwrite(t *rapid.T) error {
	return w.commit(t, nessietest.Overwrite(nil, w.rows(t, w.schema(), w.some(t, w.absent(nil), 4))...))
}

func (w *world) compact(t *rapid.T) error {
	w.marked, w.aimed = false, false
	return w.commit(t, nessietest.Compact())
}

// purge makes rows that delete files took go from the data files. Where
// iceberg-go rewrites a data file to delete rows, it would bring them back.
func (w *world) purge(t *rapid.T) error {
	if !w.marked {
		return nil
	}
	return w.compact(t)
}

// evolve changes the schema. Where the branch has left a line, another schema
// could have the same ids: then it is left alone.
func (w *world) evolve(t *rapid.T) error {
	if w.moved || w.shape.stays {
		return nil
	}
	schema := w.schema()
	has := func(id int) bool {
		_, ok := schema.FindFieldByID(id)
		return ok
	}
	name, _ := schema.FindFieldByID(fieldName)
	what := rapid.SampledFrom([]string{"add", "drop", "rename", "widen"}).Draw(t, "what")
	w.tell("    %s", what)
	return w.commit(t, nessietest.ChangeSchema(func(u *table.UpdateSchema) *table.UpdateSchema {
		switch {
		case what == "widen":
			return widen(u)
		case what == "drop" && has(fieldScore):
			return u.DeleteColumn([]string{"score"})
		case what == "rename":
			return u.RenameColumn([]string{name.Name}, name.Name+"_")
		}
		return u.AddColumn([]string{fmt.Sprintf("c%d", len(schema.Fields()))}, iceberg.PrimitiveTypes.String, "", false, nil)
	}))
}

func widen(u *table.UpdateSchema) *table.UpdateSchema {
	return u.UpdateColumn([]string{"number"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
}

// widenAndWrite writes every row anew under another type of a column.
func (w *world) widenAndWrite(t *rapid.T) {
	histories.Check(w.rt, w.commit(t, nessietest.ChangeSchema(widen)))
	histories.Check(w.rt, w.commit(t, nessietest.Overwrite(nil, w.rows(t, w.schema(), w.live())...)))
	w.observe()
}

func (w *world) touch(t *rapid.T) error {
	return w.commit(t, nessietest.SetProperties(iceberg.Properties{"note": strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "note"))}))
}

func (w *world) upgrade(t *rapid.T) error { return w.commit(t, nessietest.Upgrade(3)) }

func (w *world) expire(t *rapid.T) error {
	return w.commit(t, nessietest.Expire(rapid.IntRange(1, 2).Draw(t, "kept")))
}

// rollback makes an ancestor the current snapshot, one of the same schema.
func (w *world) rollback(t *rapid.T) error {
	tbl, err := w.Writer.Table(w.ctx, w.key)
	histories.Check(w.rt, err)
	var choices []int64
	meta := tbl.Metadata()
	for s := meta.CurrentSnapshot(); s != nil && s.ParentSnapshotID != nil; {
		if s = meta.SnapshotByID(*s.ParentSnapshotID); s != nil && w.of(s.SnapshotID).schema.ID == meta.CurrentSchema().ID {
			choices = append(choices, s.SnapshotID)
		}
	}
	if len(choices) == 0 {
		return nil
	}
	w.marked, w.aimed = true, w.shape.version != "3"
	return w.commit(t, nessietest.Rollback(rapid.SampledFrom(choices).Draw(t, "to")))
}

// reset assigns main to a commit that it had once, behind or aside.
func (w *world) reset(t *rapid.T) error {
	var choices []head
	for _, h := range w.heads {
		if h.commit != w.head().commit {
			choices = append(choices, h)
		}
	}
	if len(choices) == 0 {
		return nil
	}
	w.vault.Restore()
	return w.resetTo(choices[rapid.IntRange(0, len(choices)-1).Draw(t, "to")])
}

func (w *world) resetTo(to head) error {
	main, err := w.Client.Reference(w.ctx, "main")
	histories.Check(w.rt, err)
	_, err = w.Client.AssignReference(w.ctx, main, catalog.Ref{Name: "main", Hash: to.commit})
	w.moved, w.marked, w.aimed = true, true, w.shape.version != "3"
	return err
}

func (w *world) recreate(t *rapid.T) error {
	rows := w.rows(t, w.shape.schema(), w.some(t, w.absent(nil), 4))
	written, err := w.Writer.Recreate(w.ctx, w.key, w.shape.schema(), w.shape.options(), nessietest.Append(rows...))
	if err == nil {
		w.moved = true
		w.record(written)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// change is something that happens to the table.
type change struct {
	name   string
	weight int
	do     func(*world, *rand.Rand) error
}

var changes = []change{
	{"append", 10, (*world).append},
	{"append several", 4, (*world).appendSeveral},
	{"merge", 3, (*world).merge},
	{"merge by force", 1, (*world).mergeByForce},
	{"reset", 3, (*world).reset},
	{"rollback", 2, (*world).rollback},
	{"expire", 3, (*world).expire},
	{"collect", 3, (*world).collect},
	{"lose a file", 1, (*world).loseFile},
	{"spoil a file", 1, (*world).spoilFile},
	{"delete", 2, (*world).deleteRow},
	{"overwrite", 1, (*world).overwrite},
	{"replace", 1, (*world).replace},
	{"recreate", 1, (*world).recreate},
	{"drop and create", 1, (*world).dropAndCreate},
	{"rename", 1, (*world).rename},
	{"metadata alone", 2, (*world).touch},
	{"compact", 2, (*world).compact},
	{"other form", 2, (*world).otherForm},
}

// happen makes a change. A writer that stumbles over files that an earlier
// change took is given them back.
func (w *world) happen(c change, rng *rand.Rand) {
	w.tell("%s", c.name)
	err := c.do(w, rng)
	if err != nil {
		w.tell("    the writer failed (%.80v), all files are put back", err)
		w.vault.Secure()
		w.vault.Restore()
		histories.Check(w.rt, c.do(w, rng))
	}
	files := w.vault.Secure()
	w.observe()
	if s := w.snapshots[w.head().snapshot]; s != nil {
		s.files = append(s.files, files...) // of commits that change metadata alone
		w.inspect()
	}
}

func (w *world) commit(c nessietest.Change, effects ...effect) error {
	return w.commitTo(w.Writer, c, effects...)
}

func (w *world) commitTo(writer *nessietest.Writer, c nessietest.Change, effects ...effect) error {
	c.Form = w.form
	written, err := writer.Commit(w.ctx, w.key, c)
	if err == nil {
		w.record(written, effects...)
	}
	return err
}

func (w *world) create() error {
	ids, rows := w.fresh(2)
	written, err := w.Writer.Create(w.ctx, w.key, schema(), options(w.form), nessietest.Append(rows...))
	if err == nil {
		w.record(written, effect{kind: added, rows: ids, all: true})
	}
	return err
}

func (w *world) append(rng *rand.Rand) error {
	ids, rows := w.fresh(1 + rng.IntN(4))
	step := nessietest.Append(rows...)
	if len(rows) > 2 {
		step = nessietest.AppendFiles(rows[:1], rows[1:])
	}
	return w.commit(nessietest.Change{Steps: []nessietest.Step{step}}, effect{kind: added, rows: ids})
}

func (w *world) appendSeveral(rng *rand.Rand) error { return w.several(w.Writer, 2+rng.IntN(2)) }

func (w *world) several(writer *nessietest.Writer, n int) error {
	var (
		steps   []nessietest.Step
		effects []effect
	)
	for range n {
		ids, rows := w.fresh(2)
		steps = append(steps, nessietest.Append(rows...))
		effects = append(effects, effect{kind: added, rows: ids})
	}
	return w.commitTo(writer, nessietest.Change{Steps: steps}, effects...)
}

func (w *world) merge(rng *rand.Rand) error { return w.combine(rng, catalog.MergeNormal, false) }

func (w *world) mergeByForce(rng *rand.Rand) error { return w.combine(rng, catalog.MergeForce, true) }

// combine makes a branch, commits to it (and to main), and merges it.
func (w *world) combine(rng *rand.Rand, mode catalog.MergeMode, both bool) error {
	main, err := w.Client.Reference(w.ctx, "main")
	if err != nil {
		return err
	}
	w.branches++
	name := fmt.Sprintf("dev%d", w.branches)
	if _, err := w.Client.CreateReference(w.ctx, catalog.Branch, name, main.Ref()); err != nil {
		return err
	}
	for range 1 + rng.IntN(2) {
		if err := w.several(w.Writer.OnBranch(name), 1+rng.IntN(2)); err != nil {
			return err
		}
	}
	if both {
		if err := w.append(rng); err != nil {
			return err
		}
		w.observe()
	}
	dev, err := w.Client.Reference(w.ctx, name)
	if err != nil {
		return err
	}
	if main, err = w.Client.Reference(w.ctx, "main"); err != nil {
		return err
	}
	_, err = w.Client.Merge(w.ctx, main, dev.Ref(), "merge", mode)
	return err
}

// reset assigns main to a commit that it had once, behind or aside.
func (w *world) reset(rng *rand.Rand) error {
	var choices []head
	for _, h := range w.heads {
		if h.content == w.head().content && h.commit != w.head().commit {
			choices = append(choices, h)
		}
	}
	if len(choices) == 0 {
		return nil
	}
	main, err := w.Client.Reference(w.ctx, "main")
	if err != nil {
		return err
	}
	to := choices[rng.IntN(len(choices))]
	_, err = w.Client.AssignReference(w.ctx, main, catalog.Ref{Name: "main", Hash: to.commit})
	if err != nil {
		return err
	}
	// The commit may be from before a rename.
	for _, key := range []catalog.Key{{"shop", "orders"}, {"shop", "sales"}} {
		if _, err := w.Client.Head(w.ctx, catalog.Ref{Name: "main"}, key); err == nil {
			w.key, w.renamed = key, w.renamed || !w.key.Equal(key)
		}
	}
	return nil
}

func (w *world) rollback(rng *rand.Rand) error {
	tbl, err := w.Writer.Table(w.ctx, w.key)
	if err != nil {
		return err
	}
	var choices []int64
	meta := tbl.Metadata()
	for s := meta.CurrentSnapshot(); s != nil && s.ParentSnapshotID != nil; {
		if s = meta.SnapshotByID(*s.ParentSnapshotID); s != nil {
			choices = append(choices, s.SnapshotID)
		}
	}
	if len(choices) == 0 {
		return nil
	}
	return w.commit(nessietest.Change{Steps: []nessietest.Step{nessietest.Rollback(choices[rng.IntN(len(choices))])}})
}

func (w *world) expire(rng *rand.Rand) error {
	return w.commit(nessietest.Change{Steps: []nessietest.Step{nessietest.Expire(1 + rng.IntN(2))}})
}

// collect deletes the files of older snapshots that the head does not need, as
// Nessie's GC and expiries of other tools do.
func (w *world) collect(rng *rand.Rand) error {
	needed, err := w.needed()
	if err != nil {
		return err
	}
	older := w.line(w.head().snapshot)
	if len(older) < 2 {
		return nil
	}
	from := 1 + rng.IntN(len(older)-1)
	for _, s := range older[from:] {
		for _, file := range s.files {
			if !needed[file] {
				w.vault.Remove(file)
			}
		}
		w.tell("    collected %d", s.id)
	}
	return nil
}

// loseFile takes one file that the head needs.
func (w *world) loseFile(rng *rand.Rand) error {
	needed, err := w.needed()
	if err != nil {
		return err
	}
	all := slices.Sorted(maps.Keys(needed))
	file := all[rng.IntN(len(all))]
	w.vault.Remove(file)
	w.tell("    lost %s", file)
	return nil
}

// spoilFile cuts one file that the head needs in half.
func (w *world) spoilFile(rng *rand.Rand) error {
	needed, err := w.needed()
	if err != nil {
		return err
	}
	all := slices.Sorted(maps.Keys(needed))
	file := all[rng.IntN(len(all))]
	w.vault.Spoil(file)
	w.spoiled = append(w.spoiled, file)
	w.tell("    spoiled %s", file)
	return nil
}

// needed are the files of the head's state.
func (w *world) needed() (map[string]bool, error) {
	tbl, err := w.Writer.Table(w.ctx, w.key)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{w.vault.Path(tbl.MetadataLocation()): true}
	s := tbl.CurrentSnapshot()
	if s == nil {
		return out, nil
	}
	out[w.vault.Path(s.ManifestList)] = true
	fs, err := tbl.FS(w.ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := s.Manifests(fs)
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		out[w.vault.Path(m.FilePath())] = true
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			out[w.vault.Path(e.DataFile().FilePath())] = true
		}
	}
	return out, nil
}

// row picks a live row of the head.
func (w *world) row(rng *rand.Rand) (int64, bool) {
	rows := slices.Sorted(maps.Keys(w.live(w.head().snapshot)))
	if len(rows) == 0 {
		return 0, false
	}
	return rows[rng.IntN(len(rows))], true
}

func (w *world) deleteRow(rng *rand.Rand) error {
	id, ok := w.row(rng)
	if !ok {
		return nil
	}
	step := nessietest.Delete(iceberg.EqualTo(iceberg.Reference("id"), id))
	return w.commit(nessietest.Change{Steps: []nessietest.Step{step}}, effect{kind: removed, gone: []int64{id}})
}

// overwrite replaces all rows.
func (w *world) overwrite(*rand.Rand) error {
	if len(w.live(w.head().snapshot)) == 0 {
		return nil
	}
	ids, rows := w.fresh(2)
	return w.commit(nessietest.Change{Steps: []nessietest.Step{nessietest.Overwrite(nil, rows...)}}, effect{kind: removed, rows: ids, all: true})
}

func (w *world) replace(*rand.Rand) error {
	ids, rows := w.fresh(2)
	written, err := w.Writer.Replace(w.ctx, w.key, schema(), options(w.form), nessietest.Append(rows...))
	if err == nil {
		w.record(written, effect{kind: added, rows: ids, all: true})
	}
	return err
}

func (w *world) recreate(*rand.Rand) error {
	ids, rows := w.fresh(2)
	written, err := w.Writer.Recreate(w.ctx, w.key, schema(), options(w.form), nessietest.Append(rows...))
	if err == nil {
		w.record(written, effect{kind: added, rows: ids, all: true})
	}
	return err
}

func (w *world) dropAndCreate(*rand.Rand) error {
	if _, err := w.Client.Head(w.ctx, catalog.Ref{Name: "main"}, w.key); err == nil {
		if _, err := w.Writer.Drop(w.ctx, w.key); err != nil {
			return err
		}
		w.observe()
	}
	return w.create()
}

func (w *world) rename(*rand.Rand) error {
	to := catalog.Key{"shop", "sales"}
	if w.key.Equal(to) {
		to = catalog.Key{"shop", "orders"}
	}
	if _, err := w.Writer.Rename(w.ctx, w.key, to); err != nil {
		return err
	}
	w.key, w.renamed = to, true
	return nil
}

func (w *world) touch(rng *rand.Rand) error {
	props := iceberg.Properties{"note": fmt.Sprint(rng.IntN(1000))}
	return w.commit(nessietest.Change{Steps: []nessietest.Step{nessietest.SetProperties(props)}})
}

func (w *world) compact(*rand.Rand) error {
	written, err := w.Writer.Commit(w.ctx, w.key, nessietest.Change{Form: w.form, Steps: []nessietest.Step{nessietest.Compact()}})
	if err != nil {
		return err
	}
	w.record(written, slices.Repeat([]effect{{kind: rewritten}}, len(written.Snapshots))...)
	return nil
}

func (w *world) otherForm(rng *rand.Rand) error {
	w.form = nessietest.Whole + nessietest.Truncated - w.form
	return w.append(rng)
}

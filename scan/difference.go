// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go"
)

// bridge plans the difference between the files of both states. Manifests with one path on both sides hold the same
// entries and cancel unread, except that
//   - when delete files came or went, the shared data manifests that these can match are opened, to find the files whose
//     effective deletes changed;
//   - the shared delete manifests that can match a file which is read from either side are opened.
func (p *planner) bridge(ctx context.Context, plan *Plan) error {
	d := &difference{planner: p, before: p.before(), after: p.after()}
	if err := d.read(ctx); err != nil {
		return err
	}
	if err := d.findChanged(ctx); err != nil {
		return err
	}
	if err := d.resolve(ctx, plan); err != nil {
		return err
	}
	plan.Kind = kindOf(plan)
	return nil
}

// difference is what two states do not share.
type difference struct {
	*planner
	before, after side

	sharedData, sharedDeletes []iceberg.ManifestFile
	addedData, removedData    []File
	cameDeletes, wentDeletes  []File
	keptDeletes               []File // in unshared manifests of both sides
	candidates                []File // files of shared or unshared manifests that the deletes which came or went may touch
	keptData                  []File // in unshared manifests of both sides
}

// read opens the manifests that only one side has and subtracts their files.
func (d *difference) read(ctx context.Context) error {
	before, err := d.before.manifests(ctx)
	if err != nil {
		return err
	}
	after, err := d.after.manifests(ctx)
	if err != nil {
		return err
	}
	onlyBefore, onlyAfter, shared := cancelManifests(before, after)
	d.sharedData, d.sharedDeletes = split(shared)
	old, err := d.before.live(ctx, onlyBefore)
	if err != nil {
		return err
	}
	young, err := d.after.live(ctx, onlyAfter)
	if err != nil {
		return err
	}
	oldData, oldDeletes := splitFiles(old)
	youngData, youngDeletes := splitFiles(young)
	d.removedData, d.addedData = subtract(oldData, youngData)
	d.wentDeletes, d.cameDeletes = subtract(oldDeletes, youngDeletes)
	d.keptData, _ = subtract(youngData, d.addedData)
	d.keptDeletes, _ = subtract(youngDeletes, d.cameDeletes)
	return nil
}

// cancelManifests splits two multisets of manifests by path.
func cancelManifests(before, after []iceberg.ManifestFile) (onlyBefore, onlyAfter, shared []iceberg.ManifestFile) {
	counts := map[string]int{}
	for _, m := range before {
		counts[m.FilePath()]++
	}
	for _, m := range after {
		if counts[m.FilePath()] > 0 {
			counts[m.FilePath()]--
			shared = append(shared, m)
		} else {
			onlyAfter = append(onlyAfter, m)
		}
	}
	for _, m := range before {
		if counts[m.FilePath()] > 0 {
			counts[m.FilePath()]--
			onlyBefore = append(onlyBefore, m)
		}
	}
	return onlyBefore, onlyAfter, shared
}

// findChanged collects the files of both states that a delete file which came or went may apply to.
func (d *difference) findChanged(ctx context.Context) error {
	moved := slices.Concat(d.cameDeletes, d.wentDeletes)
	if len(moved) == 0 {
		return nil
	}
	var open, rest []iceberg.ManifestFile
	for _, m := range d.sharedData {
		if dataMayMatch(m, d.specs(), moved) {
			open = append(open, m)
		} else {
			rest = append(rest, m)
		}
	}
	found, err := d.after.live(ctx, open)
	if err != nil {
		return err
	}
	found = append(found, d.keptData...)
	if namesOthers(moved, found, d.addedData, d.removedData) {
		// A delete file whose own partition is not its data file's: against the spec, but the path tells.
		more, err := d.after.live(ctx, rest)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	index, err := newDeleteIndex(d.cameDeletes, d.specs())
	if err != nil {
		return err
	}
	old, err := newDeleteIndex(d.wentDeletes, d.beforeSpecs())
	if err != nil {
		return err
	}
	for _, f := range found {
		came, err := index.of(f)
		if err != nil {
			return err
		}
		went, err := old.of(f)
		if err != nil {
			return err
		}
		if !came.None() || !went.None() {
			d.candidates = append(d.candidates, f)
		}
	}
	return nil
}

// namesOthers reports whether one of the delete files is for a data file that is in none of the lists.
func namesOthers(deletes []File, lists ...[]File) bool {
	known := map[string]bool{}
	for _, files := range lists {
		for _, f := range files {
			known[f.path] = true
		}
	}
	return slices.ContainsFunc(deletes, func(d File) bool {
		if d.Data.ContentType() == iceberg.EntryContentEqDeletes {
			return false
		}
		ref := referencedFile(d.Data)
		return ref != "" && !known[ref]
	})
}

// resolve gives every file that is read its effective deletes on its side.
func (d *difference) resolve(ctx context.Context, plan *Plan) error {
	files := slices.Concat(d.addedData, d.removedData, d.candidates)
	shared, err := d.after.live(ctx, matching(d.sharedDeletes, d.specs(), files))
	if err != nil {
		return err
	}
	shared = append(shared, d.keptDeletes...)
	after, err := newDeleteIndex(slices.Concat(shared, d.cameDeletes), d.specs())
	if err != nil {
		return err
	}
	before, err := newDeleteIndex(slices.Concat(shared, d.wentDeletes), d.beforeSpecs())
	if err != nil {
		return err
	}
	if plan.Tasks, err = after.tasks(d.addedData); err != nil {
		return err
	}
	if plan.Removed, err = before.tasks(d.removedData); err != nil {
		return err
	}
	for _, f := range d.candidates {
		was, err := before.of(f)
		if err != nil {
			return err
		}
		is, err := after.of(f)
		if err != nil {
			return err
		}
		if !sameDeletes(was, is) {
			plan.Changed = append(plan.Changed, Change{File: f, Before: was, After: is})
		}
	}
	return nil
}

// kindOf classifies a difference of files. Rows are not compared here: rewritten files make an overwrite.
func kindOf(plan *Plan) Kind {
	switch {
	case len(plan.Removed) == 0 && len(plan.Changed) == 0 && len(plan.Tasks) == 0:
		return KindEmpty
	case len(plan.Removed) == 0 && len(plan.Changed) == 0:
		return KindAppend
	case len(plan.Tasks) == 0 && !plan.Restores():
		return KindDelete
	}
	return KindOverwrite
}

// Restores reports whether rows may have come back in files that both states hold, as what deleted them is gone. How many is
// only known by reading. A plan of one snapshot alone does not look for such files.
func (p *Plan) Restores() bool {
	return slices.ContainsFunc(p.Changed, func(c Change) bool { return !c.onlyDeletes() })
}

// onlyDeletes is false when rows of the file may have come back. A new vector holds, by the spec, all positions that were
// deleted before.
func (c Change) onlyDeletes() bool {
	if c.After.Vector == nil {
		return covers(c.After, c.Before)
	}
	if old := c.Before.Vector; old != nil && old.Data.Count() > c.After.Vector.Data.Count() {
		return false
	}
	return covers(Deletes{Equality: c.After.Equality}, Deletes{Equality: c.Before.Equality})
}

// covers reports whether a holds every delete file of b.
func covers(a, b Deletes) bool {
	held := map[fileKey]bool{}
	for f := range a.all() {
		held[f.key()] = true
	}
	for f := range b.all() {
		if !held[f.key()] {
			return false
		}
	}
	return true
}

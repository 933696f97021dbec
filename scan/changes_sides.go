// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"
)

// sides are the rows that the step takes away and those that it brings, as tasks of two plans. Rows of both may be equal.
type sides struct {
	deletes, inserts Plan
	schema           *iceberg.Schema // of the rows of both, unless foreign
	foreign          bool
	free             func() error // for when neither is read any more
}

// apart reports whether no row of one side can cancel one of the other.
func (s *sides) apart() bool {
	return s.foreign || len(s.deletes.Tasks) == 0 || len(s.inserts.Tasks) == 0
}

// rows counts the rows of a plan, reading what carries deletes.
func (p *Plan) rows(ctx context.Context) (int64, error) {
	var total int64
	for _, t := range p.Tasks {
		rows := t.Rows()
		if rows < 0 {
			var err error
			if rows, err = p.count(ctx, t); err != nil {
				return 0, err
			}
		}
		total += rows
	}
	return total, nil
}

// sides finds the rows of both sides. Where delete files came or went, they are read here, and for equality deletes the
// columns that these compare. The caller frees them.
func (c *ChangePlan) sides(ctx context.Context, opts ReadOptions) (s *sides, err error) {
	shared := c.sharing(opts)
	defer func() {
		if err != nil {
			err = errors.Join(err, shared.free())
		}
	}()
	s = shared
	files := newPickedFiles(c.source.FS)
	s.deletes.source.FS, s.inserts.source.FS = files, files
	s.deletes.Tasks, s.inserts.Tasks = withoutKept(c.Removed, c.Tasks)
	if err := refuse(c.Changed); err != nil {
		return nil, err
	}
	if err := s.change(ctx, c, files, opts.Parallelism); err != nil {
		return nil, err
	}
	for _, p := range []*Plan{&s.deletes, &s.inserts} {
		slices.SortStableFunc(p.Tasks, func(a, b Task) int {
			return cmp.Or(cmp.Compare(a.File.Data.SpecID(), b.File.Data.SpecID()), cmp.Compare(a.File.partition, b.File.partition))
		})
		if err := p.refuseUnsupported(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sharing are the sides without tasks, each of whose delete files is read once. As half of the memory is for comparing, the
// keys of each side's equality deletes get a quarter of what reading has otherwise.
func (c *ChangePlan) sharing(opts ReadOptions) *sides {
	old, young := slices.Clone(c.Removed), slices.Clone(c.Tasks)
	for _, change := range c.Changed {
		old, young = append(old, Task{Deletes: change.Before}), append(young, Task{Deletes: change.After})
	}
	deletes, freeDeletes := c.before.sharing(old, keyMemory(opts)/4, opts.SpillDir)
	inserts, freeInserts := c.Plan.sharing(young, keyMemory(opts)/4, opts.SpillDir)
	return &sides{
		deletes: *deletes, inserts: *inserts, schema: c.Schema, foreign: c.foreign,
		free: func() error { return errors.Join(freeDeletes(), freeInserts()) },
	}
}

// withoutKept leaves out what went and came as the same file with the same deletes, under another sequence number.
func withoutKept(removed, added []Task) (went, came []Task) {
	byPath := map[string][]Task{}
	for _, t := range removed {
		byPath[t.File.path] = append(byPath[t.File.path], t)
	}
	kept := map[string]int{}
	for _, t := range added {
		before := byPath[t.File.path]
		if i := slices.IndexFunc(before, func(b Task) bool {
			return b.File.partitionID() == t.File.partitionID() && sameDeletes(b.Deletes, t.Deletes)
		}); i >= 0 {
			byPath[t.File.path] = slices.Delete(before, i, i+1)
			kept[t.File.path]++
			continue
		}
		came = append(came, t)
	}
	if len(kept) == 0 {
		return slices.Clone(removed), came
	}
	for _, t := range removed {
		left := byPath[t.File.path]
		if len(left) > 0 && left[0].File.key() == t.File.key() {
			byPath[t.File.path] = left[1:]
			went = append(went, t)
		}
	}
	return went, came
}

// refuse names the first file that is needed to compare deletes and can't be read.
func refuse(changed []Change) error {
	for _, change := range changed {
		for _, d := range []Deletes{change.Before, change.After} {
			if err := (Task{File: change.File, Deletes: d}).refuseUnsupported(); err != nil {
				return err
			}
		}
	}
	return nil
}

// change adds the rows of files whose deletes changed, in the order of the files.
func (s *sides) change(ctx context.Context, c *ChangePlan, files *pickedFiles, parallelism int) error {
	went, came := make([][]Task, len(c.Changed)), make([][]Task, len(c.Changed))
	positions := newPositionReader(c.source.FS, c.source.Meta, c.Changed)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallelism, 1))
	for i, change := range c.Changed {
		g.Go(func() (err error) {
			went[i], came[i], err = c.change(ctx, s, change, positions, files)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.deletes.Tasks = slices.Concat(s.deletes.Tasks, slices.Concat(went...))
	s.inserts.Tasks = slices.Concat(s.inserts.Tasks, slices.Concat(came...))
	return nil
}

// change finds the rows of a file that live on one side only.
func (c *ChangePlan) change(ctx context.Context, s *sides, change Change, positions *positionReader, files *pickedFiles) (went, came []Task, err error) {
	f := change.File
	sameEquality := sameDeletes(Deletes{Equality: change.Before.Equality}, Deletes{Equality: change.After.Equality})
	if c.foreign || (!sameEquality && c.source.Meta.Version() >= 3) {
		// Read whole on both sides: what lives on in it cancels.
		return []Task{{File: f, Deletes: change.Before}}, []Task{{File: f, Deletes: change.After}}, nil
	}
	var before, after *roaring64.Bitmap
	var equality []File
	if sameEquality {
		equality = change.Before.Equality
		after, err = positions.of(ctx, f, change.Before, c.before.after.SnapshotID) // what is deleted lives on the other side
		if err == nil {
			before, err = positions.of(ctx, f, change.After, c.after.SnapshotID)
		}
	} else {
		before, err = s.deletes.alive(ctx, Task{File: f, Deletes: change.Before})
		if err == nil {
			after, err = s.inserts.alive(ctx, Task{File: f, Deletes: change.After})
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if went, err = files.tasks(ctx, f, roaring64.AndNot(before, after), equality, c.before.after.SnapshotID); err != nil {
		return nil, nil, err
	}
	came, err = files.tasks(ctx, f, roaring64.AndNot(after, before), equality, c.after.SnapshotID)
	return went, came, err
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/parquet/schema"
	iceio "github.com/apache/iceberg-go/io"
)

// directFile is a task's file that workers read stretches of beside each other: it is opened, and its footer and its
// deletes are read, once. What it holds is not changed any more.
type directFile struct {
	task   Task
	files  *watchedIO
	plan   *Plan
	opened iceio.File
	says   footerFacts
	schema *schema.Schema
	gone   *roaring64.Bitmap // positions of deleted rows; nil: none
	users  atomic.Int64      // stretches that are not read yet
}

// stretch is consecutive row groups of a file, which one worker reads.
type stretch struct {
	file     *directFile
	from, to int   // row groups
	first    int64 // row of the file
	before   int64 // live rows of the file before it
	live     int64 // live rows of it
	skip     int64 // how many of those are not wanted
	stored   int64 // bytes
	weight   int64 // bytes that reading it holds
}

// openDirect opens a task's file and cuts it into stretches, without what lies wholly in the first skip live rows. There
// is at least one. The file is closed when all have left it. errIndirect: the file is for the general decoder.
func (w *worker) openDirect(ctx context.Context, t Task, skip int64) (all []*stretch, err error) {
	f := &directFile{task: t, plan: w.plan, files: watch(ctx, w.plan.source.FS)}
	err = f.guard(func() error {
		if f.opened, err = f.files.Open(t.File.path); err != nil {
			return err
		}
		all, err = w.stretches(f, skip)
		return err
	})
	if err != nil {
		f.close()
		return nil, err
	}
	f.users.Store(int64(len(all)))
	return all, nil
}

// leave says that a stretch of the file is not read any more.
func (f *directFile) leave() {
	if f.users.Add(-1) == 0 {
		f.close()
	}
}

func (f *directFile) close() {
	if f.opened != nil {
		_ = f.opened.Close() // it was only read
	}
}

// guard calls what reads the file, and tells its errors apart: those of storage, those that no other decoder gets past,
// and, as errIndirect, all others. Of these the general decoder reads the file, or says what is wrong with it.
func (f *directFile) guard(read func() error) error {
	err := f.task.catching(read)
	var stop *finalError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stop):
		return stop.err
	case f.files.ctx.Err() != nil || f.files.failed():
		return f.files.explain(err, f.plan.after.SnapshotID, f.task.kindOf)
	}
	return errIndirect
}

// catching calls what reads a task's file. What decompresses pages, and what makes a schema of a footer, may panic where no
// writer wrote them.
func (t Task) catching(read func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &finalError{t.panicked(cause)}
		}
	}()
	return read()
}

// stretches reads what lies at the file's end, and cuts the file.
func (w *worker) stretches(f *directFile, skip int64) (all []*stretch, err error) {
	if err := w.readFacts(f); err != nil {
		return nil, err
	}
	d, err := w.layOut(f.task, f.schema)
	if err != nil {
		return nil, err
	}
	if f.gone, err = w.deletedPositions(f); err != nil {
		return nil, err
	}
	next := stretch{file: f}
	gone := deletedRows{positions: f.gone}
	for g := range f.says.groups {
		group := &f.says.groups[g]
		next.from, next.to = g, g+1
		next.live = group.rows - gone.among(group.rows)
		next.skip = min(max(skip-next.before, 0), next.live)
		if next.stored, next.weight, err = w.weigh(f.task, group, d.leaves); err != nil {
			return nil, err
		}
		all = w.lengthen(all, next)
		next.first += group.rows
		next.before += next.live
		gone.pass(group.rows)
	}
	if len(all) == 0 {
		all = append(all, &next)
	}
	return all, nil
}

// readFacts reads a file's footer. arrow-go's schema of it is that of the file before where both have the same elements.
func (w *worker) readFacts(f *directFile) error {
	data, start, _, err := footerOf(f.opened)
	if err != nil {
		return err
	}
	if f.says, err = footerFactsOf(data, start, &w.known, nil); err != nil {
		return err
	}
	rows := int64(0)
	for _, g := range f.says.groups {
		if g.rows < 0 || len(g.chunks) != len(w.known.leaves) {
			return errIndirect
		}
		rows += g.rows
	}
	if f.says.encrypted || rows != f.says.rows || rows != f.task.File.Data.Count() {
		return errIndirect
	}
	if w.known.schema == nil {
		if w.known.schema, err = parquetSchemaOf(f.says.schema); err != nil {
			return err
		}
	}
	f.schema = w.known.schema
	return nil
}

// lengthen adds a row group to the last stretch, or begins another. Where the cuts lie depends on nothing but the file:
// a batch is most often cut there too.
func (w *worker) lengthen(all []*stretch, group stretch) []*stretch {
	if n := len(all); n > 0 && all[n-1].stored < w.opts.stretch {
		all[n-1].append(&group)
		return all
	}
	return append(all, &group)
}

// append adds the stretch behind it.
func (s *stretch) append(next *stretch) {
	s.to = next.to
	s.live += next.live
	s.skip += next.skip
	s.stored += next.stored
	s.weight = max(s.weight, next.weight)
}

// weigh finds out how many bytes of a row group are read, and how many reading holds. errIndirect: it is encoded in a way
// that is not read directly.
func (w *worker) weigh(t Task, group *rowGroupFacts, leaves []*leaf) (stored, held int64, err error) {
	for _, l := range leaves {
		chunk := &group.chunks[l.index]
		if chunk.encodings&^readable != 0 {
			return 0, 0, errIndirect
		}
		stored += chunk.length
		held += w.columnWeight(chunk.length)
	}
	return stored, held + w.pieceWeight(t), nil
}

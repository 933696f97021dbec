// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	iceio "github.com/apache/iceberg-go/io"
)

// directFile is a task's file that workers read stretches of beside each other: it is opened, and its footer and its
// deletes are read, once. What it holds is not changed any more.
type directFile struct {
	task   Task
	files  *watchedIO
	plan   *Plan
	opened iceio.File
	footer *metadata.FileMetaData
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
		if f.opened, err = (guardedIO{IO: f.files}).Open(t.File.path); err != nil {
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

// catching calls what reads a task's file. arrow-go panics on some page headers that no writer writes.
func (t Task) catching(read func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &finalError{t.panicked(cause)}
		}
	}()
	return read()
}

// smallChunk is the most bytes of column chunks that are read at once.
const smallChunk = 16 << 10

// reader reads the file's pages through source.
func (f *directFile) reader(source parquet.ReaderAtSeeker, mem memory.Allocator) (*file.Reader, error) {
	props := parquet.NewReaderProperties(mem)
	props.BufferedStreamEnabled = true
	if f.footer != nil {
		// A page with one very large value has more bytes than arrow-go allows by default, but no more than its chunk.
		stored, values := largestChunks(f.footer)
		props.MaxCompressedPageSize = max(props.MaxCompressedPageSize, stored)
		props.MaxUncompressedPageSize = max(props.MaxUncompressedPageSize, values)
		props.BufferedStreamEnabled = stored > smallChunk // the buffer has that many bytes, however small the chunk is
	}
	return file.NewParquetReader(source, file.WithReadProps(props), file.WithMetadata(f.footer))
}

// largestChunks are the most bytes of a column chunk, as stored and before.
func largestChunks(footer *metadata.FileMetaData) (compressed, uncompressed int64) {
	for _, group := range footer.RowGroups {
		for _, column := range group.Columns {
			if meta := column.MetaData; meta != nil {
				compressed = max(compressed, meta.TotalCompressedSize)
				uncompressed = max(uncompressed, meta.TotalUncompressedSize)
			}
		}
	}
	return compressed, uncompressed
}

// stretches reads what lies at the file's end, and cuts the file.
func (w *worker) stretches(f *directFile, skip int64) (all []*stretch, err error) {
	reader, err := f.reader(f.opened, &w.buffers)
	if err != nil {
		return nil, err
	}
	f.footer = reader.MetaData()
	f.footer.WriterVersion() // is kept at the first call, which must not be one of several at once
	d, err := w.layOut(f.task, f.footer.Schema)
	if err != nil {
		return nil, err
	}
	if f.gone, err = w.deletedPositions(f); err != nil {
		return nil, err
	}
	next := stretch{file: f}
	gone := deletedRows{positions: f.gone}
	for g := range reader.NumRowGroups() {
		group := reader.RowGroup(g)
		if group.NumRows() < 0 {
			return nil, errIndirect
		}
		next.from, next.to = g, g+1
		next.live = group.NumRows() - gone.among(group.NumRows())
		next.skip = min(max(skip-next.before, 0), next.live)
		if reader.NumRowGroups() > 1 {
			if next.stored, next.weight, err = w.weigh(f.task, group.MetaData(), d.leaves); err != nil {
				return nil, err
			}
		}
		all = w.lengthen(all, next)
		next.first += group.NumRows()
		next.before += next.live
		gone.pass(group.NumRows())
	}
	if next.first != f.task.File.Data.Count() || next.first != reader.NumRows() {
		return nil, errIndirect
	}
	if len(all) == 0 {
		all = append(all, &next)
	}
	return all, nil
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
func (w *worker) weigh(t Task, group *metadata.RowGroupMetaData, leaves []*leaf) (stored, held int64, err error) {
	for _, l := range leaves {
		chunk, err := group.ColumnChunk(l.index)
		if err != nil {
			return 0, 0, err
		}
		for _, e := range chunk.Encodings() {
			switch e {
			case parquet.Encodings.Plain, parquet.Encodings.RLE, parquet.Encodings.RLEDict, parquet.Encodings.PlainDict:
			case parquet.Encodings.BitPacked: // is said of levels that are not there
			default:
				return 0, 0, errIndirect
			}
		}
		size := max(chunk.TotalCompressedSize(), 0)
		stored += size
		held += w.columnWeight(size)
	}
	return stored, held + w.pieceWeight(t), nil
}

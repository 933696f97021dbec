// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
)

// positionReader finds out which rows of a data file deletes remove, as positions in the file: the number of the row, from
// 0. A position delete file is read once for all data files that want it. Safe for concurrent use.
type positionReader struct {
	fs     iceio.IO
	meta   table.Metadata
	wanted map[string]bool // paths of data files

	mu    sync.Mutex
	files map[fileKey]*positionFile
}

// positionFile is one position delete file, read when it is first asked for.
type positionFile struct {
	once   sync.Once
	byPath map[string]*roaring64.Bitmap
	err    error
}

func newPositionReader(fs iceio.IO, meta table.Metadata, changed []Change) *positionReader {
	r := &positionReader{fs: fs, meta: meta, wanted: map[string]bool{}, files: map[fileKey]*positionFile{}}
	for _, c := range changed {
		r.wanted[c.File.path] = true
	}
	return r
}

// positions is a reader for the plan's tasks.
func (p *Plan) positions() *positionReader {
	r := newPositionReader(p.source.FS, p.source.Meta, nil)
	for _, t := range p.Tasks {
		if len(t.Deletes.Position) > 0 {
			r.wanted[t.File.path] = true
		}
	}
	return r
}

// of are the positions of the file's rows that its vector or its position deletes remove.
func (r *positionReader) of(ctx context.Context, f File, d Deletes, snapshot int64) (*roaring64.Bitmap, error) {
	out := roaring64.New()
	if d.Vector != nil {
		files := watch(ctx, r.fs)
		vector, err := dv.ReadDV(files, d.Vector.Data)
		if err != nil {
			return nil, files.explain(err, snapshot, constantKind(DeleteFileKind))
		}
		for pos := range vector.Positions() {
			out.Add(pos)
		}
	}
	for _, p := range d.Position {
		byPath, err := r.read(ctx, p, snapshot)
		if err != nil {
			return nil, err
		}
		if positions := byPath[f.path]; positions != nil {
			out.Or(positions)
		}
	}
	if rows := uint64(f.Data.Count()); !out.IsEmpty() && out.Maximum() >= rows {
		out.RemoveRange(rows, out.Maximum()+1) // positions behind the end delete nothing
	}
	return out, nil
}

func (r *positionReader) read(ctx context.Context, f File, snapshot int64) (map[string]*roaring64.Bitmap, error) {
	if referencedFile(f.Data) != "" { // nobody else will ask
		files := watch(ctx, r.fs)
		byPath, err := r.load(ctx, files, f)
		return byPath, files.explain(err, snapshot, constantKind(DeleteFileKind))
	}
	r.mu.Lock()
	file := r.files[f.key()]
	if file == nil {
		file = &positionFile{}
		r.files[f.key()] = file
	}
	r.mu.Unlock()
	file.once.Do(func() {
		files := watch(ctx, r.fs)
		file.byPath, file.err = r.load(ctx, files, f)
		file.err = files.explain(file.err, snapshot, constantKind(DeleteFileKind))
	})
	return file.byPath, file.err
}

// A position delete file of more than searchedFrom bytes is searched for the names of up to mostPaths data files. Others
// are read whole: then it shows whether anything of them is missing.
const (
	searchedFrom = 4 << 20
	mostPaths    = 64
)

func (r *positionReader) load(ctx context.Context, files iceio.IO, f File) (map[string]*roaring64.Bitmap, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := []table.ScanOption{table.WithArrowBatchSize(defaultDecodeRows)}
	only := referencedFile(f.Data)
	whole := only != "" || f.Data.FileSizeBytes() <= searchedFrom || len(r.wanted) > mostPaths
	if !whole {
		var paths []string
		for path := range r.wanted {
			paths = append(paths, path)
		}
		opts = append(opts, table.WithRowFilter(iceberg.IsIn(iceberg.Reference("file_path"), paths...)))
	}
	scan := newScan(stepMetadata{r.meta, iceberg.PositionalDeleteSchema}, files, nil, opts...)
	_, batches, err := scan.ReadTasks(ctx, []table.FileScanTask{{File: asData{f.Data}, Length: f.Data.FileSizeBytes()}})
	if err != nil {
		return nil, err
	}
	byPath := map[string]*roaring64.Bitmap{}
	rows := int64(0)
	for batch, err := range batches {
		if err != nil {
			return nil, err
		}
		rows += batch.NumRows()
		paths, ok := batch.Column(0).(*array.String)
		positions, ok2 := batch.Column(1).(*array.Int64)
		if !ok || !ok2 {
			batch.Release()
			return nil, fmt.Errorf("its columns are %s", batch.Schema())
		}
		for i := range paths.Len() {
			path := paths.Value(i)
			if only != "" && path != only {
				batch.Release()
				return nil, fmt.Errorf("it names %q; its manifest says that all of it is about %s", path, only)
			}
			if !r.wanted[path] {
				continue
			}
			if byPath[path] == nil {
				byPath[path] = roaring64.New()
			}
			byPath[path].Add(uint64(positions.Value(i)))
		}
		batch.Release()
	}
	if want := f.Data.Count(); whole && ctx.Err() == nil && rows != want {
		return nil, fmt.Errorf("it has %d rows, its manifest says %d", rows, want)
	}
	return byPath, ctx.Err()
}

// asData makes iceberg-go read a delete file's own rows.
type asData struct{ iceberg.DataFile }

func (asData) ContentType() iceberg.ManifestEntryContent { return iceberg.EntryContentData }

// alive are the positions of the task's live rows, found by reading the columns that its equality deletes compare. It must
// not be asked in format version 3, where a file may hold row ids of its own.
func (p *Plan) alive(ctx context.Context, t Task) (*roaring64.Bitmap, error) {
	view := *p
	view.source.Meta = version3{p.source.Meta}
	t.File.Data = fromZero{t.File.Data}
	columns := append(p.equalityColumns(t.Deletes), iceberg.RowIDColumnName)
	out := roaring64.New()
	for batch, err := range view.decode(ctx, t, columns, defaultDecodeRows) {
		if err != nil {
			return nil, err
		}
		ids, ok := batch.Column(int(batch.NumCols()) - 1).(*array.Int64)
		if !ok {
			batch.Release()
			return nil, fmt.Errorf("the positions of %s come as %s", t.File.path, batch.Schema())
		}
		for _, id := range ids.Int64Values() {
			out.Add(uint64(id))
		}
		batch.Release()
	}
	return out, nil
}

// equalityColumns names the columns of the plan's schema that equality deletes compare, or any that is cheap to read.
func (p *Plan) equalityColumns(d Deletes) []string {
	var names []string
	seen := map[int]bool{}
	for _, f := range d.Equality {
		for _, id := range f.Data.EqualityFieldIDs() {
			if name, ok := p.schema.FindColumnName(id); ok && !seen[id] {
				names = append(names, name)
			}
			seen[id] = true
		}
	}
	if len(names) == 0 {
		return countColumns(p.schema)
	}
	return names
}

// version3 makes iceberg-go know _row_id. With a first row id of 0 it is the row's position: a file of version 2 has none
// of its own.
type version3 struct{ table.Metadata }

func (version3) Version() int { return 3 }

type fromZero struct{ iceberg.DataFile }

func (fromZero) FirstRowID() *int64 { return new(int64) }

// positionsOf visits a bitmap.
func positionsOf(b *roaring64.Bitmap) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for it := b.Iterator(); it.HasNext(); {
			if !yield(it.Next()) {
				return
			}
		}
	}
}

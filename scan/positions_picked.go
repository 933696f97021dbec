// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table/dv"
)

// Rows whose positions are known are read through a deletion vector that removes all others, made in memory and served
// beside the table's files, and only from the row groups that hold them.

// pickedFiles is the table's files and vectors in memory. Safe for concurrent use.
type pickedFiles struct {
	iceio.IO
	mu      sync.Mutex
	vectors map[string][]byte
	count   atomic.Int64
}

func newPickedFiles(files iceio.IO) *pickedFiles {
	return &pickedFiles{IO: files, vectors: map[string][]byte{}}
}

func (p *pickedFiles) Open(name string) (iceio.File, error) {
	p.mu.Lock()
	content, ok := p.vectors[name]
	p.mu.Unlock()
	if ok {
		return memoryFile{bytes.NewReader(content), name}, nil
	}
	return p.IO.Open(name)
}

// Create is refused: DVWriter writes files at once.
func (p *pickedFiles) Create(name string) (iceio.FileWriter, error) {
	return nil, fmt.Errorf("creating %s: %w", name, errors.ErrUnsupported)
}

// WriteFile keeps a vector.
func (p *pickedFiles) WriteFile(name string, content []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vectors[name] = content
	return nil
}

type memoryFile struct {
	*bytes.Reader
	name string
}

func (memoryFile) Close() error                 { return nil }
func (f memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f memoryFile) Name() string               { return f.name }
func (f memoryFile) Size() int64                { return f.Reader.Size() }
func (memoryFile) Mode() fs.FileMode            { return 0o400 }
func (memoryFile) ModTime() time.Time           { return time.Time{} }
func (memoryFile) IsDir() bool                  { return false }
func (memoryFile) Sys() any                     { return nil }

// vector makes the deletion vector that leaves only the picked rows of a data file.
func (p *pickedFiles) vector(f File, picked *roaring64.Bitmap) (*File, error) {
	others := dv.NewRoaringPositionBitmap()
	var next uint64
	for pos := range positionsOf(picked) {
		others.SetRange(next, pos)
		next = pos + 1
	}
	others.SetRange(next, uint64(f.Data.Count()))
	if others.IsEmpty() {
		return nil, nil
	}
	w := dv.NewDVWriter(p, func(int32) *iceberg.PartitionSpec { return iceberg.UnpartitionedSpec })
	w.Load(f.path, others, 0, nil)
	name := "memory:///picked-" + strconv.FormatInt(p.count.Add(1), 10) + ".puffin"
	files, err := w.Flush(context.Background(), name)
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("picking rows of %s: %w", f.path, err)
	}
	return &File{Data: files[0], path: name}, nil
}

// tasks are what reads the picked rows of a file, minus those that the equality deletes remove, in file order.
func (p *pickedFiles) tasks(ctx context.Context, f File, picked *roaring64.Bitmap, equality []File, snapshot int64) ([]Task, error) {
	if picked.IsEmpty() {
		return nil, nil
	}
	vector, err := p.vector(f, picked)
	if err != nil {
		return nil, err
	}
	whole := Task{File: f, Deletes: Deletes{Vector: vector, Equality: equality}}
	if vector == nil {
		return []Task{whole}, nil
	}
	groups, err := readRowGroups(ctx, p.IO, f, snapshot)
	if err != nil {
		return nil, err
	}
	parts, ok := partsOf(groups, picked, f.Data.FileSizeBytes())
	if !ok {
		return []Task{whole}, nil
	}
	tasks := make([]Task, len(parts))
	for i, part := range parts {
		tasks[i] = whole
		tasks[i].File.Data = withoutOffsets{f.Data}
		tasks[i].part = part
	}
	return tasks, nil
}

// withoutOffsets makes iceberg-go take the places of row groups from the file itself.
type withoutOffsets struct{ iceberg.DataFile }

func (withoutOffsets) SplitOffsets() []int64 { return nil }

// rowGroup is where a row group begins, and how many rows it has.
type rowGroup struct{ offset, rows int64 }

func readRowGroups(ctx context.Context, files iceio.IO, f File, snapshot int64) (groups []rowGroup, err error) {
	defer Task{File: f}.panicsInto(&err)
	watched := watch(ctx, files)
	defer func() { err = watched.explain(err, snapshot, constantKind(DataFileKind)) }()
	source, err := guardedIO{watched, []int{}}.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, err := file.NewParquetReader(source)
	if err != nil {
		return nil, err
	}
	for i := range r.NumRowGroups() {
		meta := r.MetaData().RowGroup(i)
		groups = append(groups, rowGroup{offset: beginning(meta), rows: meta.NumRows()})
	}
	return groups, nil
}

// beginning is where a row group begins, worked out as iceberg-go does: its first column's dictionary, else its first page.
func beginning(g *metadata.RowGroupMetaData) int64 {
	if g.NumColumns() > 0 {
		if first, err := g.ColumnChunk(0); err == nil {
			data := first.DataPageOffset()
			if first.HasDictionaryPage() {
				if dictionary := first.DictionaryPageOffset(); dictionary >= 0 && (data < 0 || dictionary < data) {
					return dictionary
				}
			}
			if data >= 0 {
				return data
			}
		}
	}
	return g.FileOffset()
}

// partsOf are the ranges of row groups that hold a picked row; !ok where the whole file has to be read.
func partsOf(groups []rowGroup, picked *roaring64.Bitmap, size int64) (parts []part, ok bool) {
	var first uint64
	var open bool
	for i, g := range groups {
		if g.offset <= 0 || g.offset >= size || (i > 0 && g.offset <= groups[i-1].offset) {
			return nil, false // no order to cut at
		}
		last := first + uint64(g.rows)
		if rankBelow(picked, last) == rankBelow(picked, first) {
			open = false
		} else {
			end := size
			if i+1 < len(groups) {
				end = groups[i+1].offset
			}
			if !open {
				parts = append(parts, part{start: g.offset})
			}
			open = true
			parts[len(parts)-1].length = end - parts[len(parts)-1].start
		}
		first = last
	}
	whole := len(parts) == 1 && parts[0] == part{groups[0].offset, size - groups[0].offset}
	return parts, len(parts) > 0 && !whole
}

// rankBelow is how many positions lie below n.
func rankBelow(b *roaring64.Bitmap, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return b.Rank(n - 1)
}

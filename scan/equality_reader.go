// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// equalityReader has the keys of the equality deletes of a plan's tasks. A delete file is read once for all data files that
// it applies to. Safe for concurrent use.
//
// Which delete files apply to a data file is for the delete index to say. In one state, and of the files of one scope, these
// are the ones from some sequence number on. So all that is kept of a key is the newest sequence number that deletes it.
type equalityReader struct {
	plan   *Plan
	memory int64 // bytes that the tables of keys may take
	atOnce int64 // stored bytes that are read at once
	room   *semaphore.Weighted
	byFile map[fileKey]*equalityScope
	scopes []*equalityScope
	seed   maphash.Seed

	mu    sync.Mutex // of what follows, and of the tables while keys are added
	used  int64      // bytes of the tables
	spill *spillFolder
	file  *os.File // of what did not fit; nil: all did
	size  int64
}

// equalityScope are the delete files of one partition, or of the whole table, that compare the same columns.
type equalityScope struct {
	ids       []int
	files     []File  // oldest first
	sequences []int64 // of the files, each once

	turn   chan struct{} // taken by who loads the files
	loaded bool
	err    error

	mu   sync.RWMutex // keys move to disk while they are looked up
	keys keySet
}

// scopeID tells scopes apart.
type scopeID struct {
	partition partitionID
	columns   string
}

// Delete files are small and come by the thousand: as many are read at once as do not have more stored bytes than
// deletesAtOnce together, or a quarter of the memory for keys where that is less, each counting leastDelete at least.
const (
	deletesAtOnce = 16 << 20
	leastDelete   = 1 << 20
)

// keyMemory is what the keys of a plan may take of the memory for reading.
func keyMemory(opts ReadOptions) int64 { return opts.withDefaults().Memory / 4 }

// leastKeyMemory keeps the parts that go to disk from being tiny.
const leastKeyMemory = 64 << 10

// sharing is the plan with the equality deletes of the tasks read once for all of them. free is to be called when nothing
// reads any more. memory are the bytes for their keys; what does not fit goes to a folder in dir.
func (p *Plan) sharing(tasks []Task, memory int64, dir string) (shared *Plan, free func() error) {
	none := !slices.ContainsFunc(tasks, func(t Task) bool { return len(t.Deletes.Equality) > 0 })
	if none || p.equality != nil {
		return p, func() error { return nil }
	}
	view := *p
	view.equality = newEqualityReader(p, tasks, memory, dir)
	return &view, view.equality.close
}

func newEqualityReader(p *Plan, tasks []Task, memory int64, dir string) *equalityReader {
	r := &equalityReader{
		plan: p, memory: min(max(memory, leastKeyMemory), mostKeyTable), atOnce: min(max(memory/4, leastDelete), deletesAtOnce),
		byFile: map[fileKey]*equalityScope{}, seed: maphash.MakeSeed(), spill: newSpillFolder(dir),
	}
	r.room = semaphore.NewWeighted(r.atOnce)
	byID := map[scopeID]*equalityScope{}
	for _, t := range tasks {
		for _, f := range t.Deletes.Equality {
			key := f.key()
			if r.byFile[key] != nil {
				continue
			}
			ids := comparedIDs([]File{f})
			id := scopeID{f.partitionID(), fmt.Sprint(ids)}
			scope := byID[id]
			if scope == nil {
				scope = &equalityScope{ids: ids, turn: make(chan struct{}, 1)}
				byID[id], r.scopes = scope, append(r.scopes, scope)
			}
			scope.files, r.byFile[key] = append(scope.files, f), scope
		}
	}
	for _, s := range r.scopes {
		slices.SortFunc(s.files, compareFiles)
		for _, f := range s.files {
			s.sequences = append(s.sequences, f.Sequence)
		}
		s.sequences = slices.Compact(s.sequences)
	}
	return r
}

// close removes what went to disk.
func (r *equalityReader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spill.remove()
}

// appliedDeletes are the deletes of one scope that apply to a data file.
type appliedDeletes struct {
	reader *equalityReader
	scope  *equalityScope
	from   int64     // sequence number of the oldest
	files  int       // that were asked for
	ofRows []keyCode // the compared columns in the batches of the data file
	block  []byte    // of keys on disk
}

// applying sorts a data file's equality deletes by scope. It is not complete where the reader has not just these from the
// oldest on: where they are of another plan.
func (r *equalityReader) applying(files []File) (applied []*appliedDeletes, complete bool) {
	complete = true
	for _, f := range files {
		scope := r.byFile[f.key()]
		if scope == nil {
			return nil, false
		}
		i := slices.IndexFunc(applied, func(a *appliedDeletes) bool { return a.scope == scope })
		if i < 0 {
			i, applied = len(applied), append(applied, &appliedDeletes{reader: r, scope: scope, from: f.Sequence})
		}
		applied[i].files++
		applied[i].from = min(applied[i].from, f.Sequence)
	}
	for _, a := range applied {
		complete = complete && a.files == a.scope.filesFrom(a.from)
	}
	return applied, complete
}

// filesFrom is how many files have at least that sequence number.
func (s *equalityScope) filesFrom(sequence int64) int {
	return len(s.files) - sort.Search(len(s.files), func(i int) bool { return s.files[i].Sequence >= sequence })
}

// mark marks the rows that the deletes remove.
func (a *appliedDeletes) mark(batch arrow.RecordBatch, gone []bool) error {
	a.scope.mu.RLock()
	defer a.scope.mu.RUnlock()
	return eachKey(batch, a.ofRows, func(row int, key []byte) (err error) {
		if gone[row] {
			return nil
		}
		var place int
		if place, a.block, err = a.scope.keys.find(a.reader.hash(key), key, a.block); err != nil {
			return a.reader.spill.fail(err)
		}
		gone[row] = place >= 0 && a.scope.sequences[place] >= a.from
		return nil
	})
}

// hash is the same for the key in all tables.
func (r *equalityReader) hash(key []byte) uint32 { return uint32(maphash.Bytes(r.seed, key) >> 32) }

// load reads the files of a scope where nobody has yet. All who ask get the error of the one who read, but for its context's.
func (r *equalityReader) load(ctx context.Context, s *equalityScope) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.loaded {
		return s.err
	}
	err := r.read(ctx, s)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.loaded, s.err = true, err
	return err
}

func (r *equalityReader) read(ctx context.Context, s *equalityScope) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range s.files {
		size := min(max(f.Data.FileSizeBytes(), leastDelete), r.atOnce)
		if r.room.Acquire(ctx, size) != nil {
			break // ctx has ended, and says why
		}
		g.Go(func() error {
			defer r.room.Release(size)
			return r.readFile(ctx, s, f)
		})
	}
	return g.Wait()
}

// readFile adds the deletes of a file.
func (r *equalityReader) readFile(ctx context.Context, s *equalityScope, f File) error {
	view := *r.plan
	view.schema, view.equality = r.plan.schemaWith(s.ids), nil
	var names []string
	for _, id := range s.ids {
		name, _ := view.schema.FindColumnName(id)
		names = append(names, name)
	}
	schema, err := project(view.source.Meta, view.schema, names)
	if err != nil {
		return err
	}
	codes, err := keyCodes(schema, s.ids)
	if err != nil {
		return err
	}
	sequence, _ := slices.BinarySearch(s.sequences, f.Sequence)
	f.Data = asData{f.Data}
	for batch, err := range view.decode(ctx, Task{File: f}, names, rowsAtOnce(f)) {
		if err != nil {
			return err
		}
		err = r.add(s, sequence, batch, codes)
		batch.Release()
		if full, ok := errors.AsType[*SpillError](err); ok {
			return full
		}
		if err != nil {
			return &CorruptFileError{Kind: DeleteFileKind, Path: f.path, Err: err}
		}
	}
	return nil
}

// rowsAtOnce is how many rows of a delete file are decoded at once: about 1 MiB.
func rowsAtOnce(f File) int {
	perRow := max(growth*f.Data.FileSizeBytes()/max(f.Data.Count(), 1), 1)
	return int(min(max((1<<20)/perRow, 1), defaultDecodeRows))
}

// add adds the keys of a batch; sequence is the place of their sequence number among the scope's.
func (r *equalityReader) add(s *equalityScope, sequence int, batch arrow.RecordBatch, codes []keyCode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return eachKey(batch, codes, func(_ int, key []byte) error {
		r.used += s.keys.table.add(r.hash(key), key, uint32(sequence))
		if r.used > r.memory {
			return r.makeRoom()
		}
		return nil
	})
}

// makeRoom moves the largest tables to disk until half of the memory is free.
func (r *equalityReader) makeRoom() error {
	largest := slices.SortedFunc(slices.Values(r.scopes), func(a, b *equalityScope) int {
		return cmp.Compare(b.keys.table.bytes(), a.keys.table.bytes())
	})
	if r.file == nil {
		file, err := r.spill.open()
		if err != nil {
			return err
		}
		r.file = file
	}
	for _, s := range largest {
		if r.used <= r.memory/2 {
			break
		}
		r.used -= s.keys.table.bytes()
		if err := r.move(s); err != nil {
			return r.spill.fail(err)
		}
	}
	return nil
}

// move moves a scope's table to the end of the file.
func (r *equalityReader) move(s *equalityScope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, err := s.keys.table.write(r.file, r.size)
	if err != nil {
		return err
	}
	r.size = run.end()
	s.keys.runs, s.keys.table = append(s.keys.runs, run), keyTable{}
	return nil
}

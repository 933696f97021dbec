// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"iter"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// File is one live data or delete file of a state, as its manifest entry names it. It is a plain value: Data is what
// iceberg-go decoded (without column statistics for data files) and is never changed.
type File struct {
	Data iceberg.DataFile
	// Sequence is the data sequence number, inherited from the manifest where the entry has none; 0 in format version 1.
	Sequence int64
	// Snapshot is the snapshot that added the file (or deleted it, for a removed entry).
	Snapshot int64

	path      string
	partition string // canonical form of the partition tuple, see partitionKey
}

// Path is the file's location, verbatim.
func (f File) Path() string { return f.path }

// Task is a data file and the deletes that apply to it in a state.
type Task struct {
	File    File
	Deletes Deletes

	part part // of the file that is read; zero: all of it
}

// part is a range of bytes. The row groups that begin in it are read.
type part struct{ start, length int64 }

// Rows is the number of rows that the task yields, or -1 where deletes apply and only reading tells.
func (t Task) Rows() int64 {
	if !t.Deletes.None() || t.part != (part{}) {
		return -1
	}
	return t.File.Data.Count()
}

// Deletes are the effective deletes of one data file, each list in one deterministic order.
type Deletes struct {
	Vector   *File // a deletion vector; then Position is empty
	Position []File
	Equality []File
}

// None reports whether nothing deletes from the file.
func (d Deletes) None() bool { return d.Vector == nil && len(d.Position) == 0 && len(d.Equality) == 0 }

// all visits every delete file: the vector, position deletes, equality deletes.
func (d Deletes) all() iter.Seq[File] {
	return func(yield func(File) bool) {
		if d.Vector != nil && !yield(*d.Vector) {
			return
		}
		for _, files := range [][]File{d.Position, d.Equality} {
			for _, f := range files {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// Change is a data file that both states hold and whose effective deletes differ.
type Change struct {
	File   File
	Before Deletes
	After  Deletes
}

// fileKey identifies a data or delete file within a state: the same path can be live twice. A deletion vector is one blob
// in a Puffin file that holds many.
type fileKey struct {
	path       string
	sequence   int64
	spec       int32
	partition  string
	offset     int64
	referenced string
}

func (f File) key() fileKey {
	if table.IsDeletionVector(f.Data) {
		k := fileKey{path: f.path}
		if offset := f.Data.ContentOffset(); offset != nil {
			k.offset = *offset
		}
		if ref := f.Data.ReferencedDataFile(); ref != nil {
			k.referenced = *ref
		}
		return k
	}
	return fileKey{path: f.path, sequence: f.Sequence, spec: f.Data.SpecID(), partition: f.partition}
}

// compareFiles is the one order of files everywhere: data sequence number, then path, then what tells equal paths apart.
func compareFiles(a, b File) int {
	ak, bk := a.key(), b.key()
	return cmp.Or(
		cmp.Compare(a.Sequence, b.Sequence),
		cmp.Compare(ak.path, bk.path),
		cmp.Compare(ak.offset, bk.offset),
		cmp.Compare(ak.referenced, bk.referenced),
		cmp.Compare(ak.spec, bk.spec),
		cmp.Compare(ak.partition, bk.partition),
	)
}

// sameDeletes reports whether two sets of effective deletes are the same files.
func sameDeletes(a, b Deletes) bool {
	same := func(x, y File) bool { return x.key() == y.key() }
	if (a.Vector == nil) != (b.Vector == nil) || (a.Vector != nil && !same(*a.Vector, *b.Vector)) {
		return false
	}
	return slices.EqualFunc(a.Position, b.Position, same) && slices.EqualFunc(a.Equality, b.Equality, same)
}

// subtract splits two multisets of files into what only a has and what only b has.
func subtract(a, b []File) (onlyA, onlyB []File) {
	counts := make(map[fileKey]int, len(b))
	for _, f := range b {
		counts[f.key()]++
	}
	for _, f := range a {
		if k := f.key(); counts[k] > 0 {
			counts[k]--
		} else {
			onlyA = append(onlyA, f)
		}
	}
	// What is left in counts is what a did not have; equal keys are interchangeable.
	for _, f := range b {
		if k := f.key(); counts[k] > 0 {
			counts[k]--
			onlyB = append(onlyB, f)
		}
	}
	return onlyA, onlyB
}

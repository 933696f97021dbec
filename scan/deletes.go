// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// filePathField is the reserved field id of file_path in position delete files (Iceberg spec, "Reserved Field IDs"), and
// fileField the one of the metadata column _file, under which DuckDB writes the bounds of file_path.
const (
	filePathField = 2147483546
	fileField     = 2147483646
)

// partitionID is a partition of one spec.
type partitionID struct {
	spec  int32
	tuple string
}

func (f File) partitionID() partitionID { return partitionID{f.Data.SpecID(), f.partition} }

// deleteIndex answers which delete files of one state apply to a data file (Iceberg spec, "Scan Planning").
type deleteIndex struct {
	vectors   map[string][]File      // by the data file they are for
	byPath    map[string][]File      // position deletes for one data file
	scoped    map[partitionID][]File // position deletes for a partition
	global    []File                 // equality deletes of an unpartitioned spec
	partition map[partitionID][]File // equality deletes for a partition
}

// specLookup finds a partition spec by id, nil when there is none.
type specLookup func(id int32) *iceberg.PartitionSpec

func newDeleteIndex(files []File, specs specLookup) (*deleteIndex, error) {
	x := &deleteIndex{
		vectors: map[string][]File{}, byPath: map[string][]File{},
		scoped: map[partitionID][]File{}, partition: map[partitionID][]File{},
	}
	for _, f := range files {
		switch {
		case table.IsDeletionVector(f.Data):
			ref := referencedFile(f.Data)
			if ref == "" {
				return nil, &CorruptFileError{Kind: DeleteFileKind, Path: f.path, Err: fmt.Errorf("the deletion vector names no data file")}
			}
			x.vectors[ref] = append(x.vectors[ref], f)
		case f.Data.ContentType() == iceberg.EntryContentEqDeletes:
			global, err := isGlobal(f, specs)
			if err != nil {
				return nil, err
			}
			if global {
				x.global = append(x.global, f)
			} else {
				x.partition[f.partitionID()] = append(x.partition[f.partitionID()], f)
			}
		default:
			if ref := referencedFile(f.Data); ref != "" {
				x.byPath[ref] = append(x.byPath[ref], f)
			} else {
				x.scoped[f.partitionID()] = append(x.scoped[f.partitionID()], f)
			}
		}
	}
	return x, nil
}

func isGlobal(f File, specs specLookup) (bool, error) {
	spec := specs(f.Data.SpecID())
	if spec == nil {
		return false, fmt.Errorf("equality delete file %s: the metadata holds no partition spec %d", f.path, f.Data.SpecID())
	}
	return spec.IsUnpartitioned(), nil
}

// referencedFile is the one data file that a position delete file or vector is for, "" when it is for a partition: named
// outright, or both bounds of its file_path column being the same path.
func referencedFile(data iceberg.DataFile) string {
	if ref := data.ReferencedDataFile(); ref != nil && *ref != "" {
		return *ref
	}
	lower, upper := pathBounds(data)
	if len(lower) > 0 && bytes.Equal(lower, upper) {
		return string(lower)
	}
	return ""
}

// pathBounds are the bounds of a position delete file's file_path column, empty where there are none.
func pathBounds(data iceberg.DataFile) (lower, upper []byte) {
	lowers, uppers := data.LowerBoundValues(), data.UpperBoundValues()
	for _, id := range []int{filePathField, fileField} {
		if lower, upper = lowers[id], uppers[id]; len(lower) > 0 || len(upper) > 0 {
			return lower, upper
		}
	}
	return nil, nil
}

// mayName is false when the bounds of a position delete file's file_path column exclude a path.
func mayName(data iceberg.DataFile, path string) bool {
	lower, upper := pathBounds(data)
	if bytes.Compare(lower, []byte(path)) > 0 {
		return false
	}
	return len(upper) == 0 || bytes.Compare(upper, []byte(path)) >= 0
}

// of is the data file's effective deletes.
func (x *deleteIndex) of(f File) (Deletes, error) {
	var d Deletes
	for _, v := range x.vectors[f.path] {
		if v.Sequence < f.Sequence {
			continue
		}
		if d.Vector != nil {
			return Deletes{}, &CorruptFileError{
				Kind: DeleteFileKind, Path: v.path,
				Err: fmt.Errorf("the state holds two deletion vectors for %s", f.path),
			}
		}
		d.Vector = &v
	}
	if d.Vector == nil { // a vector holds all positions that earlier position delete files had
		d.Position = appendFrom(d.Position, x.byPath[f.path], f.Sequence)
		for _, p := range x.scoped[f.partitionID()] {
			if p.Sequence >= f.Sequence && mayName(p.Data, f.path) {
				d.Position = append(d.Position, p)
			}
		}
		slices.SortFunc(d.Position, compareFiles)
	}
	d.Equality = appendFrom(d.Equality, x.global, f.Sequence+1)
	d.Equality = appendFrom(d.Equality, x.partition[f.partitionID()], f.Sequence+1)
	slices.SortFunc(d.Equality, compareFiles)
	return d, nil
}

// appendFrom appends the delete files with at least that sequence number.
func appendFrom(to, files []File, sequence int64) []File {
	for _, f := range files {
		if f.Sequence >= sequence {
			to = append(to, f)
		}
	}
	return to
}

// tasks pairs data files with their effective deletes.
func (x *deleteIndex) tasks(files []File) ([]Task, error) {
	tasks := make([]Task, len(files))
	for i, f := range files {
		d, err := x.of(f)
		if err != nil {
			return nil, err
		}
		tasks[i] = Task{File: f, Deletes: d}
	}
	return tasks, nil
}

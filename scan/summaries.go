// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/iceberg-go"
)

// A manifest list says of each manifest which sequence numbers and partitions its files have. This file asks it whether a
// manifest can hold a file that matters, so that the others stay unopened. Every answer errs towards opening.

// matching are the delete manifests that can hold a delete file which applies to one of the data files.
func matching(deletes []iceberg.ManifestFile, specs specLookup, files []File) []iceberg.ManifestFile {
	var out []iceberg.ManifestFile
	for _, m := range deletes {
		if deletesMayMatch(m, specs, files) {
			out = append(out, m)
		}
	}
	return out
}

// deletesMayMatch reports whether a delete manifest can hold a delete file that applies to one of the data files. No
// entry has a higher data sequence number than its manifest. After a change of partitioning DuckDB writes position deletes
// of older files under the new spec, where only their path tells, so that manifests of other specs count.
func deletesMayMatch(m iceberg.ManifestFile, specs specLookup, files []File) bool {
	for _, f := range files {
		if m.SequenceNum() < f.Sequence {
			continue
		}
		if isUnpartitioned(specs, m.PartitionSpecID()) { // global equality deletes
			return true
		}
		if m.PartitionSpecID() != f.Data.SpecID() || mayHold(m, specs, f) {
			return true
		}
	}
	return false
}

// dataMayMatch reports whether a data manifest can hold a data file that one of the delete files applies to.
func dataMayMatch(m iceberg.ManifestFile, specs specLookup, deletes []File) bool {
	for _, d := range deletes {
		if m.MinSequenceNum() > d.Sequence {
			continue
		}
		if d.Data.ContentType() == iceberg.EntryContentEqDeletes && isUnpartitioned(specs, d.Data.SpecID()) {
			return true
		}
		if m.PartitionSpecID() == d.Data.SpecID() && mayHold(m, specs, d) {
			return true
		}
	}
	return false
}

func isUnpartitioned(specs specLookup, id int32) bool {
	spec := specs(id)
	return spec == nil || spec.IsUnpartitioned()
}

// mayHold reports whether the manifest's partition summaries leave room for the partition of a file of the same spec.
func mayHold(m iceberg.ManifestFile, specs specLookup, f File) bool {
	spec := specs(m.PartitionSpecID())
	summaries := m.Partitions()
	if spec == nil || len(summaries) == 0 {
		return true
	}
	if spec.NumFields() != len(summaries) {
		return true
	}
	partition := f.Data.Partition()
	for i, summary := range summaries {
		if !summaryMayHold(summary, partition[spec.Field(i).FieldID]) {
			return false
		}
	}
	return true
}

func summaryMayHold(s iceberg.FieldSummary, value any) bool {
	if value == nil {
		return s.ContainsNull
	}
	if s.LowerBound == nil || s.UpperBound == nil {
		return true
	}
	if n, ok := integerOf(value); ok {
		low, okLow := integerBound(*s.LowerBound)
		high, okHigh := integerBound(*s.UpperBound)
		return !okLow || !okHigh || (low <= n && n <= high)
	}
	if text, ok := value.(string); ok {
		// Java orders strings by UTF-16 units, which is byte order below U+E000 only.
		if v, low, high := []byte(text), *s.LowerBound, *s.UpperBound; byteOrdered(v) && byteOrdered(low) && byteOrdered(high) {
			return bytes.Compare(low, v) <= 0 && bytes.Compare(v, high) <= 0
		}
	}
	return true
}

// integerBound decodes a bound of 4 bytes, or of 8 where the column was promoted to long (Iceberg spec, "Binary
// single-value serialization").
func integerBound(b []byte) (int64, bool) {
	switch len(b) {
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

func byteOrdered(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= 0xEE })
}

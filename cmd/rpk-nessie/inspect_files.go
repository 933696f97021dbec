// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// What manifests and files are called.
var (
	manifestContents = map[iceberg.ManifestContent]string{iceberg.ManifestContentData: "data", iceberg.ManifestContentDeletes: "deletes"}
	entryStatuses    = map[iceberg.ManifestEntryStatus]string{
		iceberg.EntryStatusADDED: "added", iceberg.EntryStatusEXISTING: "existing", iceberg.EntryStatusDELETED: "deleted",
	}
	fileContents = map[iceberg.ManifestEntryContent]string{
		iceberg.EntryContentData: "data", iceberg.EntryContentPosDeletes: "position deletes", iceberg.EntryContentEqDeletes: "equality deletes",
	}
)

func inspectManifests(ctx context.Context, i *inspection) (*sheet, error) {
	manifests, err := scan.Manifests(ctx, i.Storage.Within(ctx), i.state)
	if err != nil {
		return nil, err
	}
	s := &sheet{columns: []string{
		"content", "added_by", "sequence", "spec_id", "added_files", "existing_files", "deleted_files", "added_rows", "existing_rows", "deleted_rows", "size", "path",
	}}
	known := func(n int64) any { return orNil(n, n >= 0) }
	for _, m := range manifests {
		s.add(manifestContents[m.ManifestContent()], snapshotID(m.SnapshotID()), m.SequenceNum(), m.PartitionSpecID(),
			known(int64(m.AddedDataFiles())), known(int64(m.ExistingDataFiles())), known(int64(m.DeletedDataFiles())),
			known(m.AddedRows()), known(m.ExistingRows()), known(m.DeletedRows()), size(m.Length()), m.FilePath())
	}
	return s, nil
}

func (i *inspection) entries(ctx context.Context) ([]scan.Entry, error) {
	files := i.Storage.Within(ctx)
	manifests, err := scan.Manifests(ctx, files, i.state)
	if err != nil {
		return nil, err
	}
	return scan.Entries(ctx, files, i.state, manifests...)
}

func inspectEntries(ctx context.Context, i *inspection) (*sheet, error) {
	entries, err := i.entries(ctx)
	if err != nil {
		return nil, err
	}
	s := &sheet{columns: []string{"status", "snapshot_id", "sequence", "content", "format", "spec_id", "partition", "rows", "size", "path"}}
	for _, e := range entries {
		s.add(append([]any{entryStatuses[e.Status], snapshotID(e.Snapshot), e.Sequence}, i.file(e)...)...)
	}
	return s, nil
}

func inspectDataFiles(ctx context.Context, i *inspection) (*sheet, error) {
	entries, err := i.entries(ctx)
	if err != nil {
		return nil, err
	}
	s := &sheet{columns: []string{"added_by", "sequence", "content", "format", "spec_id", "partition", "rows", "size", "path"}}
	for _, e := range entries {
		if e.Live() {
			s.add(append([]any{snapshotID(e.Snapshot), e.Sequence}, i.file(e)...)...)
		}
	}
	return s, nil
}

// file is what is shown of a file wherever one is.
func (i *inspection) file(e scan.Entry) []any {
	return []any{
		fileContents[e.Data.ContentType()], string(e.Data.FileFormat()), e.Data.SpecID(), i.partition(e.Data),
		e.Data.Count(), size(e.Data.FileSizeBytes()), e.Path(),
	}
}

// partition is a file's partition as a JSON object, by the names of its spec's fields; nil where it has none.
func (i *inspection) partition(f iceberg.DataFile) any {
	var b bytes.Buffer
	for _, spec := range i.look.Table.Meta.PartitionSpecs() {
		if int32(spec.ID()) != f.SpecID() {
			continue
		}
		for _, field := range spec.Fields() {
			value := f.Partition()[field.FieldID]
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			name, _ := json.Marshal(field.Name)
			b.Write(append(name, ':'))
			if err := encodeJSON(&b, partitionValue(value)); err != nil {
				return nil
			}
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return json.RawMessage("{" + b.String() + "}")
}

// partitionValue is a value that JSON can hold.
func partitionValue(v any) any {
	switch v := v.(type) {
	case nil, bool, int32, int64, float32, float64, string:
		return v
	case []byte:
		return fmt.Sprintf("%x", v)
	default:
		return fmt.Sprint(v)
	}
}

// partitionSum adds up what a partition holds.
type partitionSum struct {
	partition, key                              string
	spec                                        int32
	files, positionDeletes, equalityDeletes     int64
	rows, positionDeleteRows, equalityDeleteRow int64
	bytes                                       int64
	newest                                      int64
}

func inspectPartitions(ctx context.Context, i *inspection) (*sheet, error) {
	entries, err := i.entries(ctx)
	if err != nil {
		return nil, err
	}
	sums := map[string]*partitionSum{}
	for _, e := range entries {
		if !e.Live() {
			continue
		}
		partition := plain(i.partition(e.Data))
		key := fmt.Sprintf("%d %s", e.Data.SpecID(), partition)
		sum := sums[key]
		if sum == nil {
			sum = &partitionSum{partition: partition, key: key, spec: e.Data.SpecID()}
			sums[key] = sum
		}
		sum.add(e)
	}
	s := &sheet{columns: []string{
		"partition", "spec_id", "files", "rows", "size", "position_delete_files", "deleted_positions", "equality_delete_files", "equality_deletes", "newest_sequence",
	}}
	ordered := make([]*partitionSum, 0, len(sums))
	for _, sum := range sums {
		ordered = append(ordered, sum)
	}
	slices.SortFunc(ordered, func(a, b *partitionSum) int { return cmp.Compare(a.key, b.key) })
	for _, p := range ordered {
		s.add(orNil(json.RawMessage(p.partition), p.partition != ""), p.spec, p.files, p.rows, size(p.bytes), p.positionDeletes, p.positionDeleteRows,
			p.equalityDeletes, p.equalityDeleteRow, p.newest)
	}
	return s, nil
}

func (p *partitionSum) add(e scan.Entry) {
	p.newest = max(p.newest, e.Sequence)
	switch e.Data.ContentType() {
	case iceberg.EntryContentData:
		p.files, p.rows, p.bytes = p.files+1, p.rows+e.Data.Count(), p.bytes+e.Data.FileSizeBytes()
	case iceberg.EntryContentPosDeletes:
		p.positionDeletes, p.positionDeleteRows = p.positionDeletes+1, p.positionDeleteRows+e.Data.Count()
	case iceberg.EntryContentEqDeletes:
		p.equalityDeletes, p.equalityDeleteRow = p.equalityDeletes+1, p.equalityDeleteRow+e.Data.Count()
	}
}

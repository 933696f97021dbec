// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// totals finds how many rows the data files of snapshots hold, which some writers' summaries leave out or say wrongly: a
// writer that is not told of a snapshot's parent may count from nothing.
type totals struct {
	t     *target
	known map[int64]*int64 // by snapshot
	// counted are the snapshots whose summary was not taken.
	counted map[int64]bool
}

func newTotals(t *target) *totals {
	return &totals{t: t, known: map[int64]*int64{}, counted: map[int64]bool{}}
}

// of is the summary's number where it follows from that of the snapshot before, else what the manifests hold; nil where
// they are gone. before is nil where that snapshot is not known, added and removed where the summary does not say them.
func (n *totals) of(ctx context.Context, s catalog.State, before, added, removed *int64) *int64 {
	if total, ok := n.known[s.SnapshotID]; ok {
		return total
	}
	var total *int64
	follows := before == nil || added == nil || removed == nil || *before+*added-*removed == s.Records
	if s.Records >= 0 && follows {
		total = &s.Records
	} else if counted, err := n.t.dataRows(ctx, s); err == nil {
		total = &counted
		n.counted[s.SnapshotID] = true
	}
	n.known[s.SnapshotID] = total
	return total
}

// lessDeletes reports whether delete files take some of the rows away that of told: as the snapshot's summary says, or its
// manifests where that says nothing or is wrong.
func (n *totals) lessDeletes(ctx context.Context, s catalog.State, snap *table.Snapshot) bool {
	if s.FormatVersion < 2 {
		return false
	}
	if snap != nil && snap.Summary != nil && !n.counted[s.SnapshotID] {
		if files := snap.Summary.Properties["total-delete-files"]; files != "" {
			return files != "0"
		}
	}
	if s.ManifestList == "" && len(s.Manifests) == 0 {
		return false
	}
	manifests, err := scan.Manifests(ctx, n.t.Storage.Within(ctx), s)
	return err == nil && slices.ContainsFunc(manifests, func(m iceberg.ManifestFile) bool {
		return m.ManifestContent() == iceberg.ManifestContentDeletes && m.AddedDataFiles()+m.ExistingDataFiles() > 0
	})
}

// dataRows counts the rows of a state's live data files; those that delete files remove are among them, as in a summary.
func (t *target) dataRows(ctx context.Context, s catalog.State) (int64, error) {
	if s.ManifestList == "" && len(s.Manifests) == 0 {
		return 0, fmt.Errorf("nothing tells the manifests of snapshot %d", s.SnapshotID)
	}
	files := t.Storage.Within(ctx)
	manifests, err := scan.Manifests(ctx, files, s)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		if listed := m.AddedRows() + m.ExistingRows(); m.AddedRows() >= 0 && m.ExistingRows() >= 0 && (listed > 0 || m.AddedDataFiles()+m.ExistingDataFiles() == 0) {
			total += listed
			continue
		}
		entries, err := scan.Entries(ctx, files, s, m)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if e.Live() {
				total += e.Data.Count()
			}
		}
	}
	return total, nil
}

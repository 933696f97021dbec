// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go"
)

// snapshot plans what the snapshot After did to its proved parent, from the manifests that it added. Manifests of other
// snapshots stay closed, but for delete manifests that can match a file which was added again with an older data sequence
// number, and for what verifying a replace needs.
func (p *planner) snapshot(ctx context.Context, plan *Plan) error {
	after := p.after()
	manifests, err := after.manifests(ctx)
	if err != nil {
		return err
	}
	own, othersDeletes := p.divide(manifests)
	entries, err := after.entries(ctx, own, func(entry) bool { return true })
	if err != nil {
		return err
	}
	c := changesOf(entries, p.step.After.SnapshotID)
	plan.Kind = c.kind()
	var again []File // only these can be older than deletes of earlier snapshots
	for _, f := range c.addedData {
		if f.Sequence < p.step.After.Sequence {
			again = append(again, f)
		}
	}
	older, err := after.live(ctx, matching(othersDeletes, p.specs(), again))
	if err != nil {
		return err
	}
	index, err := newDeleteIndex(append(older, c.liveDeletes...), p.specs())
	if err != nil {
		return err
	}
	if plan.Tasks, err = index.tasks(c.addedData); err != nil {
		return err
	}
	if p.step.After.Operation == "replace" && plan.Kind != KindEmpty && plan.Kind != KindAppend {
		return p.verifyReplace(ctx, plan, c, othersDeletes)
	}
	return nil
}

// divide finds the manifests that tell what the snapshot did, and the delete manifests that were there before.
func (p *planner) divide(manifests []iceberg.ManifestFile) (own, othersDeletes []iceberg.ManifestFile) {
	for _, m := range manifests {
		isDelete := m.ManifestContent() == iceberg.ManifestContentDeletes
		isOwn := m.SnapshotID() == p.step.After.SnapshotID || m.SnapshotID() == unknownSnapshot
		switch {
		case isOwn && (isDelete || mayHaveChanges(m)):
			own = append(own, m)
		case !isOwn && isDelete:
			othersDeletes = append(othersDeletes, m)
		}
	}
	return own, othersDeletes
}

// mayHaveChanges is false for a data manifest that only carries files over. A count of -1 is unknown.
func mayHaveChanges(m iceberg.ManifestFile) bool {
	return m.AddedDataFiles() != 0 || m.DeletedDataFiles() != 0
}

// changes are the entries that a snapshot added and deleted, in the manifests that it added.
type changes struct {
	addedData, removedData       []File
	addedDeletes, removedDeletes []File
	liveDeletes                  []File // added ones, and older ones that were carried over
}

// changesOf sorts entries. An added file names the snapshot that added it. A deleted one names the snapshot that deleted
// it, by the spec; PyIceberg leaves the one there that had added it. As a new manifest takes over no deleted entries of
// earlier ones, all those in the snapshot's own manifests are its own.
func changesOf(entries []entry, snapshot int64) changes {
	var c changes
	for _, e := range entries {
		isData := e.Data.ContentType() == iceberg.EntryContentData
		if !isData && e.live() {
			c.liveDeletes = append(c.liveDeletes, e.File)
		}
		added := e.status == iceberg.EntryStatusADDED && e.Snapshot == snapshot
		removed := !e.live() && (e.Snapshot == snapshot || e.addedBy == snapshot)
		switch {
		case added && isData:
			c.addedData = append(c.addedData, e.File)
		case added:
			c.addedDeletes = append(c.addedDeletes, e.File)
		case removed && isData:
			c.removedData = append(c.removedData, e.File)
		case removed:
			c.removedDeletes = append(c.removedDeletes, e.File)
		}
	}
	return c
}

// kind classifies by entries alone. Delete files that only went may bring rows back, which no kind but overwrite admits.
func (c changes) kind() Kind {
	removes := len(c.removedData) > 0 || len(c.addedDeletes) > 0
	switch {
	case len(c.addedData) == 0 && removes:
		return KindDelete
	case removes || len(c.removedDeletes) > 0:
		return KindOverwrite
	case len(c.addedData) > 0:
		return KindAppend
	}
	return KindEmpty
}

// verifyReplace trusts that a snapshot called replace changed no row when the removed and the added files hold equally
// many live rows. Otherwise, and where that can't be told because files are gone, it stays what its entries say.
func (p *planner) verifyReplace(ctx context.Context, plan *Plan, c changes, othersDeletes []iceberg.ManifestFile) error {
	same, err := p.keepsRows(ctx, plan, c, othersDeletes)
	var missing *MissingFileError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	if same {
		plan.Kind = KindReplace
		return nil
	}
	plan.Kind = KindOverwrite
	return nil
}

func (p *planner) keepsRows(ctx context.Context, plan *Plan, c changes, othersDeletes []iceberg.ManifestFile) (bool, error) {
	if len(c.addedDeletes) > 0 && len(c.removedDeletes) == 0 {
		return false, nil // rewritten deletes take the place of others
	}
	added, err := p.countRows(ctx, plan, plan.Tasks)
	if err != nil {
		return false, err
	}
	removed, err := p.removedRows(ctx, plan, c, othersDeletes)
	return err == nil && added == removed, err
}

// removedRows counts the live rows that the removed files held before. Their deletes of that time are those that live on
// from earlier snapshots and those that this snapshot removed.
func (p *planner) removedRows(ctx context.Context, plan *Plan, c changes, othersDeletes []iceberg.ManifestFile) (int64, error) {
	deletes, err := p.after().live(ctx, matching(othersDeletes, p.specs(), c.removedData))
	if err != nil {
		return 0, err
	}
	for _, f := range c.liveDeletes {
		if f.Snapshot != p.step.After.SnapshotID {
			deletes = append(deletes, f)
		}
	}
	index, err := newDeleteIndex(append(deletes, c.removedDeletes...), p.specs())
	if err != nil {
		return 0, err
	}
	tasks, err := index.tasks(c.removedData)
	if err != nil {
		return 0, err
	}
	return p.countRows(ctx, plan, tasks)
}

// countRows adds up the live rows of tasks, reading those that carry deletes.
func (p *planner) countRows(ctx context.Context, plan *Plan, tasks []Task) (total int64, err error) {
	plan, free := plan.sharing(tasks, keyMemory(ReadOptions{}), "")
	defer func() { err = errors.Join(err, free()) }()
	for _, t := range tasks {
		rows := t.Rows()
		if rows < 0 {
			if rows, err = plan.count(ctx, t); err != nil {
				return 0, err
			}
		}
		total += rows
	}
	return total, nil
}

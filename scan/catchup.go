// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
)

// catchUp plans After's live data files with a data sequence number above Before's, for a Before whose manifests are gone.
// It is accepted only with a proof that Before's rows all survive: no live delete file is newer than Before, and the files
// that are not newer hold as many records as Before held. It does not prove that nothing came and went between.
func (p *planner) catchUp(ctx context.Context, plan *Plan) error {
	refuse := func(format string, args ...any) error {
		return &CatchUpError{Snapshot: p.step.After.SnapshotID, Reason: fmt.Sprintf(format, args...)}
	}
	before := p.step.Before
	switch {
	case before == nil:
		return refuse("the state before is not known")
	case before.Sequence <= 0:
		return refuse("snapshot %d has no sequence number (format version 1)", before.SnapshotID)
	case before.Records < 0:
		return refuse("it is not known how many records snapshot %d held", before.SnapshotID)
	}
	after := p.after()
	manifests, err := after.manifests(ctx)
	if err != nil {
		return err
	}
	files, err := after.live(ctx, manifests)
	if err != nil {
		return err
	}
	var kept int64
	var added []File
	for _, f := range files {
		switch isDelete := f.Data.ContentType() != 0; {
		case isDelete && f.Sequence > before.Sequence:
			return refuse("delete file %s is newer than snapshot %d", f.path, before.SnapshotID)
		case isDelete:
		case f.Sequence > before.Sequence:
			added = append(added, f)
		default:
			kept += f.Data.Count()
		}
	}
	if kept != before.Records {
		return refuse("of the %d records of snapshot %d, %d are in live files", before.Records, before.SnapshotID, kept)
	}
	index, err := newDeleteIndex(nil, p.specs()) // no delete file is as new as the added files
	if err != nil {
		return err
	}
	plan.Tasks, err = index.tasks(added)
	plan.Kind = KindAppend
	if len(added) == 0 {
		plan.Kind = KindEmpty
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// ended reports whether the place is at the end snapshot, or proved to be a descendant of it.
func (r *resolver) ended(ctx context.Context) (bool, error) {
	switch {
	case r.p.EndSnapshotID == nil || r.past == nil:
		return false, nil
	case r.p.EndAhead:
		return r.place.State.SnapshotID == *r.p.EndSnapshotID, nil
	}
	return r.past.descendTo(ctx, *r.p.EndSnapshotID)
}

// target is the state that stands for the head: the end snapshot where the head's line has it, else the head.
func (r *resolver) target(ctx context.Context) (*catalog.State, error) {
	if r.p.EndSnapshotID == nil || r.head.Empty() {
		return &r.head, nil
	}
	found, err := r.line.descendTo(ctx, *r.p.EndSnapshotID)
	if err != nil || !found {
		return &r.head, err
	}
	return &r.line.nodes[r.line.index[*r.p.EndSnapshotID]].state, nil
}

// finish cuts the resolution at the end snapshot and says what follows its last step.
func (r *resolver) finish(res Resolution) Resolution {
	res = r.cutAtEnd(res)
	if n := len(res.Steps); n > 0 {
		if i, ok := r.line.index[res.Steps[n-1].After.SnapshotID]; ok {
			for _, node := range r.line.above(i) {
				res.Beyond = append(res.Beyond, node.state.SnapshotID)
			}
		}
	}
	return res
}

// cutAtEnd drops the steps after the end snapshot.
func (r *resolver) cutAtEnd(res Resolution) Resolution {
	if r.p.EndSnapshotID == nil {
		return res
	}
	end := *r.p.EndSnapshotID
	for i, s := range res.Steps {
		if s.Kind != Truncate && s.After.SnapshotID == end {
			res.Steps, res.Pending, res.Ended = res.Steps[:i+1], "", true
			return res
		}
	}
	if res.Place != nil && res.Place.SnapshotID == end {
		res.Ended = true
	}
	return res
}

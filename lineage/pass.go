// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// passage is a way from a state up through its descendants.
type passage struct {
	steps []Step
	// closed are the holes that steps lead across, stuck the one that they end at.
	closed []*HoleError
	stuck  *HoleError
}

// reason names the holes on the way; "" when there is none.
func (w passage) reason() string {
	holes := w.closed
	if w.stuck != nil {
		holes = append(slices.Clip(holes), w.stuck)
	}
	var parts []string
	for _, h := range holes {
		parts = append(parts, h.Error())
	}
	return strings.Join(parts, "; ")
}

func (w passage) pending() string {
	if w.stuck == nil {
		return ""
	}
	return w.stuck.Error()
}

// pass leads from base through its descendants, oldest first. A hole right above base, or a state on the way whose files
// are gone, is crossed by a bridge or a catch-up to the next state that can be read; where neither is possible the way
// ends there. Only states next to a hole are asked whether they can be read: elsewhere planning finds out.
func (r *resolver) pass(ctx context.Context, base catalog.State, nodes []node, hole *HoleError) (passage, error) {
	var way passage
	if why, gone := r.p.Gone[base.SnapshotID]; gone && hole == nil && len(nodes) > 0 {
		hole = &HoleError{Place: base.SnapshotID, Child: nodes[0].state.SnapshotID, Missing: base.SnapshotID, Why: why}
	}
	before := &base
	for i := range nodes {
		after := &nodes[i].state
		lost, why, err := r.unreadable(ctx, *after, hole != nil)
		if err != nil {
			return passage{}, err
		}
		if lost {
			hole = r.widen(hole, before, after, why)
			continue
		}
		step := Step{Kind: Snapshot, Before: before, After: *after, FoundBy: nodes[i].foundBy()}
		unnamed := hole == nil && nodes[i].followed
		if unnamed {
			hole = &HoleError{Place: before.SnapshotID, Missing: catalog.NoSnapshot, Why: fmt.Sprintf("nothing names the parent of snapshot %d", after.SnapshotID)}
		}
		if hole != nil {
			hole.Child = after.SnapshotID
			if step, err = r.cross(ctx, before, after, hole); err != nil {
				return passage{}, err
			}
			if hole.Refused != "" {
				way.stuck = hole
				return way, nil
			}
			if !unnamed { // the branch's log has nothing between the two
				way.closed = append(way.closed, hole)
			}
			hole = nil
		}
		way.steps = append(way.steps, step)
		before = after
	}
	if hole != nil {
		hole.Refused, hole.NothingAbove = "no later snapshot can be read", true
		way.stuck = hole
	}
	return way, nil
}

// unreadable reports whether a state's files are known to be gone, and why. Only beside a hole is the History asked:
// what was expired or collected is seldom alone.
func (r *resolver) unreadable(ctx context.Context, s catalog.State, besideHole bool) (lost bool, why string, err error) {
	if why, gone := r.p.Gone[s.SnapshotID]; gone {
		return true, why, nil
	}
	if !besideHole {
		return false, "", nil
	}
	ok, err := r.readable(ctx, s)
	return !ok, "its manifest list is gone", err
}

func (r *resolver) readable(ctx context.Context, s catalog.State) (bool, error) {
	if _, gone := r.p.Gone[s.SnapshotID]; gone {
		return false, nil
	}
	if s.Empty() {
		return true, nil
	}
	if s.ManifestList == "" && len(s.Manifests) == 0 {
		return false, nil
	}
	ok, err := r.h.Readable(ctx, s)
	if err != nil {
		return false, fmt.Errorf("looking for the manifest list of snapshot %d: %w", s.SnapshotID, err)
	}
	return ok, nil
}

// widen adds a state that can't be read to the hole below it, or makes a new hole of it.
func (r *resolver) widen(hole *HoleError, before, lost *catalog.State, why string) *HoleError {
	if hole == nil {
		hole = &HoleError{Place: before.SnapshotID, Child: lost.SnapshotID, Missing: lost.SnapshotID, Why: why}
	}
	if r.p.EndSnapshotID != nil && lost.SnapshotID == *r.p.EndSnapshotID {
		hole.Refused = fmt.Sprintf("it holds snapshot %d, where end_snapshot_id says to stop", lost.SnapshotID)
	}
	return hole
}

// cross makes the step that leads across a hole, or says in the hole why there is none.
func (r *resolver) cross(ctx context.Context, before, after *catalog.State, hole *HoleError) (Step, error) {
	if hole.Refused != "" {
		return Step{}, nil
	}
	if why, refused := r.p.Refused[Edge{before.SnapshotID, after.SnapshotID}]; refused {
		hole.Refused = why
		return Step{}, nil
	}
	ok, err := r.readable(ctx, *before)
	switch {
	case err != nil:
		return Step{}, err
	case ok:
		return Step{Kind: Bridge, Before: before, After: *after, FoundBy: FoundByBridge}, nil
	case before.Sequence <= 0:
		hole.Refused = fmt.Sprintf("the manifest list of snapshot %d is gone, and it has no sequence number to tell newer files by", before.SnapshotID)
	case before.Records < 0:
		hole.Refused = fmt.Sprintf("the manifest list of snapshot %d is gone, and how many rows it held is unknown", before.SnapshotID)
	default:
		return Step{Kind: CatchUp, Before: before, After: *after, FoundBy: FoundByCatchUp}, nil
	}
	return Step{}, nil
}

// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// meeting is where the head's line and the place's line come together.
type meeting struct {
	// common is the newest state that both are proved to share; nil where none was found. It is the place's own state
	// when the line is continuous, and "no snapshot" when a place without snapshot was reached through a root.
	common *catalog.State
	// above counts the snapshots of the head's line that descend from common (all known ones without common), retracted
	// those of the place's line; -1 where unknown.
	above, retracted int
}

// meet walks the head's line until it meets the place, an ancestor of the place, a root or a hole. The place's own line
// is walked only once the head's cannot hold the place any more.
func (r *resolver) meet(ctx context.Context) (meeting, error) {
	for {
		if r.pastIsNewer() {
			m, err := r.stepPast(ctx)
			if m != nil || err != nil {
				return deref(m), err
			}
			continue
		}
		id, named, err := r.line.parent(ctx)
		if err != nil {
			return meeting{}, err
		}
		if !named {
			break
		}
		if r.past != nil && r.past.has(id) {
			return r.metAt(id)
		}
		if more, err := r.line.descend(ctx); err != nil {
			return meeting{}, err
		} else if !more {
			break
		}
	}
	if r.past == nil && r.line.end == root {
		return meeting{common: &r.place.State, above: len(r.line.nodes)}, nil
	}
	return r.meetBelow(ctx)
}

func deref(m *meeting) meeting {
	if m == nil {
		return meeting{}
	}
	return *m
}

// pastIsNewer reports whether the oldest state of the head's line is older than the oldest of the place's. Then no
// snapshot of the place's walked line can be an ancestor of it, for sequence numbers never decrease from parent to child
// (walking asserts that). This saves a walk to the root after a reset; what is proved is proved by ids alone.
func (r *resolver) pastIsNewer() bool {
	if r.past == nil || r.past.end != open {
		return false
	}
	head, past := r.line.oldest().Sequence, r.past.oldest().Sequence
	return head > 0 && past > 0 && head < past
}

// stepPast goes one state back on the place's line. It returns the meeting when that leads to the head's line.
func (r *resolver) stepPast(ctx context.Context) (*meeting, error) {
	id, named, err := r.past.parent(ctx)
	if err != nil || !named {
		return nil, err
	}
	if i, ok := r.line.index[id]; ok {
		common := &r.line.nodes[i].state
		if err := ordered(r.past.oldest(), *common); err != nil {
			return nil, err
		}
		return &meeting{common: common, above: i, retracted: len(r.past.nodes)}, nil
	}
	_, err = r.past.descend(ctx)
	return nil, err
}

// metAt is the meeting at the parent of the head line's oldest state, which is on the place's line.
func (r *resolver) metAt(id int64) (meeting, error) {
	i := r.past.index[id]
	common := &r.past.nodes[i].state
	if err := ordered(r.line.oldest(), *common); err != nil {
		return meeting{}, err
	}
	return meeting{common: common, above: len(r.line.nodes), retracted: i}, nil
}

// meetBelow is asked when the head's line has ended without meeting anything: the place's line may still lead to it.
func (r *resolver) meetBelow(ctx context.Context) (meeting, error) {
	none := meeting{above: len(r.line.nodes), retracted: -1}
	if r.line.end != root {
		none.above = -1
	}
	if r.past == nil { // below "no snapshot" there is nothing that the head could have left
		none.retracted = 0
		return none, nil
	}
	for r.past.end == open && !r.lineIsNewer() {
		m, err := r.stepPast(ctx)
		if m != nil || err != nil {
			return deref(m), err
		}
	}
	if r.line.end == root && r.past.end == root {
		none.retracted = len(r.past.nodes)
	}
	return none, nil
}

// lineIsNewer reports whether all of the head's line is newer than what is left of the place's.
func (r *resolver) lineIsNewer() bool {
	head, past := r.line.oldest().Sequence, r.past.oldest().Sequence
	return head > 0 && past > 0 && past < head
}

// divergence says in words how the lines part.
func (r *resolver) divergence(m meeting) string {
	s, head := r.place.State.SnapshotID, r.head.SnapshotID
	if m.common != nil {
		if m.common.SnapshotID == head {
			return fmt.Sprintf("the branch went back from the checkpoint's snapshot %s to its ancestor %s", name(s), name(head))
		}
		return fmt.Sprintf("the checkpoint's snapshot %s is not an ancestor of the head's snapshot %s; the newest snapshot that both descend from is %s",
			name(s), name(head), name(m.common.SnapshotID))
	}
	reason := fmt.Sprintf("the checkpoint's snapshot %s is not an ancestor of the head's snapshot %s, whose line begins at snapshot %s without a parent",
		name(s), name(head), name(r.line.oldest().SnapshotID))
	if r.past != nil && r.past.end == holed {
		reason += fmt.Sprintf("; the checkpoint's line could be followed back to snapshot %s only", name(r.past.oldest().SnapshotID))
		if r.past.why != "" {
			reason += " (" + r.past.why + ")"
		}
	}
	return reason
}

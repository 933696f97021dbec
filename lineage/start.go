// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// clockSkew is how far a snapshot's time may lie before its parent's: writers refuse more than a minute.
const clockSkew = time.Minute

// Start says what to read first when there is no place yet: from the start snapshot on, from the start time on, or as
// StartFrom says.
//
// Errors: *StartError where that is impossible, *CycleError and *SequenceError for a history that contradicts itself,
// and what the History answers, wrapped.
func Start(ctx context.Context, head catalog.State, h History, p Policy) (Resolution, error) {
	r := newResolver(Place{}, head, h, p)
	res, err := r.start(ctx)
	if err != nil {
		return Resolution{}, err
	}
	res.Verdict = Started
	if res = r.finish(res); !res.Ended && p.EndSnapshotID != nil && !head.Empty() {
		behind, err := r.line.descendTo(ctx, *p.EndSnapshotID)
		if err != nil {
			return Resolution{}, err
		}
		if behind && res.Pending == "" {
			return Resolution{}, &StartError{
				Option: r.option(),
				Why:    fmt.Sprintf("end_snapshot_id %d lies before it, or can't be read", *p.EndSnapshotID),
			}
		}
	}
	return res, nil
}

func (r *resolver) start(ctx context.Context) (Resolution, error) {
	switch {
	case r.p.StartSnapshotID != nil:
		way, err := r.fromSnapshot(ctx)
		return Resolution{Steps: way.steps, Pending: way.pending()}, err
	case r.head.Empty():
		return Resolution{Place: &r.head}, nil
	case r.p.StartTime != nil:
		return r.fromTime(ctx, r.p.StartTime.UnixMilli())
	case r.p.StartFrom == StartEarliest:
		if err := r.line.descendWhile(ctx, always); err != nil {
			return Resolution{}, err
		}
		return r.fromOldest(ctx, len(r.line.nodes)-1)
	}
	to, err := r.target(ctx)
	if err != nil {
		return Resolution{}, err
	}
	if r.p.StartFrom == StartLatest {
		return Resolution{Place: to}, nil
	}
	if why, gone := r.p.Gone[to.SnapshotID]; gone {
		return Resolution{}, r.cantStart(fmt.Sprintf("snapshot %d can't be read (%s)", to.SnapshotID, why))
	}
	return Resolution{Steps: []Step{scanOf(*to)}}, nil
}

func scanOf(s catalog.State) Step {
	return Step{Kind: TableScan, After: s, FoundBy: FoundByScan}
}

// option is the configuration that says where to start.
func (r *resolver) option() string {
	switch {
	case r.p.StartSnapshotID != nil:
		return fmt.Sprintf("start_snapshot_id: %d", *r.p.StartSnapshotID)
	case r.p.StartTime != nil:
		return "start_from: " + r.p.StartTime.UTC().Format(time.RFC3339Nano)
	case r.p.StartFrom == "":
		return "start_from: " + string(StartTableScan)
	}
	return "start_from: " + string(r.p.StartFrom)
}

func (r *resolver) cantStart(why string) error {
	return &StartError{Option: r.option(), Why: why}
}

// fromSnapshot delivers the start snapshot's own rows and every snapshot after it. The snapshot's parent must be named,
// but need not exist any more: a step that only adds is read without it.
func (r *resolver) fromSnapshot(ctx context.Context) (passage, error) {
	id := *r.p.StartSnapshotID
	if r.head.Empty() {
		return passage{}, r.cantStart("the table holds no snapshot")
	}
	found, err := r.line.descendTo(ctx, id)
	if err != nil {
		return passage{}, err
	}
	if !found {
		return passage{}, r.cantStart(fmt.Sprintf("it can't be reached from the head's snapshot %d: %s", r.head.SnapshotID, r.line.where()))
	}
	if why, gone := r.p.Gone[id]; gone {
		return passage{}, r.cantStart(fmt.Sprintf("it can't be read (%s)", why))
	}
	i := r.line.index[id]
	base, err := r.line.before(ctx, i)
	if err != nil {
		return passage{}, err
	}
	if base == nil {
		return passage{}, r.cantStart(fmt.Sprintf("what it added is unknown, for nothing names its parent: %s", r.line.where()))
	}
	ok, err := r.readable(ctx, r.line.nodes[i].state)
	if err != nil {
		return passage{}, err
	}
	if !ok {
		return passage{}, r.cantStart("its manifest list is gone")
	}
	way, err := r.pass(ctx, *base, r.line.above(i+1), nil)
	if err != nil {
		return passage{}, err
	}
	if len(way.steps) == 0 {
		return passage{}, r.cantStart(way.stuck.Error())
	}
	way.steps[0].FoundBy = FoundByStart
	return way, nil
}

// before is the state below the node at i: its parent, "no snapshot" below a root, a state with nothing but an id where
// the parent is named and not found, nil where it isn't named.
func (l *line) before(ctx context.Context, i int) (*catalog.State, error) {
	if i == len(l.nodes)-1 {
		if _, err := l.descend(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case i < len(l.nodes)-1:
		return &l.nodes[i+1].state, nil
	case l.end == root:
		none := emptyState(l.nodes[i].state)
		return &none, nil
	case l.missing != catalog.NoSnapshot:
		named := emptyState(l.nodes[i].state)
		named.SnapshotID, named.Records = l.missing, -1
		return &named, nil
	}
	return nil, nil
}

// where says how far back the line goes and why no further.
func (l *line) where() string {
	oldest := l.oldest().SnapshotID
	if l.end == root {
		return fmt.Sprintf("its line begins at snapshot %d, which has no parent", oldest)
	}
	text := fmt.Sprintf("its line can be followed back to snapshot %d only", oldest)
	if l.missing != catalog.NoSnapshot {
		text += fmt.Sprintf(", whose parent %d was not found", l.missing)
	}
	if l.why != "" {
		text += " (" + l.why + ")"
	}
	return text
}

// fromTime is fromOldest limited to snapshots made at a moment, in milliseconds, or later. Without any the reader stands
// at the head.
func (r *resolver) fromTime(ctx context.Context, moment int64) (Resolution, error) {
	floor := moment - clockSkew.Milliseconds()
	err := r.line.descendWhile(ctx, func(s catalog.State) bool { return s.TimestampMs >= floor })
	if err != nil {
		return Resolution{}, err
	}
	for i, n := range slices.Backward(r.line.nodes) {
		if n.state.TimestampMs >= moment {
			return r.fromOldest(ctx, i)
		}
	}
	place, err := r.target(ctx)
	return Resolution{Place: place}, err
}

// fromOldest starts at the node at i or the oldest one above it that can be read. Where what lies below is known, every
// snapshot is a step; otherwise the oldest state is delivered whole.
func (r *resolver) fromOldest(ctx context.Context, i int) (Resolution, error) {
	nodes := r.line.above(i + 1)
	first, err := r.firstReadable(ctx, nodes)
	if err != nil {
		return Resolution{}, err
	}
	if first == len(nodes) {
		return Resolution{}, r.cantStart(fmt.Sprintf("none of the %d snapshots from %d to the head's %d can be read",
			len(nodes), nodes[0].state.SnapshotID, r.head.SnapshotID))
	}
	way, err := r.fromBelow(ctx, i, nodes, first)
	if err != nil || len(way.steps) > 0 {
		return Resolution{Steps: way.steps, Pending: way.pending()}, err
	}
	oldest := nodes[first].state
	if way, err = r.pass(ctx, oldest, nodes[first+1:], nil); err != nil {
		return Resolution{}, err
	}
	return Resolution{Steps: append([]Step{scanOf(oldest)}, way.steps...), Pending: way.pending()}, nil
}

// fromBelow starts with the difference to what lies below the nodes, if that is known and can be read.
func (r *resolver) fromBelow(ctx context.Context, i int, nodes []node, first int) (passage, error) {
	base, err := r.line.before(ctx, i)
	if err != nil || base == nil {
		return passage{}, err
	}
	parentFound := i < len(r.line.nodes)-1
	switch {
	case first == 0 && (base.Empty() || parentFound):
		return r.pass(ctx, *base, nodes, nil)
	case first > 0 && parentFound:
		return r.pass(ctx, *base, nodes, &HoleError{
			Place: base.SnapshotID, Child: nodes[first].state.SnapshotID,
			Missing: nodes[0].state.SnapshotID, Why: "its manifest list is gone",
		})
	}
	return passage{}, nil
}

// firstReadable is the index of the oldest state that can be read, len(nodes) if there is none.
func (r *resolver) firstReadable(ctx context.Context, nodes []node) (int, error) {
	for i, n := range nodes {
		ok, err := r.readable(ctx, n.state)
		if err != nil {
			return 0, err
		}
		if ok {
			return i, nil
		}
	}
	return len(nodes), nil
}

// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// loss is lost lineage before a policy decides.
type loss struct {
	verdict Verdict
	reason  string
	hole    *HoleError // nil for a divergence
	meeting            // above and retracted as far as they are known
}

// unknownPlace is the loss of a place that neither metadata nor the log knows.
func (r *resolver) unknownPlace() loss {
	if r.head.Empty() {
		return r.emptied()
	}
	return loss{
		verdict: Diverged,
		reason: fmt.Sprintf("the checkpoint's snapshot %s is neither in the metadata of the head's snapshot %s nor in the branch's log",
			name(r.place.State.SnapshotID), name(r.head.SnapshotID)),
		meeting: meeting{above: -1, retracted: -1},
	}
}

// emptied is the loss of a place with a snapshot whose table has none any more.
func (r *resolver) emptied() loss {
	return loss{
		verdict: Diverged,
		reason:  fmt.Sprintf("the table holds no snapshot any more, the checkpoint's is %s", name(r.place.State.SnapshotID)),
		meeting: meeting{common: &r.head, retracted: -1},
	}
}

// stuck is the loss at a hole that nothing closes.
func (r *resolver) stuck(hole *HoleError, m meeting) loss {
	return loss{verdict: Hole, reason: hole.Error(), hole: hole, meeting: m}
}

// lost applies the policy for lost lineage.
func (r *resolver) lost(ctx context.Context, l loss) (Resolution, error) {
	res := Resolution{
		Verdict: l.verdict, Reason: l.reason,
		Lost: &Lost{Reason: l.reason, Policy: r.p.OnLost, Ancestor: l.common, Retracted: l.retracted},
	}
	switch r.p.OnLost {
	case LostStart:
		return r.lostStart(ctx, res, l)
	case LostAncestor:
		return r.lostAncestor(ctx, res, l)
	case LostBridge:
		return r.lostBridge(ctx, res, l)
	case LostTableScan:
		return r.lostTableScan(ctx, res, l)
	}
	res.Lost.Policy, res.Lost.Skipped = LostFail, l.above
	return Resolution{}, r.stop(ctx, res, l, "")
}

// stop is the error that ends a Resolve at lost lineage.
func (r *resolver) stop(ctx context.Context, res Resolution, l loss, problem string) error {
	e := &LostError{Lost: *res.Lost, Problem: problem, Changelog: r.p.Changelog, Hole: l.hole}
	if e.Policy != LostBridge {
		why, _, err := r.noBridge(ctx)
		if err != nil {
			return err
		}
		e.NoBridge = why != ""
	}
	return e
}

// lostStart goes on from the start snapshot if the head's line has it, else stands at the head.
func (r *resolver) lostStart(ctx context.Context, res Resolution, l loss) (Resolution, error) {
	res.Lost.Skipped = l.above
	if r.p.StartSnapshotID != nil {
		way, err := r.fromSnapshot(ctx)
		var unreachable *StartError
		if err != nil && !errors.As(err, &unreachable) {
			return Resolution{}, err
		}
		if err == nil {
			res.Steps, res.Pending = way.steps, way.pending()
			if l.above >= 0 {
				res.Lost.Skipped = max(0, l.above-r.line.index[*r.p.StartSnapshotID]-1)
			}
			return res, nil
		}
	}
	var err error
	res.Place, err = r.target(ctx)
	return res, err
}

// lostAncestor delivers every snapshot after the newest common ancestor. Lines that share none both start at "no
// snapshot".
func (r *resolver) lostAncestor(ctx context.Context, res Resolution, l loss) (Resolution, error) {
	if l.hole == nil && l.common == nil { // a place that nothing knows has not walked yet
		if err := r.line.descendWhile(ctx, always); err != nil {
			return Resolution{}, err
		}
	}
	base, above := l.common, l.above
	switch {
	case base == nil && r.line.end == root && l.hole == nil:
		none := emptyState(r.head)
		base, above = &none, len(r.line.nodes)
	case base == nil:
		return Resolution{}, r.stop(ctx, res, l, "no common ancestor is proved")
	}
	if above == 0 {
		res.Place = &r.head
		return res, nil
	}
	way, err := r.pass(ctx, *base, r.line.above(above), nil)
	if err != nil {
		return Resolution{}, err
	}
	if len(way.steps) == 0 {
		return Resolution{}, r.stop(ctx, res, l, way.stuck.Error())
	}
	res.Steps, res.Pending = way.steps, way.pending()
	return res, nil
}

func always(catalog.State) bool { return true }

// lostBridge delivers the difference of the place and the head.
func (r *resolver) lostBridge(ctx context.Context, res Resolution, l loss) (Resolution, error) {
	why, to, err := r.noBridge(ctx)
	switch {
	case err != nil:
		return Resolution{}, err
	case why != "":
		return Resolution{}, r.stop(ctx, res, l, why)
	}
	res.Steps = []Step{{Kind: Bridge, Before: &r.place.State, After: *to, FoundBy: FoundByBridge}}
	return res, nil
}

// noBridge says why the difference of the place and what it leads to can't be made; "" if it can.
func (r *resolver) noBridge(ctx context.Context) (why string, to *catalog.State, err error) {
	if to, err = r.target(ctx); err != nil {
		return "", nil, err
	}
	from := &r.place.State
	if why, refused := r.p.Refused[Edge{from.SnapshotID, to.SnapshotID}]; refused {
		return why, to, nil
	}
	for _, s := range []*catalog.State{from, to} {
		ok, err := r.readable(ctx, *s)
		if err != nil {
			return "", nil, err
		}
		if !ok {
			return fmt.Sprintf("the manifest list of snapshot %s is gone or unknown", name(s.SnapshotID)), to, nil
		}
	}
	return "", to, nil
}

// lostTableScan delivers the head whole.
func (r *resolver) lostTableScan(ctx context.Context, res Resolution, l loss) (Resolution, error) {
	to, err := r.target(ctx)
	if err != nil {
		return Resolution{}, err
	}
	if why, gone := r.p.Gone[to.SnapshotID]; gone {
		return Resolution{}, r.stop(ctx, res, l, fmt.Sprintf("snapshot %s can't be read (%s)", name(to.SnapshotID), why))
	}
	if to.Empty() {
		res.Place = to
	} else {
		res.Steps = []Step{scanOf(*to)}
	}
	return r.truncateFirst(res), nil
}

// truncateFirst makes a changelog's reader drop what it has before the resolution is delivered.
func (r *resolver) truncateFirst(res Resolution) Resolution {
	if !r.p.Changelog {
		return res
	}
	step := Step{Kind: Truncate, Before: &r.place.State, After: emptyState(r.head), FoundBy: FoundByStart}
	switch {
	case len(res.Steps) == 0:
		step.After = *res.Place
		res.Place = nil
	case res.Steps[0].Before != nil:
		step.After = *res.Steps[0].Before
	}
	res.Steps = append([]Step{step}, res.Steps...)
	return res
}

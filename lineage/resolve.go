// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"fmt"
	"strings"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Resolve says what to read to get from the place to the head.
//
// Errors: *ReplacedError and *LostError where a policy stops (or can't be followed), *CycleError and *SequenceError for a
// history that contradicts itself, and what the History answers, wrapped.
func Resolve(ctx context.Context, place Place, head catalog.State, h History, p Policy) (Resolution, error) {
	r := newResolver(place, head, h, p)
	known, err := r.identify(ctx)
	if err != nil {
		return Resolution{}, err
	}
	var res Resolution
	switch {
	case otherTable(r.place.State, head) != "":
		return r.replaced(ctx)
	case !known:
		res, err = r.lost(ctx, r.unknownPlace())
	default:
		res, err = r.follow(ctx)
	}
	if err != nil {
		return Resolution{}, err
	}
	res.From = &r.place
	return r.finish(res), nil
}

// resolver is one call of Resolve or Start.
type resolver struct {
	h     History
	p     Policy
	place Place
	head  catalog.State
	// line is the head's; past is the place's own, nil without a place or without a snapshot in it.
	line, past *line
}

func newResolver(place Place, head catalog.State, h History, p Policy) *resolver {
	return &resolver{h: h, p: p, place: place, head: head, line: newLine(h, head)}
}

// identify makes sure that the place knows which table it is of, and starts its line. It reports false where the place
// is a name and a snapshot id that nothing knows.
func (r *resolver) identify(ctx context.Context) (bool, error) {
	known := true
	if !r.place.identified() {
		var err error
		if known, err = r.lookUp(ctx); err != nil {
			return false, err
		}
	}
	if known && !r.place.State.Empty() {
		r.past = newLine(r.h, r.place.State)
	}
	return known, nil
}

// lookUp completes a place of names only: from the head's metadata, else from the branch's log. The first hit supplies
// the rest, whichever table it is of.
func (r *resolver) lookUp(ctx context.Context) (bool, error) {
	id := r.place.State.SnapshotID
	found := catalog.Found{State: r.head, OK: true}
	switch id {
	case r.head.SnapshotID:
	case catalog.NoSnapshot:
		found.State = emptyState(r.head)
	default:
		var err error
		if found, err = r.h.Find(ctx, id, r.head); err != nil {
			return false, fmt.Errorf("finding the checkpoint's snapshot %d: %w", id, err)
		}
	}
	commits, err := r.h.Commits(ctx, func(c catalog.TableCommit) bool { return puts(c, id) })
	if err != nil {
		return false, fmt.Errorf("finding the commit of the checkpoint's snapshot %s: %w", name(id), err)
	}
	var c catalog.TableCommit
	if n := len(commits); n > 0 && puts(commits[n-1], id) {
		c = commits[n-1]
	} else if !found.OK {
		if c, _, err = r.h.Former(ctx, id); err != nil {
			return false, fmt.Errorf("looking for the checkpoint's snapshot %s among former tables of the name: %w", name(id), err)
		}
	}
	r.place.Commit = c.Hash
	if !found.OK && c.Hash != "" { // the log knows more than the metadata that could be read
		found.OK = true
		found.State = r.place.State
		found.State.ContentID, found.State.MetadataLocation = c.Content.ID, c.Content.MetadataLocation
	}
	if found.OK {
		r.place.State, r.place.Names = found.State, false
	}
	return found.OK, nil
}

func puts(c catalog.TableCommit, snapshot int64) bool {
	return c.Op == catalog.Put && c.Content.SnapshotID == snapshot
}

// follow resolves a place of the head's own table.
func (r *resolver) follow(ctx context.Context) (Resolution, error) {
	s := r.place.State
	if ended, err := r.ended(ctx); err != nil || ended {
		return Resolution{Verdict: Unchanged, Place: &s, Ended: ended}, err
	}
	if s.SnapshotID == r.head.SnapshotID {
		return Resolution{Verdict: Unchanged, Place: r.refreshed()}, nil
	}
	if r.head.Empty() {
		return r.lost(ctx, r.emptied())
	}
	m, err := r.meet(ctx)
	if err != nil {
		return Resolution{}, err
	}
	switch {
	case m.common != nil && m.common.SnapshotID == s.SnapshotID:
		return r.forward(ctx, r.line.above(len(r.line.nodes)), nil)
	case m.common != nil || r.line.end == root:
		return r.lost(ctx, loss{verdict: Diverged, reason: r.divergence(m), meeting: m})
	}
	return r.acrossHole(ctx, m)
}

// refreshed is the place's state as the head's metadata file tells it now, which later expiries of the place's own
// metadata file don't touch.
func (r *resolver) refreshed() *catalog.State {
	s := r.head
	if s.Records < 0 {
		s.Records = r.place.State.Records
	}
	if s.ManifestList == "" && len(s.Manifests) == 0 {
		s.ManifestList = r.place.State.ManifestList
	}
	return &s
}

// acrossHole closes the hole that the head's line ended in, if the branch itself never left the place: only then is it
// sure that the hole, and not another line, leads to the place.
func (r *resolver) acrossHole(ctx context.Context, m meeting) (Resolution, error) {
	hole := &HoleError{
		Place: r.place.State.SnapshotID, Child: r.line.oldest().SnapshotID,
		Missing: r.line.missing, Why: r.line.why,
	}
	if hole.Missing == catalog.NoSnapshot {
		hole.Why = strings.TrimSuffix(fmt.Sprintf("the parent of snapshot %d can't be told: %s", hole.Child, hole.Why), ": ")
	}
	if r.place.Commit == "" {
		hole.Refused = "the commit of the checkpoint is unknown, so nothing says that the branch still descends from it"
		return r.lost(ctx, r.stuck(hole, m))
	}
	ancestor, err := r.h.IsAncestor(ctx, r.place.Commit)
	if err != nil {
		return Resolution{}, fmt.Errorf("looking for commit %s in the branch's history: %w", r.place.Commit, err)
	}
	if !ancestor {
		hole.Refused = fmt.Sprintf("commit %s of the checkpoint is not an ancestor of the branch's head", r.place.Commit)
		return r.lost(ctx, r.stuck(hole, m))
	}
	return r.forward(ctx, r.line.above(len(r.line.nodes)), hole)
}

// forward goes from the place through the nodes. What can be delivered comes first; only when nothing can is lineage
// lost.
func (r *resolver) forward(ctx context.Context, nodes []node, hole *HoleError) (Resolution, error) {
	way, err := r.pass(ctx, r.place.State, nodes, hole)
	if err != nil {
		return Resolution{}, err
	}
	if len(way.steps) == 0 {
		m := meeting{above: len(nodes)}
		if hole != nil {
			m = meeting{above: -1, retracted: -1}
		}
		return r.lost(ctx, r.stuck(way.stuck, m))
	}
	res := Resolution{Verdict: Continuous, Steps: way.steps, Reason: way.reason(), Pending: way.pending()}
	if res.Reason != "" {
		res.Verdict = Hole
	}
	return res, nil
}

// replaced applies the policy for another table under the name.
func (r *resolver) replaced(ctx context.Context) (Resolution, error) {
	cause := &ReplacedError{Place: r.place.State, Head: r.head}
	if r.p.OnReplaced != ReplacedRestart {
		return Resolution{}, cause
	}
	res, err := Start(ctx, r.head, r.h, r.p)
	if err != nil {
		return Resolution{}, fmt.Errorf("starting over in the new table: %w", err)
	}
	res.Verdict, res.Reason = Replaced, cause.reason()
	return r.truncateFirst(res), nil
}

// emptyState is "no snapshot" of the same table.
func emptyState(s catalog.State) catalog.State {
	return catalog.State{
		TableUUID: s.TableUUID, ContentID: s.ContentID, SnapshotID: catalog.NoSnapshot,
		SchemaID: s.SchemaID, MetadataLocation: s.MetadataLocation, FormatVersion: s.FormatVersion,
	}
}

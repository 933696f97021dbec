// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

var allPolicies = []OnLost{LostStart, LostAncestor, LostBridge, LostTableScan, LostFail}

// drawPlace is where a reader of the branch stood at some time.
func (w *world) drawPlace() Place {
	return w.places[rapid.IntRange(0, len(w.places)-1).Draw(w.t, "place")]
}

func (w *world) drawPolicy() Policy {
	return Policy{
		OnLost:     rapid.SampledFrom(allPolicies).Draw(w.t, "on lost"),
		OnReplaced: rapid.SampledFrom([]OnReplaced{ReplacedFail, ReplacedRestart}).Draw(w.t, "on replaced"),
		StartFrom:  rapid.SampledFrom([]StartFrom{StartTableScan, StartEarliest, StartLatest}).Draw(w.t, "start from"),
		Changelog:  rapid.Bool().Draw(w.t, "changelog"),
		Gone:       map[int64]string{}, Refused: map[Edge]string{},
	}
}

// A history that nothing was taken from is told exactly: continuous with every snapshot once and in order, or diverged
// at the right place.
func TestPropertyUndamagedHistoriesAreToldExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		place, head := w.drawPlace(), w.state(w.head)
		res, err := Resolve(context.Background(), place, head, w.m, Policy{OnLost: LostAncestor})
		if place.State.TableUUID != head.TableUUID {
			var replaced *ReplacedError
			require.ErrorAs(t, err, &replaced)
			return
		}
		require.NoError(t, err)
		want, continuous := w.between(place.State.SnapshotID, w.head)
		switch {
		case place.State.SnapshotID == w.head:
			require.Equal(t, Unchanged, res.Verdict)
		case continuous:
			require.Equal(t, Continuous, res.Verdict)
			require.Equal(t, want, ids(res.Steps))
		case w.head == none:
			require.Equal(t, Diverged, res.Verdict)
			require.Empty(t, res.Steps)
		default:
			require.Equal(t, Diverged, res.Verdict)
			common, ok := w.common(place.State.SnapshotID, w.head)
			require.Equal(t, ok, res.Lost.Ancestor != nil)
			if ok {
				require.Equal(t, common, res.Lost.Ancestor.SnapshotID)
			}
			want, _ = w.between(common, w.head)
			require.Equal(t, want, ids(res.Steps))
		}
	})
}

// However much is lost: what is delivered is proved or closed by a comparison, what is not delivered is told, and the
// reader comes to the head or stops with a reason.
func TestPropertyNothingIsLostInSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.damage()
		r := &reader{world: w, place: w.drawPlace(), policy: w.drawPolicy(), first: map[int64]int{}}
		for range 4*len(w.m.states) + 8 {
			if r.read() {
				return
			}
		}
		require.Fail(t, "the reader never comes to the head")
	})
}

// reader follows a world's branch as the input does: it resolves, plans, feeds back what planning could not do, and goes
// on from what it delivered.
type reader struct {
	*world
	place  Place
	policy Policy
	first  map[int64]int // snapshots delivered on their own, how often
}

// read resolves once and delivers; it reports true at the head or at an error that may stop it.
func (r *reader) read() bool {
	head := r.state(r.head)
	res, err := Resolve(context.Background(), r.place, head, r.m, r.policy)
	if err != nil {
		r.checkError(err)
		return true
	}
	r.checkVerdict(res)
	r.checkSteps(res)
	if res.Place != nil {
		require.Empty(r.t, res.Steps)
		r.place = Place{State: *res.Place, Commit: r.log[len(r.log)-1].commit.Hash}
		return res.Place.SnapshotID == r.head
	}
	require.NotEmpty(r.t, res.Steps)
	return r.deliver(res)
}

// deliver plans each step in turn and reports whether the last one led to the head.
func (r *reader) deliver(res Resolution) bool {
	for _, s := range res.Steps {
		before, after := none, s.After.SnapshotID
		if s.Before != nil {
			before = s.Before.SnapshotID
		}
		switch {
		case s.Kind != CatchUp && s.Kind != Truncate && r.m.expired[after]:
			require.NotEqual(r.t, Bridge, s.Kind, "a bridge leads to a state that can be read")
			r.policy.Gone[after] = "its manifest list does not exist"
			return false
		case s.Kind == Bridge:
			require.False(r.t, before != none && r.m.expired[before], "a bridge starts from a state that can be read")
		}
		if (s.Kind == Bridge || s.Kind == CatchUp) && rapid.IntRange(0, 2).Draw(r.t, "refused") == 0 {
			r.policy.Refused[Edge{before, after}] = "the record counts do not add up"
			return false
		}
		r.place = Place{State: s.After, Commit: r.log[len(r.log)-1].commit.Hash}
		r.first[after]++
		if res.Lost == nil && s.Kind == Snapshot {
			require.Equal(r.t, 1, r.first[after], "snapshot %d comes once", after)
		}
	}
	return r.place.State.SnapshotID == r.head
}

func (r *reader) checkError(err error) {
	var (
		replaced *ReplacedError
		lost     *LostError
		start    *StartError
	)
	s := r.place.State
	switch {
	case errors.As(err, &replaced):
		require.NotEqual(r.t, s.TableUUID, r.state(r.head).TableUUID)
	case errors.As(err, &start):
		require.Equal(r.t, ReplacedRestart, r.policy.OnReplaced)
		return
	case errors.As(err, &lost):
		require.True(r.t, r.policy.OnLost == LostFail || lost.Problem != "")
		require.NotEqual(r.t, LostStart, r.policy.OnLost, "there is always a way to stand at the head")
		r.checkOffers(lost)
	default:
		require.NoError(r.t, err)
	}
	require.True(r.t, s.Empty() || strings.Contains(err.Error(), fmt.Sprint(s.SnapshotID)), "names the place: %v", err)
}

// checkOffers follows every way that the error offers.
func (r *reader) checkOffers(lost *LostError) {
	for _, w := range lostWays {
		if !lost.helps(w) {
			continue
		}
		policy := r.policy
		policy.OnLost = w.policy
		_, err := Resolve(context.Background(), r.place, r.state(r.head), r.m, policy)
		require.NoError(r.t, err, "%s is offered: %v", w.policy, lost)
	}
}

// checkVerdict holds the verdict against the truth.
func (r *reader) checkVerdict(res Resolution) {
	s := r.place.State
	want, onLine := r.between(s.SnapshotID, r.head)
	sameTable := s.TableUUID == r.state(r.head).TableUUID
	require.Equal(r.t, res.Verdict == Replaced, !sameTable)
	if !sameTable {
		require.Contains(r.t, res.Reason, s.TableUUID)
		return
	}
	switch res.Verdict {
	case Unchanged:
		require.Equal(r.t, r.head, s.SnapshotID)
	case Continuous:
		require.True(r.t, onLine)
		require.Equal(r.t, want, ids(res.Steps))
		require.Nil(r.t, res.Lost)
	case Diverged:
		require.False(r.t, onLine && !r.state(r.head).Empty(), "a divergence is proved")
		require.NotNil(r.t, res.Lost)
		r.checkAncestor(res)
	case Hole:
		require.True(r.t, res.Lost != nil || len(res.Steps) > 0)
		r.checkBridges(res)
	default:
		require.Fail(r.t, "unexpected verdict", string(res.Verdict))
	}
	if res.Verdict == Hole || res.Verdict == Diverged {
		require.True(r.t, s.Empty() || res.Pending != "" || len(r.policy.Gone) > 0 || strings.Contains(res.Reason, fmt.Sprint(s.SnapshotID)), res.Reason)
		require.NotEmpty(r.t, res.Reason)
	}
}

func (r *reader) checkAncestor(res Resolution) {
	if a := res.Lost.Ancestor; a != nil && !a.Empty() {
		common, ok := r.common(r.place.State.SnapshotID, r.head)
		require.True(r.t, ok)
		require.Equal(r.t, common, a.SnapshotID, "the newest common ancestor")
	}
}

// checkBridges makes sure that holes are closed only where the branch or the ids say that they lead to the place, and
// that every snapshot between is delivered or lies below a bridge.
func (r *reader) checkBridges(res Resolution) {
	s := r.place.State.SnapshotID
	want, onLine := r.between(s, r.head)
	if res.Lost != nil {
		return
	}
	require.True(r.t, onLine || r.m.ancestors[r.place.Commit], "nothing says that the hole leads to the place")
	if !onLine {
		return
	}
	at := s
	for _, step := range res.Steps {
		below, ok := r.between(at, step.After.SnapshotID)
		require.True(r.t, ok)
		if step.Kind == Snapshot {
			require.Equal(r.t, []int64{step.After.SnapshotID}, below)
		}
		at = step.After.SnapshotID
	}
	require.True(r.t, at == r.head || res.Pending != "", "stops short of %v in silence", want)
}

// checkSteps: each step begins where the one before ends, and each parent is the true one.
func (r *reader) checkSteps(res Resolution) {
	at := r.place.State.SnapshotID
	for i, s := range res.Steps {
		switch s.Kind {
		case TableScan:
			require.Nil(r.t, s.Before)
		case Snapshot:
			require.Equal(r.t, r.m.parent[s.After.SnapshotID], s.Before.SnapshotID)
		case Truncate:
			require.Zero(r.t, i)
			require.True(r.t, r.policy.Changelog)
		}
		if s.Before != nil && (i > 0 || (res.Lost == nil && res.Verdict != Replaced)) {
			require.Equal(r.t, at, s.Before.SnapshotID, "step %d does not begin where the last ended", i)
		}
		require.NotEmpty(r.t, s.FoundBy)
		at = s.After.SnapshotID
	}
}

// From every start, everything that start_from promises comes.
func TestPropertyStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		line := w.m.line(w.head)
		if len(line) == 0 {
			return
		}
		head := w.state(w.head)
		res, err := Start(context.Background(), head, w.m, Policy{StartFrom: StartEarliest})
		require.NoError(t, err)
		require.Equal(t, reversed(line), ids(res.Steps))

		i := rapid.IntRange(0, len(line)-1).Draw(t, "start")
		res, err = Start(context.Background(), head, w.m, Policy{StartSnapshotID: &line[i]})
		require.NoError(t, err)
		require.Equal(t, reversed(line[:i+1]), ids(res.Steps))

		w.damage()
		res, err = Start(context.Background(), head, w.m, Policy{StartFrom: StartEarliest})
		require.NoError(t, err, "the head can be read")
		require.False(t, w.m.expired[res.Steps[0].After.SnapshotID])
		got := ids(res.Steps)
		require.Equal(t, reversed(line)[len(line)-len(got):], got, "no snapshot after the first is missing")
	})
}

// A step's commit is the first one on the log, after the place's, that contains it and leads to the head.
func TestPropertyAttribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		place := w.drawPlace()
		at := slices.IndexFunc(w.m.commits, func(c catalog.TableCommit) bool { return c.Hash == place.Commit })
		if at < 0 || place.State.TableUUID != w.uuid {
			return
		}
		policy := Policy{OnLost: LostStart}
		line := w.m.line(w.head)
		if len(line) > 0 && rapid.Bool().Draw(t, "ends") {
			policy.EndSnapshotID = &line[rapid.IntRange(0, len(line)-1).Draw(t, "end")]
		}
		res, err := Resolve(context.Background(), place, w.state(w.head), w.m, policy)
		require.NoError(t, err)
		got := Attribute(res.Steps, w.m.commits[:at+1], catalog.TableCommit{Hash: "head"}, res.Beyond...)
		for i, s := range res.Steps {
			want := "head"
			for _, c := range slices.Backward(w.m.commits[:at+1]) {
				id := c.Content.SnapshotID
				_, contains := w.between(s.After.SnapshotID, id)
				if contains && slices.Contains(line, id) && c.Content.ID == s.After.ContentID {
					want = c.Hash
					break
				}
			}
			require.Equal(t, want, got[i].Hash, "snapshot %d", s.After.SnapshotID)
		}
	})
}

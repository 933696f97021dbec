// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// world is a random history of one branch: the model knows the truth, places are all that a reader ever could have
// stood at.
type world struct {
	t      *rapid.T
	m      *model
	head   int64
	seq    int64
	v1     bool
	clock  int64
	uuid   string
	tables int
	log    []moment
	places []Place
}

// moment is the branch after one commit.
type moment struct {
	commit    catalog.TableCommit
	seq       int64
	uuid      string
	ancestors map[string]bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, m: newModel(), head: none, v1: rapid.IntRange(0, 9).Draw(t, "v1") == 0}
	w.recreate()
	actions := []func(){w.append, w.append, w.append, w.append, w.metadataOnly, w.rollBack, w.reset, w.replace, w.replaceEmpty, w.merge, w.merge}
	if rapid.IntRange(0, 4).Draw(t, "recreates") == 0 {
		actions = append(actions, w.recreate)
	}
	for range rapid.IntRange(1, 14).Draw(t, "commits") {
		actions[rapid.IntRange(0, len(actions)-1).Draw(t, "action")]()
	}
	w.settle()
	return w
}

// snapshot makes a snapshot of the current table, with what metadata says of it.
func (w *world) snapshot(parent int64) int64 {
	id := rapid.Int64Range(1, 1<<40).Filter(func(id int64) bool { _, taken := w.m.states[id]; return !taken }).Draw(w.t, "id")
	w.seq++
	w.clock++
	s := w.m.add(id, parent)
	s.Sequence, s.TimestampMs = w.seq, w.clock*1_000_000
	if w.v1 {
		s.Sequence = 0
	}
	s.TableUUID, s.ContentID = w.uuid, "c"+w.uuid
	w.m.states[id] = s
	w.m.silent[id] = rapid.Bool().Draw(w.t, "silent")
	w.m.logged[id] = rapid.Bool().Draw(w.t, "logged")
	return id
}

// snapshots makes several on top of each other, of which all but the last may be hidden.
func (w *world) snapshots(parent int64) int64 {
	n := rapid.IntRange(1, 3).Draw(w.t, "snapshots")
	hide := rapid.Bool().Draw(w.t, "hide")
	for i := range n {
		parent = w.snapshot(parent)
		w.m.hidden[parent] = hide && i < n-1
	}
	return parent
}

// publish commits a snapshot to the branch.
func (w *world) publish(id int64, merged map[string]bool) {
	w.head = id
	w.clock++
	hash := fmt.Sprintf("k%d", w.clock)
	c := catalog.TableCommit{Hash: hash, Op: catalog.Put, Content: catalog.Content{ID: "c" + w.uuid, SnapshotID: id}}
	ancestors := map[string]bool{hash: true}
	if n := len(w.log); n > 0 {
		maps.Copy(ancestors, w.log[n-1].ancestors)
	}
	maps.Copy(ancestors, merged)
	w.log = append(w.log, moment{c, w.seq, w.uuid, ancestors})
	w.places = append(w.places, Place{State: w.state(id), Commit: hash})
}

func (w *world) state(id int64) catalog.State {
	if id == none {
		return catalog.State{TableUUID: w.uuid, ContentID: "c" + w.uuid, SnapshotID: none}
	}
	return w.m.states[id]
}

func (w *world) append()       { w.publish(w.snapshots(w.head), nil) }
func (w *world) metadataOnly() { w.publish(w.head, nil) }
func (w *world) replace()      { w.publish(w.snapshot(none), nil) }
func (w *world) replaceEmpty() { w.publish(none, nil) }

func (w *world) recreate() {
	w.tables++
	w.uuid, w.seq = fmt.Sprintf("u%d", w.tables), 0
	w.publish(none, nil)
}

// rollBack makes an ancestor the current snapshot again.
func (w *world) rollBack() {
	if line := w.m.line(w.head); len(line) > 1 {
		w.publish(line[rapid.IntRange(1, len(line)-1).Draw(w.t, "depth")], nil)
	}
}

// reset moves the branch back to an earlier commit.
func (w *world) reset() {
	i := rapid.IntRange(0, len(w.log)-1).Draw(w.t, "back to")
	w.goTo(i)
	w.log = w.log[:i+1]
}

func (w *world) goTo(i int) {
	w.head, w.seq, w.uuid = w.log[i].commit.Content.SnapshotID, w.log[i].seq, w.log[i].uuid
}

// merge forks a branch off an earlier commit, commits there, and merges it back; where the branch itself has moved
// since then the fork's version wins. Places on the fork are no places of this branch's readers.
func (w *world) merge() {
	main, mainPlaces := w.log, w.places
	fork := rapid.IntRange(0, len(main)-1).Draw(w.t, "fork")
	w.goTo(fork)
	w.log = slices.Clone(main[:fork+1])
	for range rapid.IntRange(1, 3).Draw(w.t, "fork commits") {
		w.append()
	}
	side := w.log[len(w.log)-1]
	w.log, w.places = main, mainPlaces
	w.publish(side.commit.Content.SnapshotID, side.ancestors)
}

// settle gives the model the log as it is in the end.
func (w *world) settle() {
	w.m.commits = nil
	for _, l := range slices.Backward(w.log) {
		w.m.commits = append(w.m.commits, l.commit)
	}
	w.m.ancestors = w.log[len(w.log)-1].ancestors
}

// damage takes away list permission and files of old snapshots, but never the head's.
func (w *world) damage() {
	w.m.noListing = rapid.Bool().Draw(w.t, "no listing")
	for _, id := range slices.Sorted(maps.Keys(w.m.states)) {
		if id == w.head {
			continue
		}
		switch rapid.IntRange(0, 5).Draw(w.t, "damage") {
		case 0:
			w.m.expired[id] = true
		case 1:
			w.m.expired[id], w.m.forgotten[id] = true, true
		}
	}
}

// between is the truth about what lies between two states, oldest first; ok is false where the upper does not descend
// from the lower.
func (w *world) between(lower, upper int64) (ids []int64, ok bool) {
	line := w.m.line(upper)
	if lower == none {
		return reversed(line), true
	}
	i := slices.Index(line, lower)
	if i < 0 {
		return nil, false
	}
	return reversed(line[:i]), true
}

// common is the newest snapshot that both lines share.
func (w *world) common(a, b int64) (int64, bool) {
	line := w.m.line(a)
	for _, id := range w.m.line(b) {
		if slices.Contains(line, id) {
			return id, true
		}
	}
	return none, false
}

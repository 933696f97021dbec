// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"fmt"
	"slices"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// chainLimit is the most states that a walk follows. A table with more unread snapshots than this is taken for a broken
// or hostile history: it is beyond what a metadata file can list in practice.
const chainLimit = 1_000_000

// node is one proved state of a line.
type node struct {
	state catalog.State
	// found says where the state was found, proof what proved its parent; see the FoundBy constants.
	found, proof string
	// followed: nothing names the parent, and the line goes on to what the branch held before.
	followed bool
}

// foundBy is the label of the step that leads to the node.
func (n node) foundBy() string {
	if n.found == FoundByLog || n.found == FoundByListing {
		return n.found
	}
	return n.proof
}

// end says why a line goes no further.
type end int

const (
	open  end = iota // it may go on
	root             // the oldest node has no parent, and that is proved
	holed            // the oldest node's parent can't be named, or not found
)

// line is a walk from one state back along its proved parents. It holds what was walked, newest first, so that nothing
// is asked twice.
type line struct {
	h     History
	limit int
	nodes []node
	index map[int64]int
	end   end
	// link is the parent of the oldest node once asked; for a hole missing and why say what was not there. missing is
	// NoSnapshot where not even an id is known.
	link    *catalog.Link
	missing int64
	why     string
}

func newLine(h History, from catalog.State) *line {
	return &line{
		h: h, limit: chainLimit, missing: catalog.NoSnapshot,
		nodes: []node{{state: from, found: FoundByMetadata}},
		index: map[int64]int{from.SnapshotID: 0},
	}
}

func (l *line) oldest() catalog.State { return l.nodes[len(l.nodes)-1].state }

// has reports whether a snapshot was met on the line.
func (l *line) has(id int64) bool {
	_, ok := l.index[id]
	return ok
}

// parent names the parent of the oldest node without looking for it. When there is none to name, the line has ended.
func (l *line) parent(ctx context.Context) (id int64, named bool, err error) {
	if l.end != open {
		return 0, false, nil
	}
	if l.link == nil {
		child := l.oldest()
		link, err := l.h.Parent(ctx, child)
		if err != nil {
			return 0, false, fmt.Errorf("finding the parent of snapshot %d: %w", child.SnapshotID, err)
		}
		switch {
		case link.Unknown:
			l.end, l.why = holed, link.Why
			return 0, false, nil
		case link.Root:
			l.end = root
			l.nodes[len(l.nodes)-1].proof = link.By
			return 0, false, nil
		case link.Followed && l.has(link.ParentID):
			l.end, l.why = holed, "nothing names its parent, and the branch held only newer snapshots before"
			return 0, false, nil
		case l.has(link.ParentID):
			return 0, false, &CycleError{Child: child.SnapshotID, Parent: link.ParentID}
		case len(l.nodes) >= l.limit:
			return 0, false, &CycleError{Child: child.SnapshotID, Parent: link.ParentID, Length: len(l.nodes)}
		}
		l.link = &link
		oldest := &l.nodes[len(l.nodes)-1]
		oldest.proof, oldest.followed = link.By, link.Followed
	}
	return l.link.ParentID, true, nil
}

// descend finds the oldest node's parent and goes on to it. It reports false when the line has ended.
func (l *line) descend(ctx context.Context) (bool, error) {
	id, named, err := l.parent(ctx)
	if err != nil || !named {
		return false, err
	}
	child := l.oldest()
	found, err := l.h.Find(ctx, id, child)
	if err != nil {
		return false, fmt.Errorf("finding snapshot %d, the parent of %d: %w", id, child.SnapshotID, err)
	}
	if other := otherTable(child, found.State); found.OK && other != "" {
		found.OK, found.Why = false, "what has this id is of "+other
	}
	if !found.OK {
		l.end, l.missing, l.why = holed, id, found.Why
		return false, nil
	}
	return true, l.add(node{state: found.State, found: found.By})
}

// add appends the parent of the oldest node.
func (l *line) add(n node) error {
	if err := ordered(l.oldest(), n.state); err != nil {
		return err
	}
	l.index[n.state.SnapshotID] = len(l.nodes)
	l.nodes = append(l.nodes, n)
	l.link = nil
	return nil
}

// descendTo walks until the line holds the snapshot, and reports whether it does. A line that ended before does not.
func (l *line) descendTo(ctx context.Context, id int64) (bool, error) {
	for {
		if l.has(id) {
			return true, nil
		}
		if more, err := l.descend(ctx); err != nil || !more {
			return false, err
		}
	}
}

// descendWhile walks as long as the oldest state satisfies the condition.
func (l *line) descendWhile(ctx context.Context, condition func(catalog.State) bool) error {
	for condition(l.oldest()) {
		if more, err := l.descend(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// above returns the nodes that descend from the one at index i, oldest first; i = len(nodes) gives all.
func (l *line) above(i int) []node {
	nodes := slices.Clone(l.nodes[:i])
	slices.Reverse(nodes)
	return nodes
}

// ordered asserts that sequence numbers do not increase toward parents. Version 1 tables have none, and it is no proof
// of anything: it catches histories that contradict themselves.
func ordered(child, parent catalog.State) error {
	if child.Sequence > 0 && parent.Sequence > child.Sequence {
		return &SequenceError{
			Child: child.SnapshotID, ChildSequence: child.Sequence,
			Parent: parent.SnapshotID, ParentSequence: parent.Sequence,
		}
	}
	return nil
}

// otherTable says which other table a state belongs to, or "" when it is of the same table as far as both know.
func otherTable(s, other catalog.State) string {
	switch {
	case s.ContentID != "" && other.ContentID != "" && s.ContentID != other.ContentID:
		return "content " + other.ContentID
	case s.TableUUID != "" && other.TableUUID != "" && s.TableUUID != other.TableUUID:
		return "table " + other.TableUUID
	}
	return ""
}

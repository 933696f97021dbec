// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"fmt"
	"strings"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Lost is lost lineage and what was done about it.
type Lost struct {
	// Reason says what was lost, with the snapshot ids.
	Reason string
	// Policy is what decided.
	Policy OnLost
	// Ancestor is the newest state that the head's line and the place's line are proved to share; nil where none is.
	Ancestor *catalog.State
	// Skipped counts the snapshots on the head's line that are not delivered, neither alone nor as part of a bridge or
	// scan; Retracted those on the place's line that the head does not have. -1 where unknown.
	Skipped, Retracted int
}

// String is what the warning says of it: the reason, what goes on, and what that skips and abandons.
func (l *Lost) String() string {
	return fmt.Sprintf("%s. on_lost_lineage: %s goes on; snapshots skipped: %s, abandoned: %s",
		l.Reason, l.Policy, count(l.Skipped), count(l.Retracted))
}

func count(n int) string {
	if n < 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// LostError stops at lost lineage: the policy says so, or what it asks for is impossible.
type LostError struct {
	Lost
	// Problem says why the policy can't be followed; "" for LostFail.
	Problem string
	// Changelog: the policies that break a changelog are not offered.
	Changelog bool
	// Hole is the hole that lineage was lost at; nil for a divergence.
	Hole *HoleError
	// NoBridge: the difference of the place and the head can't be made.
	NoBridge bool
}

func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lost lineage: %s", e.Reason)
	if e.Problem != "" {
		fmt.Fprintf(&b, "; on_lost_lineage: %s is impossible: %s", e.Policy, e.Problem)
	}
	var ways []string
	for _, w := range lostWays {
		if e.helps(w) {
			does := w.does
			if w.policy == LostBridge && !e.Changelog {
				does += ", removed rows as on_overwrite and on_delete say"
			}
			ways = append(ways, fmt.Sprintf("%s (%s)", w.policy, does))
		}
	}
	if len(ways) == 0 {
		b.WriteString("; nothing gets past it before the table has a snapshot that can be read")
	} else {
		fmt.Fprintf(&b, "; set on_lost_lineage to get past it: %s", strings.Join(ways, ", "))
	}
	return b.String()
}

// helps reports whether a policy may lead on from here.
func (e *LostError) helps(w lostWay) bool {
	switch {
	case w.policy == e.Policy, e.Changelog && !w.changelog, e.NoBridge && w.policy == LostBridge:
		return false
	case e.Hole != nil && e.Hole.NothingAbove:
		return w.policy == LostStart
	case e.Hole != nil:
		return w.policy != LostAncestor
	}
	return true
}

// Unwrap gives the hole, if that is what lineage was lost at.
func (e *LostError) Unwrap() error {
	if e.Hole == nil {
		return nil
	}
	return e.Hole
}

// lostWay is a policy and what it does; changelog is true where that keeps a changelog's law.
type lostWay struct {
	policy    OnLost
	does      string
	changelog bool
}

var lostWays = []lostWay{
	{LostStart, "goes on from start_snapshot_id or the head, the rest is skipped", false},
	{LostAncestor, "delivers every snapshot after the newest common ancestor", false},
	{LostBridge, "delivers the difference between the place and the head", true},
	{LostTableScan, "delivers the whole table again", true},
}

// HoleError is a gap between the place and the head. It is the cause inside a *LostError.
type HoleError struct {
	// Place is the snapshot below the hole, Child the oldest one above it that is known and, as far as was asked, readable.
	Place, Child int64
	// Missing is the snapshot that is gone or was not found; NoSnapshot where not even its id is known.
	Missing int64
	// Why says what stood in the way of finding or reading it.
	Why string
	// Refused says why the hole could not be closed; "" where it was.
	Refused string
	// NothingAbove: not even the head can be read.
	NothingAbove bool
}

func (e *HoleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the history between snapshot %s and snapshot %s has a hole: ", name(e.Place), name(e.Child))
	switch e.Missing {
	case e.Child:
		fmt.Fprintf(&b, "snapshot %s can't be read", name(e.Missing))
	case catalog.NoSnapshot:
		b.WriteString("what lies between is unknown")
	case e.Place:
		fmt.Fprintf(&b, "the files of %s itself are gone", name(e.Missing))
	default:
		fmt.Fprintf(&b, "snapshot %s was not found or can't be read", name(e.Missing))
	}
	if e.Why != "" {
		fmt.Fprintf(&b, " (%s)", e.Why)
	}
	if e.Refused != "" {
		fmt.Fprintf(&b, "; it can't be closed: %s", e.Refused)
	}
	return b.String()
}

// ReplacedError says that another table is under the name.
type ReplacedError struct {
	// Place is what the place was of, Head what is there now.
	Place, Head catalog.State
}

func (e *ReplacedError) Error() string {
	return e.reason() + "; set on_table_replaced: restart to read the new table as on a first run, or give the input another checkpoint_cache_key"
}

func (e *ReplacedError) reason() string {
	return fmt.Sprintf("the table was replaced: the checkpoint's snapshot %s is of %s, the head's snapshot %s is of %s",
		name(e.Place.SnapshotID), identity(e.Place), name(e.Head.SnapshotID), identity(e.Head))
}

func identity(s catalog.State) string {
	switch {
	case s.ContentID == "":
		return "table uuid " + s.TableUUID
	case s.TableUUID == "":
		return "content id " + s.ContentID
	}
	return fmt.Sprintf("table uuid %s (content id %s)", s.TableUUID, s.ContentID)
}

// StartError says why reading can't start where the configuration says.
type StartError struct {
	// Option is the field with its value.
	Option string
	Why    string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("can't start at %s: %s; choose another start_snapshot_id, or start_from: table_scan, earliest or latest", e.Option, e.Why)
}

// CycleError is a history that can't be: a snapshot that is its own ancestor, or a chain beyond all measure.
type CycleError struct {
	Child, Parent int64
	// Length is the number of states after which the walk was given up; 0 for a cycle.
	Length int
}

func (e *CycleError) Error() string {
	if e.Length > 0 {
		return fmt.Sprintf("following parents: gave up after %d snapshots, at %d with parent %d", e.Length, e.Child, e.Parent)
	}
	return fmt.Sprintf("following parents: snapshot %d names %d as its parent, which is its own descendant", e.Child, e.Parent)
}

// SequenceError is a history that contradicts itself: a parent with a higher sequence number than its child.
type SequenceError struct {
	Child, ChildSequence   int64
	Parent, ParentSequence int64
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("following parents: snapshot %d has sequence number %d, but its parent %d has %d, and sequence numbers never decrease from parent to child",
		e.Child, e.ChildSequence, e.Parent, e.ParentSequence)
}

// name writes a snapshot id for a reader.
func name(id int64) string {
	if id == catalog.NoSnapshot {
		return "\"none\""
	}
	return fmt.Sprint(id)
}

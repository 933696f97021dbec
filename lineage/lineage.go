// SPDX-License-Identifier: Apache-2.0

// Package lineage decides what to read next. It takes the place that was reached, the head of the table and a way to
// ask about the past, and answers with steps: pairs of table states that lead from the one to the other.
//
// Continuity is proved, never assumed. A chain is walked from the head back along parents that a metadata file or a
// manifest list names, newest first, no further than needed. Where it ends at the place, every snapshot between is a
// step. Where it ends at a root or at an ancestor of the place, the table has left the place's line: a divergence.
// Where a parent can't be found there is a hole, which is closed by comparing the states on both sides of it, or not at
// all. Divergences, and holes that can't be closed, are lost lineage: the user's policy decides.
//
// The package does no I/O of its own and keeps nothing between calls. Its functions may run at the same time with
// different Histories.
package lineage

import (
	"context"
	"time"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// History answers questions about the past of one head. catalog.History is the one that asks a real catalog. A Resolve
// or Start asks from one goroutine, newest state first, and only what it needs.
type History interface {
	// Parent says which snapshot is the parent of the state.
	Parent(ctx context.Context, s catalog.State) (catalog.Link, error)
	// Find looks for the state with a snapshot id; child is the state that named it.
	Find(ctx context.Context, id int64, child catalog.State) (catalog.Found, error)
	// Readable reports whether the state's own manifest list still exists.
	Readable(ctx context.Context, s catalog.State) (bool, error)
	// Commits are the table's commits on the first-parent log from the head back, newest first, up to and with the first
	// that stop says true to, or to the root.
	Commits(ctx context.Context, stop func(catalog.TableCommit) bool) ([]catalog.TableCommit, error)
	// Former looks for another table that stood under the head's key before: the newest commit on the first-parent log that
	// put the snapshot there under another content id.
	Former(ctx context.Context, snapshot int64) (commit catalog.TableCommit, ok bool, err error)
	// IsAncestor reports whether the commit is an ancestor of the head's commit, merge parents included.
	IsAncestor(ctx context.Context, commit string) (bool, error)
}

// Place is where reading stands: the last state that was delivered completely, and the commit that it belongs to.
type Place struct {
	State catalog.State
	// Commit is the commit hash; "" where unknown, which rules out closing a hole.
	Commit string
	// Names is true for a place that older versions wrote: it has no content id and no table uuid, so that only the
	// table's name and the snapshot id say what it was. Resolve looks up the rest.
	Names bool
}

// identified reports whether the place knows which table it is of.
func (p Place) identified() bool {
	return !p.Names && (p.State.TableUUID != "" || p.State.ContentID != "")
}

// Kind says what a step's two states are to each other.
type Kind string

const (
	// Snapshot is a step whose after-state has the before-state as its proved parent. Before may hold nothing but a
	// snapshot id where start_snapshot_id named the after-state and the parent's own files are gone.
	Snapshot Kind = "snapshot"
	// TableScan delivers the after-state whole. It has no before-state.
	TableScan Kind = "table_scan"
	// Bridge is the difference of two states; what lay between them is gone or was never proved.
	Bridge Kind = "bridge"
	// CatchUp stands for a bridge whose before-state has no manifest list any more: the live files with a data sequence
	// number above Before.Sequence. Planning must prove from the record counts that Before's rows survive, and feed a
	// failed proof back in Policy.Refused.
	CatchUp Kind = "catch_up"
	// Truncate tells a changelog's reader to drop all it has. Its After is the state that the following steps start from
	// ("no snapshot" before a table scan), so that a reader stopped between the two misses nothing.
	Truncate Kind = "truncate"
)

// How a step was found, for logs and as a metrics label. For Snapshot steps it is the least direct of how the after-state
// was found and how its parent was proved.
const (
	FoundByMetadata = "metadata" // a metadata file names the state and its parent
	FoundByHeader   = "header"   // the parent is proved by the manifest list's header
	FoundByLog      = "log"      // the state was found through the commit log
	FoundByListing  = "listing"  // the state is in no metadata file, its manifest list was found by its name
	FoundByBridge   = "bridge"
	FoundByCatchUp  = "catch_up"
	FoundByScan     = "scan"
	FoundByStart    = "start" // the configuration named the state, or the reader starts over
)

// Step leads from one state to the next. It is a plain value; Before is shared and never written to.
type Step struct {
	Kind    Kind
	Before  *catalog.State // nil for TableScan
	After   catalog.State
	FoundBy string
}

// Verdict says how the head relates to the place.
type Verdict string

const (
	// Unchanged says that the head holds the place's snapshot, or that the end was reached.
	Unchanged Verdict = "unchanged"
	// Continuous says that every snapshot between the place and the head is known and can be read.
	Continuous Verdict = "continuous"
	// Hole says that something between the place and the head is gone.
	Hole Verdict = "hole"
	// Diverged says that the head does not descend from the place.
	Diverged Verdict = "diverged"
	// Replaced says that another table is under the name.
	Replaced Verdict = "replaced"
	// Started says that there was no place: reading starts where the configuration says.
	Started Verdict = "started"
)

// Resolution is what to read next.
type Resolution struct {
	Verdict Verdict
	// Reason says in words that name the snapshot ids why the verdict is neither Unchanged, Continuous nor Started.
	Reason string
	// From is the place that Steps start from: the one given, with what was looked up for a place of names only. It is
	// nil for Started and Replaced.
	From *Place
	// Steps are in the order to deliver them, oldest first. Each begins where the one before it ends.
	Steps []Step
	// Place is where to stand at once, as a complete state. It is set exactly when Steps is empty.
	Place *catalog.State
	// Pending is "" when the reader has caught up with the head once Steps are delivered. Otherwise it says what keeps the
	// rest back: deliver the steps, then resolve again from the last one. What can be proved comes before any policy.
	Pending string
	// Lost is set when lineage was lost and a policy decided.
	Lost *Lost
	// Beyond are the snapshots of the head's line above the last step, oldest first, where Steps end before the head:
	// Attribute wants them, for one commit can bring snapshots on both sides of the cut.
	Beyond []int64
	// Ended is true when nothing is to be delivered after Steps, because of EndSnapshotID.
	Ended bool
}

// OnLost is the policy for lost lineage.
type OnLost string

// What to do at lost lineage.
const (
	LostStart     OnLost = "start"      // from start_snapshot_id if that is reachable, else stand at the head
	LostAncestor  OnLost = "ancestor"   // every snapshot after the newest proved common ancestor
	LostBridge    OnLost = "bridge"     // the difference of the place and the head
	LostTableScan OnLost = "table_scan" // the head, whole
	LostFail      OnLost = "fail"       // a *LostError
)

// OnReplaced is the policy for another table under the name.
type OnReplaced string

// What to do about another table.
const (
	ReplacedFail    OnReplaced = "fail"    // a *ReplacedError
	ReplacedRestart OnReplaced = "restart" // as on a first run
)

// StartFrom says where to start without a place and without a start snapshot.
type StartFrom string

// Where to start.
const (
	StartTableScan StartFrom = "table_scan" // the head whole, then what comes
	StartEarliest  StartFrom = "earliest"   // the oldest state that can be found and read, then every snapshot after it
	StartLatest    StartFrom = "latest"     // only what comes
)

// Edge names the two snapshots of a step, catalog.NoSnapshot included.
type Edge struct{ From, To int64 }

// Policy is what the user chose and what planning has found out. The zero value scans the table and stops at whatever is
// lost or replaced.
type Policy struct {
	OnLost     OnLost     // "" is LostFail
	OnReplaced OnReplaced // "" is ReplacedFail
	// StartSnapshotID is the first snapshot to deliver, inclusive.
	StartSnapshotID *int64
	// StartFrom is used without StartSnapshotID and StartTime; "" is StartTableScan.
	StartFrom StartFrom
	// StartTime is StartEarliest limited to snapshots made at this time or later.
	StartTime *time.Time
	// EndSnapshotID is the last snapshot to deliver, inclusive.
	EndSnapshotID *int64
	// EndAhead is set by a caller that knows from an earlier Resolution which was not Ended that the end does not lie
	// behind the place. It saves the walk that finds out.
	EndAhead bool
	// Changelog: before everything is delivered anew, a Truncate step says so.
	Changelog bool
	// Gone are states whose files planning found missing, and the reason: they can be neither side of a step.
	Gone map[int64]string
	// Refused are bridges and catch-ups that planning could not prove or may not deliver, and the reason. Resolve does
	// not offer them again, which leaves the policy for lost lineage.
	Refused map[Edge]string
}

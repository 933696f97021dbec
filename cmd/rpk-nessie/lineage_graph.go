// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// graph is a table's history on a reference: the commits that touch it and the snapshots that they brought, newest first.
type graph struct {
	Table      string `json:"table"`
	Reference  string `json:"reference"`
	Commit     string `json:"commit"`
	ContentID  string `json:"content_id"`
	TableUUID  string `json:"table_uuid"`
	Rows       []*row `json:"rows"`
	End        end    `json:"end"`
	Checkpoint *mark  `json:"checkpoint,omitempty"`

	lanes int
}

// row is a commit, or a snapshot that no commit has as its own.
type row struct {
	Kind rowKind `json:"kind"`
	// ID is the commit's hash, or "snapshot <id>". Parents are the IDs of the rows below that this one follows, the first
	// on the same line, the rest merged into it.
	ID      string   `json:"id"`
	Parents []string `json:"parents"`
	Time    moment   `json:"time"`
	Message string   `json:"message,omitempty"`
	Merge   bool     `json:"merge,omitempty"`
	// Names are the references that are looked at and end here.
	Names      []string `json:"references,omitempty"`
	Checkpoint bool     `json:"checkpoint,omitempty"`
	// Snapshot is what the table holds here; nil for "no snapshot" and for a dropped table.
	Snapshot *snapshot `json:"snapshot"`
	// Brings is true where the snapshot is new here: in every other row that has it, it was there before.
	Brings bool `json:"brings_snapshot"`
	// Notes say what is not plain progress.
	Notes []string `json:"notes,omitempty"`

	commit catalog.TableCommit
	beside bool // only a reference beside has this commit
	lane   lanePosition
}

type rowKind string

const (
	rowCommit rowKind = "commit"
	// rowHidden is a snapshot on the line that no commit has as its own: its commit brought several.
	rowHidden rowKind = "snapshot"
)

// snapshot is what is known of one snapshot. Counts are nil where nothing tells.
type snapshot struct {
	ID        snapshotID `json:"snapshot_id"`
	Parent    snapshotID `json:"parent_id"`
	Sequence  int64      `json:"sequence"`
	Operation string     `json:"operation,omitempty"`
	SchemaID  int        `json:"schema_id"`
	Time      moment     `json:"time"`
	// FoundBy says how the snapshot was found and its parent proved; "" where nobody asked, or nothing names its parent.
	FoundBy string `json:"found_by,omitempty"`
	// Orphan is true where nothing names its parent, nor says that there is none.
	Orphan bool `json:"parent_unknown,omitempty"`
	// Line is where it stands to the head: ancestor, abandoned, beside, or unproved.
	Line lineRelation `json:"line"`
	// Gone is true where its manifest list no longer exists, so that it can't be read.
	Gone   bool   `json:"gone,omitempty"`
	Counts counts `json:"counts"`

	state    catalog.State
	totalled bool // its total was looked for
}

type lineRelation string

const (
	lineAncestor  lineRelation = "ancestor" // of the head, or the head itself
	lineAbandoned lineRelation = "abandoned"
	lineBeside    lineRelation = "beside"   // only another reference leads to it
	lineUnproved  lineRelation = "unproved" // the head's line ends before it
)

// counts are rows and files that a snapshot added and removed.
type counts struct {
	// By is "summary" or "manifests".
	By               string `json:"by,omitempty"`
	AddedRows        *int64 `json:"added_rows"`
	RemovedRows      *int64 `json:"removed_rows"`
	AddedFiles       *int64 `json:"added_files"`
	RemovedFiles     *int64 `json:"removed_files"`
	AddedDeleteFiles *int64 `json:"added_delete_files"`
	// TotalRows are those of the data files; lessDeletes is true where delete files take some of them away.
	TotalRows   *int64 `json:"total_rows"`
	lessDeletes bool
}

// end says where the head's line of snapshots ends.
type end struct {
	// Kind is root, hole, cut (there is more, which --limit leaves out) or empty (the table has no snapshot).
	Kind string `json:"kind"`
	// Oldest is the last snapshot of the line.
	Oldest snapshotID `json:"oldest"`
	// Missing is the parent that was not found in a hole, null where none is named; Why says what stood in the way.
	Missing snapshotID `json:"missing"`
	Why     string     `json:"why,omitempty"`
}

const (
	endRoot  = "root"
	endHole  = "hole"
	endCut   = "cut"
	endEmpty = "empty"
)

// mark is the checkpoint's place.
type mark struct {
	Snapshot snapshotID `json:"snapshot_id"`
	Commit   string     `json:"commit,omitempty"`
	Step     int64      `json:"step"`
	// Position says what step was under way; "" between steps.
	Position string `json:"position,omitempty"`
	// Shown is false where the place is in no row.
	Shown bool `json:"shown"`
}

func (g *graph) row(id string) *row {
	for _, r := range g.Rows {
		if r.ID == id {
			return r
		}
	}
	return nil
}

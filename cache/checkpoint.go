// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"
	"strconv"
)

// Version is the version of the values that Encode writes.
const Version = 1

// Stage says how much a checkpoint knows yet.
type Stage string

const (
	// StageComplete is the normal stage: Last is a state whose rows are all
	// acknowledged, or the start that was chosen.
	StageComplete Stage = ""
	// StageFirst means that the first step has no state before it (a table
	// scan) and is not complete yet: only Position counts, and Last says no
	// more than which table it is.
	StageFirst Stage = "first_step"
	// StageClaimed means that an input claimed the key and chose no start
	// yet: nothing is stored, as if the key were absent.
	StageClaimed Stage = "claimed"
)

// StateRef is what a table held at one moment, with all that is needed to plan
// and read a step again from the checkpoint alone. It mirrors catalog.State.
type StateRef struct {
	SnapshotID       string   `json:"snapshotID,omitempty"` // decimal; "" means that the table had no snapshot
	Sequence         int64    `json:"sequence,omitempty"`   // 0 in tables of format version 1
	TableUUID        string   `json:"tableUUID,omitempty"`
	ContentID        string   `json:"contentID,omitempty"`
	CommitHash       string   `json:"commitHash,omitempty"`
	CommitTimeMs     int64    `json:"commitTimeMs,omitempty"` // of CommitHash, milliseconds since 1970
	MetadataLocation string   `json:"metadataLocation,omitempty"`
	ManifestList     string   `json:"manifestList,omitempty"`
	Manifests        []string `json:"manifests,omitempty"` // format version 1 tables without a manifest list
	SchemaID         int      `json:"schemaID"`
	Records          *int64   `json:"records,omitempty"`  // live rows; nil is unknown
	ParentID         string   `json:"parentID,omitempty"` // decimal; "" means that metadata names none
	Operation        string   `json:"operation,omitempty"`
	TimestampMs      int64    `json:"timestampMs,omitempty"` // of the snapshot, milliseconds since 1970
	FormatVersion    int      `json:"formatVersion,omitempty"`
}

// Position is a step in progress.
type Position struct {
	From       *StateRef `json:"from,omitempty"` // nil: the step has no state before it (a table scan)
	To         StateRef  `json:"to"`
	Kind       string    `json:"kind"`                 // of the lineage step
	FoundBy    string    `json:"foundBy,omitempty"`    // how lineage found it
	PlanDigest string    `json:"planDigest,omitempty"` // the plan under which Row counts; "" before planning
	// Attempt counts how often this step ordinal was resolved and planned
	// anew, because files of an earlier plan were gone. Row starts over then.
	Attempt int64 `json:"attempt,omitempty"`
	// Row is how many messages of the step are acknowledged, which is the
	// ordinal of the message to go on at.
	Row int64 `json:"row"`
	// Next is the step that must follow when this one only prepares it: the
	// table scan after a truncate. Its own ordinal is one higher.
	Next *Position `json:"next,omitempty"`
}

// Checkpoint is the place of one input in one table. Once it is given to a
// Writer neither it nor what it points to may be changed.
type Checkpoint struct {
	Last      StateRef // the last complete state, see Stage
	Branch    string
	Namespace string
	Table     string
	Version   int // of the value that was decoded; 0 is the old form of five fields
	Stage     Stage
	Step      int64 // ordinal of the last complete step, from 0 (the start)
	Position  *Position
	Owner     *Owner // nil: nobody claimed the value
}

// Unclaimed returns the checkpoint of a table of which nothing is stored.
func Unclaimed(branch, namespace, table string) *Checkpoint {
	return &Checkpoint{Branch: branch, Namespace: namespace, Table: table, Version: Version, Stage: StageClaimed}
}

// Started tells whether there is a place to go on from. Otherwise the value
// says no more than who claimed the key, and the run is a first one.
func (c *Checkpoint) Started() bool { return c.Stage != StageClaimed }

// Identity returns the ids of the table that the checkpoint is of. Both are
// empty in the old form of five fields.
func (c *Checkpoint) Identity() (tableUUID, contentID string) {
	tableUUID, contentID = c.Last.TableUUID, c.Last.ContentID
	if tableUUID == "" && contentID == "" && c.Position != nil {
		tableUUID, contentID = c.Position.To.TableUUID, c.Position.To.ContentID
	}
	return tableUUID, contentID
}

// Legacy tells whether the place has names but no identity: it was written in
// the old form of five fields, and maybe claimed since. Its snapshot has to be
// looked up to know the rest.
func (c *Checkpoint) Legacy() bool {
	tableUUID, contentID := c.Identity()
	return c.Started() && tableUUID == "" && contentID == ""
}

// Matches compares names: the error names both tables where they differ. It is
// meant for values without identity; where ids are known they alone decide, as
// a table can be renamed.
func (c *Checkpoint) Matches(branch, namespace, table string) error {
	if c.Branch == branch && c.Namespace == namespace && c.Table == table {
		return nil
	}
	return fmt.Errorf("it belongs to branch %q, namespace %q, table %q, not to branch %q, namespace %q, table %q",
		c.Branch, c.Namespace, c.Table, branch, namespace, table)
}

// Order is what checkpoints are ordered by. Sequence numbers take no part:
// they start over with another lineage.
type Order struct{ Step, Attempt, Row int64 }

// Order returns the place of c among the checkpoints of its key. A claim
// without a start comes before everything.
func (c *Checkpoint) Order() Order {
	switch {
	case !c.Started():
		return Order{Step: -1}
	case c.Position == nil:
		return Order{Step: c.Step}
	default:
		return Order{Step: c.Step, Attempt: c.Position.Attempt, Row: c.Position.Row}
	}
}

// Compare returns -1, 0 or 1 as o comes before, with or after other.
func (o Order) Compare(other Order) int {
	return cmp.Or(cmp.Compare(o.Step, other.Step), cmp.Compare(o.Attempt, other.Attempt), cmp.Compare(o.Row, other.Row))
}

// FormatSnapshotID writes a snapshot id as checkpoints hold it. Negative ids
// mean "no snapshot" and become "".
func FormatSnapshotID(id int64) string {
	if id < 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// ParseSnapshotID reads what FormatSnapshotID writes; "" becomes -1. Iceberg
// snapshot ids are Java longs that all writers keep non-negative, so what does
// not fit into 63 bits is no snapshot id.
func ParseSnapshotID(s string) (int64, error) {
	if s == "" {
		return -1, nil
	}
	id, err := strconv.ParseUint(s, 10, 63)
	if err != nil || FormatSnapshotID(int64(id)) != s {
		return 0, fmt.Errorf("%q is no snapshot id: it has to be a decimal number from 0 to 9223372036854775807", s)
	}
	return int64(id), nil
}

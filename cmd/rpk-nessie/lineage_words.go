// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// What each way of finding a snapshot means, for people.
var foundByWords = map[string]string{
	lineage.FoundByMetadata: "metadata names it and its parent",
	lineage.FoundByHeader:   "parent proved by the manifest list's header",
	lineage.FoundByLog:      "found through the commit log",
	lineage.FoundByListing:  "in no metadata file: found by listing",
}

func (r *row) shortID() string {
	if r.Kind == rowHidden {
		return "(hidden)"
	}
	return shortHash(r.ID)
}

// refWords is a reference for people.
func refWords(ref catalog.Ref) string {
	ref.Hash = shortHash(ref.Hash)
	return ref.String()
}

func shortHash(hash string) string { return hash[:min(8, len(hash))] }

// operation is what the row did: its snapshot's operation where it brings one.
func (r *row) operation() string {
	switch {
	case r.Merge:
		return "merge"
	case r.Snapshot == nil:
		return "no snapshot"
	case !r.Brings:
		return "no new rows"
	case r.Snapshot.Operation == "":
		return "unknown operation"
	}
	return r.Snapshot.Operation
}

// delta says what the row's snapshot added and removed; "" where the row brings none, or nothing tells.
func (r *row) delta() string {
	if r.Snapshot == nil || !r.Brings {
		return ""
	}
	return r.Snapshot.Counts.delta()
}

// delta says what the snapshot added and removed: "+10 rows, 1 file  -3 rows, 1 file".
func (c counts) delta() string {
	if c.AddedRows == nil {
		return ""
	}
	var parts []string
	part := func(sign string, rows, files *int64) {
		if *rows > 0 || *files > 0 {
			parts = append(parts, sign+plural(*rows, "row")+" in "+plural(*files, "file"))
		}
	}
	part("+", c.AddedRows, c.AddedFiles)
	part("-", c.RemovedRows, c.RemovedFiles)
	if *c.AddedDeleteFiles > 0 {
		parts = append(parts, "+"+plural(*c.AddedDeleteFiles, "delete file"))
	}
	if len(parts) == 0 {
		return "no files"
	}
	return strings.Join(parts, ", ")
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return humanize.Comma(n) + " " + word + "s"
}

// subject is the first line of the commit's message.
func (r *row) subject() string {
	first, _, _ := strings.Cut(r.Message, "\n")
	return printable(first)
}

// facts are one line about the row's snapshot; all of it where the row brings it.
func (r *row) facts() string {
	s := r.Snapshot
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("snapshot %s", s.ID)
	if !r.Brings {
		return text
	}
	if s.Sequence > 0 {
		text += fmt.Sprintf(", sequence %d", s.Sequence)
	}
	if s.Counts.TotalRows != nil {
		text += ", " + plural(*s.Counts.TotalRows, "row")
		if s.Counts.lessDeletes {
			text += " in data files, less what delete files take"
		} else {
			text += " in all"
		}
	}
	if words, ok := foundByWords[s.FoundBy]; ok {
		text += ": " + words
	} else if s.Orphan {
		text += ": nothing names its parent"
	}
	return text
}

// words are the end of the head's line for people.
func (e end) words() string {
	switch e.Kind {
	case endRoot:
		return fmt.Sprintf("snapshot %s is the first: it has no parent", e.Oldest)
	case endEmpty:
		return "the table holds no snapshot"
	case endCut:
		return "older snapshots are not shown: --limit 0 shows all"
	}
	text := "a hole: the history before this can't be followed"
	if e.Missing.String() != "" {
		text = fmt.Sprintf("a hole: snapshot %s was not found", e.Missing)
	}
	if e.Why != "" {
		text += " (" + e.Why + ")"
	}
	return text
}

// words are the checkpoint for people.
func (m *mark) words() string {
	if m == nil {
		return ""
	}
	text := "at no snapshot"
	if m.Snapshot.String() != "" {
		text = "at snapshot " + m.Snapshot.String()
	}
	text += fmt.Sprintf(", step %d", m.Step)
	if m.Position != "" {
		text += ", under way: " + m.Position
	}
	if !m.Shown {
		text += "; it is in none of the commits shown"
	}
	return text
}

// state names how the row is drawn.
func (r *row) state() string {
	switch {
	case r.Snapshot == nil:
		return "none"
	case r.Kind == rowHidden && !r.Snapshot.Gone:
		return "hidden"
	case r.Snapshot.Gone && r.Snapshot.Line == lineAncestor:
		return "gone"
	}
	return string(r.Snapshot.Line)
}

// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// skipping goes past snapshots that remove rows, so that every table has a way to its head.
var skipping = fields{"on_overwrite": "skip", "on_delete": "skip", "on_lost_lineage": "fail"}

// eachTable runs a test on every expected file, two at a time.
func (s *site) eachTable(t *testing.T, test func(t *testing.T, e *story)) {
	for _, e := range s.known.all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			test(t, &story{e, s.known})
		})
	}
}

// unreadable are snapshots that the input must refuse, or whose files or rows the corpus does not have.
func (s *story) unreadable(id int64) bool {
	snap := s.k.snaps[id]
	if s.Name == "pyice" && snap.Sequence == 6 {
		return true // it adds rows again that the hidden one below it removed
	}
	for _, c := range s.Commits {
		if c.SnapshotID == id && c.ManifestListIsMissing {
			return true
		}
	}
	return len(snap.FilesMissing) > 0 || slices.ContainsFunc(snap.Files, func(f corpus.File) bool { return f.Format == "AVRO" || f.Format == "ORC" })
}

// lines cuts the commits where the table leaves its line: each commit of a line holds the snapshot of the one before. Long
// ones are sampled.
func (s *story) lines() [][]corpus.Commit {
	var lines [][]corpus.Commit
	var before *corpus.Commit
	for _, c := range s.sample() {
		if c.SnapshotID != catalog.NoSnapshot && s.unreadable(c.SnapshotID) {
			before = nil
			continue
		}
		if before == nil || !s.continues(*before, c) {
			lines = append(lines, nil)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], c)
		before = &c
	}
	return lines
}

func (s *story) continues(before, c corpus.Commit) bool {
	return before.ContentID == c.ContentID && before.TableUUID == c.TableUUID &&
		(before.SnapshotID == catalog.NoSnapshot || slices.Contains(s.chain(c.SnapshotID), before.SnapshotID))
}

func (s *story) sample() []corpus.Commit {
	all := s.puts()
	if len(all) <= 40 {
		return all
	}
	var some []corpus.Commit
	for i := 0; i < len(all)-1; i += 37 {
		some = append(some, all[i])
	}
	return append(some, all[len(all)-1])
}

// A branch moves commit by commit and a bounded run follows each move. Then, from each of the checkpoints on the way, a
// run over all that is left.
func TestABranchThatMovesDeliversEachSnapshotOnce(t *testing.T) {
	site := open(t)
	site.eachTable(t, func(t *testing.T, s *story) {
		for _, line := range s.lines() {
			followLine(t, site, s, line)
		}
	})
}

func followLine(t *testing.T, site *site, s *story, line []corpus.Commit) {
	t.Helper()
	branch := site.branch(t, line[0].Hash)
	r := site.rig(t, branch.at.Name, line[0].Key, skipping)
	place := catalog.NoSnapshot
	start := "earliest"
	if slices.ContainsFunc(s.chain(line[0].SnapshotID), s.unreadable) {
		start, place = "latest", line[0].SnapshotID
	}
	checkpoints := make([][]byte, len(line))
	for i, c := range line {
		if i > 0 {
			branch.move(c.Hash)
		}
		r.key = c.Key
		got := r.deliver(fields{"start_from": start})
		requireRows(t, s, r, s.after(t, place, c.SnapshotID), got, "commit", i)
		r.requireAt(c.SnapshotID)
		place = c.SnapshotID
		checkpoints[i] = r.checkpoint()
	}
	require.Empty(t, r.deliver(), "nothing is left")
	for i, c := range line[:len(line)-1] {
		if len(s.Commits) > 40 && i != 4 && i != len(line)-2 {
			continue
		}
		r.restore(checkpoints[i])
		requireRows(t, s, r, s.after(t, c.SnapshotID, place), r.deliver(), "from the checkpoint of commit", i)
		r.requireAt(place)
	}
}

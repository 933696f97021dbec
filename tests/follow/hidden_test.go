// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// withholdLists lets the S3 server refuse to list anything until the test ends.
func (s *site) withholdLists(t *testing.T) {
	t.Helper()
	s.S3.Fail(func(r corpus.S3Request) *corpus.Fault {
		if r.Key == "" && r.Method == http.MethodGet {
			return &corpus.Fault{Status: http.StatusForbidden}
		}
		return nil
	})
	t.Cleanup(func() { s.S3.Fail(nil) })
}

// Without permission to list, a snapshot that is in no metadata file is not found: what the states on both sides of it
// differ in is delivered under the later one.
func TestHiddenSnapshotsAreBridgedWithoutLists(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "rest_multi")
	head := s.Head().SnapshotID
	chain := s.chain(head) // the second is hidden
	standing := site.standing(t, s, chain[0])
	standing.common = fields{"on_lost_lineage": "fail"}
	place := standing.checkpoint()
	fiveFields, err := json.Marshal(map[string]any{
		"lastAckedSnapshotID": fmt.Sprint(chain[0]), "lastAckedSnapshotSequence": 1, "branch": s.Ref, "namespace": "demo", "table": s.Key()[1],
	})
	require.NoError(t, err)
	site.withholdLists(t)
	bridged := append([]due{s.bridged(t, chain[0], chain[2])}, s.after(t, chain[2], head)...)
	for form, value := range map[string][]byte{"whole checkpoint": place, "five fields": fiveFields} {
		standing.restore(value)
		requireRows(t, s, standing, bridged, standing.deliver(), form)
		standing.requireAt(head)
	}

	r := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest"})
	scanned := append([]due{s.whole(t, chain[2], s.RefHash)}, s.after(t, chain[2], head)...)
	requireRows(t, s, r, scanned, r.deliver(), "earliest is the oldest state that can be found")
	r.restore(nil)
	requireRows(t, s, r, s.after(t, chain[1], head), r.deliver(fields{"start_snapshot_id": fmt.Sprint(chain[2])}), "its parent is named")
	for _, id := range chain[:2] {
		r.restore(nil)
		out := r.refuse([]string{fmt.Sprintf("can't start at start_snapshot_id: %d", id), fmt.Sprintf("whose parent %d was not found", chain[1])}, fields{"start_snapshot_id": fmt.Sprint(id)})
		require.Empty(t, out.rows)
	}
}

// A checkpoint that the branch left: the hole may lead anywhere, so that the policy decides.
func TestAHoleOnABranchThatLeftThePlaceIsLostLineage(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "rest_multi")
	chain := s.chain(s.Head().SnapshotID)
	branch := site.branch(t, s.commitOf(t, chain[0]).Hash)
	branch.commit("only here", catalog.Operation{
		Type: catalog.Put, Key: catalog.Key{"elsewhere"}, Content: catalog.Content{Type: catalog.ContentTypeNamespace},
	})
	r := site.rig(t, branch.at.Name, s.Key(), fields{"start_from": "latest"})
	require.Empty(t, r.deliver())
	branch.move(s.Head().Hash)
	site.withholdLists(t)
	out := r.refuse([]string{"lost lineage", fmt.Sprintf("snapshot %d was not found", chain[1]), "is not an ancestor of the branch's head", "set on_lost_lineage to get past it"}, fields{"on_lost_lineage": "fail"})
	require.Empty(t, out.rows)
}

// In pyice the hidden snapshot removes a file whose rows the next one writes again, with others.
func TestAHiddenSnapshotThatRemovesRows(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "pyice")
	commits := s.puts()
	last, commit, before := commits[len(commits)-1], commits[len(commits)-2], commits[len(commits)-3]
	hidden := *site.known.snaps[commit.SnapshotID].ParentInHeader
	schema := s.CommitSchema(commit)
	r := site.standing(t, s, before.SnapshotID)
	r.common = fields{"on_lost_lineage": "fail"}
	place := r.checkpoint()

	out := r.refuse([]string{fmt.Sprintf("snapshot %d removes rows (overwrite)", hidden), "set on_overwrite: added_rows"})
	require.Empty(t, out.rows)

	checkSkipped := func(got []received) {
		t.Helper()
		var of, rest []received
		for _, row := range got {
			if row.snapshot(t) == commit.SnapshotID {
				of = append(of, row)
			} else {
				rest = append(rest, row)
			}
		}
		rows, holds := canonical(t, schema, of), strings.Join(s.canon(t, schema, commit.Rows), "\n")
		for _, row := range s.canon(t, schema, commit.Inserted) {
			require.Contains(t, rows, row, "what the commit inserted is there")
		}
		for _, row := range rows {
			require.Contains(t, holds, row, "and nothing that the table does not hold")
		}
		requireRows(t, s, r, s.after(t, commit.SnapshotID, last.SnapshotID), rest)
		r.requireAt(last.SnapshotID)
	}
	r.restore(place)
	checkSkipped(r.deliver(fields{"on_overwrite": "skip"}))

	site.withholdLists(t)
	r.restore(place)
	want := due{
		id: commit.SnapshotID, sequence: 6, schemaID: site.known.snaps[commit.SnapshotID].SchemaID, commit: commit.Hash,
		operation: "insert", from: before.SnapshotID, schema: schema, rows: s.canon(t, schema, commit.Inserted),
	}
	got := r.deliver()
	requireRows(t, s, r, append([]due{want}, s.after(t, commit.SnapshotID, last.SnapshotID)...), got, "rows that the rewrite carried over cancel out")
}

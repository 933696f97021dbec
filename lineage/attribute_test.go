// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func hashes(commits []catalog.TableCommit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.Hash)
	}
	return out
}

func TestAttribute(t *testing.T) {
	step := func(kind Kind, id int64) Step {
		return Step{Kind: kind, After: catalog.State{SnapshotID: id, ContentID: "c1"}}
	}
	snapshots := func(ids ...int64) []Step {
		var out []Step
		for _, id := range ids {
			out = append(out, step(Snapshot, id))
		}
		return out
	}
	log := func(pairs ...any) []catalog.TableCommit { // oldest first
		m := newModel()
		for i := 0; i < len(pairs); i += 2 {
			m.commit(pairs[i].(string), int64(pairs[i+1].(int)))
		}
		return m.commits
	}
	foreign := log("a", 2, "b", 3)
	foreign[1].Content.ID = "c0"
	deleted := log("a", 2, "b", 3)
	deleted[1] = catalog.TableCommit{Hash: "a", Op: catalog.Delete}
	deleted[1].Content.SnapshotID = 2
	for _, c := range []struct {
		name    string
		steps   []Step
		commits []catalog.TableCommit
		want    []string
	}{
		{"a commit each", snapshots(2, 3), log("a", 1, "b", 2, "c", 3), []string{"b", "c"}},
		{"hidden snapshots belong to the commit that brought them", snapshots(2, 3, 4), log("a", 1, "b", 4), []string{"b", "b", "b"}},
		{"a place amid a commit stays in it", snapshots(3), log("a", 3), []string{"a"}},
		{"later commits of one snapshot do not count", snapshots(2, 3), log("b", 2, "meta", 2, "c", 3, "meta", 3), []string{"b", "c"}},
		{"what was rolled back contains nothing", snapshots(2, 5), log("a", 1, "b", 2, "x", 9, "back", 2, "e", 5), []string{"b", "e"}},
		{"a rollback is no first commit", snapshots(2, 3), log("a", 3, "back", 2, "again", 3), []string{"a", "a"}},
		{"a merge brings several", snapshots(2, 3, 4), log("a", 1, "b", 2, "merge", 4), []string{"b", "merge", "merge"}},
		{"a table scan is of the head", append([]Step{step(TableScan, 2)}, snapshots(3)...), log("b", 2, "c", 3), []string{"head", "c"}},
		{"truncate is of the head", append([]Step{step(Truncate, none), step(TableScan, 2)}, snapshots(3)...), log("create", -1, "b", 2, "c", 3), []string{"head", "head", "c"}},
		{"a bridge belongs to its after-state", []Step{step(Bridge, 4)}, log("a", 1, "b", 2, "d", 4, "meta", 4), []string{"d"}},
		{"a log that does not reach that far", snapshots(2, 3), nil, []string{"head", "head"}},
		{"another table's commit", snapshots(2, 3), foreign, []string{"b", "b"}},
		{"a deletion", snapshots(2, 3), deleted, []string{"b", "b"}},
		{"nothing", nil, log("a", 1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Attribute(c.steps, c.commits, catalog.TableCommit{Hash: "head"})
			require.Len(t, got, len(c.steps))
			assert.Equal(t, c.want, hashes(got))
		})
	}

	t.Run("a commit that reaches beyond the last step", func(t *testing.T) {
		head := catalog.TableCommit{Hash: "head"}
		assert.Equal(t, []string{"b"}, hashes(Attribute(snapshots(2), log("a", 1, "b", 4, "c", 5), head, 3, 4, 5)))
		assert.Empty(t, Attribute(nil, log("a", 1), head, 1))
	})
}

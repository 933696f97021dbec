// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unnamedHistory is that of a table whose writer names no parents, such as DuckDB through the REST catalog: each metadata
// file lists its own snapshot, and the manifest lists have no header keys. The branch held the snapshots in this order.
func unnamedHistory(t *testing.T, snapshots ...int64) (*History, State) {
	t.Helper()
	log, files := newFakeLog(), map[string]string{}
	var parents []string
	for i, n := range snapshots {
		location := fmt.Sprintf("mem://t/%d.metadata.json", n)
		list := fmt.Sprintf("mem://t/snap-%d.avro", n)
		files[list] = string(avroFile("avro.schema", "{}", "avro.codec", "null"))
		files[location] = metadataJSON(n)
		if n != NoSnapshot {
			files[location] = metadataJSON(n, fmt.Sprintf(`{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":%q,"schema-id":0}`, n, n, 1700000000000+n, list))
		}
		parents = []string{log.add(fmt.Sprint("c", i), parents, put("t", "id", n, location))}
	}
	return historyAt(t, log, mem(t, files), "t", parents[0])
}

func TestASnapshotThatNamesNoParentFollowsWhatTheBranchHeld(t *testing.T) {
	for name, test := range map[string]struct {
		held []int64
		want []int64
		root bool
	}{
		"one commit a snapshot":                   {[]int64{NoSnapshot, 1, 2, 3}, []int64{2, 1}, true},
		"commits of metadata alone":               {[]int64{1, 1, 2, 2, 2, 3, 3}, []int64{2, 1}, true},
		"what a rollback abandoned is passed":     {[]int64{1, 2, 3, 2, 4}, []int64{2, 1}, true},
		"at a rollback itself":                    {[]int64{1, 2, 3, 2}, []int64{1}, true},
		"a rollback to a snapshot before the log": {[]int64{3, 4, 2}, nil, false},
		"a table that came with snapshots":        {[]int64{NoSnapshot, 3, 4}, []int64{3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := unnamedHistory(t, test.held...)
			var chain []int64
			for {
				link, err := h.Parent(t.Context(), s)
				require.NoError(t, err)
				if link.Root {
					assert.True(t, test.root)
					break
				}
				if link.Unknown {
					assert.False(t, test.root)
					assert.Contains(t, link.Why, "or says that there is none")
					break
				}
				require.Equal(t, Link{ParentID: link.ParentID, Followed: true, By: "log"}, link)
				found, err := h.Find(t.Context(), link.ParentID, s)
				require.NoError(t, err)
				require.True(t, found.OK)
				s = found.State
				chain = append(chain, s.SnapshotID)
			}
			assert.Equal(t, test.want, chain)
		})
	}
}

func TestALongLogOfUnnamedParentsIsFetchedOnce(t *testing.T) {
	var held []int64
	for n := range int64(2000) {
		held = append(held, n+1)
	}
	h, s := unnamedHistory(t, held...)
	for want := int64(1999); want > 0; want-- {
		link, err := h.Parent(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, want, link.ParentID)
		found, err := h.Find(t.Context(), want, s)
		require.NoError(t, err)
		s = found.State
	}
	assert.Equal(t, 2000, h.cfg.Log.(*fakeLog).yielded)
}

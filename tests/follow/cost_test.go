// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// metadataFiles are those that were asked for since the last call, and how often.
func (s *site) metadataFiles() map[string]int {
	files := map[string]int{}
	for _, r := range s.S3.Requests() {
		if strings.Contains(r.Key, ".metadata.json") {
			files[r.Key]++
		}
	}
	return files
}

// The metadata of a native table names every snapshot: however long the backlog, only the head's is read.
func TestOfANativeTableOnlyTheHeadsMetadataIsRead(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "many")
	chain := s.chain(s.Head().SnapshotID)
	for _, behind := range []int{319, 1} {
		from := chain[len(chain)-1-behind]
		r := site.standing(t, s, from)
		site.metadataFiles()
		requireRows(t, s, r, s.after(t, from, s.Head().SnapshotID), r.deliver(), behind)
		require.Equal(t, map[string]int{key(s.Head().MetadataLocation): 1}, site.metadataFiles())
		require.Empty(t, r.deliver())
		require.LessOrEqual(t, len(site.metadataFiles()), 1, "a restart at the head")
	}
}

func key(location string) string { return strings.TrimPrefix(location, "s3://bucket/") }

// Nessie's REST catalog keeps one snapshot in a metadata file: of a backlog each file is read once, none that lies before
// the checkpoint, and none again after a restart.
func TestOfARESTBacklogEachMetadataFileIsReadOnce(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "rest_only")
	head := s.Head().SnapshotID
	commits := s.puts()
	for i, c := range commits {
		r := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest"})
		from := catalog.NoSnapshot
		if i > 0 {
			r, from = site.standing(t, s, c.SnapshotID), c.SnapshotID
		}
		site.metadataFiles()
		requireRows(t, s, r, s.after(t, from, head), r.deliver())
		read := site.metadataFiles()
		for _, later := range commits[i+1:] {
			require.Equal(t, 1, read[key(later.MetadataLocation)], "%d: snapshot %d", i, later.SnapshotID)
		}
		for _, file := range commits[:i] {
			require.Zero(t, read[key(file.MetadataLocation)], "%d: what lies before the checkpoint", i)
		}
		require.Empty(t, r.deliver())
		again := site.metadataFiles()
		delete(again, key(s.Head().MetadataLocation))
		require.Empty(t, again, "a restart beyond them")
	}
	require.True(t, slices.IsSortedFunc(commits, func(a, b corpusCommit) int { return a.Time.Compare(b.Time) }))
}

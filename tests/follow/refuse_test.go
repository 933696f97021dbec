// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// What can't be delivered stops the binary with exit code 3 and one ERROR line that names it, behind all that comes
// before, and again at the next run.
func TestRefusals(t *testing.T) {
	site := open(t)
	for name, says := range map[string]string{
		"formats":       "Avro data file is not supported: s3://bucket/",
		"compacted_mor": "", "cow": "", "dv": "", "dv_upgraded": "", "eqdel": "", "mor": "", "overwritten": "", "rest_mor": "",
		"v1": "", "pyice": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.known.named(t, name)
			chain := s.chain(s.Head().SnapshotID)
			at := slices.IndexFunc(chain, func(id int64) bool { return site.known.snaps[id].removes() != "" || s.unreadable(id) })
			refused := site.known.snaps[chain[at]]
			if says == "" {
				kind := refused.removes()
				says = fmt.Sprintf("snapshot %d removes rows (%s), which messages of added rows cannot express: set on_%s: ", refused.ID, kind, kind)
			}
			r := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest"})
			p := r.program()
			for _, want := range [][]due{s.after(t, catalog.NoSnapshot, chain[at-1]), nil} {
				code, failed := p.run()
				require.Equal(t, 3, code)
				require.Len(t, failed, 1)
				require.Contains(t, failed[0], says)
				require.Contains(t, failed[0], fmt.Sprint(refused.ID))
				requireRows(t, s, r, want, p.rows())
				require.Equal(t, fmt.Sprint(chain[at-1]), *p.place().Last)
			}
		})
	}
}

func TestORCIsRefusedByName(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "formats")
	r := site.rig(t, s.Ref, s.Key(), fields{"start_snapshot_id": fmt.Sprint(s.Head().SnapshotID)})
	p := r.program()
	code, failed := p.run()
	require.Equal(t, 3, code)
	require.Len(t, failed, 1)
	require.Contains(t, failed[0], "ORC data file is not supported: s3://bucket/")
	require.Empty(t, p.rows())
}

// A data file that is gone stops the input at its snapshot, and the input goes on once it is there again.
func TestALostDataFileIsNamed(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "tagged")
	chain := s.chain(s.Head().SnapshotID)
	lost := site.known.snaps[chain[2]]
	at := slices.IndexFunc(lost.Files, func(f corpus.File) bool { return f.Status == "ADDED" })
	restore := site.hide(t, lost.Files[at].Path)

	r := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest"})
	p := r.program()
	for _, want := range [][]due{s.after(t, catalog.NoSnapshot, chain[1]), nil} {
		code, failed := p.run()
		require.Equal(t, 3, code)
		require.Len(t, failed, 1)
		require.Contains(t, failed[0], "its data file "+lost.Files[at].Path+" no longer exists")
		requireRows(t, s, r, want, p.rows())
		require.Equal(t, fmt.Sprint(chain[1]), *p.place().Last)
	}
	restore()
	code, failed := p.run()
	require.Equal(t, 0, code, failed)
	requireRows(t, s, r, s.after(t, chain[1], s.Head().SnapshotID), p.rows())
}

// hide takes an object away until the test ends or the returned function is called.
func (s *site) hide(t *testing.T, location string) (restore func()) {
	t.Helper()
	key := location[len("s3://"+corpus.Bucket+"/"):]
	content, err := s.S3.Get(key)
	require.NoError(t, err)
	require.NoError(t, s.S3.Delete(key))
	restore = func() { require.NoError(t, s.S3.Put(key, content)) }
	t.Cleanup(restore)
	return restore
}

// Lists of the oldest snapshots are gone: reading begins at the oldest state that is there, whole; a checkpoint below goes
// on by sequence numbers where the record counts prove that its rows survive, and otherwise loses its lineage.
func TestExpiredHistory(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "expired")
	head := s.Head().SnapshotID
	chain := s.chain(head)
	oldest := slices.IndexFunc(chain, func(id int64) bool { return !s.unreadable(id) })
	require.Positive(t, oldest)

	r := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest", "on_lost_lineage": "fail"})
	want := append([]due{s.whole(t, chain[oldest], s.RefHash)}, s.after(t, chain[oldest], head)...)
	requireRows(t, s, r, want, r.deliver(), "earliest")

	for i, id := range chain[:oldest] {
		below := site.standing(t, s, id)
		below.common = fields{"on_lost_lineage": "fail"}
		want := s.after(t, id, head) // a proved parent's own files are not needed
		if i < oldest-1 {
			want = append([]due{s.bridged(t, id, chain[oldest])}, s.after(t, chain[oldest], head)...)
		}
		requireRows(t, s, below, want, below.deliver(), "from snapshot", i)
		below.requireAt(head)
	}
}

func TestExpiredHistoryThatCannotBeProved(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "expired_cow")
	head := s.Head().SnapshotID
	chain := s.chain(head)
	r := site.standing(t, s, chain[1])
	r.common = nil
	place := r.checkpoint()
	hole := []string{"lost lineage", fmt.Sprintf("the history between snapshot %d and snapshot %d has a hole", chain[1], chain[4]), "it can't be closed"}
	for _, policy := range []string{"fail", "ancestor", "bridge"} {
		r.restore(place)
		out := r.refuse(append(hole, "set on_lost_lineage to get past it: start ("), fields{"on_lost_lineage": policy})
		require.Empty(t, out.rows)
	}
	r.restore(place)
	out := r.run(fields{"on_lost_lineage": "start"})
	require.Empty(t, out.failures)
	require.Empty(t, out.rows)
	r.requireAt(head)
	r.restore(place)
	out = r.run(fields{"on_lost_lineage": "table_scan"})
	require.Empty(t, out.failures)
	requireRows(t, s, r, []due{s.whole(t, head, s.RefHash)}, out.rows)

	r.restore(nil)
	for _, id := range chain[:4] {
		r.restore(nil)
		says := []string{fmt.Sprintf("can't start at start_snapshot_id: %d: ", id), " is gone"}
		out := r.refuse(says, fields{"start_snapshot_id": fmt.Sprint(id)})
		require.Empty(t, out.rows)
	}
}

// standing is a rig on the table's own reference whose checkpoint stands at an older snapshot, as if it had read up to
// there then.
func (s *site) standing(t *testing.T, e *story, snapshot int64) *rig {
	t.Helper()
	r := s.rig(t, s.branch(t, e.commitOf(t, snapshot).Hash).at.Name, e.commitOf(t, snapshot).Key, fields{"start_from": "latest"})
	require.Empty(t, r.deliver())
	r.requireAt(snapshot)
	r.branch, r.key = e.Ref, e.Key()
	return r
}

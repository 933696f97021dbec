// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// From an empty checkpoint on the corpus' own branches and tags, with each way to start and to end.
func TestStartsAndEnds(t *testing.T) {
	site := open(t)
	site.eachTable(t, func(t *testing.T, s *story) {
		head := s.Head().SnapshotID
		chain := s.chain(head)
		if slices.ContainsFunc(chain, s.unreadable) {
			return // TestRefusals and TestExpiredHistory have these
		}
		r := site.rig(t, s.Ref, s.Key(), skipping)
		first := func(more fields) []received {
			r.restore(nil)
			return r.deliver(more)
		}
		var scan []due
		if head != catalog.NoSnapshot {
			scan = []due{s.whole(t, head, s.RefHash)}
		}
		requireRows(t, s, r, scan, first(fields{"start_from": "table_scan"}), "table_scan")
		r.requireAt(head)
		require.Empty(t, first(fields{"start_from": "latest"}), "latest")
		r.requireAt(head)
		requireRows(t, s, r, s.after(t, catalog.NoSnapshot, head), first(fields{"start_from": "earliest"}), "earliest")
		r.requireAt(head)
		for _, i := range sampled(len(chain)) {
			startAndEnd(t, s, r, chain, i)
		}
		fromTimes(t, s, r, chain)
	})
}

// sampled are the indices of a chain that are tried.
func sampled(n int) []int {
	if n > 100 {
		return []int{1, n - 2}
	}
	if n > 7 {
		return []int{0, 1, n / 2, n - 1}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func startAndEnd(t *testing.T, s *story, r *rig, chain []int64, i int) {
	t.Helper()
	below, head := catalog.NoSnapshot, chain[len(chain)-1]
	if i > 0 {
		below = chain[i-1]
	}
	id := fmt.Sprint(chain[i])
	r.restore(nil)
	requireRows(t, s, r, s.after(t, below, head), r.deliver(fields{"start_snapshot_id": id}), "start_snapshot_id", i)
	r.requireAt(head)

	r.restore(nil)
	until := fields{"start_from": "earliest", "end_snapshot_id": id}
	requireRows(t, s, r, upTo(s.after(t, catalog.NoSnapshot, head), chain[:i+1]), r.deliver(until), "end_snapshot_id", i)
	r.requireAt(chain[i])
	require.Empty(t, r.deliver(until), "behind the end")

	if _, ok := s.k.snaps[chain[i]]; !ok || i != len(chain)/2 {
		return
	}
	r.restore(nil)
	only := fields{"start_from": "table_scan", "end_snapshot_id": id}
	requireRows(t, s, r, []due{s.whole(t, chain[i], s.RefHash)}, r.deliver(only), "scan up to end_snapshot_id", i)
}

// upTo are the dues of these snapshots.
func upTo(dues []due, ids []int64) []due {
	return slices.DeleteFunc(dues, func(d due) bool { return !slices.Contains(ids, d.id) })
}

func fromTimes(t *testing.T, s *story, r *rig, chain []int64) {
	t.Helper()
	var moments []int64
	if len(chain) == 0 {
		return
	}
	for _, id := range chain {
		snap, ok := s.k.snaps[id]
		if !ok {
			return // when it was made is not known
		}
		moments = append(moments, snap.TimestampMs)
	}
	some := []int{0, len(chain) / 2, len(chain) - 1}
	if len(chain) > 100 {
		some = some[2:]
	}
	for _, i := range some {
		for _, moment := range []int64{moments[i], moments[i] + 1}[:1+i/max(1, len(chain)-1)] {
			at := slices.IndexFunc(moments, func(ms int64) bool { return ms >= moment })
			var want []due
			switch {
			case at == 0:
				want = s.after(t, catalog.NoSnapshot, chain[len(chain)-1])
			case at > 0:
				want = s.after(t, chain[at-1], chain[len(chain)-1])
			}
			r.restore(nil)
			text := time.UnixMilli(moment).UTC().Format("2006-01-02T15:04:05.000Z07:00")
			requireRows(t, s, r, want, r.deliver(fields{"start_from": text}), "start_from", text)
			r.requireAt(chain[len(chain)-1])
		}
	}
}

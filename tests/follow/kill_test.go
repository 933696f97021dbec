// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// sink is a webhook that accepts rows until it has had enough of a life.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	rows [][]byte
	left int    // rows until the kill; negative: never
	kill func() // ends the sender at once
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{left: -1}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !s.accept(body) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// accept takes a row. The one at which the sender is killed is taken too, but nobody learns of it.
func (s *sink) accept(body []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return false
	}
	s.rows = append(s.rows, body)
	if s.left--; s.left == 0 {
		s.kill()
		return false
	}
	return true
}

func (s *sink) arm(cmd *exec.Cmd, after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.kill = after, func() { _ = cmd.Process.Kill() }
}

func (s *sink) take(t *testing.T) []received {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []received
	for _, body := range s.rows {
		rows = append(rows, parseRow(t, body))
	}
	s.rows = nil
	return rows
}

// The binary is killed with SIGKILL at a random row, several times, and what happens to the branch meanwhile is no matter:
// in the end every row came, and again came only what the checkpoint on disk did not say yet.
func TestKills(t *testing.T) {
	site := open(t)
	type life struct {
		name, start string
		table       string
		from, to    int64 // sequence numbers of where the branch stands in the first lives, and in the last
		kills       int
	}
	for n, l := range []life{
		{"every snapshot", "earliest", "events", 6, 6, 3},
		{"a scan", "table_scan", "types", 3, 3, 3},
		{"many snapshots", "earliest", "many", 60, 60, 3},
		{"REST", "earliest", "rest_only", 5, 5, 2},
		{"REST and native", "earliest", "mixed", 9, 9, 2},
		{"a hidden snapshot", "earliest", "rest_multi", 4, 4, 2},
		{"merged lines", "earliest", "rest_branch", 4, 5, 2},
		{"compacted between", "earliest", "compacted", 4, 8, 2},
		{"compacted between, in a scan", "table_scan", "compacted", 4, 8, 2},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(*seed, uint64(n)))
			s := site.known.named(t, l.table)
			first, last := s.numbered(t, l.from), s.numbered(t, l.to)
			branch := site.branch(t, first.Hash)
			r := site.rig(t, branch.at.Name, s.Key(), fields{"start_from": l.start, "batch_rows": 3, "checkpoint_limit": 12})
			p, out := r.program(), newSink(t)
			p.output = fields{"http_client": fields{"url": out.URL, "verb": "POST", "max_in_flight": 2, "retry_period": "10ms", "timeout": "1m"}}

			want := s.after(t, catalog.NoSnapshot, last.SnapshotID)
			if l.start == "table_scan" {
				want = append([]due{s.whole(t, first.SnapshotID, first.Hash)}, s.after(t, first.SnapshotID, last.SnapshotID)...)
			}
			k := killing{t: t, s: s, r: r, p: p, out: out, want: want, done: 0}
			for range l.kills {
				k.life(1 + rng.IntN(max(1, k.left(first.SnapshotID)-1)))
			}
			if l.from != l.to {
				branch.move(last.Hash)
			}
			k.lastLife()
		})
	}
}

// killing is one table's way through several lives.
type killing struct {
	t    *testing.T
	s    *story
	r    *rig
	p    *program
	out  *sink
	want []due
	done int // rows behind which the checkpoint on disk stands
	all  []received
}

// left counts the rows up to a snapshot that the checkpoint does not stand behind.
func (k *killing) left(to int64) int {
	rows := 0
	for _, d := range k.want {
		rows += len(d.rows)
		if d.id == to {
			break
		}
	}
	return rows - k.done
}

// life runs the binary until so many rows came. It may end before.
func (k *killing) life(rows int) {
	k.t.Helper()
	k.t.Logf("killed at row %d, %d are done", rows, k.done)
	cmd := k.p.command()
	require.NoError(k.t, cmd.Start())
	k.out.arm(cmd, rows)
	code, failed := k.p.ended(cmd, cmd.Wait())
	require.Contains(k.t, []int{-1, 0}, code, failed)
	k.took(code == 0)
}

func (k *killing) lastLife() {
	k.t.Helper()
	cmd := k.p.command()
	require.NoError(k.t, cmd.Start())
	k.out.arm(cmd, -1)
	code, failed := k.p.ended(cmd, cmd.Wait())
	require.Equal(k.t, 0, code, failed)
	k.took(true)
	total := 0
	for _, d := range k.want {
		total += len(d.rows)
		var of []received
		for _, row := range k.all {
			if row.snapshot(k.t) == d.id {
				of = append(of, row)
				d.requireMetadata(k.t, row, k.s, k.r)
			}
		}
		rows := canonical(k.t, d.schema, of)
		require.Equal(k.t, slices.Compact(slices.Sorted(slices.Values(d.rows))), slices.Compact(rows), "every row of snapshot %d, and no other", d.id)
	}
	require.Equal(k.t, total, k.done)
}

// took compares what one life delivered with the checkpoints on disk before and after it: it begins where the one
// stands, and the other is not ahead of what came. What came beyond that is what may come again.
func (k *killing) took(whole bool) {
	k.t.Helper()
	rows := k.out.take(k.t)
	k.all = append(k.all, rows...)
	before := k.done
	k.done = k.acknowledged()
	require.GreaterOrEqual(k.t, k.done, before, "never backwards")
	require.GreaterOrEqual(k.t, before+len(rows), k.done, "never ahead of what the output accepted")
	if whole {
		require.Len(k.t, rows, k.done-before, "nothing comes twice that the checkpoint says is done")
	}
	var due []string
	for _, d := range k.want {
		due = append(due, d.rows...)
	}
	require.LessOrEqual(k.t, before+len(rows), len(due)+k.repeated(rows))
}

// repeated counts rows that a life delivered twice itself.
func (k *killing) repeated(rows []received) int {
	seen := map[string]int{}
	for _, row := range rows {
		id, err := json.Marshal(row.meta["snapshot_id"])
		require.NoError(k.t, err)
		seen[string(id)+string(row.body)]++
	}
	return len(rows) - len(seen)
}

// acknowledged counts the rows that the checkpoint on disk stands behind.
func (k *killing) acknowledged() int {
	k.t.Helper()
	place := k.p.place()
	rows, at := 0, int64(-1)
	if place.Last != nil && *place.Last != "" {
		var err error
		at, err = strconv.ParseInt(*place.Last, 10, 64)
		require.NoError(k.t, err)
	}
	if at >= 0 {
		for _, id := range k.s.chain(at) {
			for _, d := range k.want {
				if d.id == id {
					rows += len(d.rows)
				}
			}
		}
	}
	if place.Position != nil {
		rows += int(place.Position.Row)
	}
	return rows
}

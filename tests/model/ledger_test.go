// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cache"
)

// ledger keeps what was delivered and acknowledged through all lives of an
// input, and finds what breaks a promise.
type ledger struct {
	w *world

	mu       sync.Mutex
	broken   []string
	rows     map[int64]*row
	acked    map[stepKey]map[int64]bool // ordinals
	flying   []*flight                  // handed out in this life and not acknowledged
	refused  map[place]int              // batches that were refused and come again
	refusals map[place]int              // how often each was, in this life
	last     place                      // of the newest batch of this life
	lastID   int64                      // its snapshot
	order    *cache.Order               // of the stored checkpoint
	lost     int                        // lineages lost since the last ask
	replays  int                        // ways around since the last ask
}

// row is what became of one row.
type row struct {
	delivered, allowed int
	acked              bool
	at                 place // of the newest delivery
}

// place is where a row stands: the step's ordinal, and its own in the step.
type place struct{ step, row int64 }

func (p place) before(q place) bool { return p.step < q.step || p.step == q.step && p.row < q.row }

type stepKey struct{ step, snapshot int64 }

// flight is a batch on its way.
type flight struct {
	d        delivery
	at       place
	snapshot int64
	ids      []int64
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, rows: map[int64]*row{}, acked: map[stepKey]map[int64]bool{}, refused: map[place]int{}, refusals: map[place]int{}}
}

func (g *ledger) fault(format string, args ...any) {
	g.broken = append(g.broken, fmt.Sprintf(format, args...))
}

// deliver takes a batch from the input and holds it to the rules.
func (g *ledger) deliver(d delivery) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.read(d)
	g.flying = append(g.flying, f)
	g.inOrder(f)
	for i, id := range f.ids {
		r := g.rows[id]
		if r == nil {
			r = &row{allowed: 1 + g.lost + g.replays}
			g.rows[id] = r
		}
		r.delivered++
		r.at = place{f.at.step, f.at.row + int64(i)}
		if r.delivered > r.allowed {
			g.fault("row %d of snapshot %d, step %d, comes a time %d, and nothing allows it", id, f.snapshot, f.at.step, r.delivered)
		}
		g.belongs(d.batch[i], id, f.snapshot)
	}
	return f
}

func (g *ledger) read(d delivery) *flight {
	f := &flight{d: d}
	m := d.batch[0]
	id, _ := m.MetaGet("snapshot_id")
	f.snapshot, _ = strconv.ParseInt(id, 10, 64)
	step, _ := m.MetaGetMut("step")
	first, _ := m.MetaGetMut("first_row")
	f.at.step, _ = step.(int64)
	f.at.row, _ = first.(int64)
	for _, m := range d.batch {
		body, err := m.AsBytes()
		var r struct{ ID int64 }
		if err != nil || json.Unmarshal(body, &r) != nil {
			g.fault("a message that is no row: %q", body)
		}
		f.ids = append(f.ids, r.ID)
	}
	return f
}

// inOrder holds a batch to the order of the ones before, in this life.
func (g *ledger) inOrder(f *flight) {
	if n := g.refused[f.at]; n > 0 {
		g.refused[f.at]--
		return
	}
	if !g.last.before(f.at) {
		g.fault("batch %v comes after %v", f.at, g.last)
	}
	was, now := g.w.snapshots[g.lastID], g.w.snapshots[f.snapshot]
	if was != nil && now != nil && f.at.step != g.last.step && g.lost == 0 && was.content == now.content &&
		!g.w.descends(head{snapshot: now.id, content: now.content}, head{snapshot: was.id, content: was.content}) {
		g.fault("snapshot %d follows %d, from which it does not descend", now.id, was.id)
	}
	g.last, g.lastID = f.at, f.snapshot
}

// belongs tells whether a row can be what its message says.
func (g *ledger) belongs(m *service.Message, id, snapshot int64) {
	s := g.w.snapshots[snapshot]
	if s == nil {
		g.fault("row %d comes with snapshot %d, which does not exist", id, snapshot)
		return
	}
	operation, _ := m.MetaGet("operation")
	from, bridged := m.MetaGet("snapshot_from")
	var ok bool
	switch {
	case operation == "read":
		ok = s.live[id]
	case bridged:
		before, _ := strconv.ParseInt(from, 10, 64)
		ok = s.live[id] && !g.w.live(before)[id]
	default:
		ok = s.kind == added
		for i := 0; ok && i < len(s.rows); i++ {
			if s.rows[i] == id {
				return
			}
		}
		ok = false
	}
	if !ok {
		g.fault("row %d comes as %s of snapshot %d (from %q), which it is not", id, operation, snapshot, from)
	}
}

// accept acknowledges a batch.
func (g *ledger) accept(f *flight) {
	g.mu.Lock()
	g.land(f)
	key := stepKey{f.at.step, f.snapshot}
	if g.acked[key] == nil {
		g.acked[key] = map[int64]bool{}
	}
	for i, id := range f.ids {
		g.rows[id].acked = true
		g.acked[key][f.at.row+int64(i)] = true
	}
	g.mu.Unlock()
	if err := f.d.ack(context.Background(), nil); err != nil {
		g.w.rt.Fatalf("acknowledging: %v", err)
	}
}

// mayRefuse tells whether a batch was refused less than twice. From the third
// time on the retry wrapper of Benthos v4.60.0 pauses, and a stop in this pause
// can make it wait for ever, which is not what is tested here.
func (g *ledger) mayRefuse(f *flight) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusals[f.at] < 2
}

// reject refuses a batch, which allows that it comes again.
func (g *ledger) reject(f *flight) {
	g.mu.Lock()
	g.land(f)
	g.refused[f.at]++
	g.refusals[f.at]++
	for _, id := range f.ids {
		g.rows[id].allowed++
	}
	g.mu.Unlock()
	if err := f.d.ack(context.Background(), errRefused); err != nil {
		g.w.rt.Fatalf("refusing: %v", err)
	}
}

// land takes a batch from those in flight. One that was refused stays due: the
// checkpoint must not pass it.
func (g *ledger) land(f *flight) {
	for i, other := range g.flying {
		if other == f {
			g.flying = append(g.flying[:i], g.flying[i+1:]...)
			return
		}
	}
}

func (g *ledger) held() []*flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*flight(nil), g.flying...)
}

// newLife forgets what a life knew. Rows beyond the stored checkpoint may come
// again.
func (g *ledger) newLife(stored *cache.Checkpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying, g.last, g.lastID = nil, place{}, 0
	clear(g.refused)
	clear(g.refusals)
	g.lost, g.replays = 0, 0
	for _, r := range g.rows {
		r.allowed = r.delivered
		if !covered(stored, r.at) {
			r.allowed++
		}
	}
}

// forget goes with a checkpoint that was thrown away.
func (g *ledger) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.order = nil
	clear(g.acked)
}

func covered(c *cache.Checkpoint, p place) bool {
	return c != nil && c.Started() && (p.step <= c.Step || c.Position != nil && p.step == c.Step+1 && p.row < c.Position.Row)
}

// heard learns from the log what allows rows to come again.
func (g *ledger) heard(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "The lineage between the checkpoint and the head"):
		g.lost++
	case strings.HasPrefix(line, "Looking for a way around"):
		g.replays++
	case strings.Contains(line, "comes before") && strings.Contains(line, "dropped"):
		g.fault("the input put a checkpoint that goes backwards: %s", line)
		return
	default:
		return
	}
	for _, r := range g.rows {
		r.allowed++
	}
}

// stored holds a write of the checkpoint to the rules.
func (g *ledger) stored(value []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := cache.Decode("place", value)
	if err != nil {
		g.fault("a checkpoint that can't be read: %v", err)
		return
	}
	now := c.Order()
	if g.order != nil && now.Compare(*g.order) < 0 {
		g.fault("the checkpoint goes back from %+v to %+v", *g.order, now)
	}
	g.order = &now
	if !c.Started() {
		return
	}
	for _, f := range g.flying {
		if covered(c, f.at) {
			g.fault("the checkpoint %+v is ahead of batch %v, which is not acknowledged", now, f.at)
		}
	}
	for at, n := range g.refused {
		if n > 0 && covered(c, at) {
			g.fault("the checkpoint %+v is ahead of batch %v, which was refused", now, at)
		}
	}
	if p := c.Position; p != nil {
		to, _ := strconv.ParseInt(p.To.SnapshotID, 10, 64)
		for i := range p.Row {
			if !g.acked[stepKey{c.Step + 1, to}][i] {
				g.fault("the checkpoint %+v is behind row %d of snapshot %d, which is not acknowledged", now, i, to)
				break
			}
		}
	}
}

// faults are the promises that were broken.
func (g *ledger) faults() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.broken...)
}

// marks are how often lineage was lost, and a way around sought, in this life
// since the last settlement.
func (g *ledger) marks() (lost, replays int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost, g.replays
}

func (g *ledger) settled() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost > 0 {
		g.lastID = 0 // what comes next need not descend from it
	}
	g.lost, g.replays = 0, 0
}

func (g *ledger) hasAcked(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rows[id] != nil && g.rows[id].acked
}

// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// ledger keeps what was delivered and acknowledged through all lives of an
// input, and finds what breaks a promise.
type ledger struct {
	w *world

	mu     sync.Mutex
	broken []string
	deaf   bool    // the life was killed: nothing it says counts any more
	said   []claim // by this life, not yet held to the truth
	writes []write // of the checkpoint, not yet held to the truth

	life   int // its number
	course *course
	rows   map[int64]*row            // by id, negative for deletes, 0 for truncates
	legs   map[int64][]leg           // that were claimed, by ordinal, oldest first
	moves  map[leg]int               // how many leaps were announced before a leg was last claimed
	acked  map[leg]map[int64]message // by ordinal in the leg
	passed map[leg]bool              // announced as passed over
	stood  map[int64]bool            // snapshots that were reached without a step
	given  map[leg]bool              // given up, and not taken up again
	around map[int64]int             // ways around that were looked for, by ordinal, in this life
	leaps  int                       // that were announced in all lives
	tally  map[string]int            // what was said, and how often
	leaves map[string]bool           // what was announced that leaves rows out for good

	flying   []*flight     // handed out in this life and not acknowledged
	refused  map[place]int // batches that were refused and come again
	refusals map[place]int // how often each was, in this life
	last     *flight       // the newest of this life that is no replay
	began    *cache.Checkpoint
	afresh   bool         // a whole step is delivered again, as its plan changed
	order    *cache.Order // of the stored checkpoint
	checked  int64        // the ordinal up to which steps are known to be acknowledged
}

// write is one write of the checkpoint, and what was acknowledged by then.
type write struct {
	c     *cache.Checkpoint
	acked map[leg]map[int64]message // of the steps that it says are complete
}

// row is what became of one row.
type row struct {
	delivered, nacked int
	acked             bool
	at                place // of the newest histories.Delivery
	leaps             int   // announced before its step
	life              int
}

func (m message) key() int64 {
	if m.operation == "delete" {
		return -m.id
	}
	return m.id
}

// place is where a row stands: the step, and its ordinal in it.
type place struct {
	leg leg
	row int64
}

func (p place) before(q place) bool {
	return p.leg.n < q.leg.n || p.leg.n == q.leg.n && p.row < q.row
}

// flight is a batch on its way.
type flight struct {
	d        histories.Delivery
	at       place
	messages []message
}

func (f *flight) end() int64 { return f.at.row + int64(len(f.messages)) }

func newLedger(w *world) *ledger {
	g := &ledger{w: w, refused: map[place]int{}, refusals: map[place]int{}, tally: map[string]int{}}
	g.forget()
	return g
}

// forget goes with a checkpoint that was thrown away.
func (g *ledger) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.order, g.checked, g.leaps = nil, 0, 0
	g.rows, g.given = map[int64]*row{}, map[leg]bool{}
	g.legs, g.moves, g.acked, g.passed = map[int64][]leg{}, map[leg]int{}, map[leg]map[int64]message{}, map[leg]bool{}
	g.stood, g.leaves = map[int64]bool{}, map[string]bool{}
}

func (g *ledger) fault(format string, args ...any) {
	g.broken = append(g.broken, fmt.Sprintf(format, args...))
}

// newLife begins where the stored checkpoint stands.
func (g *ledger) newLife(stored *cache.Checkpoint, pol policies) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying, g.last, g.began, g.deaf, g.afresh = nil, nil, stored, false, false
	g.said, g.writes = nil, nil
	g.life++
	g.around = map[int64]int{}
	clear(g.refused)
	clear(g.refusals)
	for _, r := range g.rows {
		r.nacked = 0
	}
	c := &course{w: g.w, pol: pol, fault: g.fault}
	g.course = c
	if stored == nil || !stored.Started() {
		return
	}
	_, c.content = stored.Identity()
	c.started, c.ordinal = true, stored.Step
	c.at = snapshotOf(stored.Last)
	if p := stored.Position; p != nil {
		l := legOf(stored)
		c.under, c.leapt = &l, l.from == nothing || l.crosses()
		if l.kind == "truncate" { // why was said by the life before
			c.onto, c.leapt = p.To.ContentID, true
		}
	}
	g.checked = stored.Step
}

func snapshotOf(ref cache.StateRef) int64 {
	id, err := cache.ParseSnapshotID(ref.SnapshotID)
	if err != nil {
		panic(err)
	}
	return id
}

// legOf is the step that a checkpoint says is under way.
func legOf(c *cache.Checkpoint) leg {
	l := leg{n: c.Step + 1, kind: c.Position.Kind, from: nothing, to: snapshotOf(c.Position.To)}
	if c.Position.From != nil {
		l.from = snapshotOf(*c.Position.From)
	}
	return l
}

// heard takes a line of the log.
func (g *ledger) heard(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deaf {
		return
	}
	switch {
	case strings.Contains(line, "comes before") && strings.Contains(line, "dropped"):
		g.fault("the input put a checkpoint that goes backwards: %s", line)
	case strings.Contains(line, "delivering the whole step again"):
		g.afresh = true
	}
	s, ok := claimed(line)
	if !ok {
		return
	}
	g.said = append(g.said, s)
	switch s.what {
	case sayStep:
		if old := g.legs[s.leg.n]; len(old) == 0 || old[len(old)-1] != s.leg {
			g.legs[s.leg.n] = append(old, s.leg)
		}
		g.moves[s.leg] = g.leaps
		delete(g.given, s.leg)
	case sayStart:
		g.leaps++
		g.stood[s.leg.to] = true
	case sayStand:
		g.stood[s.leg.to] = true
	case sayLost:
		g.leaps++
		g.leaves["lost lineage"] = g.leaves["lost lineage"] || s.policy == "start" || s.policy == "ancestor"
	case sayReplaced:
		g.leaps++
	case sayAround:
		g.leaps++
		n := g.newest()
		g.around[n]++
		if l, ok := g.claimedAs(n); ok {
			g.given[l] = true
		}
	case saySkip:
		g.leaves["passed over"] = true
		if l, ok := g.claimedAs(g.newest()); ok {
			g.passed[l] = true
		}
	}
}

// newest is the ordinal of the step that was claimed last.
func (g *ledger) newest() int64 {
	for _, s := range slices.Backward(g.said) {
		if s.what == sayStep {
			return s.leg.n
		}
	}
	if g.began != nil {
		return g.began.Step + 1
	}
	return 0
}

// claimedAs is what was last said of a step.
func (g *ledger) claimedAs(n int64) (leg, bool) {
	all := g.legs[n]
	if len(all) == 0 {
		return leg{}, false
	}
	return all[len(all)-1], true
}

// silence ends what a life can say.
func (g *ledger) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deaf = true
}

// deliver takes a batch from the input and holds it to the rules.
func (g *ledger) deliver(d histories.Delivery) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.read(d)
	g.flying = append(g.flying, f)
	expected := g.w.expect(f.at.leg, g.course.pol)
	replay := g.inOrder(f)
	for i, c := range f.messages {
		at := place{f.at.leg, f.at.row + int64(i)}
		if !expected.messages[c] || expected.stops(g.course.pol) {
			g.fault("%v is no message of step %+v", c, f.at.leg)
		}
		g.once(c, at, replay)
	}
	return f
}

// once holds a row to its number: it comes again only if the batch was refused,
// the process died before its acknowledgement was stored, or the input leapt.
func (g *ledger) once(m message, at place, replay bool) {
	r := g.rows[m.key()]
	if r == nil {
		r = &row{}
		g.rows[m.key()] = r
	}
	switch {
	case r.delivered == 0 || replay && r.nacked > 0:
	case g.moves[at.leg] > r.leaps:
	case r.life != g.life && !covered(g.began, r.at):
	case g.afresh:
	default:
		g.fault("%v of step %+v comes a time %d, and nothing allows it", m, at.leg, r.delivered+1)
	}
	if replay && r.nacked > 0 {
		r.nacked--
	}
	r.delivered++
	r.at, r.leaps, r.life = at, g.moves[at.leg], g.life
}

func (g *ledger) read(d histories.Delivery) *flight {
	f := &flight{d: d}
	m := d.Batch[0]
	step, _ := m.MetaGetMut("step")
	first, _ := m.MetaGetMut("first_row")
	n, _ := step.(int64)
	f.at.row, _ = first.(int64)
	for _, m := range d.Batch {
		operation, _ := m.MetaGet("operation")
		body, err := m.AsBytes()
		var r struct{ ID int64 }
		if err != nil || json.Unmarshal(body, &r) != nil {
			g.fault("a message that is no row: %q", body)
		}
		f.messages = append(f.messages, message{operation, r.ID})
	}
	var ok bool
	if f.at.leg, ok = g.legFor(n, m); !ok {
		g.fault("a batch of step %d says of itself what was never said of the step: %v", n, g.legs[n])
	}
	return f
}

// legFor finds the step that a message belongs to, by what it says of itself.
func (g *ledger) legFor(n int64, m *service.Message) (leg, bool) {
	snapshot, _ := m.MetaGet("snapshot_id")
	operation, _ := m.MetaGet("operation")
	from, bridged := m.MetaGet("snapshot_from")
	for _, l := range slices.Backward(g.legs[n]) {
		fits := cache.FormatSnapshotID(l.to) == snapshot && bridged == l.crosses()
		if bridged {
			fits = fits && from == strconv.FormatInt(l.from, 10)
		}
		switch l.kind {
		case "table_scan":
			fits = fits && operation == "read"
		case "truncate":
			fits = operation == "truncate"
		default:
			fits = fits && operation != "read" && operation != "truncate"
		}
		if fits {
			return l, true
		}
	}
	return leg{}, false
}

// inOrder holds a batch to the order of the ones before, in this life: each
// goes on exactly where the one before it ended. It tells whether the batch is
// the replay of one that was refused.
func (g *ledger) inOrder(f *flight) (replay bool) {
	if g.refused[f.at] > 0 {
		g.refused[f.at]--
		return true
	}
	defer func() { g.last = f }()
	goesOn, from := f.at.leg, int64(0)
	switch {
	case g.last != nil && g.last.at.leg == goesOn:
		from = g.last.end()
	case g.began != nil && g.began.Position != nil && legOf(g.began) == goesOn && g.around[goesOn.n] == 0:
		from = g.began.Position.Row
	}
	again := f.at.row == 0 && (g.afresh || g.around[goesOn.n] > 0)
	if f.at.row != from && !again {
		g.fault("a batch of step %+v begins at row %d, not at %d", goesOn, f.at.row, from)
	}
	done := int64(0)
	if g.began != nil {
		done = g.began.Step
	}
	if g.last != nil {
		done = g.last.at.leg.n - 1
	}
	if goesOn.n <= done {
		g.fault("a batch of step %+v comes when step %d is done", goesOn, done)
	}
	for n := done + 1; n < goesOn.n; n++ {
		g.wasWhole(n)
	}
	return false
}

// wasWhole holds a step to having been delivered to its end, as the next one
// comes.
func (g *ledger) wasWhole(n int64) {
	l, ok := g.claimedAs(n)
	if !ok {
		g.fault("step %d is left out", n)
		return
	}
	e := g.w.expect(l, g.course.pol)
	end := int64(0)
	switch {
	case g.last != nil && g.last.at.leg == l:
		end = g.last.end()
	case g.began != nil && g.began.Position != nil && legOf(g.began) == l:
		end = g.began.Position.Row
	}
	if !e.stops(g.course.pol) && !g.passed[l] && !g.given[l] && end != int64(len(e.messages)) {
		g.fault("of step %+v %d rows were delivered when the next one came, not %d", l, end, len(e.messages))
	}
}

// accept acknowledges a batch.
func (g *ledger) accept(f *flight) {
	g.mu.Lock()
	g.land(f)
	if g.acked[f.at.leg] == nil {
		g.acked[f.at.leg] = map[int64]message{}
	}
	for i, c := range f.messages {
		g.rows[c.key()].acked = true
		g.acked[f.at.leg][f.at.row+int64(i)] = c
	}
	g.mu.Unlock()
	if err := f.d.Ack(context.Background(), nil); err != nil {
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
	for _, c := range f.messages {
		g.rows[c.key()].nacked++
	}
	g.mu.Unlock()
	if err := f.d.Ack(context.Background(), histories.ErrRefused); err != nil {
		g.w.rt.Fatalf("refusing: %v", err)
	}
}

// land takes a batch from those in flight. One that was refused stays due: the
// checkpoint must not pass it.
func (g *ledger) land(f *flight) {
	if i := slices.Index(g.flying, f); i >= 0 {
		g.flying = slices.Delete(g.flying, i, i+1)
	}
}

func (g *ledger) held() []*flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.flying)
}

func covered(c *cache.Checkpoint, p place) bool {
	if c == nil || !c.Started() {
		return false
	}
	return p.leg.n <= c.Step || c.Position != nil && p.leg == legOf(c) && p.row < c.Position.Row
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
			g.fault("the checkpoint %+v is ahead of batch %+v, which is not acknowledged", now, f.at)
		}
	}
	for at, n := range g.refused {
		if n > 0 && covered(c, at) {
			g.fault("the checkpoint %+v is ahead of batch %+v, which was refused", now, at)
		}
	}
	if c.Position != nil {
		for i := range c.Position.Row {
			if _, ok := g.acked[legOf(c)][i]; !ok {
				g.fault("the checkpoint %+v is behind row %d of step %+v, which is not acknowledged", now, i, legOf(c))
				break
			}
		}
	}
	w := write{c: c, acked: map[leg]map[int64]message{}}
	for n := g.checked + 1; n <= c.Step; n++ {
		if l, ok := g.claimedAs(n); ok {
			w.acked[l] = maps.Clone(g.acked[l])
		} else {
			g.fault("the checkpoint %+v says that step %d is complete, which was never said to be taken", now, n)
		}
	}
	g.checked = max(g.checked, c.Step)
	g.writes = append(g.writes, w)
}

// verify holds what was said and stored since the last time to the truth.
func (g *ledger) verify() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.course != nil && !g.deaf {
		for _, s := range g.said[g.course.heard:] {
			g.course.follow(s)
			g.tally[strings.TrimSpace(s.what+" "+s.leg.kind+s.policy)]++
		}
		g.course.heard = len(g.said)
	}
	for _, w := range g.writes {
		g.holds(w)
	}
	g.writes = nil
	return slices.Clone(g.broken)
}

// holds tells whether a checkpoint says no more than what was acknowledged.
func (g *ledger) holds(w write) {
	for l, acked := range w.acked {
		e := g.w.expect(l, g.course.pol)
		if e.stops(g.course.pol) || g.passed[l] || g.given[l] {
			continue
		}
		for _, c := range acked {
			delete(e.messages, c)
		}
		for c := range e.messages {
			g.fault("the checkpoint is behind step %+v, whose %v was not acknowledged", l, c)
		}
	}
	last := snapshotOf(w.c.Last)
	reached := g.stood[last] || w.c.Step == 0
	for _, l := range g.legs[w.c.Step] {
		reached = reached || l.to == last
	}
	reached = reached || g.began != nil && g.began.Started() && snapshotOf(g.began.Last) == last
	if !reached {
		g.fault("the checkpoint stands at snapshot %d after step %d, where the input has not been", last, w.c.Step)
	}
	if w.c.Position != nil && !slices.Contains(g.legs[w.c.Step+1], legOf(w.c)) && w.c.Step > 0 {
		g.fault("the checkpoint stands in step %+v, which was never said to be taken", legOf(w.c))
	}
}

func (g *ledger) hasAcked(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rows[id] != nil && g.rows[id].acked
}

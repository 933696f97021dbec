// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// tally counts what all histories together went through.
type tally struct {
	histories, changes, lives, kills, nacks, refusals, rows, again atomic.Int64

	mu   sync.Mutex
	said map[string]int // what the input said of its way, and how often
}

func (y *tally) heard(said map[string]int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for what, n := range said {
		y.said[what] += n
	}
}

func (y *tally) String() string {
	return fmt.Sprintf("%d histories, %d changes, %d lives, %d of them killed, %d batches refused, %d refusals of the input, %d rows, %d of them again; the input said: %v",
		y.histories.Load(), y.changes.Load(), y.lives.Load(), y.kills.Load(), y.nacks.Load(), y.refusals.Load(), y.rows.Load(), y.again.Load(), y.said)
}

func TestHistories(t *testing.T) {
	all := tally{said: map[string]int{}}
	lanes.Drive(t, func(ctx context.Context, rt *rapid.T) { drive(ctx, rt, &all) })
	t.Logf("seed %d: %s", lanes.Seed(), all.String())
}

// act is something that happens in a history.
type act string

const (
	actChange act = "change"
	actSettle act = "settle"
	actRead   act = "read a little"
	actStop   act = "stop"
	actKill   act = "kill"
	actCache  act = "cache"
	actSky    act = "catalog"
)

var acts = []act{actChange, actChange, actChange, actChange, actSettle, actSettle, actSettle, actRead, actStop, actKill, actKill, actCache, actSky}

func drive(ctx context.Context, rt *rapid.T, all *tally) {
	h := begun(ctx, rt, all)
	defer h.close()
	names := map[string]change{}
	var weighted []string
	for _, c := range changes {
		names[c.name] = c
		for range c.weight {
			weighted = append(weighted, c.name)
		}
	}
	for range rapid.IntRange(3, 18).Draw(rt, "acts") {
		switch rapid.SampledFrom(acts).Draw(rt, "act") {
		case actChange:
			h.all.changes.Add(1)
			h.w.happen(names[rapid.SampledFrom(weighted).Draw(rt, "change")], h.rng)
		case actSettle:
			h.settle()
		case actRead:
			h.readSome()
		case actStop:
			h.stop()
		case actKill:
			h.kill()
		case actCache:
			m := rapid.SampledFrom([]histories.Mood{histories.Healthy, histories.Healthy, histories.Failing, histories.Halting, histories.Slow}).Draw(rt, "cache")
			h.w.tell("cache: %s", m)
			h.keeper.Turn(m)
		case actSky:
			s := rapid.SampledFrom([]sky{fair, fair, unavailable, throttled, denied, cut, flickering}).Draw(rt, "catalog")
			h.w.tell("catalog: %s", s)
			h.w.weather(s)
		}
		h.verify()
	}
	h.conclude()
}

// history is one random history: a world, and an input that follows it through
// several lives.
type history struct {
	rt     *rapid.T
	rng    *rand.Rand // for what happens beside the acts: it must not make rapid's draws depend on timing
	w      *world
	keeper *histories.Keeper
	ledger *ledger
	pol    policies
	all    *tally

	life *histories.Life
	// base is where the input stood at the last settlement, or as its life
	// began; catalog.NoSnapshot where it had no place.
	base  int64
	nacks bool
	// anew: the next life begins without a checkpoint.
	anew bool
}

func begun(ctx context.Context, rt *rapid.T, all *tally) *history {
	all.histories.Add(1)
	h := &history{
		rt: rt, all: all,
		rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "chance"), 0)),
		pol: policies{
			start:     rapid.SampledFrom([]string{"table_scan", "earliest", "latest"}).Draw(rt, "start_from"),
			lost:      rapid.SampledFrom([]string{"start", "ancestor", "bridge", "table_scan", "fail"}).Draw(rt, "on_lost_lineage"),
			replaced:  rapid.SampledFrom([]string{"fail", "restart"}).Draw(rt, "on_table_replaced"),
			overwrite: rapid.SampledFrom([]string{"fail", "skip", "added_rows"}).Draw(rt, "on_overwrite"),
			del:       rapid.SampledFrom([]string{"fail", "skip"}).Draw(rt, "on_delete"),
			limit:     rapid.SampledFrom([]int{1, 3, 65536}).Draw(rt, "limit"),
			batch:     rapid.SampledFrom([]int{1, 2, 4096}).Draw(rt, "batch"),
			bounded:   rapid.Bool().Draw(rt, "bounded"),
			changelog: rapid.IntRange(0, 3).Draw(rt, "changes") == 0,
		},
		nacks: rapid.Bool().Draw(rt, "nacks"),
	}
	if h.pol.changelog && (h.pol.lost == "start" || h.pol.lost == "ancestor") {
		h.pol.lost = "bridge" // the others leave changes out, and are refused
	}
	h.w = newWorld(ctx, rt)
	h.ledger = newLedger(h.w)
	h.keeper = histories.NewKeeper(h.ledger.stored)
	histories.Check(rt, h.w.create())
	h.w.observe()
	h.w.tell("policies: %+v, nacks %v", h.pol, h.nacks)
	return h
}

func (h *history) close() {
	if h.life != nil {
		h.keeper.Turn(histories.Healthy)
		h.ledger.kill(h.life)
	}
}

// fail reports a broken promise with the story of the history.
func (h *history) fail(format string, args ...any) {
	h.rt.Fatalf("%s\n\nhistory:\n%s\n\ncheckpoint: %s", fmt.Sprintf(format, args...), strings.Join(h.w.told, "\n"), h.keeper.Stored())
}

func (h *history) verify() {
	if faults := h.ledger.verify(); len(faults) > 0 {
		h.fail("%s", strings.Join(faults, "\n"))
	}
}

// live makes sure that the input runs.
func (h *history) live(pol policies) {
	if h.life != nil {
		return
	}
	h.all.lives.Add(1)
	if h.anew {
		h.anew = false
		h.keeper.Forget()
		h.ledger.forget()
	}
	stored := h.stored()
	h.w.begin()
	h.ledger.newLife(stored, pol)
	h.base = h.ledger.course.at
	h.w.tell("life %+v from %+v", pol, h.ledger.course.standing())
	h.life = h.ledger.begin(h.keeper, pol)
}

// stored is the checkpoint, nil where there is none.
func (h *history) stored() *cache.Checkpoint {
	value := h.keeper.Stored()
	if value == nil {
		return nil
	}
	c, err := cache.Decode("place", value)
	if err != nil {
		h.fail("the stored checkpoint: %v", err)
	}
	return c
}

// take decides what becomes of a batch: mostly it is acknowledged at once.
func (h *history) take(d histories.Delivery) {
	f := h.ledger.deliver(d)
	switch n := h.rng.IntN(10); {
	case n < 2:
		return // held
	case n < 4 && h.nacks && h.ledger.mayRefuse(f):
		h.all.nacks.Add(1)
		h.ledger.reject(f)
	default:
		h.ledger.accept(f)
	}
}

// letGo acknowledges one batch that was held, in no order.
func (h *history) letGo() bool {
	held := h.ledger.held()
	if len(held) == 0 {
		return false
	}
	h.ledger.accept(held[h.rng.IntN(len(held))])
	return true
}

// moment is how long a batch is held while nothing else happens.
const moment = 2 * time.Millisecond

// readSome takes a few batches and holds most of them, so that a restart or a
// change finds them in flight.
func (h *history) readSome() {
	h.live(h.pol)
	h.w.tell("read a little")
	for range 1 + h.rng.IntN(3) {
		select {
		case d := <-h.life.Got:
			f := h.ledger.deliver(d)
			if h.rng.IntN(2) == 0 {
				h.ledger.accept(f)
			}
		case <-h.life.Ended:
			h.finish()
			return
		case <-time.After(10 * moment):
			return // nothing to read, or no room
		}
	}
}

// outcome is how a settlement came out.
type outcome struct {
	caughtUp bool
	refused  string // "" where a bounded run ended before what came later
}

// await takes batches until the input has caught up or refuses.
func (h *history) await() outcome {
	mark, _, told := h.life.Seen()
	deadline := time.NewTimer(histories.Patience)
	defer deadline.Stop()
	idle := 0
	for {
		select {
		case d := <-h.life.Got:
			h.take(d)
			h.verify()
			idle = 0
			continue
		case <-h.life.Stir:
			idle = 0
		case <-h.life.Ended:
			return h.finish()
		case <-time.After(moment):
			if idle++; h.letGo() {
				idle = 0
			}
			h.ease(idle)
		case <-deadline.C:
			h.fail("the input neither goes on nor says why")
		}
		polls, under, refused := h.life.Seen()
		if len(refused) > len(told) {
			return outcome{refused: refused[len(refused)-1]}
		}
		// The second look that ended after the last change began after it.
		if polls >= mark+2 && under == 0 {
			return outcome{caughtUp: true}
		}
	}
}

// ease heals a cache for which the input waits by right: without it there is
// no start to begin at, and no checkpoint to go on from.
func (h *history) ease(idle int) {
	if h.keeper.IsIll() && idle > 20 {
		h.w.tell("    the cache heals, as nothing goes on without it")
		h.keeper.Turn(histories.Healthy)
	}
}

// finish is the end of a bounded run.
func (h *history) finish() outcome {
	_, _, refused := h.life.Seen()
	h.life.End(func(histories.Delivery) {})
	h.life = nil
	if len(refused) > 0 {
		return outcome{refused: refused[len(refused)-1]}
	}
	// A bounded run reads what it finds at its beginning.
	return outcome{caughtUp: len(h.w.since) == 1}
}

func (h *history) stop() {
	if h.life == nil {
		return
	}
	h.w.tell("stop")
	for h.letGo() {
	}
	h.ledger.end(h.life)
	h.life = nil
	h.verify()
}

func (h *history) kill() {
	if h.life == nil {
		return
	}
	h.w.tell("kill, with %d batches in flight", len(h.ledger.held()))
	h.all.kills.Add(1)
	h.ledger.kill(h.life)
	h.life = nil
}

// settle lets the input catch up, lifting what it refuses over, and holds what
// came to what had to come.
func (h *history) settle() {
	pol := h.pol
	for range 8 {
		h.live(pol)
		h.w.tell("settle")
		o := h.await()
		h.verify()
		if o.caughtUp {
			h.account()
			return
		}
		if o.refused == "" {
			continue
		}
		h.all.refusals.Add(1)
		h.w.tell("    refused: %s", o.refused)
		pol = h.lift(pol, o.refused)
	}
	h.fail("the input does not get past what it refuses, though its causes are lifted")
}

// atHead tells whether the stored checkpoint is at the end of the head's snapshot.
func (h *history) atHead() bool {
	c := h.stored()
	if c == nil || !c.Started() {
		return false
	}
	_, content := c.Identity()
	return snapshotOf(c.Last) == h.w.head().snapshot && content == h.w.head().content && c.Position == nil
}

// conclude lets everything heal: then all that was promised must be there, and
// the checkpoint at the head.
func (h *history) conclude() {
	h.keeper.Turn(histories.Healthy)
	h.w.weather(fair)
	h.w.vault.Restore()
	h.settle()
	// A place without rows is not under way for the output, and may still be for the checkpoint.
	for late := time.After(histories.Patience); h.life != nil && !h.atHead(); {
		select {
		case <-time.After(moment):
		case <-late:
			h.fail("the checkpoint does not get to %+v", h.w.head())
		}
	}
	h.stop()
	if !h.atHead() {
		h.fail("all is acknowledged, and the checkpoint is not at %+v", h.w.head())
	}
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	h.all.heard(h.ledger.tally)
	for _, r := range h.ledger.rows {
		h.all.rows.Add(1)
		h.all.again.Add(int64(r.delivered - 1))
	}
}

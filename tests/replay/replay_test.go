// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// tally counts what all histories together went through.
type tally struct{ histories, changes, lives, kills, nacks, refusals, messages, steps atomic.Int64 }

func (y *tally) String() string {
	return fmt.Sprintf("%d histories, %d changes, %d lives, %d of them killed, %d batches refused, %d refusals of the input, %d messages, %d steps compared",
		y.histories.Load(), y.changes.Load(), y.lives.Load(), y.kills.Load(), y.nacks.Load(), y.refusals.Load(), y.messages.Load(), y.steps.Load())
}

// manner is how messages are applied.
type manner string

const (
	// byKey: upserts and deletes by key. Repeats do no harm.
	byKey manner = "by key"
	// wholeRows: as a multiset, where each message comes once.
	wholeRows manner = "whole rows"
	// withoutRepeats: as a multiset, where repeats are told by the message's place in its step and dropped.
	withoutRepeats manner = "whole rows without repeats"
)

// Whoever applies the messages has the table after each step, whatever was
// killed and refused on the way.
func TestAReplayIsTheTable(t *testing.T) {
	var all tally
	lanes.Drive(t, func(ctx context.Context, rt *rapid.T) { drive(ctx, rt, &all) })
	t.Logf("seed %d: %s", lanes.Seed(), all.String())
}

func drive(ctx context.Context, rt *rapid.T, all *tally) {
	h := begun(ctx, rt, all)
	defer h.close()
	if h.manner == byKey && rapid.IntRange(0, 5).Draw(rt, "across") == 0 {
		h.acrossTypes()
	}
	for range rapid.IntRange(4, 16).Draw(rt, "acts") {
		switch rapid.SampledFrom([]string{"change", "change", "change", "settle", "settle", "read", "read", "stop", "kill", "kill"}).Draw(rt, "act") {
		case "change":
			all.changes.Add(1)
			h.w.happen(rt)
		case "settle":
			h.settle()
		case "read":
			h.readSome()
		case "stop":
			h.stop()
		case "kill":
			if h.life == nil {
				h.readSome()
			}
			h.kill()
		}
	}
	h.w.vault.Restore()
	h.settle()
	h.stop()
}

// acrossTypes resets the branch to before a column became another type: then no
// row of both sides is equal, and each key is deleted and inserted.
func (h *history) acrossTypes() {
	h.settle()
	before := h.w.head()
	h.w.widenAndWrite(h.rt)
	h.settle()
	histories.Check(h.rt, h.w.resetTo(before))
	h.w.observe()
	h.settle()
}

// history is one random history of a table, and a replica that is fed by an
// input through several lives.
type history struct {
	rt      *rapid.T
	rng     *rand.Rand // for what happens beside the acts: it must not make rapid's draws depend on timing
	w       *world
	keeper  *histories.Keeper
	manner  manner
	setting setting
	nacks   bool
	all     *tally

	replica *replica
	// at is the last step of which anything was applied. whole: all of it was.
	at    step
	whole bool
	// done are the messages that were applied, where repeats are dropped.
	done map[string]bool

	life    *histories.Life
	began   head // of the branch as the life began
	sawLast bool // the step's last batch came in this life
	flying  []*flight
	// due are batches that were refused in this life and come again; refusals is how often each was.
	due, refusals map[place]int
}

// step is a step of the input by its ordinal and its after-state.
type step struct {
	ordinal  int64
	snapshot string
}

type place struct{ step, row int64 }

// flight is a batch on its way.
type flight struct {
	d        histories.Delivery
	at       place
	snapshot string
	last     bool
	applied  bool
}

func begun(ctx context.Context, rt *rapid.T, all *tally) *history {
	all.histories.Add(1)
	m := rapid.SampledFrom([]manner{byKey, byKey, byKey, wholeRows, withoutRepeats}).Draw(rt, "manner")
	s := shape{
		version:     rapid.SampledFrom([]string{"2", "3"}).Draw(rt, "version"),
		deletes:     rapid.SampledFrom([]string{"copy-on-write", "merge-on-read"}).Draw(rt, "deletes"),
		partitioned: rapid.Bool().Draw(rt, "partitioned"),
		identified:  m == byKey && rapid.Bool().Draw(rt, "identified"),
		stays:       m != byKey,
	}
	h := &history{
		rt: rt, all: all, manner: m, keeper: histories.NewKeeper(func([]byte) {}), replica: newReplica(m == byKey), done: map[string]bool{},
		rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "chance"), 0)),
		setting: setting{
			start:    rapid.SampledFrom([]string{"table_scan", "earliest"}).Draw(rt, "start_from"),
			lost:     rapid.SampledFrom([]string{"bridge", "bridge", "table_scan"}).Draw(rt, "on_lost_lineage"),
			payload:  rapid.SampledFrom([]string{"row", "key"}).Draw(rt, "delete_payload"),
			format:   "json",
			limit:    rapid.SampledFrom([]int{1, 3, 65536}).Draw(rt, "limit"),
			batch:    rapid.SampledFrom([]int{1, 2, 4096}).Draw(rt, "batch"),
			memory:   rapid.SampledFrom([]string{"1KiB", "64MiB"}).Draw(rt, "memory"),
			named:    m == byKey && !s.identified,
			ordinals: m == withoutRepeats,
			bounded:  rapid.Bool().Draw(rt, "bounded"),
		},
		nacks: rapid.Bool().Draw(rt, "nacks"),
	}
	switch m {
	case wholeRows:
		h.nacks = false
		h.setting.format = rapid.SampledFrom([]string{"json", "ndjson"}).Draw(rt, "format")
	}
	h.w = newWorld(ctx, rt, s)
	h.w.create(rt)
	h.w.tell("%s: table %+v, input %+v, nacks %v", m, s, h.setting, h.nacks)
	return h
}

func (h *history) close() {
	if l := h.life; l != nil {
		h.life = nil
		h.abandon(l)
	}
}

// fail reports a broken promise with the story of the history.
func (h *history) fail(format string, args ...any) {
	h.rt.Fatalf("%s\n\nhistory:\n%s\n\ncheckpoint: %s", fmt.Sprintf(format, args...), strings.Join(h.w.told, "\n"), h.keeper.Stored())
}

// live makes sure that the input runs.
func (h *history) live() {
	if h.life != nil {
		return
	}
	h.all.lives.Add(1)
	h.w.tell("life, the replica is at %+v (whole: %v)", h.at, h.whole)
	h.flying, h.due, h.refusals, h.sawLast = nil, map[place]int{}, map[place]int{}, false
	h.began = h.w.head()
	h.life = histories.Begin(h.w.ctx, h.w.rt, h.keeper, h.setting.yaml(h.w), func(string) {})
}

// deliver takes a batch from the input. Between steps there is a barrier, and
// there the replica is the table.
func (h *history) deliver(d histories.Delivery) *flight {
	f := &flight{d: d, snapshot: text(d, "snapshot_id"), last: text(d, "snapshot_last") == "true"}
	f.at.step, _ = strconv.ParseInt(text(d, "step"), 10, 64)
	f.at.row, _ = strconv.ParseInt(text(d, "first_row"), 10, 64)
	h.w.tell("    step %d to %s from row %d: %d messages of %s", f.at.step, f.snapshot, f.at.row, len(d.Batch), text(d, "operation"))
	h.flying = append(h.flying, f)
	now := step{f.at.step, f.snapshot}
	if now != h.at {
		if now.ordinal <= h.at.ordinal {
			h.fail("step %+v comes after something of %+v was applied", now, h.at)
		}
		if !h.whole && h.at != (step{}) {
			h.fail("step %+v comes before all of %+v was applied", now, h.at)
		}
		h.barrier(now)
		h.compare(h.at, "when the next step came")
		h.at, h.sawLast = now, false
	}
	h.whole, h.sawLast = false, h.sawLast || f.last
	if h.due[f.at] > 0 {
		h.due[f.at]--
	}
	return f
}

// text is what the first message of a batch says under a key.
func text(d histories.Delivery, key string) string {
	text, _ := d.Batch[0].MetaGet(key)
	return text
}

// barrier: nothing of another step is under way.
func (h *history) barrier(now step) {
	for _, f := range h.flying {
		if f.at.step != now.ordinal {
			h.fail("step %+v comes while %+v is in flight", now, f.at)
		}
	}
	for at, n := range h.due {
		if n > 0 && at.step != now.ordinal {
			h.fail("step %+v comes while %+v is refused and due", now, at)
		}
	}
}

// compare holds the replica to the table after a step.
func (h *history) compare(at step, when string) {
	if at == (step{}) {
		return
	}
	id := int64(-1)
	if at.snapshot != "" {
		var err error
		id, err = strconv.ParseInt(at.snapshot, 10, 64)
		histories.Check(h.rt, err)
	}
	h.all.steps.Add(1)
	if diff := h.replica.differs(h.w.of(id)); diff != "" {
		h.fail("after step %+v, %s: %s", at, when, diff)
	}
}

// apply applies the first n messages of a batch.
func (h *history) apply(f *flight, n int) {
	id, err := strconv.ParseInt(f.snapshot, 10, 64)
	histories.Check(h.rt, err)
	schema := h.w.of(id).schema
	for i, m := range f.d.Batch[:n] {
		h.all.messages.Add(1)
		body, err := m.AsBytes()
		histories.Check(h.rt, err)
		operation, _ := m.MetaGet("operation")
		if h.manner == withoutRepeats {
			ordinal, _ := m.MetaGet("row_ordinal")
			if want := strconv.FormatInt(f.at.row+int64(i), 10); ordinal != want {
				h.fail("row_ordinal %s instead of %s", ordinal, want)
			}
			place := fmt.Sprint(f.at.step, f.snapshot, ordinal)
			if h.done[place] {
				continue
			}
			h.done[place] = true
		}
		rows := [][]byte{body}
		if h.setting.format == "ndjson" && operation != "truncate" {
			rows = bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
		}
		for _, row := range rows {
			if err := h.replica.apply(operation, row, schema); err != nil {
				h.fail("step %+v: %v", h.at, err)
			}
		}
	}
	f.applied = f.applied || n == len(f.d.Batch)
}

// accept acknowledges a batch, applied before if it is not yet.
func (h *history) accept(f *flight) {
	if !f.applied {
		h.apply(f, len(f.d.Batch))
	}
	h.land(f)
	h.complete()
	if err := f.d.Ack(context.Background(), nil); err != nil {
		h.fail("acknowledging: %v", err)
	}
}

// complete notes that a step is wholly applied. Its last batch may come before
// others of it, which are refused or held.
func (h *history) complete() {
	if len(h.flying) > 0 {
		return
	}
	for _, n := range h.due {
		if n > 0 {
			return
		}
	}
	h.whole = h.sawLast
}

// reject refuses a batch of which so many messages were applied nevertheless.
func (h *history) reject(f *flight, applied int) {
	h.all.nacks.Add(1)
	h.apply(f, applied)
	h.land(f)
	h.due[f.at]++
	h.refusals[f.at]++
	if err := f.d.Ack(context.Background(), histories.ErrRefused); err != nil {
		h.fail("refusing: %v", err)
	}
}

func (h *history) land(f *flight) {
	h.flying = slices.DeleteFunc(h.flying, func(other *flight) bool { return other == f })
}

// take decides what becomes of a batch.
func (h *history) take(d histories.Delivery) {
	f := h.deliver(d)
	n := len(f.d.Batch)
	// From the third refusal on the retry wrapper of Benthos v4.60.0 pauses, and a stop in this pause can make it wait
	// for ever, which is not what is tested here.
	mayRefuse := h.nacks && h.refusals[f.at] < 2
	switch chance := h.rng.IntN(12); {
	case chance < 2:
		if h.manner != byKey {
			h.apply(f, n) // later acknowledged in any order, but applied in this
		}
	case chance < 3:
		h.apply(f, n)
	case chance < 4 && mayRefuse:
		h.reject(f, 0)
	case chance < 5 && mayRefuse:
		h.reject(f, h.rng.IntN(n+1))
	case chance < 6 && mayRefuse:
		h.reject(f, n)
	default:
		h.accept(f)
	}
}

// letGo acknowledges one batch that was held, in no order.
func (h *history) letGo() bool {
	if len(h.flying) == 0 {
		return false
	}
	h.accept(h.flying[h.rng.IntN(len(h.flying))])
	return true
}

// moment is how long a batch is held while nothing else happens.
const moment = 2 * time.Millisecond

// readSome takes a few batches and holds some of them, so that a kill or a
// change finds them in flight.
func (h *history) readSome() {
	h.live()
	h.w.tell("read a little")
	for range 1 + h.rng.IntN(4) {
		select {
		case d := <-h.life.Got:
			h.take(d)
		case <-h.life.Ended:
			h.finish()
			return
		case <-time.After(10 * moment):
			return // nothing to read, or no room
		}
	}
}

// await takes batches until the input has caught up or refuses.
func (h *history) await() (caughtUp bool, refused string) {
	head := h.w.head()
	mark, _, told := h.life.Seen()
	deadline := time.NewTimer(histories.Patience)
	defer deadline.Stop()
	for {
		select {
		case d := <-h.life.Got:
			h.take(d)
			continue
		case <-h.life.Stir:
		case <-h.life.Ended:
			why := h.finish()
			return why == "" && h.began == head, why
		case <-time.After(moment):
			h.letGo()
		case <-deadline.C:
			h.fail("the input neither goes on nor says why")
		}
		polls, under, refused := h.life.Seen()
		if len(refused) > len(told) {
			return false, refused[len(refused)-1]
		}
		// The second look that ended after the last change began after it.
		if polls >= mark+2 && under == 0 {
			return true, ""
		}
	}
}

// finish is the end of a bounded run: why it came early, or "".
func (h *history) finish() string {
	_, _, refused := h.life.Seen()
	h.life.End(func(histories.Delivery) {})
	h.life = nil
	if len(refused) == 0 {
		return ""
	}
	return refused[len(refused)-1]
}

func (h *history) stop() {
	if h.life == nil {
		return
	}
	h.w.tell("stop")
	for h.letGo() {
	}
	h.life.End(func(d histories.Delivery) { h.accept(h.deliver(d)) })
	h.life = nil
}

// kill ends a life abruptly. Messages applied as whole rows may not come twice,
// so then the life is stopped.
func (h *history) kill() {
	switch {
	case h.life == nil:
	case h.manner == wholeRows:
		h.stop()
	default:
		h.w.tell("kill, with %d batches in flight", len(h.flying))
		h.all.kills.Add(1)
		h.abandon(h.life)
		h.life = nil
	}
}

func (h *history) abandon(l *histories.Life) {
	var held []histories.Delivery
	for _, f := range h.flying {
		held = append(held, f.d)
	}
	l.Kill(held)
}

// settle lets the input catch up, with all files put back if it lacks one.
func (h *history) settle() {
	for range 8 {
		h.live()
		h.w.tell("settle")
		caughtUp, refused := h.await()
		switch {
		case caughtUp:
			h.compare(step{h.at.ordinal, strconv.FormatInt(h.w.head().snapshot, 10)}, "when the input had caught up")
			return
		case refused == "":
			continue
		}
		h.all.refusals.Add(1)
		h.w.tell("    refused: %s", refused)
		if h.w.vault.Restore() == 0 {
			h.fail("the input refuses without a cause: %s", refused)
		}
		h.stop()
	}
	h.fail("the input does not catch up")
}

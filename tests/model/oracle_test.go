// SPDX-License-Identifier: Apache-2.0

package model

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// account is asked when the input has caught up: it stands at the head, and
// what had to come has come.
func (h *history) account() {
	h.verify()
	h.w.tell("    caught up")
	h.ledger.mu.Lock()
	c := h.ledger.course
	c.arrive()
	leapt, leaves := c.leapt, len(h.ledger.leaves) > 0
	c.leapt = false
	h.ledger.mu.Unlock()
	h.verify()
	to := h.w.head()
	if c.standing() != (head{snapshot: to.snapshot, content: to.content}) {
		h.fail("the input finds nothing new, and stands at %+v by its own words, not at %+v", c.standing(), to)
	}
	if !leapt {
		h.requireLine(h.base, to.snapshot)
	}
	if !leaves && h.pol.start != "latest" {
		h.requireTable(to.snapshot)
	}
	h.base = to.snapshot
	h.w.begin()
}

// requireLine: every row that a snapshot between two states added has come, as
// nothing was said that leaves any out. It does not ask what the input said of
// its steps.
func (h *history) requireLine(from, to int64) {
	for _, s := range h.w.above(from, to) {
		for _, id := range s.rows {
			if s.kind == added && !h.ledger.hasAcked(id) {
				h.fail("row %d of snapshot %d is lost", id, s.id)
			}
		}
	}
}

// requireTable: what the table holds has come, whichever way. Who replays a
// changelog holds the table, and nothing else.
func (h *history) requireTable(to int64) {
	for id := range h.w.live(to) {
		if !h.ledger.hasAcked(id) {
			h.fail("row %d is in the table, and never came", id)
		}
	}
	if !h.pol.changelog {
		return
	}
	live := h.w.live(to)
	for id := int64(1); id <= h.w.lastRow; id++ {
		if holds := h.ledger.replayed(id); holds != live[id] {
			h.fail("replaying the changes says %v of row %d, and the table %v", holds, id, live[id])
		}
	}
}

// replayed tells whether the newest change of a row leaves it there.
func (g *ledger) replayed(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	came, went := g.rows[id], g.rows[-id]
	if came == nil {
		return false
	}
	after := func(r *row) bool { return r == nil || r.at.before(came.at) }
	return after(went) && after(g.rows[0])
}

// A refusal names what and why. right tells whether it is true, lift is what
// its text says that helps.
var refusals = []struct {
	text  *regexp.Regexp
	right func(*history, policies, []string) bool
	lift  func(*history, *policies, []string)
}{
	{
		regexp.MustCompile(`(?:the difference from (` + aState + `) to )?(snapshot \d+) removes rows \((delete|overwrite)\), which messages of added rows cannot express: set on_(delete: skip|overwrite: added_rows or skip) to go past`),
		func(h *history, p policies, said []string) bool {
			c := h.ledger.course
			if c.under == nil || stateNamed(said[2]) != c.under.to || (said[1] != "") != c.under.crosses() || said[1] != "" && stateNamed(said[1]) != c.under.from {
				return false
			}
			return slices.Contains(h.w.expect(*c.under, p).removed, said[3]) && p.onRemoved(said[3]) == "fail"
		},
		func(h *history, p *policies, said []string) {
			switch {
			case said[3] == "delete":
				p.del = "skip"
			case h.rng.IntN(2) == 0:
				p.overwrite = "skip"
			default:
				p.overwrite = "added_rows"
			}
		},
	},
	{
		regexp.MustCompile(`lost lineage: .*snapshot \d+.*(; set on_lost_lineage to get past it: \w+ \(|; nothing gets past it before the table has a snapshot that can be read)`),
		func(h *history, _ policies, _ []string) bool { return h.arrived().mayLose() },
		func(h *history, p *policies, _ []string) {
			p.lost = "table_scan"
			h.w.vault.Restore()
		},
	},
	{
		regexp.MustCompile(`the table was replaced: the checkpoint's snapshot .* is of table uuid .*; set on_table_replaced: restart`),
		func(h *history, p policies, _ []string) bool {
			return p.replaced == "fail" && h.arrived().replaced()
		},
		func(_ *history, p *policies, _ []string) { p.replaced = "restart" },
	},
	{
		regexp.MustCompile(`can't start at start_from: earliest: .*snapshots? .*\d+.*; choose another`),
		broken,
		restore,
	},
	{
		regexp.MustCompile(`snapshot \d+: its (manifest list|manifest|data file) /?\S+ no longer exists\. Restore the file`),
		broken,
		restore,
	},
	{
		regexp.MustCompile(`no longer exists\. Changes of (snapshot \d+) may have been delivered already, so that only this snapshot can complete them: restore the file, or .* begin with another checkpoint_cache_key`),
		func(h *history, p policies, said []string) bool {
			return p.changelog && h.w.gone && h.isUnderWay(stateNamed(said[1]))
		},
		func(h *history, p *policies, said []string) {
			if h.anew = h.rng.IntN(4) == 0; !h.anew {
				restore(h, p, said)
			}
		},
	},
	{
		regexp.MustCompile(`(reading|opening) metadata file \S+\.metadata\.json: .*(no such file|not exist)`),
		broken,
		restore,
	},
	{
		regexp.MustCompile(`(?:metadata file|manifest list|manifest|data file) (?:file://)?(/\S+?)(?:: | can't be decoded| is corrupt)`),
		func(h *history, _ policies, said []string) bool {
			return slices.ContainsFunc(h.w.spoiled, func(file string) bool { return strings.HasSuffix(said[1], file) })
		},
		restore,
	},
	{
		regexp.MustCompile(`GET http://127\.0\.0\.1:\d+/\S+: (status (401|429|500|503)|.*EOF|.*connection reset)`),
		func(h *history, _ policies, _ []string) bool { return h.w.stormy },
		func(h *history, _ *policies, _ []string) { h.w.weather(fair) },
	},
	{
		regexp.MustCompile(`table (shop\.)?(orders|sales) .*on main`),
		func(h *history, _ policies, _ []string) bool { return h.w.renamed || h.w.dropped() },
		func(*history, *policies, []string) {},
	},
	{
		regexp.MustCompile(`checkpoint under key "place" can't be used: it belongs to .* table "(orders|sales)", not to .*configure another key`),
		func(h *history, _ policies, _ []string) bool { return h.ledger.course.replaced() },
		func(h *history, _ *policies, _ []string) { h.anew = true },
	},
	{
		regexp.MustCompile(`checkpoint under key "place".*: cache resource "progress": (the cache is down|context deadline exceeded)`),
		func(h *history, _ policies, _ []string) bool { return h.keeper.WasUnwell() },
		func(h *history, _ *policies, _ []string) { h.keeper.Turn(histories.Healthy) },
	},
}

// broken tells whether any file was gone.
func broken(h *history, _ policies, _ []string) bool { return h.w.gone }

func restore(h *history, _ *policies, _ []string) { h.w.vault.Restore() }

// isUnderWay tells whether the step to a snapshot is stored as one that may have been
// delivered in part.
func (h *history) isUnderWay(to int64) bool {
	c := h.stored()
	return c != nil && c.Position != nil && c.Position.PlanDigest != "" && snapshotOf(c.Position.To) == to
}

// arrived is the course of an input that looked for the next step: the one
// before is complete.
func (h *history) arrived() *course {
	h.ledger.course.arrive()
	return h.ledger.course
}

// dropped tells whether no table was under the name.
func (w *world) dropped() bool {
	return slices.ContainsFunc(w.since, func(h head) bool { return h.snapshot == catalog.NoSnapshot })
}

// lift checks a refusal and does what helps. Mostly the input is started again,
// as after a change of its configuration; what can heal under a running input
// is sometimes left to it.
func (h *history) lift(pol policies, why string) policies {
	for _, r := range refusals {
		said := r.text.FindStringSubmatch(why)
		if said == nil {
			continue
		}
		if !r.right(h, pol, said) {
			h.fail("the input refuses without a cause at %+v, under way %+v, through %+v: %s", h.ledger.course.standing(), h.ledger.course.under, h.w.since, why)
		}
		before := pol
		r.lift(h, &pol, said)
		h.w.inspect()
		if h.life == nil || pol == before && !h.anew && h.rng.IntN(4) == 0 {
			return pol
		}
		h.stop()
		return pol
	}
	h.fail("the input refuses without saying what, why and what helps: %s", why)
	return pol
}

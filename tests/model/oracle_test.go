// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"regexp"
	"slices"
)

// account is asked when the input has caught up: it adds the rows that the
// policies promise between the last standing and the head to the required
// ones, and looks for all of them.
func (h *history) account(pol policies) {
	to := h.w.head()
	lost, replays := h.ledger.marks()
	h.w.tell("    caught up (lost %d, ways around %d)", lost, replays)
	switch {
	case to.content == "":
		h.fail("the input has caught up with a table that is not there")
	case !h.base.started:
		h.requireStart(pol, to, lost)
	case lost > 0:
		if !h.mayLose() {
			h.fail("lineage is reported lost, and the history is whole from %+v through %+v", h.base.at, h.w.since)
		}
		h.requireLost(pol, to)
	case h.replacedSince():
		if h.base.at.content != to.content && pol.start != "latest" {
			h.require(h.held(to), "it is in the table that stands under the name now")
		}
	case !h.w.descends(to, h.base.at):
		h.fail("the input went from %+v to %+v without a word, and one does not descend from the other", h.base.at, to)
	default:
		h.requireLine(to)
	}
	h.requireStep()
	h.look()
	h.ledger.settled()
	h.base = standing{started: true, at: to}
	h.w.begin()
}

func (h *history) require(rows map[int64]bool, why string) {
	for id := range rows {
		if _, ok := h.required[id]; !ok {
			h.required[id] = why
		}
	}
}

func (h *history) look() {
	for id, why := range h.required {
		if !h.ledger.hasAcked(id) {
			h.fail("row %d is lost: %s", id, why)
		}
	}
}

// requireStart: whatever head the input started at, what is live now was
// scanned there or added since, unless the start leaves it out.
func (h *history) requireStart(pol policies, to head, lost int) {
	skipped := pol.start == "latest" || pol.lost == "start" && lost > 0 || len(h.w.since) > 1
	if !skipped {
		rows := h.w.live(to.snapshot)
		if pol.start == "earliest" {
			rows = h.plain(h.w.line(to.snapshot), rows)
		}
		h.require(rows, "it is in the table that the input started at")
	}
}

// held are the rows of a table that was scanned as a whole, at this head or at
// one before it.
func (h *history) held(to head) map[int64]bool {
	n := len(h.w.since)
	if n == 1 || n == 2 && h.w.since[0].snapshot == h.base.at.snapshot {
		return h.w.live(to.snapshot)
	}
	return h.plain(h.w.line(to.snapshot), h.w.live(to.snapshot))
}

// plain are rows of snapshots that only add. Others fall under on_overwrite.
func (h *history) plain(line []*snapshot, live map[int64]bool) map[int64]bool {
	out := map[int64]bool{}
	for _, s := range line {
		for _, id := range s.rows {
			if s.kind == added && (live == nil || live[id]) {
				out[id] = true
			}
		}
	}
	return out
}

// requireLine: every row that a snapshot of the line added; where files were
// gone, those that are live, which a bridge delivers.
func (h *history) requireLine(to head) {
	var live map[int64]bool
	from := h.base.at.snapshot
	if !h.w.whole(from, to.snapshot) {
		live = h.w.live(to.snapshot)
		if live == nil {
			return
		}
	}
	h.require(h.plain(h.w.above(from, to.snapshot), live), fmt.Sprintf("a snapshot between %d and %d added it", from, to.snapshot))
}

// requireStep: a step that was under way is finished, whatever became of the
// branch.
func (h *history) requireStep() {
	at := h.base.at.snapshot
	switch {
	case !h.base.under || !h.w.whole(at, at):
	case h.base.scan:
		h.require(h.w.live(at), "a scan of its snapshot was under way")
	default:
		h.require(h.plain(h.w.line(at)[:1], nil), "its snapshot was under way")
	}
}

// requireLost: what the policy for lost lineage promises, where one loss alone
// can have been met.
func (h *history) requireLost(pol policies, to head) {
	above := h.w.above(h.base.at.snapshot, to.snapshot)
	switch {
	case pol.lost == "table_scan" && !h.replacedSince():
		h.require(h.held(to), "lost lineage: table_scan")
	case len(h.w.since) > 2 || h.replacedSince():
	case pol.lost == "ancestor" && h.w.whole(h.base.at.snapshot, to.snapshot):
		h.require(h.plain(above, nil), "lost lineage: ancestor")
	case pol.lost == "bridge":
		h.require(h.plain(above, h.w.live(to.snapshot)), "lost lineage: bridge")
	}
}

// replacedSince tells whether another table was under the name since the base.
func (h *history) replacedSince() bool {
	return slices.ContainsFunc(h.w.since, func(s head) bool { return s.content != h.base.at.content })
}

// mayLose tells whether any two of the states that the input can have met leave
// a gap: one does not descend from the other, or a file between them was gone.
func (h *history) mayLose() bool {
	met := h.w.since
	if !h.base.started && h.broken() {
		return true
	}
	if h.base.started {
		met = append([]head{h.base.at}, met...)
	}
	for i, from := range met {
		for _, to := range met[i+1:] {
			if !h.w.descends(to, from) || !h.w.whole(from.snapshot, to.snapshot) {
				return true
			}
		}
	}
	return false
}

// A refusal names what and why. lift is what its text says that helps.
var refusals = []struct {
	text  *regexp.Regexp
	right func(*history, policies) bool
	lift  func(*history, *policies)
}{
	{
		regexp.MustCompile(`snapshot \d+ removes rows \((delete|overwrite)\), which messages of added rows cannot express: set on_(delete: skip|overwrite: added_rows or skip) to go past`),
		func(h *history, p policies) bool { return p.removed == "fail" && h.removes() },
		func(_ *history, p *policies) { p.removed = "skip" },
	},
	{
		regexp.MustCompile(`lost lineage: .*snapshot \d+.*(; set on_lost_lineage to get past it: \w+ \(|; nothing gets past it before the table has a snapshot that can be read)`),
		func(h *history, _ policies) bool { return h.mayLose() },
		func(h *history, p *policies) {
			p.lost = "table_scan"
			h.w.vault.restore()
		},
	},
	{
		regexp.MustCompile(`the table was replaced: the checkpoint's snapshot .* is of table uuid .*; set on_table_replaced: restart`),
		func(h *history, p policies) bool { return p.replaced == "fail" && h.replacedSince() },
		func(_ *history, p *policies) { p.replaced = "restart" },
	},
	{
		regexp.MustCompile(`can't start at start_from: earliest: .*snapshots? .*\d+.*; choose another`),
		func(h *history, _ policies) bool { return h.broken() },
		func(h *history, _ *policies) { h.w.vault.restore() },
	},
	{
		regexp.MustCompile(`snapshot \d+: its (manifest list|manifest|data file) /?\S+ no longer exists\. Restore the file`),
		func(h *history, _ policies) bool { return h.broken() },
		func(h *history, _ *policies) { h.w.vault.restore() },
	},
	{
		regexp.MustCompile(`(reading|opening) metadata file \S+\.metadata\.json: .*(no such file|not exist)`),
		func(h *history, _ policies) bool { return h.broken() },
		func(h *history, _ *policies) { h.w.vault.restore() },
	},
	{
		regexp.MustCompile(`table (shop\.)?(orders|sales) .*on main`),
		func(*history, policies) bool { return true },
		func(*history, *policies) {},
	},
	{
		regexp.MustCompile(`checkpoint under key "place" can't be used: it belongs to .* table "(orders|sales)", not to .*configure another key`),
		func(h *history, _ policies) bool { return h.replacedSince() },
		func(h *history, _ *policies) { h.anotherKey() },
	},
	{
		regexp.MustCompile(`checkpoint under key "place".*: cache resource "progress": (the cache is down|context deadline exceeded)`),
		func(h *history, _ policies) bool { return h.keeper.wasUnwell() },
		func(h *history, _ *policies) { h.keeper.set(healthy) },
	},
}

// lift checks a refusal and does what helps. Mostly the input is started again,
// as after a change of its configuration; what can heal under a running input
// is sometimes left to it.
func (h *history) lift(pol policies, why string) policies {
	for _, r := range refusals {
		if !r.text.MatchString(why) {
			continue
		}
		if !r.right(h, pol) {
			h.fail("the input refuses without a cause: %s", why)
		}
		before := pol
		r.lift(h, &pol)
		h.w.inspect()
		if h.life == nil || pol == before && h.rng.IntN(4) == 0 {
			return pol
		}
		h.stop()
		return pol
	}
	h.fail("the input refuses without saying what, why and what helps: %s", why)
	return pol
}

// anotherKey begins anew, as another key in the cache does.
func (h *history) anotherKey() {
	h.keeper.forget()
	h.ledger.forget()
}

// removes tells whether any snapshot that the input can have met removes rows.
func (h *history) removes() bool {
	for _, to := range h.w.since {
		for _, s := range h.w.line(to.snapshot) {
			if s.kind == removed {
				return true
			}
		}
	}
	return false
}

// broken tells whether any file was gone.
func (h *history) broken() bool { return h.w.gone }

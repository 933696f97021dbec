// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// leg is a step that the input says it takes, from one snapshot to another.
type leg struct {
	n        int64 // its ordinal
	kind     string
	from, to int64 // catalog.NoSnapshot is the empty table, from is nothing for what is read whole
}

// nothing is where a scan comes from.
const nothing = catalog.NoSnapshot - 1

func (l leg) crosses() bool { return l.kind == "bridge" || l.kind == "catch_up" }

// claim is what the input says in its log about where it goes.
type claim struct {
	what    string // one of the keys of claims
	leg     leg
	policy  string // that lost lineage, or rows that are passed over, fall under
	whole   string // the line
	removed string // how rows that are passed over were removed
}

const (
	sayStart    = "start"
	sayStep     = "step"
	sayStand    = "stand"
	sayLost     = "lost"
	sayReplaced = "replaced"
	sayAround   = "around"
	saySkip     = "skip"
)

const aState = `(?:nothing|the empty table|snapshot \d+)`

// claims are the lines that say where the input goes. Named groups are what a
// claim keeps.
var claims = map[string]*regexp.Regexp{
	sayStart:    regexp.MustCompile(`^Starting at (?:the whole table as of (?:snapshot \d+)|(?P<to>the empty table|snapshot \d+)(?P<policy>, whose rows are not delivered)?)`),
	sayStep:     regexp.MustCompile(`^Step (?P<n>\d+) \((?P<kind>\w+), found by \w+\) leads from (?P<from>` + aState + `) to (?P<to>` + aState + `); its rows are delivered from ordinal \d+ on`),
	sayStand:    regexp.MustCompile(`^Standing at (?P<to>` + aState + `) without a step \(\w+\)`),
	sayLost:     regexp.MustCompile(`^The lineage between the checkpoint and the head of main is lost: .*snapshot "?\w+.*on_lost_lineage: (?P<policy>\w+) goes on; snapshots skipped: (\d+|unknown), abandoned: (\d+|unknown)$`),
	sayReplaced: regexp.MustCompile(`^Reading starts over because of on_table_replaced: restart: .*snapshot "?\w+.* is of table uuid .*`),
	sayAround:   regexp.MustCompile(`^Looking for a way around: .*snapshot \d+`),
	saySkip:     regexp.MustCompile(`^Skipping (?:the difference from (?P<from>` + aState + `) to )?(?P<to>snapshot \d+), which removes rows \((?P<removed>\w+)\), because of on_(?P<policy>\w+): skip; \d+ rows`),
}

// claimed reads a line of the log.
func claimed(line string) (claim, bool) {
	for what, re := range claims {
		found := re.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		group := func(name string) string {
			if i := re.SubexpIndex(name); i >= 0 {
				return found[i]
			}
			return ""
		}
		n, _ := strconv.ParseInt(group("n"), 10, 64)
		return claim{
			what: what, whole: line, policy: group("policy"), removed: group("removed"),
			leg: leg{n: n, kind: group("kind"), from: stateNamed(group("from")), to: stateNamed(group("to"))},
		}, true
	}
	return claim{}, false
}

func stateNamed(s string) int64 {
	switch s {
	case "", "nothing":
		return nothing
	case "the empty table":
		return catalog.NoSnapshot
	}
	id, _ := strconv.ParseInt(s[len("snapshot "):], 10, 64)
	return id
}

// course is where one life of the input stands by its own words, which it holds
// to the truth: every step begins where the one before ended, and where it does
// not the log has said why, and the history gives the reason.
type course struct {
	w     *world
	pol   policies
	fault func(format string, args ...any)

	heard   int // how many claims were followed
	started bool
	at      int64  // the last complete state
	content string // its table
	ordinal int64  // of the last complete step
	under   *leg
	onto    string // the table that a truncation taken up from a checkpoint leads to
	passed  bool   // the step under way was announced as passed over
	gaveUp  bool   // it was given up, and the place is before it
	// excuse is why the next step need not begin at the place, "" if it must.
	excuse claim

	// Since the last settlement: whether the place moved otherwise than along
	// snapshots, and whether anything was passed over or bridged.
	leapt bool
}

func (c *course) standing() head { return head{snapshot: c.at, content: c.content} }

// follow takes the next claim.
func (c *course) follow(s claim) {
	switch s.what {
	case sayStep:
		c.step(s.leg)
	case saySkip:
		c.pass(s)
	case sayAround:
		if c.under == nil || !c.w.gone {
			c.fault("no file is gone that a way around is needed for: %s", s.whole)
		}
		c.under, c.gaveUp, c.leapt = nil, true, true
	case sayStand:
		c.arrive()
		c.stand(s.leg.to)
	case sayStart:
		if c.started {
			c.fault("a start was chosen again: %s", s.whole)
		}
		c.started, c.excuse, c.leapt = true, s, true
		if s.policy != "" {
			c.stand(s.leg.to)
		}
	case sayLost, sayReplaced:
		c.arrive()
		c.excuse, c.leapt = s, true
		if s.what == sayLost && !c.mayLose() {
			c.fault("lineage is said to be lost, and the history is whole from %+v through %+v: %s", c.standing(), c.w.since, s.whole)
		}
		if s.what == sayReplaced && !c.replaced() {
			c.fault("no other table was under the name than that of %+v: %s", c.standing(), s.whole)
		}
	}
}

// arrive is the end of the step under way.
func (c *course) arrive() {
	if c.under == nil {
		return
	}
	e := c.w.expect(*c.under, c.pol)
	if e.stops(c.pol) && !c.passed {
		c.fault("step %+v removes rows, and nothing was said when the input went past it", *c.under)
	}
	c.reach(c.under.to)
	if c.onto != "" {
		c.content, c.onto = c.onto, ""
	}
	c.ordinal = c.under.n
	c.under, c.passed = nil, false
}

func (c *course) reach(id int64) {
	c.at = id
	if content := c.w.contentOf(id); content != "" {
		c.content = content
	}
}

func (c *course) step(l leg) {
	if c.under != nil && *c.under == l {
		return // tried again
	}
	c.arrive()
	switch {
	case !c.started:
		c.fault("step %+v comes before a start was chosen", l)
	case l.n != c.ordinal+1:
		c.fault("step %+v follows step %d", l, c.ordinal)
	case !c.leads(l) && !c.excused(l):
		c.fault("step %+v does not lead on from %+v (%s), and nothing that was said allows it: %q", l, c.standing(), c.w.heads[len(c.w.heads)-1].commit, c.excuse.whole)
	}
	if c.excuse.what == sayStart { // the place is below the first step, should that be given up
		c.at, c.content = max(l.from, catalog.NoSnapshot), c.w.contentOf(l.to)
	}
	c.under, c.gaveUp, c.passed = &l, false, false
	c.leapt = c.leapt || l.crosses()
	if l.kind != "truncate" {
		c.excuse = claim{}
	}
}

// leads tells whether a step goes on from the place, along the truth.
func (c *course) leads(l leg) bool {
	to := c.w.snapshots[l.to]
	if to == nil || l.from != c.at || to.content != c.content || !c.seen(l.to) {
		return false
	}
	switch l.kind {
	case "snapshot":
		return to.parent == l.from
	case "bridge", "catch_up":
		// What the hole hides need not descend from the place: the difference of
		// both sides is right as long as the branch itself led from one to the other.
		return c.w.torn(l.from, l.to) && slices.ContainsFunc(c.w.since, func(h head) bool {
			return c.w.holds(h, l.to) && c.w.cameBy(h, l.from)
		})
	}
	return false
}

// seen tells whether a snapshot was on the line of a head that the input can
// have seen.
func (c *course) seen(id int64) bool {
	return slices.ContainsFunc(c.w.since, func(h head) bool { return c.w.holds(h, id) })
}

// wasHead tells whether the branch had a snapshot as its head since the input
// last caught up.
func (c *course) wasHead(id int64) bool {
	return slices.ContainsFunc(c.w.since, func(h head) bool { return h.content != "" && h.snapshot == id })
}

// excused tells whether a start, a loss or another table allows a step that
// does not go on from the place.
func (c *course) excused(l leg) bool {
	if l.kind == "truncate" {
		return c.pol.changelog && l.from == c.at && (c.excuse.what == sayReplaced || c.excuse.policy == "table_scan")
	}
	if !c.seen(l.to) {
		return false
	}
	switch c.excuse.what {
	case sayStart, sayReplaced:
		switch {
		case c.pol.start == "table_scan":
			return l.kind == "table_scan" && c.wasHead(l.to)
		case c.pol.start == "earliest" && l.kind == "snapshot" && l.from == catalog.NoSnapshot:
			return c.w.snapshots[l.to].parent == catalog.NoSnapshot
		case c.pol.start == "earliest":
			return c.w.torn(l.to, l.to) // the oldest that can be read, or a way across what can't
		}
	case sayLost:
		switch c.excuse.policy {
		case "table_scan":
			return l.kind == "table_scan" && c.wasHead(l.to)
		case "bridge":
			return l.kind == "bridge" && l.from == c.at && c.wasHead(l.to)
		case "ancestor":
			return c.branches(l)
		}
	}
	return false
}

// branches tells whether a step begins where the head's line left the place's.
func (c *course) branches(l leg) bool {
	known := map[int64]bool{}
	for _, s := range c.w.line(c.at) {
		known[s.id] = true
	}
	if l.from != catalog.NoSnapshot && !known[l.from] {
		return false
	}
	between := c.w.above(l.from, l.to)
	if slices.ContainsFunc(between, func(s *snapshot) bool { return known[s.id] }) {
		return false
	}
	return len(between) == 1 || l.crosses() && c.w.torn(l.from, l.to)
}

// stand moves the place without a step.
func (c *course) stand(id int64) {
	ok := id == c.at
	switch {
	case ok:
	case c.excuse.what == sayStart || c.excuse.what == sayReplaced:
		ok = c.pol.start == "latest" && c.wasHead(id)
	case c.excuse.policy == "start":
		ok = c.wasHead(id)
	case c.excuse.policy == "ancestor":
		ok = c.wasHead(id) && slices.ContainsFunc(c.w.line(c.at), func(s *snapshot) bool { return s.id == id })
	}
	if !ok {
		c.fault("the input goes from %+v to snapshot %d without a step, and nothing that was said allows it: %q", c.standing(), id, c.excuse.whole)
	}
	if c.gaveUp {
		c.ordinal++ // that of the step that was given up
	}
	c.reach(id)
	c.excuse, c.gaveUp = claim{}, false
}

// pass holds the announcement that rows are passed over to the truth.
func (c *course) pass(s claim) {
	right := c.under != nil && c.under.to == s.leg.to && s.removed == s.policy &&
		(s.leg.from == nothing) != c.under.crosses() && (s.leg.from == nothing || s.leg.from == c.under.from)
	if right {
		e := c.w.expect(*c.under, c.pol)
		right = slices.Contains(e.removed, s.removed) && c.pol.onRemoved(s.removed) == "skip"
	}
	if !right {
		c.fault("step %+v is passed over without a reason: %s", c.under, s.whole)
	}
	c.passed, c.leapt = true, true
}

// mayLose tells whether a head that the input can have seen leaves a gap to the
// place: it does not descend from it, or a file on the way was gone.
func (c *course) mayLose() bool {
	return slices.ContainsFunc(c.w.since, func(h head) bool {
		return h.content == c.content && (!c.w.descends(h, c.standing()) || c.w.torn(c.at, h.snapshot))
	})
}

// replaced tells whether another table was under the name.
func (c *course) replaced() bool {
	return slices.ContainsFunc(c.w.since, func(h head) bool { return h.content != "" && h.content != c.content })
}

// message is what one message says: what happened to which row.
type message struct {
	operation string
	id        int64
}

// expectation is what a step delivers by the truth.
type expectation struct {
	messages map[message]bool
	// removed are the kinds that the step can be of, as it takes rows away and
	// messages of added rows can't say it; none where they can.
	removed []string
}

// expect says what a step has to deliver.
func (w *world) expect(l leg, pol policies) expectation {
	e := expectation{messages: map[message]bool{}}
	tell := func(operation string, rows map[int64]bool) {
		for id := range rows {
			e.messages[message{operation, id}] = true
		}
	}
	switch l.kind {
	case "truncate":
		e.messages[message{"truncate", 0}] = true
		return e
	case "table_scan":
		tell("read", w.live(l.to))
		return e
	}
	came, went := minus(w.live(l.to), w.live(l.from)), minus(w.live(l.from), w.live(l.to))
	tell("insert", came)
	switch {
	case pol.changelog:
		tell("delete", went)
	case len(went) > 0 && len(came) > 0:
		e.removed = []string{"overwrite"}
	case len(went) > 0: // which one depends on whether other rows of its files were written anew
		e.removed = []string{"overwrite", "delete"}
	}
	return e
}

// stops tells whether the step falls under a policy that does not deliver it.
func (e expectation) stops(pol policies) bool {
	return len(e.removed) > 0 && !slices.ContainsFunc(e.removed, func(kind string) bool { return pol.onRemoved(kind) == "added_rows" })
}

func minus(a, b map[int64]bool) map[int64]bool {
	out := maps.Clone(a)
	maps.DeleteFunc(out, func(id int64, _ bool) bool { return b[id] })
	return out
}

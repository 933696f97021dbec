// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// firstLook is how many of the table's commits are taken at once where nothing says how many will be needed. It is what
// the first pages of a log query hold, and doubles.
const firstLook = 48

// tableLog is the part of the commit log that is about one table: the first-parent line from the head, and the lines
// that were merged into it. What was fetched stays.
type tableLog struct {
	log       Log
	name      string
	head      string
	contentID string
	until     *int64

	main *logLine
	side []*logLine
	// seen are the commits that were fetched, on whichever line.
	seen map[string]bool
	// puts are the fetched commits by the snapshot that they put, in the order of fetching; order is all of them.
	puts  map[int64][]int
	order []TableCommit
	look  int
	// passed is set once the main line went by the commit of until.
	passed bool
}

// logLine is one first-parent walk: key is the table's key there, next the commit to go on from.
type logLine struct {
	key     Key
	next    string
	commits []TableCommit
	// deletes wait for an older commit of the same table: without one they are of another table under the same key.
	deletes []TableCommit
	oldest  time.Time
}

func (l *logLine) done() bool { return l.next == "" }

func newTableLog(log Log, head Head, key Key, until *int64) *tableLog {
	name := head.Reference.Name
	if head.Reference.Type == Detached {
		name = ""
	}
	return &tableLog{
		log: log, name: name, head: head.Reference.Hash, contentID: head.Content.ID, until: until,
		main: &logLine{key: key, next: head.Reference.Hash},
		seen: map[string]bool{}, puts: map[int64][]int{}, look: firstLook,
	}
}

// of answers the fetched commits that have this snapshot id as their table's.
func (t *tableLog) of(id int64) []TableCommit {
	commits := make([]TableCommit, len(t.puts[id]))
	for i, at := range t.puts[id] {
		commits[i] = t.order[at]
	}
	return commits
}

// settled reports whether the commit that brought a snapshot was fetched: one with another snapshot lies behind it.
func (t *tableLog) settled(id int64) bool {
	if len(t.puts[id]) == 0 {
		return false
	}
	for _, l := range append([]*logLine{t.main}, t.side...) {
		if n := len(l.commits); n > 0 && l.commits[n-1].Content.SnapshotID == id && !l.done() {
			return false
		}
	}
	return true
}

// near reports whether there is more of what lies between the head and until: on the main line, or on a line that was
// merged into it there.
func (t *tableLog) near() bool {
	return t.beforeUntil() || slices.ContainsFunc(t.side, func(l *logLine) bool { return !l.done() })
}

// anywhere reports whether there is more at all.
func (t *tableLog) anywhere() bool { return t.line() != nil }

func (t *tableLog) beforeUntil() bool { return !t.passed && !t.main.done() }

// line picks the line to go on with: the main one until it is beyond until, then the one that is the least far back, so
// that a merged line has met the main one when it arrives where they parted.
func (t *tableLog) line() *logLine {
	if t.beforeUntil() {
		return t.main
	}
	var pick *logLine
	for _, l := range append([]*logLine{t.main}, t.side...) {
		if !l.done() && (pick == nil || l.oldest.After(pick.oldest)) {
			pick = l
		}
	}
	return pick
}

// advance fetches more commits, of whichever line is next. What lies before until is needed anyway: it is fetched in one
// go. Elsewhere it is as much as was fetched before, and beyond until no more than up to the snapshot id.
func (t *tableLog) advance(ctx context.Context, id int64) error {
	line, known := t.line(), t.until != nil
	if known && t.beforeUntil() {
		return t.fetch(ctx, line, func(TableCommit) bool { return t.passed })
	}
	limit := t.take()
	return t.fetch(ctx, line, func(c TableCommit) bool {
		limit--
		return limit == 0 || known && c.Content.SnapshotID == id
	})
}

// advanceMain fetches more commits of the main line.
func (t *tableLog) advanceMain(ctx context.Context) error {
	limit := t.take()
	return t.fetch(ctx, t.main, func(c TableCommit) bool {
		limit--
		return limit == 0 || t.isUntil(c)
	})
}

// take answers how many commits to fetch now.
func (t *tableLog) take() int {
	limit := t.look
	t.look *= 2
	return limit
}

func (t *tableLog) isUntil(c TableCommit) bool {
	return t.until != nil && c.Op == Put && c.Content.SnapshotID == *t.until
}

// fetch takes commits of a line until enough says so, or the line ends or meets one that was fetched before.
func (t *tableLog) fetch(ctx context.Context, line *logLine, enough func(TableCommit) bool) error {
	for !line.done() {
		renamed, stopped, err := t.fetchUnder(ctx, line, enough)
		if err != nil {
			return err
		}
		if stopped {
			return nil
		}
		if !renamed {
			line.next = ""
		}
	}
	return nil
}

// fetchUnder is fetch for as long as the table has one key.
func (t *tableLog) fetchUnder(ctx context.Context, line *logLine, enough func(TableCommit) bool) (renamed, stopped bool, err error) {
	for c, err := range t.from(ctx, line.next, LogQuery{Keys: []Key{line.key}}) {
		if errors.Is(err, ErrUnknownReference) && line.next != t.head {
			return false, false, nil // the server keeps nothing older
		}
		if err != nil {
			return false, false, err
		}
		if line != t.main && t.seen[c.Hash] {
			return false, false, nil // from here on it is a line that is walked already
		}
		op, ok := operationOn(c, line.key)
		if !ok {
			continue
		}
		if op.Type == Put && op.Content.ID != t.contentID {
			return false, false, nil // another table under the same key
		}
		line.next, line.oldest = firstParent(c), c.Time
		tc := TableCommit{Hash: c.Hash, TimeMs: c.Time.UnixMilli(), Op: op.Type, Content: op.Content, Key: line.key, Parents: c.Parents}
		if op.Type == Delete {
			line.deletes = append(line.deletes, tc)
			continue
		}
		t.add(line, tc)
		if renamed, err = t.followRename(ctx, line, c); err != nil {
			return false, false, err
		}
		if enough(tc) {
			return renamed, true, nil
		}
		if renamed {
			return true, false, nil
		}
	}
	return false, false, nil
}

// add keeps a commit that put the table.
func (t *tableLog) add(line *logLine, c TableCommit) {
	line.commits = append(append(line.commits, line.deletes...), c)
	line.deletes = nil
	if line == t.main && t.isUntil(c) {
		t.passed = true
	}
	if t.seen[c.Hash] {
		return // a merged line got here first
	}
	t.seen[c.Hash] = true
	t.puts[c.Content.SnapshotID] = append(t.puts[c.Content.SnapshotID], len(t.order))
	t.order = append(t.order, c)
	if len(c.Parents) > 1 {
		for _, merged := range c.Parents[1:] {
			t.side = append(t.side, &logLine{key: line.key, next: merged, oldest: time.UnixMilli(c.TimeMs)})
		}
	}
}

// followRename lets the line go on under the table's former key if this commit deleted that: before the commit it held
// the same content id.
func (t *tableLog) followRename(ctx context.Context, line *logLine, c Commit) (bool, error) {
	parent := firstParent(c)
	if parent == "" {
		return false, nil
	}
	for _, op := range c.Operations {
		if op.Type != Delete || op.Key.Equal(line.key) {
			continue
		}
		held, err := t.held(ctx, op.Key, parent)
		if err != nil {
			return false, err
		}
		if held {
			line.key = op.Key
			return true, nil
		}
	}
	return false, nil
}

// held reports whether key held the table at a commit: the last operation on it put the table's content id.
func (t *tableLog) held(ctx context.Context, key Key, commit string) (bool, error) {
	for c, err := range t.from(ctx, commit, LogQuery{Keys: []Key{key}, PageSize: 1}) {
		if errors.Is(err, ErrUnknownReference) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for the table's former name: %w", err)
		}
		op, ok := operationOn(c, key)
		return ok && op.Type == Put && op.Content.ID == t.contentID, nil
	}
	return false, nil
}

// from goes through the commits from one back. The commit is named the way that permissions on the head's reference
// cover; old servers answer that for commits on the branch only, which merged ones are not, so then it is named alone.
func (t *tableLog) from(ctx context.Context, hash string, q LogQuery) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		begun := false
		q.From = Ref{Name: t.name, Hash: hash}
		for c, err := range t.log.Log(ctx, q) {
			if !begun && q.From.Name != "" && errors.Is(err, ErrUnknownReference) {
				q.From.Name = ""
				t.log.Log(ctx, q)(yield)
				return
			}
			if begun = true; !yield(c, err) {
				return
			}
		}
	}
}

func operationOn(c Commit, key Key) (Operation, bool) {
	for _, op := range c.Operations {
		if op.Key.Equal(key) {
			return op, true
		}
	}
	return Operation{}, false
}

func firstParent(c Commit) string {
	if len(c.Parents) == 0 {
		return ""
	}
	return c.Parents[0]
}

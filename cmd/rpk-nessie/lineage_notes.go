// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// inOrder sorts rows so that each comes before those that it follows, and the newer first where that leaves a choice.
func inOrder(rows []*row) []*row {
	followers := map[string]int{}
	byID := map[string]*row{}
	met := map[string]int{}
	for i, r := range rows {
		byID[r.ID], met[r.ID] = r, i
		for _, p := range r.Parents {
			followers[p]++
		}
	}
	ready := &newestFirst{met: met}
	for _, r := range rows {
		if followers[r.ID] == 0 {
			heap.Push(ready, r)
		}
	}
	var ordered []*row
	for ready.Len() > 0 {
		r := heap.Pop(ready).(*row)
		ordered = append(ordered, r)
		for _, p := range r.Parents {
			if followers[p]--; followers[p] == 0 && byID[p] != nil {
				heap.Push(ready, byID[p])
			}
		}
	}
	return ordered
}

type newestFirst struct {
	rows []*row
	met  map[string]int
}

func (h newestFirst) Len() int { return len(h.rows) }
func (h newestFirst) Less(i, j int) bool {
	a, b := h.rows[i], h.rows[j]
	if a.Time != b.Time {
		return a.Time > b.Time
	}
	return h.met[a.ID] < h.met[b.ID]
}
func (h newestFirst) Swap(i, j int) { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *newestFirst) Push(x any)   { h.rows = append(h.rows, x.(*row)) }
func (h *newestFirst) Pop() any {
	last := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return last
}

// addHidden puts the snapshots of the head's line that no commit has below the commit that brought them.
func (c *collector) addHidden() {
	brought := map[int64]*row{} // the oldest commit of each snapshot
	for _, r := range c.graph.Rows {
		if r.Snapshot != nil {
			brought[int64(r.Snapshot.ID)] = r
		}
	}
	for _, r := range brought {
		r.Brings = true
	}
	below := map[*row][]*row{}
	var carrier *row
	for _, node := range c.line.Nodes {
		id := node.State.SnapshotID
		if r := brought[id]; r != nil {
			carrier = r
			continue
		}
		if carrier == nil || id == catalog.NoSnapshot {
			continue
		}
		below[carrier] = append(below[carrier], &row{
			Kind: rowHidden, ID: fmt.Sprintf("snapshot %d", id), Time: moment(node.State.TimestampMs), Snapshot: c.snapshots[id], Brings: true,
			Notes: []string{"no commit has it as its own: it came with the snapshot above"},
		})
	}
	var rows []*row
	for _, r := range c.graph.Rows {
		rows = append(rows, r)
		last := r
		for _, h := range below[r] {
			h.Parents, last.Parents = firstOf(last.Parents), append([]string{h.ID}, restOf(last.Parents)...)
			rows = append(rows, h)
			last = h
		}
	}
	c.graph.Rows = rows
}

func firstOf(s []string) []string { return s[:min(1, len(s)):min(1, len(s))] }

func restOf(s []string) []string { return s[min(1, len(s)):] }

// note says of every commit what it did besides adding to what was there before it.
func (c *collector) note() {
	before := map[string]*row{} // the commit that each follows
	for _, r := range c.graph.Rows {
		if r.Kind != rowCommit {
			continue
		}
		p := r
		for len(p.Parents) > 0 && (p == r || p.Kind == rowHidden) {
			p = c.graph.row(p.Parents[0])
			if p == nil {
				break
			}
		}
		if p != r && p != nil {
			before[r.ID] = p
		}
	}
	for _, r := range c.graph.Rows {
		if r.Kind == rowCommit {
			r.Notes = append(r.Notes, c.noteOn(r, before[r.ID])...)
		}
		if r.Snapshot != nil && r.Snapshot.Gone {
			r.Notes = append(r.Notes, "its manifest list is gone: it can't be read any more")
		}
	}
}

func (c *collector) noteOn(r, before *row) []string {
	var notes []string
	if r.commit.Op == catalog.Delete {
		return []string{"the table is dropped"}
	}
	if before != nil && !before.commit.Key.Equal(r.commit.Key) {
		notes = append(notes, fmt.Sprintf("renamed from %s to %s", before.commit.Key, r.commit.Key))
	}
	now, then := r.commit.Content.SnapshotID, catalog.NoSnapshot
	if before != nil && before.commit.Op == catalog.Put {
		then = before.commit.Content.SnapshotID
	}
	switch {
	case before == nil || now == then:
		return notes
	case now == catalog.NoSnapshot:
		return append(notes, fmt.Sprintf("the table holds no snapshot any more: snapshot %d is left behind", then))
	case then == catalog.NoSnapshot || c.descends(now, then):
		return notes
	case c.descends(then, now):
		return append(notes, fmt.Sprintf("goes back to snapshot %d: leaves %d behind", now, then))
	case c.snapshots[now].Parent == snapshotID(catalog.NoSnapshot) && c.snapshots[now].FoundBy != "":
		return append(notes, fmt.Sprintf("begins anew without a parent: leaves snapshot %d behind", then))
	case c.knows(now):
		return append(notes, fmt.Sprintf("does not descend from snapshot %d, which is left behind", then))
	}
	return append(notes, fmt.Sprintf("whether it descends from snapshot %d is not proved", then))
}

// descends reports whether one snapshot is proved to come after another.
func (c *collector) descends(from, ancestor int64) bool {
	for range len(c.parent) + 1 {
		parent, ok := c.parent[from]
		if !ok {
			return false
		}
		if parent == ancestor {
			return true
		}
		from = parent
	}
	return false
}

// knows reports whether the line of a snapshot is known to its root.
func (c *collector) knows(from int64) bool {
	for range len(c.parent) + 1 {
		parent, ok := c.parent[from]
		if !ok {
			s := c.snapshots[from]
			return s != nil && s.FoundBy != ""
		}
		from = parent
	}
	return false
}

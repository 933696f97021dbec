// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
)

// A step's rows come from two sides: those that it takes away and those that it brings. order numbers them: deletes before
// inserts, and within a side in the order in which its files are read.
type order uint64

const insertSide order = 1 << 63

func (o order) isInsert() bool { return o&insertSide != 0 }

// survivor is a row that is on one side only.
type survivor struct {
	order   order
	row     string // coded
	carried string // coded
}

// cluster is what goes out together: a row, or all rows of one key in their order.
type cluster []survivor

// multiset subtracts the rows of both sides from each other in bounded memory. Equal rows cancel as soon as both are known,
// so that a file and its rewritten copy, which hold their rows in the same order, need hardly any memory. Of n rows on one
// side and m equal ones on the other the last |n-m| remain, whatever the order in which the sides come, as long as each
// side comes in its own order: the outcome depends on nothing but the rows.
//
// Rows are spread over partitions by their hash (that of their key, where there are keys). When memory is short, the
// largest partition moves into a file, and from then on its rows go there without being compared; they are at the end.
type multiset struct {
	keyed  bool
	memory int64 // bytes to stay below
	buffer int   // bytes for each open file
	spill  *spillFolder
	seed   maphash.Seed
	level  int // how often the rows were spread already

	parts [spread]partition
	used  int64
}

const (
	spreadBits = 6
	spread     = 1 << spreadBits
	// mostSpread levels make parts so small that what is left in one is one key, or equal rows.
	mostSpread = 4
	// rowOverhead and itemOverhead are what a row needs in memory beside its bytes, until it is delivered.
	rowOverhead  = 250
	itemOverhead = 100
)

type partition struct {
	rows map[string]*pending
	used int64
	file *spillFile // set: all rows of the partition go there
}

// pending are equal rows that are on one side only so far.
type pending struct {
	insert bool
	items  []pendingItem // in order
	one    [1]pendingItem
}

type pendingItem struct {
	order   order
	carried string
}

func newMultiset(keyed bool, memory int64, spill *spillFolder) *multiset {
	return &multiset{keyed: keyed, memory: memory, buffer: spillBuffer(memory), spill: spill, seed: maphash.MakeSeed()}
}

// add takes the next row of its side. It keeps neither slice.
func (m *multiset) add(o order, row, carried []byte) error {
	p := &m.parts[m.partOf(row)]
	if p.file != nil {
		return p.file.write(o, row, carried)
	}
	before := p.used
	p.add(o, row, carried)
	m.used += p.used - before
	if m.used > m.memory && m.level < mostSpread {
		return m.evict()
	}
	return nil
}

func (m *multiset) partOf(row []byte) int {
	if m.keyed {
		row = keyOf(row)
	}
	return int(maphash.Bytes(m.seed, row) >> (64 - spreadBits*(m.level+1)) & (spread - 1))
}

func (p *partition) add(o order, row, carried []byte) {
	if p.rows == nil {
		p.rows = map[string]*pending{}
	}
	item := pendingItem{order: o, carried: string(carried)}
	e := p.rows[string(row)]
	switch {
	case e == nil:
		e = &pending{insert: o.isInsert()}
		e.one[0] = item
		e.items = e.one[:]
		p.rows[string(row)] = e
		p.used += int64(len(row)+len(carried)) + rowOverhead
	case e.insert == o.isInsert():
		e.items = append(e.items, item)
		p.used += int64(len(carried)) + itemOverhead
	default:
		first := e.items[0]
		if e.items = e.items[1:]; len(e.items) == 0 {
			delete(p.rows, string(row))
			p.used -= int64(len(row)+len(first.carried)) + rowOverhead
		} else {
			p.used -= int64(len(first.carried)) + itemOverhead
		}
	}
}

// evict moves the largest partition in memory into a file.
func (m *multiset) evict() error {
	var p *partition
	for i := range m.parts {
		if q := &m.parts[i]; q.file == nil && (p == nil || q.used > p.used) {
			p = q
		}
	}
	file, err := m.spill.create(m.buffer)
	if err != nil {
		return err
	}
	for row, e := range p.rows {
		for _, item := range e.items {
			if err := file.write(item.order, []byte(row), []byte(item.carried)); err != nil {
				return err
			}
		}
	}
	m.used -= p.used
	*p = partition{file: file}
	return nil
}

// spilled reports whether any row went to disk.
func (m *multiset) spilled() bool {
	return slices.ContainsFunc(m.parts[:], func(p partition) bool { return p.file != nil })
}

// groups takes what remains in memory, in order.
func (m *multiset) groups() []cluster {
	var groups []cluster
	for i := range m.parts {
		groups = m.parts[i].appendGroups(groups, m.keyed)
		m.parts[i].rows = nil
		m.used -= m.parts[i].used
		m.parts[i].used = 0
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}

func compareGroups(a, b cluster) int {
	if a[0].order < b[0].order {
		return -1
	}
	return 1 // no two rows have one order
}

func (p *partition) appendGroups(groups []cluster, keyed bool) []cluster {
	byKey := map[string]cluster{}
	for row, e := range p.rows {
		for _, item := range e.items {
			s := survivor{order: item.order, row: row, carried: item.carried}
			if keyed {
				byKey[keyOf(row)] = append(byKey[keyOf(row)], s)
			} else {
				groups = append(groups, cluster{s})
			}
		}
	}
	for _, g := range byKey {
		slices.SortFunc(g, func(a, b survivor) int {
			if a.order < b.order {
				return -1
			}
			return 1
		})
		groups = append(groups, g)
	}
	return groups
}

// settle ends the subtraction where rows went to disk: it writes what remains as sorted runs, a partition at a time.
func (m *multiset) settle(ctx context.Context, runs *runFile) error {
	if err := runs.write(m.groups()); err != nil {
		return err
	}
	for i := range m.parts {
		p := &m.parts[i]
		if p.file == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		next := &multiset{keyed: m.keyed, memory: m.memory, buffer: m.buffer, spill: m.spill, seed: m.seed, level: m.level + 1}
		if err := p.file.drain(next.add); err != nil {
			return fmt.Errorf("comparing rows: %w", err)
		}
		p.file = nil
		if err := next.settle(ctx, runs); err != nil {
			return err
		}
	}
	return nil
}

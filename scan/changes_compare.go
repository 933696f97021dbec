// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
)

// compare subtracts the rows of both sides from each other and visits what remains, in order: rows, or where keyed all rows
// of a key at once.
func (c *ChangePlan) compare(ctx context.Context, s *sides, keyed bool, opts ReadOptions, visit func(cluster) error) (err error) {
	next := func(g cluster) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return visit(g)
	}
	spill := newSpillFolder(opts.SpillDir)
	defer func() { err = errors.Join(err, spill.remove()) }()
	left := newMultiset(keyed, opts.Memory/2, spill)
	if err := c.subtract(ctx, s, keyed, opts, left); err != nil {
		return err
	}
	if !left.spilled() {
		for _, g := range left.groups() {
			if err := next(g); err != nil {
				return err
			}
		}
		return nil
	}
	runs, err := spill.runs()
	if err != nil {
		return err
	}
	if err := left.settle(ctx, runs); err != nil {
		return err
	}
	for g, err := range runs.merge(opts.Memory / 2) {
		if err != nil {
			return err
		}
		if err := next(g); err != nil {
			return err
		}
	}
	return nil
}

// subtract reads both sides, each in its order, at the same pace: rewritten files mostly keep the order of their rows, so
// that equal rows meet early.
func (c *ChangePlan) subtract(ctx context.Context, s *sides, keyed bool, opts ReadOptions, into *multiset) error {
	var keys []keyPath
	if keyed {
		keys = c.keys
	}
	deletes := &sideReader{plan: &s.deletes, opts: opts, out: make(chan codedRows)}
	inserts := &sideReader{plan: &s.inserts, opts: opts, out: make(chan codedRows), first: insertSide}
	for _, side := range []*sideReader{deletes, inserts} {
		var err error
		if side.code, err = newRowCode(s.schema, keys); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return deletes.read(ctx) })
	g.Go(func() error { return inserts.read(ctx) })
	g.Go(func() error {
		for {
			side := deletes
			if deletes.ended || (!inserts.ended && inserts.progress < deletes.progress) {
				side = inserts
			}
			if side.ended {
				return nil
			}
			if err := side.take(ctx, into); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// codedRows are consecutive rows of a side: coded row and what it carries, one behind the other.
type codedRows struct {
	first    order
	bytes    []byte
	ends     []int // two for each row
	progress float64
}

// sideReader reads a side's tasks in order on a goroutine of its own.
type sideReader struct {
	plan  *Plan
	opts  ReadOptions
	first order
	code  *rowCode
	out   chan codedRows

	// Only the consumer uses these.
	progress float64 // of the side's rows, about
	ended    bool
}

// taskBits leave room for 2^40 rows in a task.
const taskBits = 40

func (r *sideReader) read(ctx context.Context) error {
	defer close(r.out)
	var total, done int64
	for _, t := range r.plan.Tasks {
		total += expectedRows(t)
	}
	opts := r.opts
	// Of the memory half is for what is compared. Each side is measured to take about twice what it is given here, for pages
	// and coded rows; the rest is left for buffers.
	opts.Memory, opts.Parallelism = opts.Memory/8, 2
	for i, t := range r.plan.Tasks {
		rows, _ := (&worker{plan: r.plan, opts: opts}).size(t)
		var n int64
		for batch, err := range r.plan.decode(ctx, t, r.plan.columns, rows) {
			if err != nil {
				return err
			}
			coded, err := r.code.rows(batch)
			batch.Release()
			if err != nil {
				return err
			}
			coded.first = r.first | order(i)<<taskBits | order(n)
			n += int64(len(coded.ends) / 2)
			coded.progress = float64(done+min(n, expectedRows(t))) / float64(max(total, 1))
			select {
			case r.out <- coded:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		done += expectedRows(t)
	}
	return nil
}

// expectedRows is about how many rows a task yields.
func expectedRows(t Task) int64 {
	rows := t.File.Data.Count()
	if t.Deletes.Vector != nil {
		rows -= t.Deletes.Vector.Data.Count()
	}
	return max(rows, 1)
}

func (c *rowCode) rows(batch arrow.RecordBatch) (codedRows, error) {
	if err := c.bind(batch); err != nil {
		return codedRows{}, err
	}
	n := int(batch.NumRows())
	out := codedRows{ends: make([]int, 0, 2*n), bytes: make([]byte, 0, n*c.size)}
	for i := range n {
		var err error
		if out.bytes, err = c.append(out.bytes, i); err != nil {
			return codedRows{}, err
		}
		out.ends = append(out.ends, len(out.bytes))
		if out.bytes, err = c.appendCarried(out.bytes, i); err != nil {
			return codedRows{}, err
		}
		out.ends = append(out.ends, len(out.bytes))
	}
	if n > 0 {
		c.size = len(out.bytes)/n + 8
	}
	return out, nil
}

// take adds the side's next rows.
func (r *sideReader) take(ctx context.Context, into *multiset) error {
	rows, ok := <-r.out
	if !ok {
		r.ended = true
		return context.Cause(ctx) // an error of the reader ended ctx
	}
	r.progress = rows.progress
	var start int
	for i := 0; i < len(rows.ends); i += 2 {
		end, last := rows.ends[i], rows.ends[i+1]
		if err := into.add(rows.first+order(i/2), rows.bytes[start:end], rows.bytes[end:last]); err != nil {
			return err
		}
		start = last
	}
	return nil
}

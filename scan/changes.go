// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/iceberg-go"
)

// ChangeMode is which messages a step becomes.
type ChangeMode string

// The modes.
const (
	// Changelog delivers deletes, inserts and updates whose net is after − before, as multisets of rows.
	Changelog ChangeMode = "changelog"
	// AddedRows delivers the rows that after has and before does not as inserts, and no deletes.
	AddedRows ChangeMode = "added_rows"
)

// Payload is the body of a delete.
type Payload string

// The payloads.
const (
	PayloadRow Payload = "row" // the whole row
	PayloadKey Payload = "key" // its key columns only, where there are any
)

// ChangeOptions say what a step's changes are delivered as. They are part of the plan's digest. The zero value of a field
// stands for its default.
type ChangeOptions struct {
	Mode ChangeMode // changelog
	// IdentifierFields are the names, dotted in structs, of the columns that make a row's key. nil: the identifier fields of
	// the step's schema, where all of them are read; empty and not nil: there is no key.
	IdentifierFields []string
	DeletePayload    Payload // row
}

// ChangePlan is what a step did to its table's rows. Like a Plan it is immutable, holds no open files, and can be read any
// number of times.
type ChangePlan struct {
	// Kind, Tasks, Removed, Changed, Schema: what the step is made of. Records counts the rows of added files.
	*Plan
	// Keys are the names of the key columns in the schema's order; none: rows have no key.
	Keys []string
	// Digest takes the place of the Plan's: it covers both sides, the key, the payload and the mode.
	Digest string

	opts ChangeOptions
	keys []keyPath
	// before reads the files that go away.
	before Plan
	// foreign: the rows of both states have nothing in common, as the table or a column is another one. Removed rows then have
	// the before-state's schema and nothing cancels.
	foreign bool
}

// PlanChanges plans what the step did to the table's rows. Table scans, steps that only add files and replaces that are
// trusted are planned as PlanStep does, and read as Plan.Read does; a snapshot that removes rows needs Step.Before and is
// planned as a bridge. Step.BeforeMeta should be the metadata file of Before wherever it is not known to lie on After's
// own line: schema ids and field ids of another branch can mean other columns. Errors: PlanStep's, and *KeyError.
func PlanChanges(ctx context.Context, source Source, step Step, opts ChangeOptions) (*ChangePlan, error) {
	plan, err := PlanStep(ctx, source, step)
	if err != nil {
		return nil, err
	}
	if step.Way == WaySnapshot && (plan.Kind == KindDelete || plan.Kind == KindOverwrite) {
		if step.Before == nil {
			return nil, errors.New("it removes rows and the state before it is not known")
		}
		step.Way = WayBridge
		if plan, err = PlanStep(ctx, source, step); err != nil {
			return nil, err
		}
	}
	c := &ChangePlan{Plan: plan, opts: opts.withDefaults(), before: *plan}
	if err := c.findKeys(); err != nil {
		return nil, err
	}
	if err := c.findBefore(source, step); err != nil {
		return nil, err
	}
	c.Digest = c.digest()
	return c, nil
}

func (o ChangeOptions) withDefaults() ChangeOptions {
	if o.Mode == "" {
		o.Mode = Changelog
	}
	if o.DeletePayload == "" {
		o.DeletePayload = PayloadRow
	}
	return o
}

// findBefore decides with which schema and metadata the removed files are read.
func (c *ChangePlan) findBefore(source Source, step Step) error {
	c.before.Tasks = nil
	if step.Before == nil || len(c.Removed)+len(c.Changed) == 0 {
		return nil
	}
	meta := source.Meta
	if step.BeforeMeta != nil {
		meta = step.BeforeMeta
	}
	c.before.after = *step.Before
	c.before.source.Meta = meta
	schema, err := (Step{After: *step.Before}).schema(meta)
	if err != nil {
		return err
	}
	before, after := step.Before.TableUUID, step.After.TableUUID
	c.foreign = (before != "" && after != "" && before != after) || !promotes(schema, c.schema)
	if !c.foreign {
		return nil
	}
	c.before.schema = schema
	c.before.columns = nil
	for _, column := range step.Columns {
		if _, ok := schema.FindFieldByName(column); ok || isLineageName(column) {
			c.before.columns = append(c.before.columns, column)
		}
	}
	if c.opts.DeletePayload == PayloadKey && len(c.Keys) > 0 && hasAll(schema, c.Keys) {
		c.before.columns = c.Keys
	}
	c.before.Schema, err = project(meta, schema, c.before.columns)
	return err
}

func hasAll(schema *iceberg.Schema, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, ok := schema.FindFieldByName(name)
		return !ok
	})
}

// Foreign reports that the rows before and after have nothing in common, as the table or a column is another one: all deletes
// come before all inserts, and messages of one key are in different batches.
func (c *ChangePlan) Foreign() bool { return c.foreign }

// rewritesOnly reports whether the step is known to change no row.
func (c *ChangePlan) rewritesOnly() bool { return c.Kind == KindReplace || c.Kind == KindEmpty }

// addsOnly reports whether the step can be read as a Plan.
func (c *ChangePlan) addsOnly() bool {
	return c.Kind == KindTableScan || c.Kind == KindAppend || len(c.Removed)+len(c.Changed) == 0
}

// Read yields the step's messages from ordinal opts.From on, in one order that depends on nothing but the plan. Without a
// key deletes come first, then inserts, each in the order of files and rows. With a key all messages of one key are
// neighbours in one batch, which may therefore be larger than the options say: its deletes that no insert stands against,
// its updates (update_before, update_after) in row order, its remaining inserts; keys come in the order of their first row,
// deletes first. A step that only adds files is read as Plan.Read does, file by file, without gathering keys.
//
// Rows that are on both sides cancel out, so both sides are read before the first message, unless only one has rows and
// there is no key. opts.Memory bounds what is held meanwhile; the rest goes to a folder in opts.SpillDir that is removed
// when the loop ends. A batch with messages of several operations has Operations; formats ndjson and arrow know no key from
// the schema and keep operations apart.
//
// Errors: those of Plan.Read, *SpillError, *KeyError. None is followed by a batch, and where both sides are read none
// comes after one.
func (c *ChangePlan) Read(ctx context.Context, opts ReadOptions) iter.Seq2[Batch, error] {
	switch {
	case c.rewritesOnly():
		return func(func(Batch, error) bool) {}
	case c.addsOnly():
		return c.Plan.Read(ctx, opts)
	}
	return func(yield func(Batch, error) bool) {
		out := &holder{yield: yield}
		err := c.deliver(ctx, opts.withDefaults(), out)
		switch {
		case out.stopped:
		case err != nil:
			yield(Batch{}, fmt.Errorf("reading snapshot %d: %w", c.after.SnapshotID, err))
		default:
			out.end()
		}
	}
}

// Net is how many rows the step inserts and deletes, net of what cancels out. It reads what Read would and delivers nothing.
// A bridge or an unknown operation that deletes nothing net can be read as added rows.
func (c *ChangePlan) Net(ctx context.Context, opts ReadOptions) (inserted, deleted int64, err error) {
	if c.rewritesOnly() {
		return 0, 0, nil
	}
	opts = opts.withDefaults()
	s, err := c.sides(ctx, opts)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.free()) }()
	if s.apart() {
		if inserted, err = s.inserts.rows(ctx); err != nil {
			return 0, 0, err
		}
		deleted, err = s.deletes.rows(ctx)
		return inserted, deleted, err
	}
	err = c.compare(ctx, s, false, opts, func(g cluster) error {
		for _, row := range g {
			if row.order.isInsert() {
				inserted++
			} else {
				deleted++
			}
		}
		return nil
	})
	return inserted, deleted, err
}

// deliver sends every batch to out.
func (c *ChangePlan) deliver(ctx context.Context, opts ReadOptions, out *holder) (err error) {
	keyed, err := c.keyed(opts)
	if err != nil {
		return err
	}
	s, err := c.sides(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.free()) }()
	if s.apart() && (!keyed || c.foreign) {
		return c.deliverApart(ctx, s, opts, out)
	}
	if keyed && c.opts.DeletePayload == PayloadKey && len(s.inserts.Tasks) == 0 {
		if s.schema, err = c.keySchema(); err != nil { // no more is delivered, so no more is read
			return err
		}
		s.deletes.columns = c.Keys
	}
	r, err := newRenderer(c, s.schema, keyed, opts, out)
	if err != nil {
		return err
	}
	if err := c.compare(ctx, s, keyed, opts, r.add); err != nil {
		return err
	}
	return r.finish()
}

// deliverApart reads one side after the other, where nothing can cancel.
func (c *ChangePlan) deliverApart(ctx context.Context, s *sides, opts ReadOptions, out *holder) error {
	var base int64 // the ordinal of the side's first message
	for _, part := range []struct {
		plan      *Plan
		operation string
	}{{&s.deletes, OperationDelete}, {&s.inserts, OperationInsert}} {
		if len(part.plan.Tasks) == 0 || (part.operation == OperationDelete && c.opts.Mode == AddedRows) {
			continue
		}
		own := opts
		own.From = max(opts.From-base, 0)
		if own.From > 0 && part.operation == OperationDelete {
			rows, err := part.plan.rows(ctx)
			if err != nil {
				return err
			}
			if own.From >= rows && len(s.inserts.Tasks) > 0 {
				base += rows
				continue
			}
		}
		next := own.From
		err := part.plan.deliver(ctx, own, func(b Batch) bool {
			next += int64(b.Rows)
			b.First += base
			b.Operation = part.operation
			return out.put(b) == nil
		})
		if err != nil || out.stopped {
			return err
		}
		base += next
	}
	return nil
}

// keyed reports whether messages are gathered by key.
func (c *ChangePlan) keyed(opts ReadOptions) (bool, error) {
	if len(c.keys) == 0 || c.opts.Mode == AddedRows {
		return false, nil
	}
	if opts.Format != FormatJSON && c.opts.IdentifierFields != nil {
		return false, &KeyError{Reason: fmt.Sprintf("updates need a message for each row: format %s has none", opts.Format)}
	}
	return opts.Format == FormatJSON, nil
}

var errStopped = errors.New("the consumer has stopped")

// holder holds one batch back, as only the next one or the end tells whether it is the last.
type holder struct {
	yield   func(Batch, error) bool
	held    *Batch
	stopped bool
}

// put is errStopped once the consumer wants no more.
func (h *holder) put(b Batch) error {
	b.Last = false
	if h.held != nil && !h.yield(*h.held, nil) {
		h.stopped = true
		return errStopped
	}
	h.held = &b
	return nil
}

func (h *holder) end() {
	if h.held != nil {
		h.held.Last = true
		h.yield(*h.held, nil)
	}
}

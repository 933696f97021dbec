// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/apache/iceberg-go"
	"github.com/urfave/cli/v2"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

func readCommand() *cli.Command {
	return &cli.Command{
		Name:  "read",
		Usage: "Read a table, the rows that a snapshot added, or those of a range of snapshots, to standard output",
		Description: `Without --snapshot and --from: the whole table, as --at says. With them: the rows that were added, in the
order of the table's history, all with the columns of the last snapshot.

  ` + name + ` read --config pipeline.yaml --format csv
  ` + name + ` read --config pipeline.yaml --from 6302345123451234512 --format parquet > new.parquet`,
		Flags: append(targetFlags(),
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: "ndjson", Usage: "`FORM`: json (one array), ndjson, csv, arrow (an IPC stream) or parquet"},
			&cli.StringFlag{Name: "at", Usage: "a snapshot id, branch, tag, name@hash or @hash, instead of the input's reference"},
			&cli.StringFlag{Name: "snapshot", Usage: "only the rows that this snapshot added"},
			&cli.StringFlag{Name: "from", Usage: "only the rows that were added after this snapshot"},
			&cli.StringSliceFlag{Name: "columns", Usage: "columns to read, nested ones with dots, instead of the input's"},
			&cli.StringFlag{
				Name: "removed", Value: "fail",
				Usage: "what to do with --snapshot and --from about a snapshot that removes rows: fail, skip, or added_rows (those that it holds and that were not there before)",
			},
		),
		Action: func(c *cli.Context) error {
			return withTarget(c, func(ctx context.Context, t *target) error { return runRead(ctx, c, t) })
		},
	}
}

func runRead(ctx context.Context, c *cli.Context, t *target) error {
	form := c.String("format")
	if (form == "arrow" || form == "parquet") && isTerminal(os.Stdout) {
		return fmt.Errorf("--format %s is not for a terminal: send it to a file or another program", form)
	}
	r := &reading{target: t, columns: t.Config.Columns, removed: c.String("removed")}
	if columns := c.StringSlice("columns"); len(columns) > 0 {
		r.columns = columns
	}
	if err := r.plan(ctx, c.String("at"), c.String("snapshot"), c.String("from")); err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	sink, err := newSink(form, out, r.schema)
	if err != nil {
		return err
	}
	if err := r.copy(ctx, sink, newProgressBar(r)); err != nil {
		return err
	}
	if err := sink.close(); err != nil {
		return fmt.Errorf("ending the output: %w", err)
	}
	return out.Flush()
}

// reading is what one `read` command delivers.
type reading struct {
	*target
	columns []string
	removed string

	look    *nessie.Look
	schema  *iceberg.Schema // projected
	sources []rowSource
	// rows is how many will come; -1 where only reading tells.
	rows int64
}

// rowSource is a plan of rows.
type rowSource interface {
	Read(context.Context, scan.ReadOptions) iter.Seq2[scan.Batch, error]
}

func (r *reading) plan(ctx context.Context, where, snapshot, from string) error {
	if snapshot != "" && from != "" {
		return errors.New("--snapshot and --from exclude each other")
	}
	switch r.removed {
	case "fail", "skip", "added_rows":
	default:
		return fmt.Errorf("--removed must be fail, skip or added_rows, not %q", r.removed)
	}
	if snapshot != "" {
		if where != "" {
			return errors.New("--snapshot and --at exclude each other")
		}
		where = snapshot
	}
	look, state, err := r.target.look(ctx, where)
	if err != nil {
		return err
	}
	r.look = look
	switch {
	case snapshot != "":
		return r.planRange(ctx, state, nil)
	case from != "":
		start, err := parseAt(from, r.Config.Ref)
		if err != nil || start.snapshot == nil {
			return fmt.Errorf("--from %s is no snapshot id: lineage shows them", from)
		}
		return r.planRange(ctx, state, start.snapshot)
	}
	return r.planWhole(ctx, state, where == "")
}

// planWhole plans every row of a state. The table as it is now is read with its current schema.
func (r *reading) planWhole(ctx context.Context, state catalog.State, now bool) error {
	table, err := r.look.History.Table(ctx, state.MetadataLocation)
	if err != nil {
		return err
	}
	step := scan.Step{Way: scan.WayTableScan, After: state, Columns: r.columns}
	if now {
		step.Schema = table.Meta.CurrentSchema()
	}
	plan, err := scan.PlanStep(ctx, scan.Source{FS: r.Storage.Within(ctx), Meta: table.Meta}, step)
	if err != nil {
		return fmt.Errorf("planning snapshot %d: %w", step.After.SnapshotID, err)
	}
	r.add(plan, plan)
	return nil
}

func (r *reading) add(plan *scan.Plan, source rowSource) {
	r.schema = plan.Schema
	r.sources = append(r.sources, source)
	if plan.Records < 0 || source != rowSource(plan) {
		r.rows = -1
	} else if r.rows >= 0 {
		r.rows += plan.Records
	}
}

// planRange plans the steps from behind a snapshot to a state; from nil plans the state's own step.
func (r *reading) planRange(ctx context.Context, to catalog.State, from *int64) error {
	seen := 0
	line, err := lineage.Trace(ctx, to, r.look.History, func(s catalog.State) bool {
		seen++
		return (from == nil && seen == 2) || (from != nil && s.SnapshotID == *from)
	})
	if err != nil {
		return err
	}
	n := len(line.Nodes) - 1 // states after the first one
	switch {
	case line.Stopped:
	case from == nil && line.Root:
		n = len(line.Nodes)
	case from == nil:
		return fmt.Errorf("what snapshot %d added is unknown: its parent was not found (%s)", to.SnapshotID, line.Why)
	default:
		return fmt.Errorf("snapshot %d is not on the way to snapshot %d", *from, to.SnapshotID)
	}
	last, err := r.look.History.Table(ctx, to.MetadataLocation)
	if err != nil {
		return err
	}
	schema := last.Schema(to.SchemaID)
	if schema == nil {
		return &scan.SchemaError{Snapshot: to.SnapshotID, SchemaID: to.SchemaID}
	}
	for i := n - 1; i >= 0; i-- {
		before := catalog.State{SnapshotID: catalog.NoSnapshot, TableUUID: to.TableUUID, ContentID: to.ContentID}
		if i+1 < len(line.Nodes) {
			before = line.Nodes[i+1].State
		}
		step := scan.Step{Way: scan.WaySnapshot, Before: &before, After: line.Nodes[i].State, Columns: r.columns, Schema: schema}
		if err := r.planStep(ctx, scan.Source{FS: r.Storage.Within(ctx), Meta: last.Meta}, step); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) planStep(ctx context.Context, source scan.Source, step scan.Step) error {
	plan, err := scan.PlanStep(ctx, source, step)
	if err != nil {
		return fmt.Errorf("planning snapshot %d: %w", step.After.SnapshotID, err)
	}
	r.schema = plan.Schema
	switch plan.Kind {
	case scan.KindEmpty, scan.KindReplace:
		return nil
	case scan.KindDelete, scan.KindOverwrite:
	default:
		r.add(plan, plan)
		return nil
	}
	switch r.removed {
	case "skip":
		return nil
	case "added_rows":
		changes, err := scan.PlanChanges(ctx, source, step, scan.ChangeOptions{Mode: scan.AddedRows})
		if err != nil {
			return fmt.Errorf("planning snapshot %d: %w", step.After.SnapshotID, err)
		}
		r.add(changes.Plan, changes)
		return nil
	}
	return fmt.Errorf("snapshot %d removes rows (%s): --removed skip goes past it, --removed added_rows reads what it holds and was not there before", step.After.SnapshotID, plan.Kind)
}

// copy sends all rows to the sink.
func (r *reading) copy(ctx context.Context, sink sink, bar *progressBar) error {
	defer bar.end()
	opts := scan.ReadOptions{Format: sink.format(), Parallelism: r.Config.Parallelism, Memory: r.Config.Memory}
	for _, source := range r.sources {
		for batch, err := range source.Read(ctx, opts) {
			if err != nil {
				return err
			}
			if err := sink.write(batch); err != nil {
				return fmt.Errorf("writing the output: %w", err)
			}
			bar.add(batch.Rows)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// Exit codes of plan, beside 0 for ready and 1 for what stands in the way of planning at all.
const (
	exitPlanEmpty   = 4
	exitPlanRefused = 5
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "Show what the next poll would deliver from the present checkpoint",
		Description: `Does what a poll does up to reading rows, and delivers nothing. Needs the pipeline's own checkpoint to tell
what is new; without one it shows a first run. The exit code says what was found:

  0  ready: there is something to deliver, or snapshots to skip or abandon because lineage was lost
     (on_lost_lineage), and nothing stops it
  4  empty: nothing to deliver, skip or abandon
  5  refused: a policy or an error would stop the input, behind the steps that are shown
  1  planning itself failed, as where the server does not answer`,
		Flags: append(targetFlags(), &cli.BoolFlag{Name: flagJSON, Usage: "print JSON"}),
		Action: func(c *cli.Context) error {
			return withTarget(c, func(ctx context.Context, t *target) error { return runPlan(ctx, c, t) })
		},
	}
}

func runPlan(ctx context.Context, c *cli.Context, t *target) error {
	forecast, err := t.Forecast(ctx)
	if err != nil {
		return err
	}
	p := newPlanView(t, forecast)
	if c.Bool(flagJSON) {
		err = printJSON(os.Stdout, p)
	} else {
		err = p.print(os.Stdout)
	}
	if err != nil {
		return err
	}
	switch p.Result {
	case planEmpty:
		return cli.Exit("", exitPlanEmpty)
	case planRefused:
		return cli.Exit("", exitPlanRefused)
	}
	return nil
}

const (
	planReady   = "ready"
	planEmpty   = "empty"
	planRefused = "refused"
)

// planView is a forecast as it is shown.
type planView struct {
	Result     string     `json:"result"`
	Table      string     `json:"table"`
	Reference  string     `json:"reference"`
	Commit     string     `json:"commit"`
	Head       snapshotID `json:"head_snapshot_id"`
	Checkpoint *mark      `json:"checkpoint"` // nil on a first run
	Verdict    string     `json:"verdict,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Lost       *lostView  `json:"lost_lineage,omitempty"`
	Around     []string   `json:"worked_around,omitempty"`
	Steps      []planStep `json:"steps"`
	Refused    string     `json:"refused,omitempty"`
	Ends       bool       `json:"input_ends,omitempty"`

	everyPoll bool
}

type lostView struct {
	Policy    string `json:"policy"`
	Skipped   *int   `json:"skipped_snapshots"`
	Abandoned *int   `json:"abandoned_snapshots"`
}

type planStep struct {
	Step     int64      `json:"step"`
	Kind     string     `json:"kind"`
	Does     string     `json:"does,omitempty"`
	Snapshot snapshotID `json:"snapshot_id"`
	From     snapshotID `json:"from_snapshot_id"`
	FoundBy  string     `json:"found_by"`
	Commit   string     `json:"commit"`
	// Rows are those of the files that the step adds; nil where only reading tells, because deletes apply to them or no longer
	// apply to others.
	Rows      *int64 `json:"added_rows"`
	Files     int    `json:"files"`
	Bytes     size   `json:"bytes"`
	FirstRow  int64  `json:"first_row,omitempty"`
	Delivered bool   `json:"delivered"`
}

func newPlanView(t *target, f *nessie.Forecast) *planView {
	p := &planView{
		Table: t.Config.Key.String(), Reference: t.Config.Ref.String(), Commit: f.Head.Reference.Hash,
		Head: snapshotID(f.State.SnapshotID), Verdict: string(f.Verdict), Reason: f.Reason, Around: f.Around, Ends: f.Ended,
		Steps: []planStep{}, everyPoll: !t.Config.Incremental,
	}
	if f.From != nil {
		p.Checkpoint = &mark{Snapshot: snapshotID(f.From.State.SnapshotID), Commit: f.From.Commit, Step: f.Ordinal, Shown: true}
	}
	if f.Lost != nil {
		known := func(n int) *int {
			if n < 0 {
				return nil
			}
			return &n
		}
		p.Lost = &lostView{Policy: string(f.Lost.Policy), Skipped: known(f.Lost.Skipped), Abandoned: known(f.Lost.Retracted)}
	}
	p.Result = planEmpty
	for _, s := range f.Steps {
		step := newPlanStep(s)
		p.Steps = append(p.Steps, step)
		if step.Delivered {
			p.Result = planReady
		}
	}
	if f.Lost != nil {
		p.Result = planReady // even where no row follows, what the output has and what the table holds part ways
	}
	if f.Refused != nil {
		p.Result, p.Refused = planRefused, f.Refused.Error()
	}
	return p
}

func newPlanStep(s nessie.ForecastStep) planStep {
	step := planStep{
		Step: s.Ordinal, Kind: string(s.Kind), Snapshot: snapshotID(s.After.SnapshotID), From: snapshotID(catalog.NoSnapshot),
		FoundBy: s.FoundBy, Commit: s.Commit.Hash, FirstRow: s.Row, Delivered: s.Delivered,
	}
	if s.Before != nil {
		step.From = snapshotID(s.Before.SnapshotID)
	}
	if s.Kind == lineage.Truncate || s.Plan == nil {
		return step
	}
	step.Does, step.Files, step.Bytes = string(s.Plan.Kind), s.Plan.Files, size(s.Plan.Bytes)
	// An overwrite that adds no file brings rows back.
	back := s.Plan.Restores() || s.Plan.Kind == scan.KindOverwrite && s.Plan.Files == 0
	if s.Plan.Records >= 0 && !back {
		step.Rows = &s.Plan.Records
	}
	return step
}

func (p *planView) print(w io.Writer) error {
	say := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	say("%s on %s at %s: %s", p.Table, p.Reference, shortHash(p.Commit), p.Result)
	switch {
	case p.everyPoll:
		say("The whole table is delivered again at each poll: incremental_by_snapshot is false.")
	case p.Checkpoint == nil:
		say("There is no checkpoint: this would be a first run.")
	default:
		say("The checkpoint is %s; the head is %s.", p.Checkpoint.words(), orNone(p.Head))
	}
	if p.Reason != "" {
		say("%s: %s", p.Verdict, p.Reason)
	}
	if p.Lost != nil {
		say("Lost lineage, on_lost_lineage: %s. Snapshots skipped: %s, abandoned: %s.", p.Lost.Policy, orUnknown(p.Lost.Skipped), orUnknown(p.Lost.Abandoned))
	}
	for _, a := range p.Around {
		say("Worked around: %s", a)
	}
	if len(p.Steps) > 0 {
		say("")
		if err := p.sheet().writeTable(w); err != nil {
			return err
		}
	}
	if p.Ends {
		say("The input ends there, because of end_snapshot_id.")
	}
	if p.Refused != "" {
		say("\nThe input would stop: %s", p.Refused)
	}
	return nil
}

func (p *planView) sheet() *sheet {
	s := &sheet{columns: []string{"step", "kind", "does", "snapshot", "added rows", "files", "bytes", "found by", "commit", "delivered"}}
	for _, step := range p.Steps {
		var rows any
		if step.Rows != nil {
			rows = *step.Rows - step.FirstRow
		}
		s.add(step.Step, step.Kind, step.Does, step.Snapshot, rows, step.Files, step.Bytes, step.FoundBy, shortHash(step.Commit), yesNo(step))
	}
	return s
}

func yesNo(s planStep) string {
	switch {
	case s.Delivered:
		return "yes"
	case s.Does == string(scan.KindReplace), s.Does == string(scan.KindEmpty):
		return "nothing to deliver"
	}
	return "passed over by policy"
}

func orNone(id snapshotID) string {
	if id.String() == "" {
		return "at no snapshot"
	}
	return "at snapshot " + id.String()
}

func orUnknown(n *int) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

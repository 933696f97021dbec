// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// Forecast is what an input would deliver at its next poll.
type Forecast struct {
	// Head is the table at the reference, and State what it holds.
	Head  catalog.Head
	State catalog.State
	// From is the last state that was delivered completely; nil on a first run
	// and where every poll delivers the whole table. Ordinal is that of the step
	// that led to it.
	From    *lineage.Place
	Ordinal int64
	// Verdict says how the head relates to From, Reason why it is no straight
	// line; both are "" where every poll delivers the whole table.
	Verdict lineage.Verdict
	Reason  string
	// Lost is set where lineage was lost and a policy decided.
	Lost  *lineage.Lost
	Steps []ForecastStep
	// Around are what planning found in the way and another resolution got past.
	Around []string
	// Refused is why the input would stop behind Steps; nil: it would not. Its
	// text ends in what the user can do.
	Refused error
	// Ended is true where the input ends behind Steps, because of end_snapshot_id.
	Ended bool
}

// ForecastStep is one step of a Forecast.
type ForecastStep struct {
	lineage.Step
	Ordinal int64
	Commit  catalog.TableCommit
	// Row is the ordinal of the first row to deliver: above 0 in a step that was
	// under way when the checkpoint was written.
	Row int64
	// Plan is what the step is made of; nil for a truncation.
	Plan *scan.Plan
	// Delivered is false where the step's rows are passed over: files were only
	// rewritten, or a policy says so.
	Delivered bool
}

// Forecast finds out what the next poll would deliver from the stored
// checkpoint on. It does all that the poll does but reading rows to deliver
// them. Errors are those that would stop the poll before lineage or planning
// decides: the catalog's, the cache's, a checkpoint that can't be used.
func (i *Inspector) Forecast(ctx context.Context) (*Forecast, error) {
	head, err := i.Client.Head(ctx, i.Config.Ref, i.Config.Key)
	if err != nil {
		return nil, err
	}
	f := i.follower()
	if i.Config.Incremental && i.Config.Checkpoints {
		if f.place, err = i.place(ctx, head); err != nil {
			return nil, err
		}
	}
	l, err := f.open(ctx, head)
	if err != nil {
		return nil, err
	}
	fc := &Forecast{Head: head, State: l.state}
	if !i.Config.Incremental {
		return fc, fc.whole(ctx, f, l)
	}
	if f.place.Started {
		from := f.place.Place
		fc.From, fc.Ordinal = &from, f.place.Ordinal
	}
	return fc, fc.follow(ctx, f, l)
}

// place is where the stored checkpoint says to go on, checked as a starting
// input checks it.
func (i *Inspector) place(ctx context.Context, head catalog.Head) (place, error) {
	stored, err := i.Checkpoint(ctx)
	if err != nil || stored == nil || !stored.Started() {
		return place{}, err
	}
	if err := i.CheckCheckpoint(stored, head); err != nil {
		return place{}, err
	}
	return fromCheckpoint(stored)
}

// whole is the scan that every poll makes.
func (fc *Forecast) whole(ctx context.Context, f *follower, l *look) error {
	if l.state.Empty() {
		return nil
	}
	commit, err := l.headCommit(ctx)
	if err != nil {
		return err
	}
	f.begin(resolved{lineage.Step{Kind: lineage.TableScan, After: l.state, FoundBy: lineage.FoundByScan}, commit})
	return fc.settle(fc.step(ctx, f, l))
}

// follow goes the way of pollIncrements and deliverUntil.
func (fc *Forecast) follow(ctx context.Context, f *follower, l *look) error {
	if f.place.Step != nil {
		if err := fc.step(ctx, f, nil); err != nil && !fc.learn(f, err, catalog.NoSnapshot) {
			return fc.settle(err)
		}
	}
	for {
		pending, steps, err := fc.resolve(ctx, f, l)
		if err != nil {
			return fc.settle(err)
		}
		for _, s := range steps {
			f.begin(s)
			if err = fc.step(ctx, f, l); err != nil {
				break
			}
		}
		switch {
		case err != nil && fc.learn(f, err, l.state.SnapshotID):
		case err != nil:
			return fc.settle(err)
		case pending == "":
			return nil
		case len(steps) == 0:
			return fc.settle(fmt.Errorf("resolving the history to snapshot %d: %s", l.state.SnapshotID, pending))
		}
	}
}

func (fc *Forecast) learn(f *follower, err error, head int64) bool {
	if !f.learn(err, head) {
		return false
	}
	fc.Around = append(fc.Around, err.Error())
	return true
}

func (fc *Forecast) resolve(ctx context.Context, f *follower, l *look) (pending string, steps []resolved, err error) {
	res, err := f.decide(ctx, l)
	if err != nil {
		return "", nil, err
	}
	if fc.Verdict == "" || fc.Verdict == lineage.Unchanged {
		fc.Verdict, fc.Reason = res.Verdict, res.Reason
	}
	if res.Lost != nil {
		fc.Verdict, fc.Reason, fc.Lost = res.Verdict, res.Reason, res.Lost
	}
	fc.Ended = res.Ended
	if steps, err = l.attribute(ctx, f.place, res.Steps, res.Beyond); err != nil {
		return "", nil, err
	}
	switch {
	case len(steps) == 0 && res.Place != nil:
		f.stand(*res.Place, catalog.TableCommit{Hash: l.head.Reference.Hash})
	case len(steps) > 0 && steps[0].Before != nil:
		f.place.State = *steps[0].Before
	}
	f.place.Started = true
	return res.Pending, steps, nil
}

// step plans the step under way and goes past it.
func (fc *Forecast) step(ctx context.Context, f *follower, l *look) error {
	s := f.place.Step
	ahead := ForecastStep{Step: s.Step, Ordinal: s.Ordinal, Commit: s.Commit, Row: s.Row}
	if s.Kind == lineage.Truncate {
		ahead.Delivered = true
	} else {
		source, what, err := f.scanStep(ctx, l, s)
		if err != nil {
			return err
		}
		if ahead.Plan, err = scan.PlanStep(ctx, source, what); err != nil {
			return fmt.Errorf("planning snapshot %d: %w", s.After.SnapshotID, err)
		}
		rows, err := f.plan(ctx, l, s)
		if err != nil {
			return err
		}
		ahead.Delivered = rows != nil && ahead.Plan.Kind != scan.KindEmpty
	}
	fc.Steps = append(fc.Steps, ahead)
	f.finish(s)
	return nil
}

// settle tells errors that stop a poll by decision, which are part of the
// forecast, from those that stop the forecast.
func (fc *Forecast) settle(err error) error {
	var (
		request *catalog.Error
		unknown *catalog.UnknownError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &request), errors.As(err, &unknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	fc.Refused = withOptions(err)
	return nil
}

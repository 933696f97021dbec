// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// step is one step of the history with what the reading loop knows of it.
type step struct {
	lineage.Step
	// Ordinal counts the steps that this checkpoint has seen, from 1.
	Ordinal int64
	// Commit is the commit that the step's messages name.
	Commit catalog.TableCommit
	// Digest is of the plan whose rows were handed out; "" before planning.
	Digest string
	// Attempt counts how often the step was resolved anew because files of an
	// earlier attempt were gone.
	Attempt int64
	// Row is the ordinal in the step of the next row to hand out.
	Row int64
	// Begun: messages of the step may have been delivered. In a changelog
	// nothing but the step itself can complete them then.
	Begun bool
}

// place is where reading stands: the last state that was read to its end, and
// the step that is under way.
type place struct {
	// Started is false until a start was chosen.
	Started bool
	lineage.Place
	CommitTimeMs int64
	// Ordinal is that of the last complete step.
	Ordinal int64
	// Step is nil between steps.
	Step *step
}

// item is what the follower hands to ReadBatch: a batch (or none, where only
// the place moves) and where the place is once it and all before it are
// acknowledged.
type item struct {
	batch service.MessageBatch
	// again makes the batch anew; its messages belong to the output once sent.
	again func() service.MessageBatch
	rows  int
	bytes int64
	place place
	// completes is true on a step's last item.
	completes bool
	// tracked makes the item a question: it is closed once all items before it
	// count as in flight, and the item does nothing else. nil: it is none.
	tracked chan<- struct{}
}

// follower reads the table from its place on, and sends what it reads. It runs
// in one goroutine, which alone changes the place; after it has ended another
// run goes on from there.
type follower struct {
	conf    *Config
	client  *catalog.Client
	storage *catalog.Storage
	log     *service.Logger
	metrics *metrics
	res     *service.Resources

	place place
	// gone and refused are what planning found out since the head changed, for
	// the next resolution; attempt is that of the step which comes next.
	gone    map[int64]string
	refused map[lineage.Edge]string
	attempt int64
	// ended is set when the configured end is reached or will be with the steps
	// that were resolved; endAhead when it is known not to lie behind.
	ended, endAhead bool
	// endTold: what stands between the place and the configured end was told.
	endTold bool
	// unsettled: something was sent since all was known to be acknowledged.
	unsettled bool
	// advised: the order of changes without a key was warned of.
	advised bool
	// seen is the content that the last look at the branch found; looks that
	// find the same end the poll.
	seen *catalog.Head
	out  chan item
	// storeStart writes a place durably, before anything behind it is delivered.
	storeStart func(context.Context, place) error
	// settled waits until all that was handed out is acknowledged.
	settled func(context.Context) error
	// lag reports how many steps are known and the time of the newest commit.
	lag func(target int64, commitMs int64)
}

// run follows the table until the context ends, the input is bounded and all is
// read (nil), or an error. progress is called when something was sent, or a
// look found nothing new: whatever stood in the way before is gone.
func (f *follower) run(ctx context.Context, progress func()) error {
	send := func(it item) error {
		select {
		case f.out <- it:
			progress()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// Files that were missing in an earlier life may be back.
	f.gone, f.refused = nil, nil
	for {
		var err error
		if f.conf.Incremental {
			err = f.pollIncrements(ctx, send)
		} else {
			err = f.pollWhole(ctx, send)
		}
		if err != nil {
			if ctx.Err() == nil {
				f.metrics.poll(pollFailed)
			}
			return withOptions(err)
		}
		progress()
		if f.ended {
			f.reportReached()
		}
		if f.conf.Bounded() || f.ended {
			return nil
		}
		if err := wait(ctx, f.conf.PollInterval); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pollWhole delivers the table as it is, wholly acknowledged before it returns.
func (f *follower) pollWhole(ctx context.Context, send func(item) error) error {
	if f.place.Step == nil {
		l, err := f.look(ctx)
		if err != nil {
			return err
		}
		f.metrics.poll(pollChanged)
		f.place.Started = true
		f.place.State = l.state
		if !l.state.Empty() {
			commit, err := l.headCommit(ctx)
			if err != nil {
				return err
			}
			f.begin(resolved{lineage.Step{Kind: lineage.TableScan, After: l.state, FoundBy: lineage.FoundByScan}, commit})
		}
	}
	if f.place.Step != nil {
		if err := f.deliver(ctx, nil, send); err != nil {
			return err
		}
	}
	if f.conf.Bounded() {
		return nil // the end of the input waits
	}
	return f.awaitAcks(ctx, send)
}

// awaitAcks returns once the output has acknowledged all that was sent.
func (f *follower) awaitAcks(ctx context.Context, send func(item) error) error {
	tracked := make(chan struct{})
	if err := send(item{tracked: tracked}); err != nil {
		return err
	}
	select {
	case <-tracked:
		return f.settled(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pollIncrements finishes the step under way, then delivers every step between
// the place and the branch's head.
func (f *follower) pollIncrements(ctx context.Context, send func(item) error) error {
	var unfinished error
	if f.place.Step != nil {
		unfinished = f.deliver(ctx, nil, send)
	}
	if unfinished != nil && ctx.Err() != nil {
		return unfinished
	}
	head, err := f.client.Head(ctx, f.conf.Ref, f.conf.Key)
	switch {
	case unfinished != nil && (err != nil || !f.learn(unfinished, head.Content.SnapshotID)):
		return unfinished
	case err != nil:
		return err
	}
	if f.seen != nil && f.seen.Content == head.Content {
		f.metrics.poll(pollUnchanged)
		return nil
	}
	l, err := f.open(ctx, head)
	if err != nil {
		return err
	}
	f.metrics.poll(pollChanged)
	if err := f.deliverUntil(ctx, l, send); err != nil {
		return err
	}
	f.seen = &head
	f.gone, f.refused = nil, nil
	return nil
}

// deliverUntil resolves what lies between the place and the look's head and
// delivers it, until the place is the head. What planning learns on the way is
// fed back: a state whose files are gone is a hole, a bridge that cannot be
// proved is none.
func (f *follower) deliverUntil(ctx context.Context, l *look, send func(item) error) error {
	for {
		pending, steps, err := f.resolve(ctx, l, send)
		if err != nil {
			return err
		}
		err = f.deliverSteps(ctx, l, steps, send)
		switch {
		case err != nil && f.learn(err, l.state.SnapshotID):
		case err != nil:
			return err
		case pending == "":
			return nil
		case len(steps) == 0:
			return fmt.Errorf("resolving the history to snapshot %d: %s", l.state.SnapshotID, pending)
		}
	}
}

// learn takes an error of planning or reading as knowledge about the history,
// and reports whether another resolution can get past it. Nothing gets past
// files that the head itself lacks.
func (f *follower) learn(err error, head int64) bool {
	var (
		missing *scan.MissingFileError
		unsure  *scan.CatchUpError
	)
	s := f.place.Step
	switch {
	case s == nil, f.conf.Changelog() && s.Begun:
		return false
	case errors.As(err, &missing):
		if missing.Snapshot == head || f.gone[missing.Snapshot] != "" || s.Before == nil {
			return false
		}
		f.gone = with(f.gone, missing.Snapshot, err.Error())
	case errors.As(err, &unsure):
		f.refused = with(f.refused, lineage.Edge{From: s.Before.SnapshotID, To: s.After.SnapshotID}, err.Error())
	default:
		return false
	}
	f.log.Warnf("Looking for a way around: %v", err)
	f.attempt = s.Attempt + 1
	f.place.Step = nil
	return true
}

func with[K comparable](m map[K]string, k K, v string) map[K]string {
	if m == nil {
		m = map[K]string{}
	}
	m[k] = v
	return m
}

// resolved is one step with the commit that it belongs to.
type resolved struct {
	lineage.Step
	commit catalog.TableCommit
}

// resolve decides what to read next. A fresh start is stored before it returns,
// and a place that moves without rows is sent on. pending says what keeps the
// head out of reach of these steps.
func (f *follower) resolve(ctx context.Context, l *look, send func(item) error) (pending string, steps []resolved, err error) {
	fresh := !f.place.Started
	res, err := f.decide(ctx, l)
	if err != nil {
		return "", nil, err
	}
	f.reportLost(res.Lost)
	f.reportVerdict(res)
	if steps, err = l.attribute(ctx, f.place, res.Steps, res.Beyond); err != nil {
		return "", nil, err
	}
	f.reportLag(steps)
	switch {
	case fresh:
		err = f.start(ctx, l, res, steps)
	case len(steps) == 0 && res.Place != nil:
		if f.attempt > 0 {
			// A step that was partly delivered is given up: its ordinal counts, or the place would seem to go backwards.
			f.place.Ordinal++
			f.attempt = 0
		}
		f.reportStand(*res.Place, res.Verdict)
		f.stand(*res.Place, catalog.TableCommit{Hash: l.head.Reference.Hash, TimeMs: f.place.CommitTimeMs})
		err = send(item{place: f.place})
	}
	return res.Pending, steps, err
}

// decide asks lineage what lies between the place and the look's head, with
// all that planning found out, and notes what the answer says of the place and
// of the configured end.
func (f *follower) decide(ctx context.Context, l *look) (res lineage.Resolution, err error) {
	policy := f.conf.Lineage
	policy.Gone, policy.Refused, policy.EndAhead = f.gone, f.refused, f.endAhead
	if f.place.Started {
		res, err = lineage.Resolve(ctx, f.place.Place, l.state, l.history, policy)
	} else {
		res, err = lineage.Start(ctx, l.state, l.history, policy)
	}
	if err != nil {
		return lineage.Resolution{}, err
	}
	f.ended, f.endAhead = res.Ended, !res.Ended
	f.reportEnd(l, res)
	if res.From != nil && f.place.Names {
		f.place.Place = *res.From
	}
	return res, nil
}

// start stands at the chosen start and stores it, so that a restart begins at
// the same place however the branch has moved.
func (f *follower) start(ctx context.Context, l *look, res lineage.Resolution, steps []resolved) error {
	switch {
	case len(steps) > 0:
		if b := steps[0].Before; b != nil {
			f.place.State = *b
		} else {
			f.place.State = catalog.State{SnapshotID: catalog.NoSnapshot, TableUUID: l.state.TableUUID, ContentID: l.state.ContentID, Records: -1}
		}
		f.begin(steps[0])
	case res.Place != nil:
		f.stand(*res.Place, catalog.TableCommit{Hash: l.head.Reference.Hash})
	}
	if err := f.storeStart(ctx, f.place); err != nil {
		f.place = place{}
		return fmt.Errorf("storing the start: %w", err)
	}
	f.place.Started = true
	f.log.Infof("Starting at %s", describeStart(f.place))
	f.reportStartToCome(len(steps) > 0)
	return nil
}

// stand moves the place to a complete state.
func (f *follower) stand(s catalog.State, c catalog.TableCommit) {
	f.place.State = s
	f.place.Names = false
	f.place.Commit = c.Hash
	f.place.CommitTimeMs = c.TimeMs
	f.place.Step = nil
}

// begin puts the place at the start of a step.
func (f *follower) begin(s resolved) {
	f.place.Step = &step{Step: s.Step, Ordinal: f.place.Ordinal + 1, Commit: s.commit, Attempt: f.attempt}
	f.attempt = 0
}

func (f *follower) deliverSteps(ctx context.Context, l *look, steps []resolved, send func(item) error) error {
	for _, s := range steps {
		if f.place.Step == nil || f.place.Step.After.SnapshotID != s.After.SnapshotID {
			f.begin(s)
		}
		if err := f.deliver(ctx, l, send); err != nil {
			return err
		}
	}
	return nil
}

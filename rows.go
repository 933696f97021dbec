// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// rowSource is what a step delivers, however it was planned.
type rowSource struct {
	digest string
	schema *iceberg.Schema
	read   func(context.Context, scan.ReadOptions) iter.Seq2[scan.Batch, error]
	// parted: deletes and inserts of one key come in different batches.
	parted bool
}

func sourceOfPlan(p *scan.Plan) *rowSource {
	return &rowSource{digest: p.Digest, schema: p.Schema, read: p.Read}
}

func sourceOfChanges(c *scan.ChangePlan) *rowSource {
	return &rowSource{digest: c.Digest, schema: c.Schema, read: c.Read, parted: c.Foreign()}
}

// plan finds what the step delivers. It is nil where that is nothing: files
// were only rewritten, or a policy goes past the step.
func (f *follower) plan(ctx context.Context, l *look, s *step) (*rowSource, error) {
	source, what, err := f.scanStep(ctx, l, s)
	if err != nil {
		return nil, err
	}
	if f.conf.Changelog() {
		changes, err := f.planChanges(ctx, source, what, scan.Changelog)
		if err != nil {
			return nil, err
		}
		f.adviseOrder(changes)
		return sourceOfChanges(changes), nil
	}
	plan, err := scan.PlanStep(ctx, source, what)
	if err != nil {
		return nil, fmt.Errorf("planning snapshot %d: %w", s.After.SnapshotID, err)
	}
	switch plan.Kind {
	case scan.KindEmpty, scan.KindReplace:
		return nil, nil
	case scan.KindDelete, scan.KindOverwrite:
		return f.admit(ctx, s, source, what, plan)
	default:
		return sourceOfPlan(plan), nil
	}
}

// scanStep says to the scan room what a step is.
func (f *follower) scanStep(ctx context.Context, l *look, s *step) (scan.Source, scan.Step, error) {
	t, err := f.tableFor(ctx, l, s.After)
	if err != nil {
		return scan.Source{}, scan.Step{}, err
	}
	source := scan.Source{FS: f.storage.Within(ctx), Meta: t.Meta}
	what := scan.Step{Way: scan.Way(s.Kind), Before: s.Before, After: s.After, Columns: f.conf.Columns}
	if !f.conf.Incremental {
		what.Schema, what.Query = t.Meta.CurrentSchema(), f.conf.Query
	}
	if s.Kind == lineage.Bridge {
		if what.BeforeMeta, err = f.beforeMeta(ctx, l, s); err != nil {
			return scan.Source{}, scan.Step{}, err
		}
	}
	return source, what, nil
}

// beforeMeta is the metadata that explains a bridge's before-state, which may
// lie on another line. Where its file is gone the after-state's has to do.
func (f *follower) beforeMeta(ctx context.Context, l *look, s *step) (table.Metadata, error) {
	if s.Before.Empty() || s.Before.MetadataLocation == s.After.MetadataLocation {
		return nil, nil
	}
	t, err := f.loadTable(ctx, l, *s.Before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return t.Meta, nil
}

func (f *follower) planChanges(ctx context.Context, source scan.Source, what scan.Step, mode scan.ChangeMode) (*scan.ChangePlan, error) {
	changes, err := scan.PlanChanges(ctx, source, what, scan.ChangeOptions{
		Mode: mode, IdentifierFields: f.conf.IdentifierFields, DeletePayload: f.conf.DeletePayload,
	})
	if err != nil {
		return nil, fmt.Errorf("planning snapshot %d: %w", what.After.SnapshotID, err)
	}
	return changes, nil
}

// adviseOrder warns once of changes that only keep their order while one batch
// is under way at a time.
func (f *follower) adviseOrder(c *scan.ChangePlan) {
	if f.advised || len(c.Keys) > 0 || f.conf.CheckpointLimit == 1 {
		return
	}
	f.advised = true
	f.log.Warnf("The table has no identifier fields: set %s, or %s: 1, as batches that are refused and sent again may otherwise overtake later ones", niFieldIdentifiers, niFieldLimit)
}

// admit decides about a step that takes files or rows away. Where nobody says
// that it was a rewrite, or several snapshots came together, rows are compared:
// a step that removes none net is read as the rows that it adds.
func (f *follower) admit(ctx context.Context, s *step, source scan.Source, what scan.Step, plan *scan.Plan) (*rowSource, error) {
	if s.Kind == lineage.Bridge || s.After.Operation == "" {
		changes, err := f.planChanges(ctx, source, what, scan.AddedRows)
		if err != nil {
			return nil, err
		}
		_, deleted, err := changes.Net(ctx, f.readOptions(0))
		if err != nil {
			return nil, fmt.Errorf("comparing the rows of snapshot %d: %w", s.After.SnapshotID, err)
		}
		if deleted == 0 {
			return sourceOfChanges(changes), nil
		}
	}
	policy, field := f.conf.OnOverwrite, niFieldOnOverwrite
	if plan.Kind == scan.KindDelete {
		policy, field = f.conf.OnDelete, niFieldOnDelete
	}
	switch policy {
	case onRemovedSkip:
		f.log.Warnf("Skipping %s, which removes rows (%s), because of %s: %s; %d rows in its added files are not delivered", spanOf(bridgedFrom(s), s.After.SnapshotID), plan.Kind, field, policy, max(plan.Records, 0))
		f.metrics.rowsSkipped.Incr(max(plan.Records, 0), f.metrics.table, field)
		return nil, nil
	case onRemovedAddedRows:
		changes, err := f.planChanges(ctx, source, what, scan.AddedRows)
		if err != nil {
			return nil, err
		}
		f.log.Infof("Delivering the rows that %s (%s) adds; those that it removes are not told, because of %s: %s", spanOf(bridgedFrom(s), s.After.SnapshotID), plan.Kind, field, policy)
		return sourceOfChanges(changes), nil
	default:
		return nil, &RemovedRowsError{SnapshotID: s.After.SnapshotID, From: bridgedFrom(s), Kind: plan.Kind, Field: field}
	}
}

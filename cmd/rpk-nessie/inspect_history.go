// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

func inspectSnapshots(ctx context.Context, i *inspection) (*sheet, error) {
	line, err := lineage.Trace(ctx, i.state, i.look.History, func(catalog.State) bool { return false })
	if err != nil {
		return nil, err
	}
	s := &sheet{columns: []string{
		"committed_at", "snapshot_id", "parent_id", "operation", "sequence", "schema_id", "added_rows", "deleted_rows",
		"added_files", "deleted_files", "total_rows", "found_by", "manifest_list",
	}}
	totals, lessDeletes := i.totals(ctx, line)
	if lessDeletes {
		s.note = "Total rows are those of the data files; what delete files take is not subtracted."
	}
	for n, node := range line.Nodes {
		st := node.State
		if st.Empty() {
			continue
		}
		parent := line.Missing
		if n+1 < len(line.Nodes) {
			parent = line.Nodes[n+1].State.SnapshotID
		}
		summary := i.summary(ctx, st)
		s.add(moment(st.TimestampMs), snapshotID(st.SnapshotID), snapshotID(parent), orNil(st.Operation, st.Operation != ""), st.Sequence, st.SchemaID,
			summary("added-records"), summary("deleted-records"), summary("added-data-files"), summary("deleted-data-files"),
			totals(st), orNil(node.FoundBy, node.FoundBy != ""), orNil(st.ManifestList, st.ManifestList != ""))
	}
	return s, nil
}

// totals tells how many rows the data files of each snapshot of a line hold, and whether any of them has delete files.
func (i *inspection) totals(ctx context.Context, line lineage.Line) (of func(catalog.State) any, lessDeletes bool) {
	found := newTotals(i.target)
	var before *int64
	for _, node := range slices.Backward(line.Nodes) {
		if node.State.Empty() {
			continue
		}
		var added, removed *int64
		var snap *table.Snapshot
		if t, err := i.look.History.Table(ctx, node.State.MetadataLocation); err == nil {
			snap = t.Meta.SnapshotByID(node.State.SnapshotID)
			if number, told := summaryNumbers(snap); told {
				added, removed = number("added-records"), number("deleted-records")
			}
		}
		before = found.of(ctx, node.State, before, added, removed)
		lessDeletes = lessDeletes || before != nil && found.lessDeletes(ctx, node.State, snap)
	}
	return func(s catalog.State) any {
		if total := found.of(ctx, s, nil, nil, nil); total != nil {
			return *total
		}
		return nil
	}, lessDeletes
}

// summary gives the numbers of a snapshot's summary, nil for what nothing tells.
func (i *inspection) summary(ctx context.Context, s catalog.State) func(string) any {
	t, err := i.look.History.Table(ctx, s.MetadataLocation)
	if err != nil {
		return func(string) any { return nil }
	}
	snap := t.Meta.SnapshotByID(s.SnapshotID)
	if snap == nil || snap.Summary == nil {
		return func(string) any { return nil }
	}
	return func(name string) any {
		n, err := strconv.ParseInt(snap.Summary.Properties[name], 10, 64)
		return orNil(n, err == nil)
	}
}

func inspectHistory(ctx context.Context, i *inspection) (*sheet, error) {
	commits, err := i.look.History.Commits(ctx, func(catalog.TableCommit) bool { return false })
	if err != nil {
		return nil, err
	}
	line, err := lineage.Trace(ctx, i.look.State, i.look.History, func(catalog.State) bool { return false })
	if err != nil {
		return nil, err
	}
	leads := map[int64]bool{}
	for _, n := range line.Nodes {
		leads[n.State.SnapshotID] = true
	}
	s := &sheet{columns: []string{
		"committed_at", "commit", "operation", "key", "snapshot_id", "schema_id", "leads_to_head", "merge", "metadata_location",
	}}
	for _, c := range commits {
		id := c.Content.SnapshotID
		if c.Op != catalog.Put {
			s.add(moment(c.TimeMs), c.Hash, string(c.Op), c.Key.String(), nil, nil, nil, len(c.Parents) > 1, nil)
			continue
		}
		// What lies below a hole may lead to the head, and nothing proves it.
		known := leads[id] || line.Root || id == catalog.NoSnapshot
		s.add(moment(c.TimeMs), c.Hash, string(c.Op), c.Key.String(), snapshotID(id), c.Content.SchemaID,
			orNil(leads[id] || id == catalog.NoSnapshot, known), len(c.Parents) > 1, c.Content.MetadataLocation)
	}
	return s, nil
}

func inspectRefs(ctx context.Context, i *inspection) (*sheet, error) {
	table, err := i.identity(ctx)
	if err != nil {
		return nil, err
	}
	s := &sheet{columns: []string{"name", "type", "commit", "snapshot_id", "same_table", "metadata_location"}}
	for ref, err := range i.Client.References(ctx) {
		if err != nil {
			return nil, err
		}
		head, err := i.Client.Head(ctx, ref.Ref(), i.Config.Key)
		switch other := new(catalog.ContentTypeError); {
		case errors.Is(err, catalog.ErrUnknownContent), errors.As(err, &other):
			s.add(ref.Name, ref.Type, ref.Hash, nil, nil, nil) // the table is not there
		case err != nil:
			return nil, err
		default:
			s.add(ref.Name, ref.Type, ref.Hash, snapshotID(head.Content.SnapshotID), orNil(head.Content.ID == table, table != ""), head.Content.MetadataLocation)
		}
	}
	return s, nil
}

// identity is the content id of the table at the reference that is looked at; "" where the table or the reference is not there.
func (i *inspection) identity(ctx context.Context) (string, error) {
	place, err := parseAt(i.at, i.Config.Ref)
	if err != nil {
		return "", err
	}
	head, err := i.Client.Head(ctx, place.ref, i.Config.Key)
	absent := errors.Is(err, catalog.ErrUnknownReference) || errors.Is(err, catalog.ErrUnknownContent) || errors.As(err, new(*catalog.ContentTypeError))
	if err != nil && (i.at != "" || !absent) {
		return "", err
	}
	return head.Content.ID, nil
}

func inspectSchemas(_ context.Context, i *inspection) (*sheet, error) {
	s := &sheet{columns: []string{"schema_id", "of_snapshot", "current", "field_id", "name", "type", "required", "identifier", "doc"}}
	meta := i.look.Table.Meta
	for _, schema := range meta.Schemas() {
		identifiers := map[int]bool{}
		for _, id := range schema.IdentifierFieldIDs {
			identifiers[id] = true
		}
		for _, f := range schema.Fields() {
			s.add(schema.ID, schema.ID == i.state.SchemaID, schema.ID == meta.CurrentSchema().ID, f.ID, f.Name, f.Type.String(), f.Required,
				identifiers[f.ID], orNil(f.Doc, f.Doc != ""))
		}
	}
	return s, nil
}

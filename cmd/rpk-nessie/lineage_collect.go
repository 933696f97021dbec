// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// lineageQuery is what `lineage` was asked for.
type lineageQuery struct {
	ref       catalog.Ref
	beside    []catalog.Ref // more references to draw
	limit     int           // most commits of the reference; 0: all
	manifests bool          // count from manifests instead of summaries
}

// collector gathers a graph. It lives for one command.
type collector struct {
	t     *target
	q     lineageQuery
	look  *nessie.Look
	line  lineage.Line
	graph *graph
	// commits are those of all lines, in the order that they were met; parents are the rows that each follows.
	commits []*row
	seen    map[string]*row
	// snapshots by id, parent by child where it is known.
	snapshots map[int64]*snapshot
	parent    map[int64]int64
	totals    *totals
	complete  bool // the reference's commits are all there
}

// collectLineage reads the history of the target's table.
func collectLineage(ctx context.Context, t *target, q lineageQuery) (*graph, error) {
	look, err := t.Look(ctx, q.ref)
	if err != nil {
		return nil, err
	}
	c := &collector{
		t: t, q: q, look: look, seen: map[string]*row{}, snapshots: map[int64]*snapshot{}, parent: map[int64]int64{}, totals: newTotals(t),
		graph: &graph{
			Table: t.Config.Key.String(), Reference: refWords(q.ref), Commit: look.Head.Reference.Hash,
			ContentID: look.Head.Content.ID, TableUUID: look.State.TableUUID,
		},
	}
	for _, gather := range []func(context.Context) error{
		c.addReference, c.addMerged, c.addBeside, c.addCheckpoint, c.trace, c.addMessages, c.describe,
	} {
		if err := gather(ctx); err != nil {
			return nil, err
		}
	}
	c.graph.Rows = inOrder(c.commits)
	c.addHidden()
	c.note()
	c.graph.lanes = assignLanes(c.graph.Rows)
	return c.graph, nil
}

// addReference takes the reference's own commits.
func (c *collector) addReference(ctx context.Context) error {
	commits, err := c.look.History.Commits(ctx, c.enough())
	if err != nil {
		return err
	}
	c.complete = c.q.limit == 0 || len(commits) < c.q.limit
	c.addLine(commits, refWords(c.q.ref))
	return nil
}

// enough says when as many commits were seen as were asked for.
func (c *collector) enough() func(catalog.TableCommit) bool {
	n := 0
	return func(catalog.TableCommit) bool { n++; return n == c.q.limit }
}

// addLine adds commits, newest first, of which each follows the next, until one that is there already. name is that of
// the reference that ends at the first; "" for none.
func (c *collector) addLine(commits []catalog.TableCommit, name string) *row {
	var first, above *row
	for _, commit := range commits {
		r, met := c.seen[commit.Hash]
		if !met {
			r = &row{Kind: rowCommit, ID: commit.Hash, Time: moment(commit.TimeMs), Merge: len(commit.Parents) > 1, commit: commit}
			c.seen[commit.Hash] = r
			c.commits = append(c.commits, r)
		}
		if above != nil {
			above.Parents = append(above.Parents, r.ID)
		}
		if first == nil {
			first = r
		}
		if met {
			break
		}
		above = r
	}
	if first != nil && name != "" {
		first.Names = append(first.Names, name)
	}
	return first
}

// addMerged takes the lines that were merged in, each until it meets what is there.
func (c *collector) addMerged(ctx context.Context) error {
	for i := 0; i < len(c.commits); i++ {
		r := c.commits[i]
		if !r.Merge {
			continue
		}
		for _, hash := range r.commit.Parents[1:] {
			commits, err := c.commitsFrom(ctx, hash, r.commit.Key)
			if err != nil {
				return err
			}
			// A merge line is appended behind the first parent, which the reference's own line set.
			if merged := c.addLine(commits, ""); merged != nil && (len(r.Parents) == 0 || r.Parents[0] != merged.ID) {
				r.Parents = append(r.Parents, merged.ID)
			}
		}
	}
	return nil
}

// commitsFrom are the table's commits from one back, up to and with the first that is known already. A commit that the
// server no longer has, has none.
func (c *collector) commitsFrom(ctx context.Context, hash string, key catalog.Key) ([]catalog.TableCommit, error) {
	var commits []catalog.TableCommit
	for commit, err := range c.t.Client.Log(ctx, catalog.LogQuery{From: catalog.Ref{Hash: hash}, Keys: []catalog.Key{key}}) {
		if errors.Is(err, catalog.ErrUnknownReference) {
			return commits, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log from commit %s: %w", hash, err)
		}
		for _, op := range commit.Operations {
			if !op.Key.Equal(key) {
				continue
			}
			if op.Type == catalog.Put && op.Content.ID != c.look.Head.Content.ID {
				return commits, nil // another table under the same key
			}
			commits = append(commits, catalog.TableCommit{
				Hash: commit.Hash, TimeMs: commit.Time.UnixMilli(), Op: op.Type, Content: op.Content, Key: key, Parents: commit.Parents,
			})
		}
		if c.seen[commit.Hash] != nil || (c.q.limit > 0 && len(commits) >= c.q.limit) {
			return commits, nil
		}
	}
	return commits, nil
}

// addBeside takes the commits of the other references.
func (c *collector) addBeside(ctx context.Context) error {
	for _, ref := range c.q.beside {
		look, err := c.t.Look(ctx, ref)
		if err != nil {
			return err
		}
		commits, err := c.commitsFrom(ctx, look.Head.Reference.Hash, c.t.Config.Key)
		if err != nil {
			return err
		}
		met := len(c.commits)
		c.addLine(commits, refWords(ref))
		for _, r := range c.commits[met:] {
			r.beside = true
		}
	}
	return nil
}

// addCheckpoint marks the checkpoint's place. A commit that the branch no longer has gets a line of its own.
func (c *collector) addCheckpoint(ctx context.Context) error {
	stored, err := c.t.Checkpoint(ctx)
	var unusable *cache.ValueError
	if errors.Is(err, nessie.ErrNoCheckpoints) || errors.As(err, &unusable) || (err == nil && (stored == nil || !stored.Started())) {
		return nil // `checkpoint get` says what is wrong with it
	}
	if err != nil {
		return err
	}
	place, under, err := nessie.PlaceOf(stored)
	if err != nil {
		return err
	}
	m := &mark{Snapshot: snapshotID(place.State.SnapshotID), Commit: place.Commit, Step: stored.Step}
	if under != nil {
		m.Position = fmt.Sprintf("%s to snapshot %d, from row %d on", under.Kind, under.After.SnapshotID, stored.Position.Row)
	}
	c.graph.Checkpoint = m
	if stored.Stage == cache.StageFirst {
		return nil // nothing is complete yet
	}
	if c.seen[place.Commit] == nil && place.Commit != "" && c.complete {
		commits, err := c.commitsFrom(ctx, place.Commit, c.t.Config.Key)
		if err != nil {
			return err
		}
		if first := c.addLine(commits, ""); first != nil && len(first.Names) == 0 && first.ID == place.Commit {
			first.Notes = append(first.Notes, fmt.Sprintf("%s no longer has this commit: it was reset", refWords(c.q.ref)))
		}
	}
	c.mark(m)
	return nil
}

// mark finds the row of the checkpoint: its commit, else the newest one with its snapshot.
func (c *collector) mark(m *mark) {
	at := c.seen[m.Commit]
	for _, r := range c.commits {
		if at == nil && r.commit.Op == catalog.Put && r.commit.Content.SnapshotID == int64(m.Snapshot) {
			at = r
		}
	}
	if at != nil {
		at.Checkpoint, m.Shown = true, true
	}
}

// trace follows the head's line of snapshots.
func (c *collector) trace(ctx context.Context) (err error) {
	n := 0
	c.line, err = lineage.Trace(ctx, c.look.State, c.look.History, func(catalog.State) bool { n++; return n == c.q.limit })
	if err != nil {
		return err
	}
	e := &c.graph.End
	e.Missing, e.Why = snapshotID(c.line.Missing), c.line.Why
	e.Oldest = snapshotID(c.line.Nodes[len(c.line.Nodes)-1].State.SnapshotID)
	switch {
	case c.look.State.Empty():
		e.Kind = endEmpty
	case c.line.Stopped:
		e.Kind = endCut
	case c.line.Root:
		e.Kind = endRoot
	default:
		e.Kind = endHole
	}
	for i, node := range c.line.Nodes {
		s := c.add(node.State, node.FoundBy, lineAncestor)
		if i+1 < len(c.line.Nodes) {
			c.setParent(s, c.line.Nodes[i+1].State.SnapshotID)
		} else if c.line.Missing != catalog.NoSnapshot {
			c.setParent(s, c.line.Missing)
		} else {
			s.Orphan = !c.line.Root && !c.line.Stopped
		}
	}
	return nil
}

func (c *collector) add(s catalog.State, foundBy string, line lineRelation) *snapshot {
	made := &snapshot{
		ID: snapshotID(s.SnapshotID), Parent: snapshotID(catalog.NoSnapshot), Sequence: s.Sequence, Operation: s.Operation,
		SchemaID: s.SchemaID, Time: moment(s.TimestampMs), FoundBy: foundBy, Line: line, state: s,
	}
	c.snapshots[s.SnapshotID] = made
	return made
}

func (c *collector) setParent(s *snapshot, parent int64) {
	s.Parent = snapshotID(parent)
	c.parent[int64(s.ID)] = parent
}

// addMessages reads the commits' messages.
func (c *collector) addMessages(ctx context.Context) error {
	waiting := map[string]bool{}
	for _, r := range c.commits {
		waiting[r.ID] = true
	}
	for _, tip := range c.commits {
		if !waiting[tip.ID] {
			continue
		}
		for commit, err := range c.t.Client.Log(ctx, catalog.LogQuery{From: catalog.Ref{Hash: tip.ID}, Keys: []catalog.Key{tip.commit.Key}}) {
			if err != nil {
				return fmt.Errorf("reading the log from commit %s: %w", tip.ID, err)
			}
			if !waiting[commit.Hash] {
				break
			}
			c.seen[commit.Hash].Message = commit.Message
			delete(waiting, commit.Hash)
			if len(waiting) == 0 {
				return nil
			}
		}
		delete(waiting, tip.ID)
	}
	return nil
}

// describe fills in what is to know of every snapshot: those of the line, and those that only commits name.
func (c *collector) describe(ctx context.Context) error {
	for _, r := range c.commits {
		id := r.commit.Content.SnapshotID
		if r.commit.Op != catalog.Put || id == catalog.NoSnapshot {
			continue
		}
		if c.snapshots[id] == nil {
			if err := c.addAbandoned(ctx, r); err != nil {
				return err
			}
		}
		r.Snapshot = c.snapshots[id]
	}
	for _, s := range c.snapshots {
		if s.state.Empty() {
			continue
		}
		if _, listed := c.look.Table.State(int64(s.ID)); !listed {
			readable, err := c.look.History.Readable(ctx, s.state)
			if err != nil {
				return err
			}
			s.Gone = !readable
		}
		if err := c.count(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range c.snapshots {
		c.total(ctx, s)
	}
	return nil
}

// addAbandoned takes a snapshot that is not on the head's line, as far as that goes.
func (c *collector) addAbandoned(ctx context.Context, r *row) error {
	id := r.commit.Content.SnapshotID
	found, err := c.look.History.Find(ctx, id, c.look.State)
	if err != nil {
		return err
	}
	if !found.OK { // a commit that the head's log does not have
		if t, err := c.look.History.Table(ctx, r.commit.Content.MetadataLocation); err == nil {
			found.State, found.OK = t.State(id)
		}
	}
	if !found.OK {
		found.State = catalog.State{SnapshotID: id, Records: -1, SchemaID: r.commit.Content.SchemaID}
	}
	relation := lineAbandoned
	if r.beside {
		relation = lineBeside
	} else if !c.line.Root && r.Time < c.snapshots[c.line.Nodes[len(c.line.Nodes)-1].State.SnapshotID].Time {
		relation = lineUnproved
	}
	s := c.add(found.State, "", relation)
	if !found.OK {
		s.Gone = true
		return nil
	}
	link, err := c.look.History.Parent(ctx, found.State)
	if err != nil {
		return err
	}
	s.FoundBy, s.Orphan = link.By, link.Unknown
	if !link.Unknown && !link.Root {
		c.setParent(s, link.ParentID)
	}
	return nil
}

// count fills in what a snapshot added and removed.
func (c *collector) count(ctx context.Context, s *snapshot) error {
	if c.q.manifests && !s.Gone {
		return c.countManifests(ctx, s)
	}
	snap := c.snapshotOf(ctx, s)
	if snap == nil {
		return nil
	}
	number, told := summaryNumbers(snap)
	if !told {
		if err := c.countManifests(ctx, s); err != nil {
			s.Counts = counts{}
		}
		return nil //nolint:nilerr // the counts stay unknown
	}
	s.Counts = counts{
		By:        "summary",
		AddedRows: number("added-records"), RemovedRows: number("deleted-records"),
		AddedFiles: number("added-data-files"), RemovedFiles: number("deleted-data-files"),
		AddedDeleteFiles: number("added-delete-files"),
	}
	return nil
}

// snapshotOf is the snapshot as its metadata file has it; nil where that is gone, or does not list it.
func (c *collector) snapshotOf(ctx context.Context, s *snapshot) *table.Snapshot {
	t, err := c.look.History.Table(ctx, s.state.MetadataLocation)
	if err != nil {
		return nil
	}
	return t.Meta.SnapshotByID(int64(s.ID))
}

// summaryNumbers gives what a snapshot's summary counts. Writers leave out what is 0; where one says none of the numbers it
// did not count.
func summaryNumbers(snap *table.Snapshot) (number func(name string) *int64, told bool) {
	if snap == nil || snap.Summary == nil {
		return nil, false
	}
	for _, name := range []string{"added-records", "deleted-records", "added-data-files", "deleted-data-files", "added-delete-files", "total-records"} {
		told = told || snap.Summary.Properties[name] != ""
	}
	return func(name string) *int64 {
		n, _ := strconv.ParseInt(snap.Summary.Properties[name], 10, 64)
		return &n
	}, told
}

// total fills in how many rows a snapshot holds, behind what it follows. Parents that go in a circle end where it began.
func (c *collector) total(ctx context.Context, s *snapshot) *int64 {
	if s.totalled || s.state.Empty() {
		return s.Counts.TotalRows
	}
	s.totalled = true
	var before *int64
	if parent := c.snapshots[c.parent[int64(s.ID)]]; parent != nil {
		before = c.total(ctx, parent)
	}
	s.Counts.TotalRows = c.totals.of(ctx, s.state, before, s.Counts.AddedRows, s.Counts.RemovedRows)
	if s.Counts.TotalRows != nil {
		s.Counts.lessDeletes = c.totals.lessDeletes(ctx, s.state, c.snapshotOf(ctx, s))
	}
	return s.Counts.TotalRows
}

// countManifests counts the entries of the snapshot's own manifests.
func (c *collector) countManifests(ctx context.Context, s *snapshot) error {
	files := c.t.Storage.Within(ctx)
	manifests, err := scan.Manifests(ctx, files, s.state)
	if err != nil {
		return err
	}
	n := make([]int64, 5)
	s.Counts.By = "manifests"
	s.Counts.AddedRows, s.Counts.RemovedRows, s.Counts.AddedFiles, s.Counts.RemovedFiles, s.Counts.AddedDeleteFiles = &n[0], &n[1], &n[2], &n[3], &n[4]
	for _, m := range manifests {
		if m.SnapshotID() != int64(s.ID) && s.state.ManifestList != "" {
			continue
		}
		entries, err := scan.Entries(ctx, files, s.state, m)
		if err != nil {
			return err
		}
		for _, e := range entries {
			data := e.Data.ContentType() == iceberg.EntryContentData
			switch {
			case e.Status == iceberg.EntryStatusADDED && e.Snapshot == int64(s.ID) && data:
				n[0], n[2] = n[0]+e.Data.Count(), n[2]+1
			case e.Status == iceberg.EntryStatusADDED && e.Snapshot == int64(s.ID):
				n[4]++
			case e.Status == iceberg.EntryStatusDELETED && data:
				n[1], n[3] = n[1]+e.Data.Count(), n[3]+1
			}
		}
	}
	return nil
}

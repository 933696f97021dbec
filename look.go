// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// look is one look at the branch whose answer had changed: the head, its
// metadata, and the history that leads back from it. It lives for one poll.
type look struct {
	client  *catalog.Client
	head    catalog.Head
	table   *catalog.Table
	state   catalog.State
	history *catalog.History
}

func (f *follower) look(ctx context.Context) (*look, error) {
	head, err := f.client.Head(ctx, f.conf.Ref, f.conf.Key)
	if err != nil {
		return nil, err
	}
	return f.open(ctx, head)
}

// open reads the metadata that the head names.
func (f *follower) open(ctx context.Context, head catalog.Head) (*look, error) {
	fs := f.storage.FS()
	table, err := catalog.LoadTable(ctx, fs, head.Content.MetadataLocation, head.Content.ID)
	if err != nil {
		return nil, err
	}
	state, ok := table.State(head.Content.SnapshotID)
	if !ok {
		return nil, &catalog.CorruptError{
			Kind: "metadata file", Location: table.Location,
			Err: fmt.Errorf("it does not list snapshot %d, which the commit names as the table's current one", head.Content.SnapshotID),
		}
	}
	history := catalog.HistoryConfig{Log: f.client, FS: fs, Key: f.conf.Key, Head: head, Table: table}
	if f.place.Started {
		history.Until = &f.place.State.SnapshotID
	}
	l := &look{client: f.client, head: head, table: table, state: state, history: catalog.NewHistory(history)}
	if f.conf.Incremental {
		if l.state, err = l.history.Original(ctx, state); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// headCommit is the commit that was read, for rows that belong to no commit of
// their own.
func (l *look) headCommit(ctx context.Context) (catalog.TableCommit, error) {
	hash := l.head.Reference.Hash
	for c, err := range l.client.Log(ctx, catalog.LogQuery{From: catalog.Ref{Hash: hash}, PageSize: 1}) {
		if err != nil {
			return catalog.TableCommit{}, fmt.Errorf("reading commit %s: %w", hash, err)
		}
		return catalog.TableCommit{Hash: c.Hash, TimeMs: c.Time.UnixMilli()}, nil
	}
	return catalog.TableCommit{Hash: hash}, nil
}

// attribute names the commit of the branch that each step belongs to.
func (l *look) attribute(ctx context.Context, at place, steps []lineage.Step, beyond []int64) ([]resolved, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	head, err := l.headCommit(ctx)
	if err != nil {
		return nil, err
	}
	known, err := l.history.Commits(ctx, func(c catalog.TableCommit) bool {
		return at.Started && (c.Hash == at.Commit || (c.Content.ID == at.State.ContentID && c.Content.SnapshotID == at.State.SnapshotID))
	})
	if err != nil {
		return nil, err
	}
	out := make([]resolved, len(steps))
	for i, c := range lineage.Attribute(steps, known, head, beyond...) {
		out[i] = resolved{steps[i], c}
	}
	return out, nil
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

const (
	// mostAhead bounds how many metadata files are read at once in advance of being asked for.
	mostAhead = 64
	// aheadBytes bounds each of them: those of the REST catalog are small, and a large one holds a history that makes
	// reading its predecessors pointless.
	aheadBytes = 1 << 20
	// keptTables is how many metadata files are kept as documents besides the head's.
	keptTables = 4
)

// Table answers a metadata file, from the few that were read last or anew.
func (h *History) Table(ctx context.Context, location string) (*Table, error) {
	if location == h.cfg.Table.Location {
		return h.cfg.Table, nil
	}
	if t := h.tables.get(location); t != nil {
		return t, nil
	}
	t, err := LoadTable(ctx, h.cfg.FS, location, h.cfg.Head.Content.ID)
	if err != nil {
		return nil, err
	}
	h.tables.put(t)
	return t, h.learn(t, "metadata", NoSnapshot)
}

// readOnce makes the states of one metadata file known. A file that is gone tells nothing.
func (h *History) readOnce(ctx context.Context, location string) error {
	if location == "" || h.read[location] {
		return nil
	}
	_, err := h.Table(ctx, location)
	if errors.Is(err, fs.ErrNotExist) {
		h.read[location] = true
		return nil
	}
	return err
}

// learn makes the states that a file lists known. by is told of the one that its commit made current, the others were
// met in passing.
func (h *History) learn(t *Table, by string, current int64) error {
	h.read[t.Location] = true
	for _, s := range t.states() {
		known, ok := h.lookup(s.SnapshotID)
		if !ok {
			how := "metadata"
			if s.SnapshotID == current {
				how = by
			}
			h.known[s.SnapshotID] = knownState{state: s, by: how}
			continue
		}
		if s.ParentID == nil {
			continue
		}
		if known.State.ParentID == nil {
			known.State.ParentID = s.ParentID
			h.known[s.SnapshotID] = knownState{state: known.State, by: known.By}
		} else if *known.State.ParentID != *s.ParentID {
			return parentsDisagree(known.State, s)
		}
	}
	return nil
}

// fetched is a metadata file as a reader in the background left it.
type fetched struct {
	commit TableCommit
	table  *Table
	header *ListHeader
	err    error
}

// readAhead makes the metadata file of a commit known, and with it those of the commits behind it, more at each call:
// where one file holds only its own snapshot, the next search will ask for the next file.
func (h *History) readAhead(ctx context.Context, c TableCommit) error {
	if h.read[c.Content.MetadataLocation] {
		return nil
	}
	batch := h.batch(c)
	h.fetch(ctx, batch)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, f := range batch {
		switch {
		case f.err == nil:
			if err := h.keep(f); err != nil {
				return err
			}
		case i > 0:
			// It was not asked for yet. When it is, it is read again and its error counts.
		case errors.Is(f.err, fs.ErrNotExist):
			h.read[c.Content.MetadataLocation] = true
		default:
			return fmt.Errorf("reading metadata file %s: %w", c.Content.MetadataLocation, f.err)
		}
	}
	h.ahead = min(2*h.ahead, mostAhead)
	if first := batch[0].table; first == nil || len(first.Meta.Snapshots()) > 1 {
		h.ahead = 1
	}
	if t := batch[0].table; t != nil {
		h.tables.put(t)
	}
	return nil
}

// batch picks what to read: the commit's file and those that come next in the log, none beyond until.
func (h *History) batch(c TableCommit) []*fetched {
	batch := []*fetched{{commit: c}}
	from := slices.IndexFunc(h.log.order, func(o TableCommit) bool { return o.Hash == c.Hash })
	chosen := map[string]bool{c.Content.MetadataLocation: true}
	for _, next := range h.log.order[from+1:] {
		if len(batch) >= h.ahead || h.log.isUntil(next) {
			break
		}
		id, location := next.Content.SnapshotID, next.Content.MetadataLocation
		if _, known := h.lookup(id); known || chosen[location] || h.read[location] || id == NoSnapshot {
			continue
		}
		// Of several commits of one snapshot the oldest is believed: see findInLog.
		if same := h.log.of(id); !h.log.settled(id) || same[len(same)-1].Hash != next.Hash {
			continue
		}
		chosen[location] = true
		batch = append(batch, &fetched{commit: next})
	}
	return batch
}

// fetch reads the files of a batch in parallel and returns when all are done.
func (h *History) fetch(ctx context.Context, batch []*fetched) {
	if len(batch) == 1 {
		h.fetchOne(ctx, batch[0], maxMetadataBytes)
		return
	}
	var readers sync.WaitGroup
	work := make(chan *fetched)
	for range min(h.cfg.Parallelism, len(batch)) {
		readers.Go(func() {
			for f := range work {
				limit := int64(aheadBytes)
				if f == batch[0] {
					limit = maxMetadataBytes
				}
				h.fetchOne(ctx, f, limit)
				h.fetchHeader(ctx, f)
			}
		})
	}
	for _, f := range batch {
		work <- f
	}
	close(work)
	readers.Wait()
}

func (h *History) fetchOne(ctx context.Context, f *fetched, limit int64) {
	f.table, f.err = loadTable(ctx, h.cfg.FS, f.commit.Content.MetadataLocation, h.cfg.Head.Content.ID, limit)
}

// fetchHeader reads the header too where the metadata names no parent: that is what will be asked next.
func (h *History) fetchHeader(ctx context.Context, f *fetched) {
	if f.err != nil {
		return
	}
	s, ok := f.table.State(f.commit.Content.SnapshotID)
	if !ok || s.ParentID != nil || s.ManifestList == "" {
		return
	}
	if header, err := ReadListHeader(ctx, h.cfg.FS, s.ManifestList); err == nil {
		f.header = &header
	}
}

// keep takes what was fetched over. Only the states stay, not the document.
func (h *History) keep(f *fetched) error {
	if err := h.learn(f.table, "log", f.commit.Content.SnapshotID); err != nil {
		return err
	}
	if f.header == nil {
		return nil
	}
	s, _ := f.table.State(f.commit.Content.SnapshotID)
	return h.keepHeader(s, *f.header)
}

// tableCache keeps the metadata files that were used last.
type tableCache struct{ tables []*Table }

func (c *tableCache) get(location string) *Table {
	for i, t := range c.tables {
		if t.Location == location {
			c.tables = append(slices.Delete(c.tables, i, i+1), t)
			return t
		}
	}
	return nil
}

func (c *tableCache) put(t *Table) {
	if len(c.tables) == keptTables {
		c.tables = slices.Delete(c.tables, 0, 1)
	}
	c.tables = append(c.tables, t)
}

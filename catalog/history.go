// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
)

// Log is what a History asks the catalog: a Client.
type Log interface {
	Log(ctx context.Context, q LogQuery) iter.Seq2[Commit, error]
}

// HistoryConfig says which table's history to look into, and from where.
type HistoryConfig struct {
	Log Log
	// FS reads metadata files and manifest lists. To find hidden snapshots it must list: Storage.FS does, as does any
	// iceio.ListableIO.
	FS iceio.IO
	// Key is the table's key at the head.
	Key Key
	// Head is the commit to look back from, with a full hash.
	Head Head
	// Table is the metadata file of Head.
	Table *Table
	// Until is the snapshot that the caller knows already and means to arrive at. The search goes beyond it only for what
	// can't be found before. Nil: nothing is known.
	Until *int64
	// Gone are snapshots whose files turned out to be missing, with what was missing: they count as unreadable.
	Gone map[int64]string
	// Parallelism is how many metadata files are read at once when many are needed; 0 means 8.
	Parallelism int
}

// History looks up the states that a table went through before Head: what a state's parent is, and where the state with
// a snapshot id is found. Nessie's REST catalog keeps only the current snapshot in a metadata file, so that parents come
// from manifest list headers and states from the commit log.
//
// The log is asked for as far as it is needed and once. Metadata files are read once and kept as States, not as
// documents. A History serves one changed head and one goroutine at a time; it holds nothing that must be closed.
type History struct {
	cfg   HistoryConfig
	log   *tableLog
	known map[int64]knownState
	// read are the metadata files whose states are in known; tables are the latest of them, as documents.
	read    map[string]bool
	tables  tableCache
	headers map[int64]ListHeader
	// missing are manifest lists that were not there.
	missing map[int64]bool
	// followedAt is where followed found its last answer on the first-parent log: the next one lies behind it.
	followedAt int
	// ahead is how many metadata files the next search in the log reads at once.
	ahead     int
	ancestors map[string]bool
}

type knownState struct {
	state State
	by    string
}

// DisagreementError says that two sources which should tell the same of a snapshot do not. Nothing built on either is
// safe.
type DisagreementError struct {
	SnapshotID int64
	What       string // "parent", "snapshot id"
	// One and Other are what the two say, with where.
	One, Other string
}

func (e *DisagreementError) Error() string {
	return fmt.Sprintf("snapshot %d: sources disagree about its %s: %s, but %s", e.SnapshotID, e.What, e.One, e.Other)
}

// NewHistory prepares a search; it does no I/O.
func NewHistory(cfg HistoryConfig) *History {
	if cfg.Parallelism <= 0 {
		cfg.Parallelism = 8
	}
	return &History{
		cfg:       cfg,
		log:       newTableLog(cfg.Log, cfg.Head, cfg.Key, cfg.Until),
		known:     map[int64]knownState{},
		read:      map[string]bool{cfg.Table.Location: true},
		headers:   map[int64]ListHeader{},
		missing:   map[int64]bool{},
		ahead:     1,
		ancestors: map[string]bool{},
	}
}

// Parent answers the parent of s: as metadata names it, else as the header of its manifest list does, else what the
// branch held before, which is no parent (Link.Followed). A snapshot is a root only where the header says so. "No
// snapshot" is a root.
//
// The errors are *DisagreementError, *CorruptError and the store's; a list that is not there makes the parent Unknown.
func (h *History) Parent(ctx context.Context, s State) (Link, error) {
	if s.Empty() {
		return Link{Root: true, By: "metadata"}, nil
	}
	named, err := h.namedParent(s)
	if err != nil {
		return Link{}, err
	}
	if named != nil {
		return Link{ParentID: *named, By: "metadata"}, nil
	}
	if s.ManifestList == "" {
		return h.followed(ctx, s, "its metadata names no parent, and it has no manifest list that could")
	}
	header, err := h.header(ctx, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Link{Unknown: true, Why: fmt.Sprintf("its metadata names no parent, and its manifest list %s is gone", s.ManifestList)}, nil
	case err != nil:
		return Link{}, fmt.Errorf("finding the parent of snapshot %d: %w", s.SnapshotID, err)
	case header.ParentID != nil:
		return Link{ParentID: *header.ParentID, By: "header"}, nil
	case header.NamesParent:
		return Link{Root: true, By: "header"}, nil
	}
	return h.followed(ctx, s, fmt.Sprintf("neither its metadata nor the header of %s names a parent or says that there is none", s.ManifestList))
}

// namedParent is the parent that metadata names, in whichever file; nil if none does.
func (h *History) namedParent(s State) (*int64, error) {
	named := s.ParentID
	from := s.MetadataLocation
	if k, ok := h.known[s.SnapshotID]; ok && k.state.ParentID != nil {
		if named != nil && *named != *k.state.ParentID {
			return nil, parentsDisagree(s, k.state)
		}
		named, from = k.state.ParentID, k.state.MetadataLocation
	}
	if header, ok := h.headers[s.SnapshotID]; ok && named != nil && header.ParentID != nil && *named != *header.ParentID {
		return nil, &DisagreementError{
			SnapshotID: s.SnapshotID, What: "parent",
			One:   fmt.Sprintf("%d says %s", *named, from),
			Other: fmt.Sprintf("%d says %s", *header.ParentID, s.ManifestList),
		}
	}
	return named, nil
}

func parentsDisagree(one, other State) error {
	return &DisagreementError{
		SnapshotID: one.SnapshotID, What: "parent",
		One:   fmt.Sprintf("%d says %s", *one.ParentID, one.MetadataLocation),
		Other: fmt.Sprintf("%d says %s", *other.ParentID, other.MetadataLocation),
	}
}

// header reads the header of s's manifest list, once.
func (h *History) header(ctx context.Context, s State) (ListHeader, error) {
	if header, ok := h.headers[s.SnapshotID]; ok {
		return header, nil
	}
	if h.missing[s.SnapshotID] {
		return ListHeader{}, fmt.Errorf("manifest list %s: %w", s.ManifestList, fs.ErrNotExist)
	}
	header, err := ReadListHeader(ctx, h.cfg.FS, s.ManifestList)
	if errors.Is(err, fs.ErrNotExist) {
		h.missing[s.SnapshotID] = true
	}
	if err != nil {
		return ListHeader{}, err
	}
	return header, h.keepHeader(s, header)
}

// keepHeader remembers a header unless it is of another snapshot.
func (h *History) keepHeader(s State, header ListHeader) error {
	if header.SnapshotID != 0 && header.SnapshotID != s.SnapshotID {
		return &DisagreementError{
			SnapshotID: s.SnapshotID, What: "snapshot id",
			One:   fmt.Sprintf("%s says that %s is its manifest list", s.MetadataLocation, s.ManifestList),
			Other: fmt.Sprintf("the list says that it is of snapshot %d", header.SnapshotID),
		}
	}
	h.headers[s.SnapshotID] = header
	return nil
}

// Readable reports whether what s consists of is still there, as far as its manifest list tells.
func (h *History) Readable(ctx context.Context, s State) (bool, error) {
	if _, gone := h.cfg.Gone[s.SnapshotID]; gone {
		return false, nil
	}
	var err error
	if s.ManifestList != "" {
		_, err = h.header(ctx, s)
	}
	for _, manifest := range s.Manifests {
		if err == nil {
			_, err = readPrefix(ctx, h.cfg.FS, manifest, 1)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the files of snapshot %d: %w", s.SnapshotID, err)
	}
	return true, nil
}

// Find answers the state with this snapshot id, which child names as its parent. It looks into the metadata that was
// read already and child's own, then into the commit log, across renames and into the lines that were merged, then for
// a manifest list beside child's. Who finds nothing says why; errors are those of the catalog and the store.
func (h *History) Find(ctx context.Context, id int64, child State) (Found, error) {
	if found, ok := h.lookup(id); ok {
		return found, nil
	}
	if err := h.readOnce(ctx, child.MetadataLocation); err != nil {
		return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
	}
	found, err := h.findInLog(ctx, id, h.log.near)
	if found.OK || err != nil {
		return found, err
	}
	listed, err := h.findByListing(ctx, id, child)
	if listed.OK || err != nil {
		return listed, err
	}
	if found, err = h.findInLog(ctx, id, h.log.anywhere); found.OK || err != nil {
		return found, err
	}
	// A commit can bring several snapshots: those before its last are only in its own metadata file.
	for _, c := range h.log.of(child.SnapshotID) {
		if err := h.readOnce(ctx, c.Content.MetadataLocation); err != nil {
			return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
		}
		if found, ok := h.lookup(id); ok {
			return found, nil
		}
	}
	why := []string{"no metadata file that was read lists it", found.Why, listed.Why}
	return Found{Why: strings.Join(why, "; ")}, nil
}

// lookup answers what is known without reading anything.
func (h *History) lookup(id int64) (Found, bool) {
	if k, ok := h.known[id]; ok {
		return Found{State: k.state, OK: true, By: k.by}, true
	}
	if s, ok := h.cfg.Table.State(id); ok {
		return Found{State: s, OK: true, By: "metadata"}, true
	}
	return Found{}, false
}

// findInLog goes on in the log, as far as reach allows, until a commit has this snapshot id and its metadata is there.
// Of several such commits the oldest, which brought the snapshot, is believed: where later ones changed only the schema,
// Nessie's REST catalog has put the new schema id on the old snapshot.
func (h *History) findInLog(ctx context.Context, id int64, reach func() bool) (Found, error) {
	tried := false
	for {
		commits := h.log.of(id)
		if len(commits) > 0 && (h.log.settled(id) || !reach()) {
			for _, c := range slices.Backward(commits) {
				if err := h.readAhead(ctx, c); err != nil {
					return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
				}
				if found, ok := h.lookup(id); ok {
					return found, nil
				}
			}
			tried = true
		}
		if !reach() {
			why := "no commit in the log has it as its snapshot"
			if tried {
				why = "the metadata files of the commits that have it as their snapshot are gone"
			}
			return Found{Why: why}, nil
		}
		if err := h.log.advance(ctx, id); err != nil {
			return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
		}
	}
}

// Original answers s as the metadata file of the commit that brought it tells it, which matters for its schema alone: see
// findInLog. A state found by this History is that already; the head's need not be, where its file comes from the REST
// catalog and knows several schemas. Otherwise s is returned, and nothing is asked.
func (h *History) Original(ctx context.Context, s State) (State, error) {
	meta := h.cfg.Table.Meta
	if s.Empty() || s.MetadataLocation != h.cfg.Table.Location || len(meta.Schemas()) < 2 || len(meta.Snapshots()) > 1 {
		return s, nil
	}
	for !h.log.settled(s.SnapshotID) && h.log.near() {
		if err := h.log.advance(ctx, s.SnapshotID); err != nil {
			return State{}, fmt.Errorf("looking for the commit of snapshot %d: %w", s.SnapshotID, err)
		}
	}
	commits := h.log.of(s.SnapshotID)
	if len(commits) == 0 {
		return s, nil
	}
	first, err := h.Table(ctx, commits[len(commits)-1].Content.MetadataLocation)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the commit of snapshot %d: %w", s.SnapshotID, err)
	}
	if original, ok := first.State(s.SnapshotID); ok {
		return original, nil
	}
	return s, nil
}

// Former looks for another table under the head's key: the newest commit on the first-parent log that put the snapshot
// there under another content id. It reads the key's log to the root where there is none, so it is for doubtful cases
// only.
func (h *History) Former(ctx context.Context, snapshot int64) (TableCommit, bool, error) {
	for c, err := range h.log.from(ctx, h.cfg.Head.Reference.Hash, LogQuery{Keys: []Key{h.cfg.Key}}) {
		if err != nil {
			return TableCommit{}, false, fmt.Errorf("looking for snapshot %d in former tables of %s: %w", snapshot, h.cfg.Key, err)
		}
		op, ok := operationOn(c, h.cfg.Key)
		if ok && op.Type == Put && op.Content.ID != h.cfg.Head.Content.ID && op.Content.SnapshotID == snapshot {
			return TableCommit{Hash: c.Hash, TimeMs: c.Time.UnixMilli(), Op: op.Type, Content: op.Content, Key: h.cfg.Key, Parents: c.Parents}, true, nil
		}
	}
	return TableCommit{}, false, nil
}

// Commits answers the commits that touched the table, on the first-parent log from the head, newest first, renames
// followed. It ends with the one that stop says true to, or at the table's first.
func (h *History) Commits(ctx context.Context, stop func(TableCommit) bool) ([]TableCommit, error) {
	for i := 0; ; i++ {
		c, ok, err := h.commit(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("listing the commits of %s: %w", h.cfg.Key, err)
		}
		if !ok {
			return h.log.main.commits[:i:i], nil
		}
		if stop(c) {
			return h.log.main.commits[: i+1 : i+1], nil
		}
	}
}

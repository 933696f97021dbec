// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// kind is what a snapshot did to the rows of its parent.
type kind string

const (
	added     kind = "added"
	removed   kind = "removed" // and maybe added others
	rewritten kind = "rewritten"
)

// snapshot is the truth about one snapshot.
type snapshot struct {
	id, parent int64
	content    string // content id of its table
	kind       kind
	rows       []int64        // new with it
	live       map[int64]bool // what the table holds
	files      []string       // written by its commit
}

// head is what the branch holds under the table's name.
type head struct {
	snapshot int64
	content  string // "" where there is no table
	commit   string
}

// world is a Nessie with one table, and the truth about its history.
type world struct {
	*tables.Place
	rt      histories.Failer
	ctx     context.Context
	storage string           // the input's field
	vault   *histories.Vault // nil where the files are in no folder

	key       catalog.Key
	snapshots map[int64]*snapshot
	lastRow   int64
	branches  int
	heads     []head          // of main, oldest first
	before    map[string]head // by commit: the head that it was made on
	form      nessietest.Form

	// Since the ledger last asked: heads that the branch had, and snapshots of
	// which a file was gone.
	since   []head
	damaged map[int64]bool
	gone    bool     // any file was
	renamed bool     // the table was
	spoiled []string // files that were damaged
	sky     sky
	stormy  bool     // the catalog failed
	told    []string // what happened, for failures
}

// newWorld is a world whose files lie in a folder.
func newWorld(ctx context.Context, rt *rapid.T) *world {
	w := openWorld(ctx, rt, nessietest.WriterConfig{})
	w.storage, w.vault = fmt.Sprintf("{ local_root: %q }", w.Warehouse), histories.NewVault(rt, w.Warehouse)
	return w
}

// openWorld is a world on any storage; the caller says how the input reaches it.
func openWorld(ctx context.Context, rt histories.TB, files nessietest.WriterConfig) *world {
	return &world{
		Place: tables.Open(rt, nessietest.Options{}, files), rt: rt, ctx: ctx, key: tables.Orders(),
		snapshots: map[int64]*snapshot{}, sky: fair, damaged: map[int64]bool{}, before: map[string]head{},
	}
}

func (w *world) tell(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func schema() *iceberg.Schema {
	return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
}

func options(form nessietest.Form) nessietest.TableOptions {
	return nessietest.TableOptions{Form: form, Properties: iceberg.Properties{"write.parquet.compression-codec": "uncompressed"}}
}

// fresh makes n rows that no one had before.
func (w *world) fresh(n int) (ids []int64, rows []string) {
	for range n {
		w.lastRow++
		ids = append(ids, w.lastRow)
		rows = append(rows, fmt.Sprintf(`{"id":%d}`, w.lastRow))
	}
	return ids, rows
}

// effect is what one snapshot of a commit does.
type effect struct {
	kind kind
	rows []int64 // that it brings
	gone []int64
	all  bool // nothing of its parent stays
}

// record adds a commit's snapshots to the truth.
func (w *world) record(written nessietest.Written, effects ...effect) {
	files := w.vault.Secure()
	if len(written.Snapshots) != len(effects) {
		w.rt.Fatalf("the test itself: %d snapshots for %d effects", len(written.Snapshots), len(effects))
	}
	for i, s := range written.Snapshots {
		e := effects[i]
		now := &snapshot{
			id: s.SnapshotID, parent: catalog.NoSnapshot, content: written.Content.ID, kind: e.kind, rows: e.rows, files: files,
			live: map[int64]bool{},
		}
		if s.ParentSnapshotID != nil {
			now.parent = *s.ParentSnapshotID
		}
		if p := w.snapshots[now.parent]; p != nil && !e.all {
			maps.Copy(now.live, p.live)
		}
		for _, id := range e.gone {
			delete(now.live, id)
		}
		for _, id := range e.rows {
			now.live[id] = true
		}
		w.snapshots[now.id] = now
		w.tell("    snapshot %d after %d: %s %v", now.id, now.parent, now.kind, now.rows)
	}
}

// observe notes what the branch holds now, and what is damaged.
func (w *world) observe() {
	h := head{snapshot: catalog.NoSnapshot}
	found, err := w.Client.Head(w.ctx, catalog.Ref{Name: "main"}, w.key)
	switch {
	case err == nil:
		h = head{found.Content.SnapshotID, found.Content.ID, found.Reference.Hash}
	case !errors.Is(err, catalog.ErrUnknownContent):
		histories.Check(w.rt, err)
	}
	if n := len(w.heads); n == 0 || w.heads[n-1] != h {
		// The first head was made on none, also where main comes back to it.
		if _, known := w.before[h.commit]; !known && n > 0 && h.commit != w.heads[0].commit {
			w.before[h.commit] = w.heads[n-1]
		}
		w.heads = append(w.heads, h)
		w.since = append(w.since, h)
		w.tell("    head: snapshot %d, content %.8s, commit %.8s", h.snapshot, h.content, h.commit)
	}
	w.inspect()
}

// inspect notes the snapshots of which files are gone.
func (w *world) inspect() {
	if w.vault != nil && !w.gone {
		w.gone = w.vault.MissesAny()
	}
	for id, s := range w.snapshots {
		if !w.damaged[id] && slices.ContainsFunc(s.files, w.vault.Misses) {
			w.damaged[id] = true
		}
	}
}

func (w *world) head() head { return w.heads[len(w.heads)-1] }

// begin forgets what was since the ledger last asked.
func (w *world) begin() {
	w.since = []head{w.head()}
	clear(w.damaged)
	w.gone, w.renamed, w.stormy = false, false, w.sky != fair
	w.spoiled = w.vault.Spoiled()
	w.inspect()
}

// line is the true line of a snapshot, newest first.
func (w *world) line(id int64) []*snapshot {
	var out []*snapshot
	for s := w.snapshots[id]; s != nil; s = w.snapshots[s.parent] {
		out = append(out, s)
	}
	return out
}

// above are the snapshots of to's line that from's does not have, newest first.
func (w *world) above(from, to int64) []*snapshot {
	under := map[int64]bool{}
	for _, s := range w.line(from) {
		under[s.id] = true
	}
	return slices.DeleteFunc(w.line(to), func(s *snapshot) bool { return under[s.id] })
}

// descends tells whether a state follows another (or is it), "no snapshot" included.
func (w *world) descends(to, from head) bool {
	if to.content != from.content || to.content == "" {
		return false
	}
	if from.snapshot == catalog.NoSnapshot || to.snapshot == from.snapshot {
		return true
	}
	return slices.ContainsFunc(w.line(to.snapshot), func(s *snapshot) bool { return s.id == from.snapshot })
}

// holds tells whether a snapshot is on the line of a head.
func (w *world) holds(h head, id int64) bool {
	return slices.ContainsFunc(w.line(h.snapshot), func(s *snapshot) bool { return s.id == id })
}

// cameBy tells whether the branch held a state before it came to a head, no
// matter where else it was assigned to in the meantime.
func (w *world) cameBy(h head, id int64) bool {
	for ok := true; ok; h, ok = w.before[h.commit] {
		if id == catalog.NoSnapshot || w.holds(h, id) {
			return true
		}
	}
	return false
}

// torn tells whether a file of the lines of two states was gone since the input
// last caught up.
func (w *world) torn(a, b int64) bool {
	gone := func(s *snapshot) bool { return w.damaged[s.id] }
	return slices.ContainsFunc(w.line(a), gone) || slices.ContainsFunc(w.line(b), gone)
}

func (w *world) contentOf(id int64) string {
	if s := w.snapshots[id]; s != nil {
		return s.content
	}
	return ""
}

func (w *world) live(id int64) map[int64]bool {
	if s := w.snapshots[id]; s != nil {
		return s.live
	}
	return nil
}

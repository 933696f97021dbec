// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// WriterConfig says where a Writer writes and commits.
type WriterConfig struct {
	Catalog *catalog.Client
	// Branch takes the commits; "main" if empty.
	Branch string
	// Warehouse is the folder below which each new table gets one of its own: "file:///…", or "s3://bucket/…" in programs
	// that import iceberg-go's io/gocloud/s3.
	Warehouse string
	// Storage holds iceberg-go's file IO properties ("s3.endpoint", …).
	Storage map[string]string
}

// Writer creates Iceberg tables and changes them as an engine does that talks to Nessie's native API: iceberg-go writes
// data files, manifests and a new metadata.json, then one Nessie commit puts the table's new content. Every method reads
// the head of its branch first, so a Writer holds no state of a table and follows resets and other writers. It is safe
// for concurrent use; of two writers that race on a table the server refuses one.
type Writer struct {
	cfg WriterConfig
	fs  iceio.WriteFileIO
}

// NewWriter opens the warehouse's file IO. Nothing is written yet.
func NewWriter(ctx context.Context, cfg WriterConfig) (*Writer, error) {
	if cfg.Branch == "" {
		cfg.Branch = "main"
	}
	cfg.Warehouse = strings.TrimSuffix(cfg.Warehouse, "/")
	fs, err := iceio.LoadFS(ctx, cfg.Storage, cfg.Warehouse)
	if err != nil {
		return nil, fmt.Errorf("opening warehouse %s: %w", cfg.Warehouse, err)
	}
	writable, ok := fs.(iceio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("opening warehouse %s: its file IO cannot write", cfg.Warehouse)
	}
	return &Writer{cfg: cfg, fs: writable}, nil
}

// RemoveAll removes a folder and all files below it, as a Writer's storage reaches it. A folder that is not there is none
// to remove.
func RemoveAll(ctx context.Context, folder string, storage map[string]string) error {
	fs, err := iceio.LoadFS(ctx, storage, folder)
	if err != nil {
		return err
	}
	remover, ok := fs.(interface{ RemoveAll(name string) error })
	if !ok {
		return fmt.Errorf("removing %s: its file IO can't", folder)
	}
	return remover.RemoveAll(folder)
}

// OnBranch returns a Writer that commits to another branch of the same catalog.
func (w *Writer) OnBranch(name string) *Writer {
	other := *w
	other.cfg.Branch = name
	return &other
}

// Form is which metadata.json a commit publishes.
type Form int

const (
	// Whole keeps all snapshots, as Iceberg's own NessieCatalog does (Spark, Flink).
	Whole Form = iota
	// Truncated keeps what Nessie's Iceberg REST endpoint keeps: the current snapshot alone, without its parent's id. If
	// the commit adds several snapshots the earlier ones are hidden: no metadata file lists them.
	Truncated
)

// Change is one Nessie commit to a table. Its steps become snapshots (or metadata changes) one after another, all in
// the one commit. Without steps the commit puts a new metadata file that says the same.
type Change struct {
	Message string
	Steps   []Step
	Form    Form
}

// Written is what a commit did. Metadata is complete even where the published file was Truncated; Snapshots are those
// that the commit added, oldest first, hidden ones included.
type Written struct {
	Commit    string
	Content   catalog.Content
	Metadata  table.Metadata
	Snapshots []table.Snapshot
}

// SnapshotID is the current snapshot after the commit, catalog.NoSnapshot for an empty table.
func (wr Written) SnapshotID() int64 { return wr.Content.SnapshotID }

// Commit applies a change to a table that exists.
func (w *Writer) Commit(ctx context.Context, key catalog.Key, change Change) (Written, error) {
	head, meta, err := w.load(ctx, key)
	if err != nil {
		return Written{}, err
	}
	return w.apply(ctx, draft{
		key: key, id: head.Content.ID, meta: meta, previous: head.Content.MetadataLocation, logged: head.Content.MetadataLocation,
		known: snapshotIDs(meta), change: change,
	})
}

// Append commits one snapshot that adds the rows. Each row is a JSON object, as Records takes it.
func (w *Writer) Append(ctx context.Context, key catalog.Key, rows ...string) (Written, error) {
	return w.Commit(ctx, key, Change{Message: "append", Steps: []Step{Append(rows...)}})
}

// Table loads the table at the branch's head for reading.
func (w *Writer) Table(ctx context.Context, key catalog.Key) (*table.Table, error) {
	head, meta, err := w.load(ctx, key)
	if err != nil {
		return nil, err
	}
	return table.New(table.Identifier(key), meta, head.Content.MetadataLocation, w.fileIO, nil), nil
}

func (w *Writer) fileIO(context.Context) (iceio.IO, error) { return w.fs, nil }

func (w *Writer) load(ctx context.Context, key catalog.Key) (catalog.Head, table.Metadata, error) {
	head, err := w.cfg.Catalog.Head(ctx, catalog.Ref{Name: w.cfg.Branch}, key)
	if err != nil {
		return catalog.Head{}, nil, fmt.Errorf("looking up table %s: %w", key, err)
	}
	tbl, err := table.NewFromLocation(ctx, table.Identifier(key), head.Content.MetadataLocation, w.fileIO, nil)
	if err != nil {
		return catalog.Head{}, nil, fmt.Errorf("reading metadata file %s: %w", head.Content.MetadataLocation, err)
	}
	return head, tbl.Metadata(), nil
}

// draft is a commit in the making: the metadata that its steps start from, and what its Put replaces.
type draft struct {
	key      catalog.Key
	id       string // content id; empty makes a new content
	meta     table.Metadata
	previous string // metadata file that the new one follows, empty for a new table
	logged   string // what the metadata log gains; empty where meta has logged its predecessor already
	known    map[int64]bool
	change   Change
	ops      []catalog.Operation // go into the same Nessie commit before the Put
}

// apply runs the steps in one Iceberg transaction and publishes what comes out.
func (w *Writer) apply(ctx context.Context, d draft) (Written, error) {
	pub := &publication{w: w, draft: d}
	tx := table.New(table.Identifier(d.key), d.meta, d.logged, w.fileIO, pub).NewTransaction()
	for i, step := range d.change.Steps {
		if err := step(ctx, tx); err != nil {
			return Written{}, fmt.Errorf("changing table %s, step %d: %w", d.key, i+1, err)
		}
	}
	if _, err := tx.Commit(ctx); err != nil {
		return Written{}, fmt.Errorf("committing to table %s: %w", d.key, err)
	}
	if !pub.done {
		if err := pub.publish(ctx, d.meta); err != nil {
			return Written{}, fmt.Errorf("committing to table %s: %w", d.key, err)
		}
	}
	return pub.written, nil
}

// publication is the catalog that a transaction commits to. It takes one commit.
type publication struct {
	w       *Writer
	draft   draft
	done    bool
	written Written
}

func (p *publication) LoadTable(ctx context.Context, _ table.Identifier) (*table.Table, error) {
	return p.w.Table(ctx, p.draft.key)
}

// CommitTable writes the metadata file and puts it into Nessie. iceberg-go deletes expired files after it returns.
func (p *publication) CommitTable(ctx context.Context, _ table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	for _, req := range reqs {
		if err := req.Validate(p.draft.meta); err != nil {
			return nil, "", fmt.Errorf("checking requirement %s: %w", req.GetType(), err)
		}
	}
	meta, err := table.UpdateTableMetadata(p.draft.meta, updates, p.draft.logged)
	if err != nil {
		return nil, "", fmt.Errorf("updating metadata: %w", err)
	}
	if err := p.publish(ctx, meta); err != nil {
		return nil, "", err
	}
	return meta, p.written.Content.MetadataLocation, nil
}

func (p *publication) publish(ctx context.Context, meta table.Metadata) error {
	location, err := p.w.writeMetadata(meta, p.draft.previous, p.draft.change.Form)
	if err != nil {
		return err
	}
	content := contentOf(meta, p.draft.id, location)
	ops := append(slices.Clone(p.draft.ops), catalog.Operation{Type: catalog.Put, Key: p.draft.key, Content: content})
	ref, err := p.w.commit(ctx, p.draft.change.Message, ops)
	if err != nil {
		return err
	}
	if content.ID == "" {
		head, err := p.w.cfg.Catalog.Head(ctx, catalog.Ref{Name: p.w.cfg.Branch, Hash: ref.Hash}, p.draft.key)
		if err != nil {
			return fmt.Errorf("looking up the new table %s: %w", p.draft.key, err)
		}
		content.ID = head.Content.ID
	}
	p.done = true
	p.written = Written{Commit: ref.Hash, Content: content, Metadata: meta, Snapshots: added(meta, p.draft.known)}
	return nil
}

func (w *Writer) commit(ctx context.Context, message string, ops []catalog.Operation) (catalog.Reference, error) {
	branch, err := w.cfg.Catalog.Reference(ctx, w.cfg.Branch)
	if err != nil {
		return catalog.Reference{}, err
	}
	return w.cfg.Catalog.Commit(ctx, branch, message, ops)
}

func contentOf(meta table.Metadata, id, location string) catalog.Content {
	content := catalog.Content{
		Type: catalog.ContentTypeIceberg, ID: id, MetadataLocation: location, SnapshotID: catalog.NoSnapshot,
		SchemaID: meta.CurrentSchema().ID, SpecID: meta.DefaultPartitionSpec(), SortOrderID: meta.DefaultSortOrder(),
	}
	if current := meta.CurrentSnapshot(); current != nil {
		content.SnapshotID = current.SnapshotID
	}
	return content
}

func snapshotIDs(meta table.Metadata) map[int64]bool {
	ids := map[int64]bool{}
	for _, s := range meta.Snapshots() {
		ids[s.SnapshotID] = true
	}
	return ids
}

// added lists the snapshots of meta that were not known before, in the order in which they were made.
func added(meta table.Metadata, known map[int64]bool) []table.Snapshot {
	return slices.DeleteFunc(slices.Clone(meta.Snapshots()), func(s table.Snapshot) bool { return known[s.SnapshotID] })
}

var _ table.CatalogIO = (*publication)(nil)

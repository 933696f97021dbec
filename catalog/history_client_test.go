// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// tableWorld is a table in an in-memory Nessie, its files in a folder, and what it went through.
type tableWorld struct {
	t      *testing.T
	server *nessietest.Server
	client *catalog.Client
	writer *nessietest.Writer
	files  *catalog.Storage
	key    catalog.Key
	chain  []int64 // oldest first
	rows   int
}

func newTableWorld(t *testing.T, spec string) *tableWorld {
	t.Helper()
	server, err := nessietest.Start(nessietest.Options{SpecVersion: spec})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	folder := t.TempDir()
	files, err := catalog.NewStorage(catalog.StorageConfig{LocalRoot: folder})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, files.Close()) })
	writer, err := nessietest.NewWriter(t.Context(), nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + folder})
	require.NoError(t, err)
	w := &tableWorld{t: t, server: server, client: client, writer: writer, files: files, key: catalog.Key{"ns", "t"}}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	_, err = writer.Create(t.Context(), w.key, schema, nessietest.TableOptions{Form: nessietest.Truncated})
	require.NoError(t, err)
	return w
}

// write commits so many snapshots at once.
func (w *tableWorld) write(writer *nessietest.Writer, form nessietest.Form, snapshots int) {
	w.t.Helper()
	var steps []nessietest.Step
	for range snapshots {
		w.rows++
		steps = append(steps, nessietest.Append(fmt.Sprintf(`{"id":%d}`, w.rows)))
	}
	written, err := writer.Commit(w.t.Context(), w.key, nessietest.Change{Steps: steps, Form: form})
	require.NoError(w.t, err)
	for _, s := range written.Snapshots {
		w.chain = append(w.chain, s.SnapshotID)
	}
}

// history is a new one from main's head, and the state there.
func (w *tableWorld) history(until *int64) (*catalog.History, catalog.State) {
	w.t.Helper()
	head, err := w.client.Head(w.t.Context(), catalog.Ref{Name: "main"}, w.key)
	require.NoError(w.t, err)
	table, err := catalog.LoadTable(w.t.Context(), w.files.FS(), head.Content.MetadataLocation, head.Content.ID)
	require.NoError(w.t, err)
	state, ok := table.State(head.Content.SnapshotID)
	require.True(w.t, ok)
	return catalog.NewHistory(catalog.HistoryConfig{Log: w.client, FS: w.files.FS(), Key: w.key, Head: head, Table: table, Until: until}), state
}

// walk answers the snapshots from the head to the root, newest first, and by what they were found.
func (w *tableWorld) walk(h *catalog.History, s catalog.State) (chain []int64, foundBy map[string]int) {
	w.t.Helper()
	foundBy = map[string]int{}
	for {
		chain = append(chain, s.SnapshotID)
		link, err := h.Parent(w.t.Context(), s)
		require.NoError(w.t, err)
		require.False(w.t, link.Unknown, link.Why)
		if link.Root {
			return chain, foundBy
		}
		readable, err := h.Readable(w.t.Context(), s)
		require.NoError(w.t, err)
		assert.True(w.t, readable)
		found, err := h.Find(w.t.Context(), link.ParentID, s)
		require.NoError(w.t, err)
		require.True(w.t, found.OK, found.Why)
		foundBy[found.By]++
		s = found.State
	}
}

func (w *tableWorld) newestFirst() []int64 {
	chain := slices.Clone(w.chain)
	slices.Reverse(chain)
	return chain
}

func TestHistoryOverTheClient(t *testing.T) {
	for name, spec := range map[string]string{"current server": "", "old server": "2.0.0"} {
		t.Run(name, func(t *testing.T) {
			w := newTableWorld(t, spec)
			ctx := t.Context()
			for range 3 {
				w.write(w.writer, nessietest.Truncated, 1)
			}
			w.write(w.writer, nessietest.Truncated, 3) // two of them hidden
			w.write(w.writer, nessietest.Whole, 2)

			from, err := w.client.Reference(ctx, "main")
			require.NoError(t, err)
			_, err = w.client.CreateReference(ctx, catalog.Branch, "side", catalog.Ref{Name: "main", Hash: from.Hash})
			require.NoError(t, err)
			w.write(w.writer.OnBranch("side"), nessietest.Truncated, 1)
			w.write(w.writer.OnBranch("side"), nessietest.Truncated, 1)
			side, err := w.client.Reference(ctx, "side")
			require.NoError(t, err)
			merged, err := w.client.Merge(ctx, from, catalog.Ref{Name: "side", Hash: side.Hash}, "merge", catalog.MergeNormal)
			require.NoError(t, err)

			renamed := catalog.Key{"ns", "renamed"}
			_, err = w.writer.Rename(ctx, w.key, renamed)
			require.NoError(t, err)
			former := w.key
			w.key = renamed
			w.write(w.writer, nessietest.Truncated, 1)

			h, head := w.history(nil)
			chain, foundBy := w.walk(h, head)
			assert.Equal(t, w.newestFirst(), chain)
			assert.Equal(t, 2, foundBy["listing"])

			commits, err := h.Commits(ctx, func(catalog.TableCommit) bool { return false })
			require.NoError(t, err)
			assert.Len(t, commits, 9, "a creation, five appends, the merge, the rename, an append")
			assert.Equal(t, w.key, commits[0].Key)
			assert.Equal(t, former, commits[2].Key)
			for commit, want := range map[string]bool{from.Hash: true, merged.Hash: true, side.Hash: true, commits[8].Hash: true, nessietest.NoAncestor: false} {
				got, err := h.IsAncestor(ctx, commit)
				require.NoError(t, err)
				assert.Equal(t, want, got, commit)
			}
		})
	}
}

func TestHistoryAsksForTheLogOnceAndNoFartherThanNeeded(t *testing.T) {
	w := newTableWorld(t, "")
	for range 12 {
		w.write(w.writer, nessietest.Truncated, 1)
	}
	known := w.chain[8]
	h, head := w.history(&known)
	w.server.Requests()
	s := head
	for range 2 {
		link, err := h.Parent(t.Context(), s)
		require.NoError(t, err)
		found, err := h.Find(t.Context(), link.ParentID, s)
		require.NoError(t, err)
		require.Equal(t, "log", found.By)
		s = found.State
	}
	_, err := h.Commits(t.Context(), func(c catalog.TableCommit) bool { return c.Content.SnapshotID == known })
	require.NoError(t, err)
	requests := w.server.Requests()
	assert.Len(t, requests, 1)
	assert.Contains(t, requests[0].Path, "/history")
}

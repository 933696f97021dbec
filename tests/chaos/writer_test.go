// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // the writer's file IO for s3://
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

const (
	commitPause = 60 * time.Millisecond
	// mostAhead is how many rows the writer may be ahead of the reader. A life that ends before it has looked through all
	// that is new has delivered nothing.
	mostAhead = 3000
)

var (
	orders  = catalog.Key{"shop", "orders"}
	returns = catalog.Key{"shop", "returns"}
)

// writer keeps committing to shop.orders, as an engine does that knows nothing of its readers. Its rows are numbered
// from 1, in the order of snapshots and of the rows in each: a place in the table is a number of rows.
type writer struct {
	t      *testing.T
	client *catalog.Client
	tables *nessietest.Writer
	rng    *rand.Rand

	read atomic.Int64 // rows that the reader is done with

	busy                               sync.Mutex // held while it commits
	commits, truncated, hidden, merges int

	mu        sync.Mutex
	rows      int64            // that are on main
	snapshots map[string]int64 // rows up to and with a snapshot, as checkpoints write its id
}

func newWriter(t *testing.T, nessie, s3 string) *writer {
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: nessie})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	tables, err := nessietest.NewWriter(t.Context(), nessietest.WriterConfig{
		Catalog: client, Warehouse: "s3://" + corpus.Bucket + "/warehouse",
		Storage: map[string]string{
			"s3.endpoint": s3, "s3.region": "us-east-1", "s3.access-key-id": "id", "s3.secret-access-key": "secret",
		},
	})
	require.NoError(t, err)
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	// Without it a manifest list would name every snapshot of the run.
	merging := iceberg.Properties{table.ManifestMergeEnabledKey: "true", table.ManifestMinMergeCountKey: "20"}
	for _, key := range []catalog.Key{orders, returns} {
		_, err = tables.Create(t.Context(), key, schema, nessietest.TableOptions{Properties: merging})
		require.NoError(t, err)
	}
	return &writer{
		t: t, client: client, tables: tables, rng: rand.New(rand.NewPCG(*seed, 1)),
		snapshots: map[string]int64{"": 0},
	}
}

// run commits until the context ends.
func (w *writer) run(ctx context.Context) {
	pause := time.NewTicker(commitPause)
	defer pause.Stop()
	for ctx.Err() == nil {
		w.quietly(func() {
			switch {
			case w.known() > w.read.Load()+mostAhead:
			case w.rng.IntN(10) == 0:
				w.merge(context.WithoutCancel(ctx))
			default:
				w.published(w.commit(context.WithoutCancel(ctx), w.tables, w.known()))
			}
		})
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// quietly does something while the writer is still.
func (w *writer) quietly(do func()) {
	w.busy.Lock()
	defer w.busy.Unlock()
	do()
}

// commit adds one to three snapshots, from a row on, in the manner of Iceberg's own catalog or of Nessie's REST endpoint,
// which forgets parents and hides all snapshots of a commit but the last. It gives the number of rows then.
func (w *writer) commit(ctx context.Context, on *nessietest.Writer, rows int64) int64 {
	change := nessietest.Change{Form: nessietest.Form(w.rng.IntN(2))}
	var ends []int64
	for range 1 + w.rng.IntN(3) {
		var added []string
		for range 20 + w.rng.IntN(200) {
			rows++
			added = append(added, fmt.Sprintf(`{"id":%d}`, rows))
		}
		ends = append(ends, rows)
		change.Steps = append(change.Steps, nessietest.Append(added...))
	}
	written, err := on.Commit(ctx, orders, change)
	if !assert.NoError(w.t, err) || !assert.Len(w.t, written.Snapshots, len(ends)) {
		return w.known()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range written.Snapshots {
		w.snapshots[strconv.FormatInt(s.SnapshotID, 10)] = ends[i]
	}
	w.commits++
	if change.Form == nessietest.Truncated {
		w.truncated++
		w.hidden += len(ends) - 1
	}
	return rows
}

// merge commits on a branch of its own and merges that into main, which had another commit meanwhile.
func (w *writer) merge(ctx context.Context) {
	main, err := w.client.Reference(ctx, "main")
	if !assert.NoError(w.t, err) {
		return
	}
	side, err := w.client.CreateReference(ctx, catalog.Branch, fmt.Sprintf("side-%d", w.merges), main.Ref())
	if !assert.NoError(w.t, err) {
		return
	}
	rows := w.known()
	for range 1 + w.rng.IntN(3) {
		rows = w.commit(ctx, w.tables.OnBranch(side.Name), rows)
	}
	_, err = w.tables.Append(ctx, returns, `{"id":1}`)
	assert.NoError(w.t, err)
	if main, err = w.client.Reference(ctx, "main"); !assert.NoError(w.t, err) {
		return
	}
	if side, err = w.client.Reference(ctx, side.Name); !assert.NoError(w.t, err) {
		return
	}
	_, err = w.client.Merge(ctx, main, side.Ref(), "merge", catalog.MergeNormal)
	assert.NoError(w.t, err)
	assert.NoError(w.t, w.client.DeleteReference(ctx, side))
	w.merges++
	w.published(rows)
}

func (w *writer) published(rows int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = rows
}

// known is the number of rows on main.
func (w *writer) known() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows
}

// upTo is the number of rows up to and with a snapshot.
func (w *writer) upTo(snapshot string) int64 {
	rows, ok := w.recorded(snapshot)
	if !ok {
		// The reader can be done with a commit before the writer knows of it.
		w.quietly(func() { rows, ok = w.recorded(snapshot) })
	}
	assert.True(w.t, ok, "snapshot %s is none of the table's", snapshot)
	return rows
}

func (w *writer) recorded(snapshot string) (rows int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, ok = w.snapshots[snapshot]
	return rows, ok
}

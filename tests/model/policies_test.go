// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// readerHeader tells the input's requests from the writer's.
const readerHeader = "X-Reader"

// policies are what a configuration can say about the bad day.
type policies struct {
	start, lost, replaced string
	overwrite, del        string // where messages of added rows can't say what a snapshot does
	limit, batch          int
	bounded, changelog    bool
}

// onRemoved is the policy for snapshots that remove rows, by their kind.
func (p policies) onRemoved(kind string) string {
	if kind == "overwrite" {
		return p.overwrite
	}
	return p.del
}

// changes are the fields that say which changes of rows are told.
func (p policies) changes() string {
	if p.changelog {
		return "changes: changelog"
	}
	return fmt.Sprintf("on_overwrite: %s\n  on_delete: %s", p.overwrite, p.del)
}

func (p policies) yaml(w *world) string {
	poll := "3ms"
	if p.bounded {
		poll = "0s"
	}
	return fmt.Sprintf(`
label: input
nessie:
  base_url: %s
  namespace: shop
  table: %s
  storage: %s
  incremental_by_snapshot: true
  checkpoint_cache: progress
  checkpoint_cache_key: place
  checkpoint_write_timeout: 2s
  poll_interval: %s
  max_retries: 0
  headers: { %s: input }
  read_parallelism: 1
  start_from: %s
  on_lost_lineage: %s
  on_table_replaced: %s
  %s
  checkpoint_limit: %d
  batch_rows: %d
`, w.Server.URL, w.key.Name(), w.storage, poll, readerHeader, p.start, p.lost, p.replaced, p.changes(), p.limit, p.batch)
}

// begin starts a life of the input, whose words the ledger takes.
func (g *ledger) begin(k *histories.Keeper, pol policies) *histories.Life {
	return histories.Begin(g.w.ctx, g.w.rt, k, pol.yaml(g.w), g.heard)
}

// end stops a life, and acknowledges all that it hands out.
func (g *ledger) end(l *histories.Life) {
	l.End(func(d histories.Delivery) { g.accept(g.deliver(d)) })
}

// kill abandons a life. Nothing that it says counts any more.
func (g *ledger) kill(l *histories.Life) {
	l.Cut()
	g.silence()
	var held []histories.Delivery
	for _, f := range g.held() {
		held = append(held, f.d)
	}
	l.Kill(held)
}

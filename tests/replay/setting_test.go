// SPDX-License-Identifier: Apache-2.0

package replay

import "fmt"

// setting is what of the input's configuration differs between histories.
type setting struct {
	start, lost, payload, format string
	limit, batch                 int
	memory                       string
	named                        bool // identifier_fields
	ordinals                     bool
	bounded                      bool
}

func (s setting) yaml(w *world) string {
	poll, identifiers := "3ms", "[]"
	if s.bounded {
		poll = "0s"
	}
	if s.named {
		identifiers = "[ id ]"
	}
	return fmt.Sprintf(`
label: input
nessie:
  base_url: %s
  namespace: shop
  table: orders
  storage: { local_root: %q }
  incremental_by_snapshot: true
  changes: changelog
  identifier_fields: %s
  delete_payload: %s
  checkpoint_cache: progress
  checkpoint_cache_key: place
  checkpoint_write_timeout: 2s
  poll_interval: %s
  max_retries: 0
  read_parallelism: 1
  read_memory: %s
  start_from: %s
  on_lost_lineage: %s
  on_table_replaced: restart
  checkpoint_limit: %d
  batch_rows: %d
  format: %s
  row_ordinals: %v
`, w.Server.URL, w.Warehouse, identifiers, s.payload, poll, s.memory, s.start, s.lost, s.limit, s.batch, s.format, s.ordinals)
}

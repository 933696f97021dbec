// SPDX-License-Identifier: Apache-2.0

package nessie

// Values of the enumerated fields.
const (
	startFromTableScan = "table_scan"
	startFromEarliest  = "earliest"
	startFromLatest    = "latest"

	changesAppend    = "append"
	changesChangelog = "changelog"

	onRemovedFail      = "fail"
	onRemovedSkip      = "skip"
	onRemovedAddedRows = "added_rows"

	onLostStart     = "start"
	onLostAncestor  = "ancestor"
	onLostBridge    = "bridge"
	onLostTableScan = "table_scan"
	onLostFail      = "fail"

	onReplacedFail    = "fail"
	onReplacedRestart = "restart"

	formatJSON   = "json"
	formatNDJSON = "ndjson"
	formatArrow  = "arrow"

	defaultWriteTimeout = "10s"
)

type example struct{ title, summary, config string }

var inputExamples = []example{
	{
		"New rows to a webhook",
		"Delivers every new snapshot's rows once they are committed, and remembers where it stands in a folder that survives a crash.",
		`
input:
  nessie:
    base_url: http://localhost:19120
    namespace: sales
    table: orders
    incremental_by_snapshot: true
    checkpoint_cache: progress
    storage:
      aws_s3:
        region: us-east-1

output:
  http_client:
    url: http://localhost:8080/orders
    verb: POST

cache_resources:
  - label: progress
    nessie_durable_file:
      directory: ./progress
`,
	},
	{
		"A table to a file, once",
		"Reads the table as it is on a tag and ends.",
		`
input:
  nessie:
    base_url: http://localhost:19120
    branch: v1.0
    namespace: sales
    table: orders
    poll_interval: 0s
    storage:
      local_root: /data/warehouse

output:
  file:
    path: ./orders.jsonl
    codec: lines
`,
	},
}

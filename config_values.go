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
)

const startFromLintRule = `root = if !["table_scan", "earliest", "latest"].contains(this) && !this.re_match("^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$") {
  [ "field start_from must be table_scan, earliest, latest, or a time such as 2026-01-31T00:00:00Z" ]
}`

// inputLintRule refuses combinations that cannot mean what they say. Benthos
// hands it the defaults too, so that a field set to its default counts as not
// set. The constructor holds the same rules for configurations that were never
// linted.
const inputLintRule = `
let incremental = this.incremental_by_snapshot.or(false).string() == "true"
let checkpoints = this.snapshot_checkpoints.or(true).string() == "true"
let needs = {
  "checkpoint_cache": "",
  "checkpoint_cache_key": "",
  "checkpoint_write_timeout": "10s",
  "snapshot_checkpoints": true,
  "start_snapshot_id": "",
  "start_from": "table_scan",
  "end_snapshot_id": "",
  "on_lost_lineage": "",
  "changes": "append",
  "on_table_replaced": "fail",
  "on_overwrite": "fail",
  "on_delete": "fail"
}
let given = this
let batching = this.batching.count.or(0) != 0 || this.batching.byte_size.or(0) != 0 || this.batching.period.or("") != "" || this.batching.check.or("") != "" || this.batching.processors.or([]).length() > 0
let changelog = this.changes.or("append") == "changelog"
root = [
  if !$incremental {
    $needs.key_values().filter(f -> $given.get(f.key).or(f.value) != f.value).map_each(f -> "field " + f.key + " needs incremental_by_snapshot: true").sort()
  },
  if $incremental && this.query.or("") != "" {
    "field query can't be combined with incremental_by_snapshot: true"
  },
  if $incremental && $checkpoints && this.checkpoint_cache.or("") == "" {
    "field checkpoint_cache is required: name a cache resource, or set snapshot_checkpoints: false to keep progress only as long as the process lives"
  },
  if $incremental && !$checkpoints && this.checkpoint_cache.or("") != "" {
    "field checkpoint_cache has no effect with snapshot_checkpoints: false"
  },
  if $changelog && ["start", "ancestor"].contains(this.on_lost_lineage.or("")) {
    "field on_lost_lineage must be bridge, table_scan or fail with changes: changelog: " + this.on_lost_lineage + " leaves changes out"
  },
  if $changelog && (this.on_overwrite.or("fail") != "fail" || this.on_delete.or("fail") != "fail") {
    "fields on_overwrite and on_delete have no place with changes: changelog, which tells every change"
  },
  if !$changelog && (this.identifier_fields.or([]).length() > 0 || this.delete_payload.or("row") != "row") {
    "fields identifier_fields and delete_payload need changes: changelog"
  },
  if this.identifier_fields.or([]).length() > 0 && this.format.or("json") != "json" {
    "field identifier_fields needs format: json, as pairs of updates are messages of their own"
  },
  if $changelog && $batching {
    "field batching has no place with changes: changelog, as it would part what belongs together: use batch_rows and batch_bytes"
  },
  if this.base_url.or("").re_match("^[a-zA-Z]+://[^/]*@") {
    "field base_url must not hold user information: use auth"
  },
  if this.format.or("json") != "json" && this.row_ordinals.or(false).string() == "true" {
    "field row_ordinals needs format: json"
  },
  if this.format.or("json") != "json" && $batching {
    "field batching needs format: json"
  },
].flatten().filter(l -> l != null && l != deleted())
`

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

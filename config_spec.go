// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// Field names of the `nessie` input. Everything that reads, documents or lints
// a field goes through these.
const (
	niFieldBaseURL        = "base_url"
	niFieldBranch         = "branch"
	niFieldNamespace      = "namespace"
	niFieldTable          = "table"
	niFieldColumns        = "columns"
	niFieldQuery          = "query"
	niFieldPollInterval   = "poll_interval"
	niFieldIncremental    = "incremental_by_snapshot"
	niFieldStartSnapshot  = "start_snapshot_id"
	niFieldStartFrom      = "start_from"
	niFieldEndSnapshot    = "end_snapshot_id"
	niFieldCheckpoints    = "snapshot_checkpoints"
	niFieldCache          = "checkpoint_cache"
	niFieldCacheKey       = "checkpoint_cache_key"
	niFieldLimit          = "checkpoint_limit"
	niFieldWriteTimeout   = "checkpoint_write_timeout"
	niFieldChanges        = "changes"
	niFieldIdentifiers    = "identifier_fields"
	niFieldDeletePayload  = "delete_payload"
	niFieldOnOverwrite    = "on_overwrite"
	niFieldOnDelete       = "on_delete"
	niFieldOnLostLineage  = "on_lost_lineage"
	niFieldOnReplaced     = "on_table_replaced"
	niFieldFormat         = "format"
	niFieldRowOrdinals    = "row_ordinals"
	niFieldBatchRows      = "batch_rows"
	niFieldBatchBytes     = "batch_bytes"
	niFieldParallelism    = "read_parallelism"
	niFieldMemory         = "read_memory"
	niFieldAuth           = "auth"
	niFieldAuthBearer     = "bearer"
	niFieldAuthOAuth2     = "oauth2"
	niFieldTLS            = "tls"
	niFieldHeaders        = "headers"
	niFieldRequestTimeout = "request_timeout"
	niFieldMaxRetries     = "max_retries"
	niFieldStorage        = "storage"
	niFieldStorageS3      = "aws_s3"
	niFieldStorageGCS     = "gcp_cloud_storage"
	niFieldStorageAzure   = "azure_blob_storage"
	niFieldStorageLocal   = "local_root"
	niFieldBatching       = "batching"
	niFieldRateLimit      = "rate_limit"
)

// Fields of auth.oauth2.
const (
	oauth2FieldServer = "server_uri"
	oauth2FieldID     = "client_id"
	oauth2FieldSecret = "client_secret"
	oauth2FieldScope  = "scope"
)

const inputDescription = `
Follows one table on one branch or tag. By default every poll delivers the whole table. With ` + "`incremental_by_snapshot: true`" + ` each
poll delivers only the snapshots that were committed since the last one, in the order of the table's history, and the place is kept in a
cache resource. The place moves only when the output has acknowledged, so that after a crash rows may come twice, but none is lost.

### Metadata

Every message carries:

- ` + "`snapshot_id`" + ` (a string, as it exceeds 2^53), ` + "`snapshot_sequence`" + `, ` + "`schema_id`" + `, ` + "`table_uuid`" + `
- ` + "`namespace`" + `, ` + "`table`" + `, ` + "`branch`" + `, ` + "`commit_hash`" + `, ` + "`commit_ts_ms`" + `
- ` + "`operation`" + `: ` + "`read`" + ` for the rows of a table scan, ` + "`insert`" + ` for rows that a snapshot added; with ` + "`changes: changelog`" + ` also
  ` + "`delete`" + `, ` + "`update_before`" + ` and ` + "`update_after`" + `, and ` + "`truncate`" + ` with a null body where a changelog starts over
- ` + "`schema`" + `: the row's schema in Benthos's common form
- ` + "`step`" + `: ordinal of the step of the history, ` + "`first_row`" + `: ordinal in the step of the batch's first row, ` + "`snapshot_last`" + `: true on a
  step's last batch
- ` + "`rows`" + `: number of rows in the message, where the format holds several
- ` + "`row_ordinal`" + `: the row's ordinal in the step, with ` + "`row_ordinals: true`" + `
- ` + "`snapshot_from`" + `: only where a step spans snapshots whose middle is gone: the snapshot that it starts from
`

func inputSpec() *service.ConfigSpec {
	spec := service.NewConfigSpec().
		Stable().
		Categories("Services").
		Summary("Follows an Apache Iceberg table on a branch of Project Nessie, snapshot by snapshot.").
		Description(inputDescription).
		LintRule(combinationsRule)
	for _, fields := range [][]*service.ConfigField{
		tableFields(), startFields(), checkpointFields(), changeFields(), policyFields(), readFields(), connectionFields(),
	} {
		spec = spec.Fields(fields...)
	}
	for _, e := range inputExamples {
		spec = spec.Example(e.title, e.summary, e.config)
	}
	return spec
}

func tableFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(niFieldBaseURL).
			LintRule(valueRule(niFieldBaseURL)).
			Description("Root URL of the Nessie server. `/api/v2` is appended unless it is already there. User information in the URL is refused: use `auth`.").
			Example("http://localhost:19120"),
		service.NewStringField(niFieldBranch).
			LintRule(valueRule(niFieldBranch)).
			Description("Branch or tag to read, or `name@hash` for one fixed commit. A tag is looked up again at each poll, as it can be assigned elsewhere.").
			Default("main").Example("main").Example("v1.0").Example("main@2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"),
		service.NewStringField(niFieldNamespace).
			LintRule(valueRule(niFieldNamespace)).
			Description("Namespace of the table, levels joined by dots. A level that holds a dot is put in double quotes.").
			Example("sales").Example(`a."b.c"`),
		service.NewStringField(niFieldTable).
			LintRule(valueRule(niFieldTable)).
			Description("Name of the table, taken verbatim."),
		service.NewStringListField(niFieldColumns).
			Description("Columns to read, by name, nested fields with dots. They come in table order. Empty reads all. `_row_id` and `_last_updated_sequence_number`, Iceberg's row lineage, can be named too and come last; they are NULL for files from before the table had format version 3, and rows that differ in nothing else are no change.").
			Default([]any{}).Example([]any{"id", "customer.name"}),
		service.NewStringField(niFieldQuery).
			LintRule(valueRule(niFieldQuery)).
			Description("Deliver only the rows for which this SQL `WHERE` expression is true. Its columns need not be in `columns`. Files and row groups that can hold no such row stay closed. Comparisons of columns with literals can be joined by `AND`, `OR` and `NOT`; functions, arithmetic and comparisons of columns with each other are refused. Can't be combined with `incremental_by_snapshot`.").
			Default("").
			Example("country = 'NL' AND amount >= 12.50").
			Example("ordered_at >= TIMESTAMP '2026-01-01 00:00:00' AND status NOT IN ('draft', 'void')").
			Example("customer.name LIKE 'A%' OR customer IS NULL"),
		service.NewDurationField(niFieldPollInterval).
			LintRule(valueRule(niFieldPollInterval)).
			Description("Time between two looks at the branch. `0s` reads what is there, delivers it and ends the input.").
			Default("10s"),
		service.NewBoolField(niFieldIncremental).
			Description("Deliver only new snapshots. When false, every poll delivers the whole table again, without a checkpoint; the next scan starts `poll_interval` after the last was wholly acknowledged.").
			Default(false),
	}
}

func startFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(niFieldStartSnapshot).
			LintRule(valueRule(niFieldStartSnapshot)).
			Description("First snapshot to deliver (inclusive) when there is no checkpoint: an unsigned integer as a string. Needs `incremental_by_snapshot`.").
			Default("").Example("6302345123451234512"),
		service.NewStringField(niFieldStartFrom).
			LintRule(valueRule(niFieldStartFrom)).
			Description("Where to begin when there is neither a checkpoint nor `start_snapshot_id`. Needs `incremental_by_snapshot`. One of:\n\n" +
				"- `table_scan`: the table as it is now, then every later snapshot\n" +
				"- `earliest`: the oldest state that can be found and read, then every snapshot after it; from the table's first snapshot on this is every snapshot\n" +
				"- `latest`: only snapshots that come after the first look at the table; the place is stored at once\n" +
				"- a time such as `2026-01-31T00:00:00Z`: like `earliest`, from the first snapshot that was made then or later. Where no snapshot is that new the place is stored at the head, as with `latest`, and every snapshot that comes after it is delivered, whatever its time: a time in the future makes nothing wait, and is warned of").
			Default(startFromTableScan).Example("earliest").Example("2026-01-31T00:00:00Z"),
		service.NewStringField(niFieldEndSnapshot).
			LintRule(valueRule(niFieldEndSnapshot)).
			Description("Last snapshot to deliver (inclusive), then the input ends: an unsigned integer as a string. Needs `incremental_by_snapshot`.").
			Default("").Example("6302345123451234512"),
	}
}

func checkpointFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewBoolField(niFieldCheckpoints).
			Description("Keep the place in `checkpoint_cache`. When false, progress lives as long as the process.").
			Default(true),
		service.NewStringField(niFieldCache).
			Description("Label of the cache resource that holds the checkpoint. Required with checkpoints. Use a cache that survives a crash, such as `nessie_durable_file`.").
			Default(""),
		service.NewStringField(niFieldCacheKey).
			LintRule(valueRule(niFieldCacheKey)).
			Description("Key of the checkpoint in the cache. Unset, it is derived from server, branch, namespace and table. Two inputs must not share a key.").
			Default("").Advanced(),
		service.NewIntField(niFieldLimit).
			LintRule(valueRule(niFieldLimit)).
			Description("Most rows in flight, that is delivered and not yet acknowledged. A larger batch goes alone. `1` means one batch at a time, which keeps order through retries. Bytes in flight are bounded by `read_memory`.").
			Default(65536).Advanced(),
		service.NewDurationField(niFieldWriteTimeout).
			LintRule(valueRule(niFieldWriteTimeout)).
			Description("Bounds each write of the checkpoint, and all of closing the input. Keep it below `shutdown_timeout`.").
			Default(defaultWriteTimeout).Advanced(),
	}
}

func changeFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringAnnotatedEnumField(niFieldChanges, map[string]string{
			changesAppend:    "Rows that were added. Snapshots that remove rows fall under `on_overwrite` and `on_delete`.",
			changesChangelog: "Every change of a row: `insert`, `delete`, and with identifier fields `update_before` and `update_after`. Replaying the messages gives the table at every step. A column that is renamed or dropped changes no row, so nothing is sent: what a receiver has keeps the old name, or the old values, until the row changes.",
		}).
			Description("What is delivered of a snapshot. Needs `incremental_by_snapshot`.").
			Default(changesAppend),
		service.NewStringListField(niFieldIdentifiers).
			Description("Columns that identify a row, by name, instead of the schema's identifier fields. No two rows that are in the table at once may agree in all of them: a receiver that writes by key would keep one of the rows. Only with `changes: changelog`, and with `format: json`.").
			Default([]any{}).Example([]any{"id"}).Advanced(),
		service.NewStringAnnotatedEnumField(niFieldDeletePayload, map[string]string{
			string(scan.PayloadRow): "The whole row.",
			string(scan.PayloadKey): "Its identifier fields only, where there are any.",
		}).
			Description("What a delete holds. Only with `changes: changelog`.").
			Default(string(scan.PayloadRow)).Advanced(),
	}
}

func policyFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringAnnotatedEnumField(niFieldOnOverwrite, map[string]string{
			onRemovedFail:      "Stop at the snapshot with an error.",
			onRemovedSkip:      "Go past the snapshot: neither its added nor its removed rows are delivered.",
			onRemovedAddedRows: "Deliver the rows that are in the table after it and were not before. That rows went is not told.",
		}).
			Description("What to do with a snapshot that replaces rows (adds some and removes some).").
			Default(onRemovedFail),
		service.NewStringAnnotatedEnumField(niFieldOnDelete, map[string]string{
			onRemovedFail: "Stop at the snapshot with an error.",
			onRemovedSkip: "Go past the snapshot.",
		}).
			Description("What to do with a snapshot that only removes rows.").
			Default(onRemovedFail),
		service.NewStringAnnotatedEnumField(niFieldOnLostLineage, map[string]string{
			"":              "`start`, and `bridge` with `changes: changelog`.",
			onLostStart:     "Go on from `start_snapshot_id` if it is set and reachable, else from the head without its backlog. What is skipped is counted in a warning.",
			onLostAncestor:  "Deliver every snapshot after the newest common ancestor of the checkpoint and the head.",
			onLostBridge:    "Deliver the difference between the checkpoint's state and the head. In a changelog abandoned rows are deleted again.",
			onLostTableScan: "Deliver the whole table again, then follow it.",
			onLostFail:      "Stop with an error.",
		}).
			Description("What to do when the head is not a proved descendant of the checkpoint: the branch was reset, rolled back or replaced, or what lies between is gone.").
			Default(""),
		service.NewStringAnnotatedEnumField(niFieldOnReplaced, map[string]string{
			onReplacedFail:    "Stop with an error.",
			onReplacedRestart: "Begin again as on a first run.",
		}).
			Description("What to do when another table (another content id or table UUID) stands under the configured name.").
			Default(onReplacedFail),
	}
}

func readFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringAnnotatedEnumField(niFieldFormat, map[string]string{
			formatJSON:   "One message a row, a JSON object.",
			formatNDJSON: "One message a batch, a JSON object a line.",
			formatArrow:  "One message a batch, an Arrow IPC stream.",
		}).
			Description("Form of the messages.").
			Default(formatJSON),
		service.NewBoolField(niFieldRowOrdinals).
			Description("Put the row's ordinal in its step into the metadata `row_ordinal`. Together with `snapshot_id` and `step` it identifies a message through redeliveries, for outputs that drop duplicates. Needs `format: json`.").
			Default(false).Advanced(),
		service.NewIntField(niFieldBatchRows).
			LintRule(valueRule(niFieldBatchRows)).
			Description("Most rows in one batch.").
			Default(4096).Advanced(),
		service.NewStringField(niFieldBatchBytes).
			LintRule(valueRule(niFieldBatchBytes)).
			Description("A batch also ends when its encoded rows reach this size. A single larger row goes alone.").
			Default("8MiB").Advanced(),
		service.NewIntField(niFieldParallelism).
			LintRule(valueRule(niFieldParallelism)).
			Description("Files, and parts of large ones, read at once. `0` means as many as there are cores.").
			Default(0).Advanced(),
		service.NewStringField(niFieldMemory).
			LintRule(valueRule(niFieldMemory)).
			Description("Bounds memory. What is read ahead, that is decoded or encoded and not yet taken, is at most a quarter of it, and about 8 MiB for each file that is read at once (`read_parallelism`). Bytes in flight, that is delivered and not yet acknowledged, are at most all of it. One batch, and one row group of a file, are always allowed, however large.").
			Default("256MiB").Advanced(),
		service.NewAutoRetryNacksToggleField(),
		service.NewBatchPolicyField(niFieldBatching).
			LintRule(valueRule(niFieldBatching)).
			Description("When set, batches are made by this policy instead of `batch_rows` and `batch_bytes`. A batch never mixes snapshots: it is always flushed at the end of a step. Only with `format: json`.").
			Advanced(),
	}
}

func authField() *service.ConfigField {
	return service.NewObjectField(niFieldAuth,
		service.NewStringField(niFieldAuthBearer).
			Description("A bearer token.").Default("").Secret(),
		service.NewObjectField(niFieldAuthOAuth2,
			service.NewStringField(oauth2FieldServer).
				Description("URL of the token endpoint, such as `https://login.example.com/realms/data/protocol/openid-connect/token`."),
			service.NewStringField(oauth2FieldID).Description("The client's id."),
			service.NewStringField(oauth2FieldSecret).Description("The client's secret.").Secret(),
			service.NewStringField(oauth2FieldScope).Description("Scopes to ask for, separated by spaces.").Default(""),
		).Description("OAuth 2.0 by client credentials: a token is fetched when one is needed, and again before it expires or when the server refuses it. `tls` and `request_timeout` hold for the token endpoint too.").Optional(),
	).Description("How to authenticate at the Nessie server, by at most one of these. Empty: not at all.").LintRule(valueRule(niFieldAuth)).Optional()
}

func connectionFields() []*service.ConfigField {
	return []*service.ConfigField{
		authField(),
		service.NewTLSField(niFieldTLS).Description("TLS settings of the connection to the Nessie server.").Advanced(),
		service.NewStringMapField(niFieldHeaders).
			LintRule(valueRule(niFieldHeaders)).
			Description("Headers to send with every request to the Nessie server. Their values are never logged.").
			Default(map[string]any{}).Secret().Advanced(),
		service.NewDurationField(niFieldRequestTimeout).
			LintRule(valueRule(niFieldRequestTimeout)).
			Description("Bounds one attempt of a request to the Nessie server, and how long an object store may deliver nothing before it is asked again.").
			Default("30s").Advanced(),
		service.NewIntField(niFieldMaxRetries).
			LintRule(valueRule(niFieldMaxRetries)).
			Description("How often a request to the Nessie server or an object store is repeated after a network error, a 429 or a 5xx answer, with growing random waits; also how often in a row a read of a file may break off. `Retry-After` is obeyed.").
			Default(3).Advanced(),
		service.NewStringField(niFieldRateLimit).
			Description("A rate limit resource, asked once for each request to the Nessie server, retries and redirects included.").
			Default("").Advanced(),
		storageField(),
	}
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

var smallest = []string{"base_url: http://localhost:19120", "namespace: shop", "table: orders"}

func inputYAML(fields ...string) string {
	return "nessie:\n  " + strings.Join(slices.Concat(smallest, fields), "\n  ") + "\n"
}

func TestDefaultsAreThoseOfTheDesign(t *testing.T) {
	parsed, err := inputSpec().ParseYAML(strings.Join(smallest, "\n"), nil)
	require.NoError(t, err)
	c, err := parseConfig(parsed)
	require.NoError(t, err)
	assert.Positive(t, c.Parallelism)
	c.Parallelism = 0
	c.Batching = service.BatchPolicy{}
	assert.Equal(t, &Config{
		BaseURL: "http://localhost:19120", Ref: catalog.Ref{Name: "main"}, Key: catalog.Key{"shop", "orders"}, Namespace: "shop",
		Columns: []string{}, PollInterval: 10e9, Checkpoints: true, CheckpointLimit: 65536, WriteTimeout: 10e9,
		Lineage: lineage.Policy{OnLost: lineage.LostStart, OnReplaced: lineage.ReplacedFail, StartFrom: lineage.StartTableScan},
		Changes: "append", DeletePayload: "row",
		OnOverwrite: "fail", OnDelete: "fail", Format: "json", BatchRows: 4096, BatchBytes: 8 << 20, Memory: 256 << 20,
		Headers: map[string]string{}, RequestTimeout: 30e9, MaxRetries: 3, Storage: catalog.StorageConfig{Timeout: 30e9, MaxAttempts: 4, GCS: catalog.GCSConfig{CredentialsType: "service_account"}},
	}, c)
}

// field is what Benthos tells of a field of ours.
type field struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Secret      bool    `json:"is_secret"`
	Children    []field `json:"children"`
}

func TestEveryFieldIsDocumentedAndCredentialsAreSecret(t *testing.T) {
	secrets := []string{
		"auth.bearer", "auth.oauth2.client_secret", "headers", "storage.aws_s3.credentials.id", "storage.aws_s3.credentials.secret", "storage.aws_s3.credentials.token", "storage.aws_s3.credentials.role_external_id",
		"storage.gcp_cloud_storage.credentials_json", "storage.azure_blob_storage.storage_sas_token", "storage.azure_blob_storage.storage_connection_string", "storage.azure_blob_storage.storage_access_key",
	}
	seen := map[string]field{}
	walkFields(specFields(t), "", seen)
	assert.Greater(t, len(seen), 40)
	for path, f := range seen {
		assert.NotEmpty(t, f.Description, path)
		if !strings.HasPrefix(path, "tls.") && !strings.HasPrefix(path, "batching.") {
			assert.Equal(t, slices.Contains(secrets, path), f.Secret, path)
		}
	}
	for _, path := range secrets {
		assert.Contains(t, seen, path)
	}
}

// specFields are the fields of the input as Benthos tells of them.
func specFields(t *testing.T) []field {
	t.Helper()
	var told struct {
		Config field `json:"config"`
	}
	service.GlobalEnvironment().WalkInputs(func(name string, view *service.ConfigView) {
		if name != "nessie" {
			return
		}
		text, err := view.FormatJSON()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &told))
	})
	require.NotEmpty(t, told.Config.Children)
	return told.Config.Children
}

func walkFields(fields []field, under string, seen map[string]field) {
	for _, f := range fields {
		seen[under+f.Name] = f
		walkFields(f.Children, under+f.Name+".", seen)
	}
}

func TestTheExamplesLint(t *testing.T) {
	for _, e := range inputExamples {
		linter := service.GlobalEnvironment().FullConfigSchema("", "").NewStreamConfigLinter()
		lints, err := linter.LintYAML([]byte(strings.ReplaceAll(e.config, "  http_client:\n    url: http://localhost:8080/orders\n    verb: POST\n", "  drop: {}\n")))
		require.NoError(t, err)
		for _, lint := range lints {
			assert.Contains(t, lint.Error(), "file", "%s: only components of other packages are unknown here", e.title)
		}
	}
}

func TestLints(t *testing.T) {
	const incremental = "incremental_by_snapshot: true"
	tests := []struct {
		name   string
		fields []string
	}{
		{"smallest", nil},
		{"incremental", []string{incremental, "checkpoint_cache: progress"}},
		{"incremental without checkpoints", []string{incremental, "snapshot_checkpoints: false"}},
		{"all fields", []string{
			incremental, "checkpoint_cache: progress", "checkpoint_cache_key: k", "checkpoint_limit: 1", "checkpoint_write_timeout: 5s", "columns: [ id ]",
			`start_snapshot_id: "1"`, "start_from: latest", "on_overwrite: skip", "on_delete: skip", "on_lost_lineage: ancestor", "on_table_replaced: restart",
			"format: json", "batch_rows: 1", "batch_bytes: 1KiB", "read_parallelism: 1", "read_memory: 1MiB", "auto_replay_nacks: false", "batching: { count: 5 }",
			"auth: { bearer: x }", "tls: { skip_cert_verify: true }", "headers: { a: b }", "request_timeout: 1s", "max_retries: 0", "rate_limit: slow",
			"storage: { local_root: /data, aws_s3: { region: r, endpoint: 'http://s3', force_path_style_urls: true, credentials: { id: a, secret: b } } }",
		}},
		{"unknown field", []string{"tabel: orders"}},
		{"missing checkpoint_cache", []string{incremental}},
		{"checkpoint_cache that nothing uses", []string{incremental, "snapshot_checkpoints: false", "checkpoint_cache: progress"}},
		{"checkpoint_cache without incremental", []string{"checkpoint_cache: progress"}},
		{"checkpoint_cache_key without incremental", []string{"checkpoint_cache_key: k"}},
		{"checkpoint_write_timeout without incremental", []string{"checkpoint_write_timeout: 5s"}},
		{"snapshot_checkpoints without incremental", []string{"snapshot_checkpoints: false"}},
		{"start_snapshot_id without incremental", []string{`start_snapshot_id: "5"`}},
		{"start_from without incremental", []string{"start_from: earliest"}},
		{"on_lost_lineage without incremental", []string{"on_lost_lineage: fail"}},
		{"on_table_replaced without incremental", []string{"on_table_replaced: restart"}},
		{"on_overwrite without incremental", []string{"on_overwrite: skip"}},
		{"on_delete without incremental", []string{"on_delete: skip"}},
		{"several without incremental", []string{"incremental_by_snapshot: false", "start_from: latest", "checkpoint_cache: progress"}},
		{"unknown value", []string{incremental, "checkpoint_cache: c", "start_from: the_moon"}},
		{"batching with ndjson", []string{"format: ndjson", "batching: { count: 10 }"}},
		{"batching with arrow", []string{"format: arrow", "batching: { processors: [ { noop: {} } ] }"}},
		{"row_ordinals with ndjson", []string{"format: ndjson", "row_ordinals: true"}},
		{"changelog", []string{incremental, "checkpoint_cache: c", "changes: changelog", "identifier_fields: [ id ]", "delete_payload: key"}},
		{"changelog without incremental", []string{"changes: changelog"}},
		{"changelog that leaves changes out", []string{incremental, "checkpoint_cache: c", "changes: changelog", "on_lost_lineage: start"}},
		{"changelog that skips", []string{incremental, "checkpoint_cache: c", "changes: changelog", "on_delete: skip"}},
		{"changelog with batching", []string{incremental, "checkpoint_cache: c", "changes: changelog", "batching: { count: 2 }"}},
		{"identifier fields with ndjson", []string{incremental, "checkpoint_cache: c", "changes: changelog", "format: ndjson", "identifier_fields: [ id ]"}},
		{"identifier fields without changelog", []string{incremental, "checkpoint_cache: c", "identifier_fields: [ id ]"}},
		{"end_snapshot_id without incremental", []string{`end_snapshot_id: "5"`}},
		{"no batching with arrow", []string{"format: arrow"}},
		{"poll_interval", []string{"poll_interval: abc"}},
		{"negative poll_interval", []string{"poll_interval: -1s"}},
		{"request_timeout", []string{"request_timeout: 0s"}},
		{"sizes", []string{"batch_bytes: many", "read_memory: 0"}},
		{"counts", []string{"batch_rows: 0", "checkpoint_limit: 0", "read_parallelism: -1", "max_retries: -1"}},
		{"snapshot ids", []string{incremental, "checkpoint_cache: c", `start_snapshot_id: "-1"`, "end_snapshot_id: 99999999999999999999"}},
		{"start on a day that is not", []string{incremental, "checkpoint_cache: c", "start_from: 2026-02-30"}},
		{"branch", []string{"branch: main@2e1cfa8"}},
		{"query", []string{"query: id ="}},
		{"header", []string{"headers: { 'a b': secret }"}},
		{"period of batching", []string{"batching:", "  count: 5", "  period: often"}},
		{"two ways to authenticate", []string{"auth: { bearer: x, oauth2: { server_uri: 'https://login/token', client_id: a, client_secret: b } }"}},
		{"no token endpoint", []string{"auth:", "  oauth2:", "    server_uri: login", "    client_id: a"}},
		{"storage", []string{"storage:", "  aws_s3:", "    credentials:", "      id: a"}},
		{"empty, as an unset variable is", []string{"poll_interval: ''", "read_memory: ''", "auth: { bearer: '' }"}},
	}
	var out strings.Builder
	linter := service.GlobalEnvironment().NewComponentConfigLinter()
	for _, tc := range tests {
		writeLints(t, &out, linter, tc.name, inputYAML(tc.fields...))
	}
	writeLints(t, &out, linter, "namespace", "nessie:\n  base_url: http://nessie:19120\n  namespace: a..b\n  table: orders\n")
	writeLints(t, &out, linter, "no URL", "nessie:\n  base_url: nessie\n  namespace: shop\n  table: orders\n")
	writeLints(t, &out, linter, "user information in base_url", "nessie:\n  base_url: https://me:secret@nessie:19120\n  namespace: shop\n  table: orders\n")
	golden(t, filepath.Join("lint", "inputs.txt"), out.String())
}

func writeLints(t *testing.T, out *strings.Builder, linter *service.ComponentConfigLinter, name, yaml string) {
	t.Helper()
	lints, err := linter.LintInputYAML([]byte(yaml))
	require.NoError(t, err)
	fmt.Fprintf(out, "%s:\n", name)
	if len(lints) == 0 {
		fmt.Fprintln(out, "  fine")
	}
	for _, lint := range lints {
		fmt.Fprintf(out, "  line %d: %s\n", lint.Line, lint.What)
	}
}

// Constructors refuse wrong values before anything runs.
func TestConstructorErrors(t *testing.T) {
	const incremental, cached = "incremental_by_snapshot: true", "checkpoint_cache: progress"
	tests := []struct {
		name   string
		fields []string
		says   string
	}{
		{"unknown cache", []string{incremental, "checkpoint_cache: nowhere"}, `field checkpoint_cache: there is no cache resource "nowhere"`},
		{"negative id", []string{incremental, cached, `start_snapshot_id: "-1"`}, `field start_snapshot_id must be a snapshot id, an unsigned integer of at most 19 digits in a string, got "-1"`},
		{"no number", []string{incremental, cached, `start_snapshot_id: "abc"`}, `field start_snapshot_id must be a snapshot id, an unsigned integer of at most 19 digits in a string, got "abc"`},
		{"too large an id", []string{incremental, cached, `start_snapshot_id: "99999999999999999999"`}, `got "99999999999999999999"`},
		{"a signed id", []string{incremental, cached, `start_snapshot_id: "+5"`}, `got "+5"`},
		{"bad namespace", []string{`namespace: "a..b"`}, `field namespace: `},
		{"unclosed quote", []string{`namespace: '"a'`}, `field namespace: `},
		{"empty table", []string{`table: ""`}, "field table must not be empty"},
		{"bad branch", []string{"branch: 'main@xyz'"}, "field branch: "},
		{"unknown rate limit", []string{"rate_limit: slow"}, `field rate_limit: there is no rate limit resource "slow"`},
		{"user information", []string{"base_url: http://me:" + secret + "@localhost"}, "field base_url must not hold user information: use auth"},
		{"no URL", []string{"base_url: nessie"}, "field base_url must be an http or https URL"},
		{"another scheme", []string{"base_url: ftp://nessie"}, "field base_url must be an http or https URL"},
		{"no limit", []string{"checkpoint_limit: 0"}, "field checkpoint_limit must be at least 1, got 0"},
		{"no rows", []string{"batch_rows: 0"}, "field batch_rows must be at least 1, got 0"},
		{"bad size", []string{"batch_bytes: many"}, `field batch_bytes must be a size such as 8MiB, got "many"`},
		{"negative poll interval", []string{"poll_interval: -1s"}, "field poll_interval must be at least 0s, got -1s"},
		{"missing cache", []string{incremental}, "field checkpoint_cache is required: name a cache resource, or set snapshot_checkpoints: false to keep progress only as long as the process lives"},
		{"unused cache", []string{incremental, "snapshot_checkpoints: false", cached}, "field checkpoint_cache has no effect with snapshot_checkpoints: false"},
		{"cache without incremental", []string{cached}, "field checkpoint_cache needs incremental_by_snapshot: true"},
		{"start without incremental", []string{`start_snapshot_id: "5"`}, "field start_snapshot_id needs incremental_by_snapshot: true"},
		{"start_from without incremental", []string{"start_from: latest"}, "field start_from needs incremental_by_snapshot: true"},
		{"policy without incremental", []string{"on_delete: skip"}, "field on_delete needs incremental_by_snapshot: true"},
		{"changelog without incremental", []string{"changes: changelog"}, "field changes needs incremental_by_snapshot: true"},
		{"changelog that leaves changes out", []string{incremental, cached, "changes: changelog", "on_lost_lineage: ancestor"}, "field on_lost_lineage must be bridge, table_scan or fail with changes: changelog: ancestor leaves changes out"},
		{"changelog that skips", []string{incremental, cached, "changes: changelog", "on_overwrite: skip"}, "fields on_overwrite and on_delete have no place with changes: changelog, which tells every change"},
		{"identifier fields without changelog", []string{incremental, cached, "identifier_fields: [ id ]"}, "fields identifier_fields and delete_payload need changes: changelog"},
		{"row_ordinals with arrow", []string{"format: arrow", "row_ordinals: true"}, "field row_ordinals needs format: json"},
		{"bad end", []string{incremental, cached, `end_snapshot_id: "x"`}, `field end_snapshot_id must be a snapshot id`},
		{"bad start time", []string{incremental, cached, "start_from: yesterday"}, "field start_from"},
		{"batching with ndjson", []string{"format: ndjson", "batching: { count: 10 }"}, "field batching needs format: json"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := construct(t, tc.fields)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.says)
			assert.NotContains(t, err.Error(), secret)
		})
	}
	assert.NoError(t, construct(t, []string{incremental, cached, `start_snapshot_id: "9223372036854775807"`}))
}

// construct makes an input that was never linted.
func construct(t *testing.T, fields []string) error {
	t.Helper()
	parsed, err := inputSpec().ParseYAML(settings(fields), nil)
	require.NoError(t, err)
	in, err := newInputFromConfig(parsed, service.MockResources(service.MockResourcesOptAddCache("progress")))
	if err != nil {
		return err
	}
	return in.Close(t.Context())
}

// settings are the smallest ones with others beside or instead.
func settings(fields []string) string {
	lines := map[string]string{}
	for _, line := range slices.Concat(smallest, fields) {
		name, _, _ := strings.Cut(line, ":")
		lines[name] = line
	}
	return strings.Join(slices.Sorted(maps.Values(lines)), "\n")
}

func TestTwoInputsOnTwoKeysShareACache(t *testing.T) {
	s := newShop(t)
	s.add(1)
	input := func(label, key string) string {
		fields := strings.Join(s.increments("poll_interval: 0s"), "\n          ")
		return "      - label: " + label + "\n        nessie:\n          " + replaceOnce(fields, "checkpoint_cache_key: place", "checkpoint_cache_key: "+key) + "\n"
	}
	r := newRig(t)
	r.startYAML("input:\n  broker:\n    inputs:\n" + input("one", "a") + input("two", "b") +
		"output:\n  outlet: {}\ncache_resources:\n  - label: progress\n    keeper: {}\n").await()
	assert.ElementsMatch(t, orders(1, 1), r.out.bodies())
	assert.NotEmpty(t, r.cache.raw("a"))
	assert.NotEmpty(t, r.cache.raw("b"))
}

// A key is free again once its input is closed.
func TestAKeyIsGivenBack(t *testing.T) {
	res := service.MockResources(service.MockResourcesOptAddCache("progress"))
	for range 2 {
		parsed, err := inputSpec().ParseYAML(strings.Join(append(slices.Clone(smallest), "incremental_by_snapshot: true", "checkpoint_cache: progress"), "\n"), nil)
		require.NoError(t, err)
		in, err := newInputFromConfig(parsed, res)
		require.NoError(t, err)
		_, err = newInputFromConfig(parsed, res)
		require.Error(t, err)
		require.NoError(t, in.Close(t.Context()))
	}
}

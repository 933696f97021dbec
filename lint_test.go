// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fieldValues are YAML values that a field might get, right and wrong ones,
// under the other fields that it needs. Every field is here but tls, which is
// Benthos's own and reads files, and the three that name resources, which only
// the constructor can look up.
var fieldValues = map[string][]string{
	"base_url": {
		"http://localhost:19120", "https://nessie/root/api/v2", "nessie", "ftp://nessie", "http://", "http://me:secret@nessie", "http://nessie?a=b",
		"'http://nessie/#f'", "http://nessie/api/v1", "'http://[::1'", "'http://[::1]:19120'", "'http://ne ssie'",
	},
	"branch":                   {"main", "a/b.c-d_e", "main@" + strings.Repeat("ab", 32), "main@abc", "'-x'", "'a..b'", "'a b'", "'@'"},
	"namespace":                {"a", "a.b", `'a."b.c"'`, "a..b", `'"a'`, `'"a"b'`, "'.'", "5"},
	"table":                    {"orders", "5", "a.b", `'"'`},
	"columns":                  {"[]", "[ id ]", "[ a.b, c ]"},
	"query":                    {"id = 1", "'id = '", "nonsense here", "a + 1 = 2", "lower(a) = 'x'", "'a IN (1, 2)'", "'id > 5 AND NOT (b IS NULL)'"},
	"poll_interval":            {"10s", "0s", "0", "1h30m", "abc", "10", "-1s", "1d", "10 s", "1s1", "99999999999h", "null0"},
	"incremental_by_snapshot":  {"false", "true"},
	"start_snapshot_id":        {`"5"`, "5", "9223372036854775807", `"9223372036854775808"`, `"-1"`, `"+5"`, "abc", `"0x1"`, `"1_0"`, `" 5"`, "1.5", "99999999999999999999"},
	"end_snapshot_id":          {`"5"`, "5", `"-1"`, "abc", "99999999999999999999"},
	"start_from":               {"table_scan", "earliest", "latest", "2026-01-31", "2026-02-29", "2026-13-01", "2026-01-31T00:00:00Z", "'2026-01-31 10:20'", "2026-01-31T25:00:00Z", "the_moon", "2026", "2026-01-31T00:00:00.5+02:00"},
	"snapshot_checkpoints":     {"true", "false"},
	"checkpoint_cache_key":     {"a", "'a/b'", `"a\0b"`, `"a\tb"`, `"a\x7f"`, "'größe 1'"},
	"checkpoint_limit":         {"1", "0", "-5", "65536", "1.5"},
	"checkpoint_write_timeout": {"1s", "0s", "1us", "soon"},
	"changes":                  {"append", "changelog", "everything"},
	"identifier_fields":        {"[]", "[ id ]"},
	"delete_payload":           {"row", "key", "none"},
	"on_overwrite":             {"fail", "skip", "added_rows", "ignore"},
	"on_delete":                {"fail", "skip", "added_rows"},
	"on_lost_lineage":          {"start", "ancestor", "bridge", "table_scan", "fail", "weep"},
	"on_table_replaced":        {"fail", "restart", "skip"},
	"format":                   {"json", "ndjson", "arrow", "xml"},
	"row_ordinals":             {"true", "false"},
	"batch_rows":               {"1", "0", "-1"},
	"batch_bytes":              {"8MiB", "1", "100kb", "'1,000'", "1.5GiB", "many", "0", "0B", "-1", "8 MiB", "8XB", "99999999999999999999", "8EiB"},
	"read_parallelism":         {"0", "4", "-1"},
	"read_memory":              {"1MiB", "lots", "-1MiB"},
	"auto_replay_nacks":        {"true", "false"},
	"batching":                 {"{ count: 5 }", "{ period: 1s }", "{ period: often }", "{ period: -5s }", "{ period: 5 }", "{ period: '' }", "{ check: 'this.a ==' }", "{ check: this.a }", "{ count: 2, processors: [ { nothing: {} } ] }"},
	"auth": {
		"{}", "{ bearer: x }", "{ oauth2: { server_uri: 'https://login/token', client_id: a, client_secret: b } }",
		"{ oauth2: { server_uri: 'https://login/token', client_id: a, client_secret: b, scope: 'c d' } }",
		"{ bearer: x, oauth2: { server_uri: 'https://login/token', client_id: a, client_secret: b } }",
		"{ oauth2: { server_uri: login, client_id: a, client_secret: b } }", "{ oauth2: { server_uri: 'http://me:secret@login', client_id: a, client_secret: b } }",
		"{ oauth2: { server_uri: 'https://login/token', client_id: a } }", "{ bearer: x, oauth2: { server_uri: '', client_id: '', client_secret: '' } }", "{ oauth2: {} }",
	},
	"headers":         {"{}", "{ a: b }", "{ a: 5 }", "{ 'a b': c }", "{ 'a:b': c }", `{ a: "x\ny" }`, "{ '': x }"},
	"request_timeout": {"30s", "0s", "-1s", "x"},
	"max_retries":     {"0", "3", "-1"},
	"storage": {
		"{}", "{ local_root: /data }", "{ aws_s3: {} }", "{ aws_s3: { endpoint: 'http://s3:9000' } }", "{ aws_s3: { endpoint: s3 } }",
		"{ aws_s3: { endpoint: 'http://me:secret@s3' } }", "{ aws_s3: { credentials: { id: a } } }", "{ aws_s3: { credentials: { id: a, secret: b } } }",
		"{ gcp_cloud_storage: {} }", "{ gcp_cloud_storage: { credentials_file: a } }", "{ gcp_cloud_storage: { credentials_file: a, credentials_json: b } }",
		"{ gcp_cloud_storage: { endpoint: gcs } }", "{ gcp_cloud_storage: { credentials_type: password } }", "{ gcp_cloud_storage: { credentials_type: '' } }", "{ gcp_cloud_storage: { credentials_type: external_account, credentials_file: a } }",
		"{ azure_blob_storage: { storage_account: a, storage_access_key: b } }", "{ azure_blob_storage: { storage_access_key: b } }",
		"{ azure_blob_storage: { storage_account: a, storage_access_key: b, storage_sas_token: c } }", "{ azure_blob_storage: { storage_connection_string: a, storage_account: b } }",
		"{ azure_blob_storage: { storage_account: a, endpoint: 'ftp://a' } }", "{ azure_blob_storage: {} }",
		"{ aws_s3: { credentials: { token: a } } }", "{ aws_s3: { credentials: { from_ec2_role: true, id: a, secret: b } } }", "{ aws_s3: { credentials: { role_external_id: a } } }",
	},
}

// looked up by the constructor only, or Benthos's own.
var notLinted = []string{"checkpoint_cache", "rate_limit", "tls"}

// Where a field needs others to mean anything, they stand here.
var incremental = []string{"incremental_by_snapshot: true", "checkpoint_cache: progress"}

func TestLintRefusesWhatTheConstructorRefuses(t *testing.T) {
	refused := 0
	for name, values := range fieldValues {
		for _, value := range values {
			for _, beside := range [][]string{nil, incremental} {
				fields := append(slices.Clone(beside), name+": "+value)
				if sameRefusal(t, fields) {
					refused++
				}
			}
		}
	}
	assert.Greater(t, refused, 100)
	for _, f := range specFields(t) {
		assert.True(t, fieldValues[f.Name] != nil || slices.Contains(notLinted, f.Name), "field %s is not tried", f.Name)
	}
}

// Any combination of values, too.
func TestLintRefusesCombinationsThatTheConstructorRefuses(t *testing.T) {
	names := make([]string, 0, len(fieldValues))
	for name := range fieldValues {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(rt *rapid.T) {
		var fields []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 6, rapid.ID[string]).Draw(rt, "fields") {
			fields = append(fields, name+": "+rapid.SampledFrom(fieldValues[name]).Draw(rt, name))
		}
		if rapid.Bool().Draw(rt, "with a cache") {
			fields = append(fields, "checkpoint_cache: progress")
		}
		sameRefusal(rt, fields)
	})
}

// sameRefusal tells whether lint and the constructor refuse the fields, and
// requires that they agree.
func sameRefusal(t require.TestingT, fields []string) bool {
	yaml := settings(fields)
	lints, err := service.GlobalEnvironment().NewComponentConfigLinter().LintInputYAML([]byte("nessie:\n  " + strings.ReplaceAll(yaml, "\n", "\n  ")))
	require.NoError(t, err)
	err = constructYAML(yaml)
	if err == nil {
		require.Empty(t, lints, yaml)
		return false
	}
	require.NotEmpty(t, lints, "%s\nis refused: %v", yaml, err)
	return true
}

func constructYAML(yaml string) error {
	parsed, err := inputSpec().ParseYAML(yaml, nil)
	if err != nil {
		return err
	}
	in, err := newInputFromConfig(parsed, service.MockResources(service.MockResourcesOptAddCache("progress")))
	if err != nil {
		return err
	}
	return in.Close(context.Background())
}

// Variables are replaced before lint, so that it sees their values; what is
// left of one that is not set is nobody's mistake yet.
func TestLintSeesTheValuesOfVariables(t *testing.T) {
	variables := map[string]string{"RIGHT": "5s", "WRONG": "often"}
	lint := func(interval string) []service.Lint {
		linter := service.GlobalEnvironment().NewComponentConfigLinter().SetSkipEnvVarCheck(true).
			SetEnvVarLookupFunc(func(_ context.Context, name string) (string, bool) {
				value, ok := variables[name]
				return value, ok
			})
		lints, err := linter.LintInputYAML([]byte(inputYAML("poll_interval: " + interval)))
		require.NoError(t, err)
		return lints
	}
	assert.Empty(t, lint("${RIGHT}"))
	assert.Empty(t, lint("${UNSET}"))
	assert.Empty(t, lint("${UNSET:1m}"))
	wrong := lint("${WRONG}")
	require.Len(t, wrong, 1)
	assert.Equal(t, `field poll_interval must be a duration such as 10s, got "often"`, wrong[0].What)
	assert.Equal(t, 5, wrong[0].Line)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/ports"
)

func TestListShowsTheConnectors(t *testing.T) {
	for kind, names := range map[string][]string{
		"inputs":     {"kafka_franz"},
		"outputs":    {"kafka_franz", "sql_insert", "sql_raw"},
		"processors": {"sql_raw", "sql_select"},
		"caches":     {"redis", "sql", "aws_s3", "gcp_cloud_storage", "azure_blob_storage"},
		"metrics":    {"prometheus"},
		"tracers":    {"open_telemetry_collector"},
	} {
		listed := strings.Fields(execute(t, "list", kind).stdout)
		for _, component := range names {
			assert.Contains(t, listed, component, kind)
		}
	}
}

func TestExamplesOfConnectorsAreLinted(t *testing.T) {
	for _, expression := range []string{
		"kafka_franz//kafka_franz", "generate/sql_select,sql_raw/sql_insert", "generate//sql_raw",
	} {
		got := execute(t, "create", expression)
		require.Equal(t, 0, got.code, got.all())
		assert.NotContains(t, got.stdout, "TODO")
	}
}

// What create prints of any of this program's components is right but for the values that only its user knows.
func TestSkeletonsAreLinted(t *testing.T) {
	var expressions []string
	for _, input := range []string{"nessie", "kafka_franz"} {
		for _, processor := range []string{"", "sql_raw", "sql_select"} {
			for _, output := range []string{"file", "kafka_franz", "sql_insert", "sql_raw"} {
				expressions = append(expressions, input+"/"+processor+"/"+output)
			}
		}
	}
	for _, expression := range expressions {
		for _, small := range [][]string{nil, {"--small"}} {
			created := execute(t, append(append([]string{"create"}, small...), expression)...)
			require.Equal(t, 0, created.code, created.all())
			path := filepath.Join(t.TempDir(), "skeleton.yaml")
			require.NoError(t, os.WriteFile(path, []byte(created.stdout), 0o600))
			linted := execute(t, "lint", "--skip-env-var-check", path)
			assert.Equal(t, 0, linted.code, "%s:\n%s", expression, linted.all())
		}
	}
}

// Benthos itself asks for no list that is missing, and of several rules of a component it keeps the last.
func TestWhatIsMissingIsLinted(t *testing.T) {
	const input, output = "input: { generate: { mapping: 'root = 1' } }\n", "output: { drop: {} }\n"
	for yaml, says := range map[string]string{
		"input: { kafka_franz: { topics: [ a ] } }\n" + output:                                                                   "seed_brokers needs at least one address",
		"input: { kafka_franz: { seed_brokers: [ a ] } }\n" + output:                                                             "topics needs at least one topic, or regexp_topics_include a pattern",
		input + "output: { kafka_franz: { topic: a } }\n":                                                                        "seed_brokers needs at least one address",
		input + "output: { kafka_franz: { seed_brokers: [ a ], topic: a, partition: '1' } }\n":                                   "a partition is used with partitioner manual only",
		input + "output: { kafka_franz: { seed_brokers: [ a ], topic: a, partitioner: manual } }\n":                              "partitioner manual needs a partition",
		input + "output: { sql_insert: { driver: sqlite, dsn: a, table: a, args_mapping: 'root = []' } }\n":                      "columns needs at least one column",
		input + output + "pipeline: { processors: [ { sql_select: { driver: sqlite, dsn: a, table: a } } ] }\n":                  "columns needs at least one column",
		input + output + "tracer: { open_telemetry_collector: {} }\n":                                                            "an http or grpc collector is needed",
		input + output + "tracer: { open_telemetry_collector: { http: [ { address: 'a:1' } ], sampling: { enabled: true } } }\n": "sampling needs a ratio",
	} {
		path := filepath.Join(t.TempDir(), "pipeline.yaml")
		require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
		linted := execute(t, "lint", path)
		assert.Equal(t, 1, linted.code, yaml)
		assert.Contains(t, linted.all(), says, yaml)
	}
}

// A scrape of a running pipeline, as Prometheus does it.
func TestMetricsAreScraped(t *testing.T) {
	address := ports.Free(t)
	path := filepath.Join(t.TempDir(), "pipeline.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
http: { address: "`+address+`" }
metrics: { prometheus: { add_go_metrics: true } }
input:
  label: orders
  nessie:
    base_url: `+closedPort(t)+`
    namespace: shop
    table: orders
    poll_interval: 1h
    max_retries: 0
output: { drop: {} }
`), 0o600))
	cmd := command(t, "run", path)
	require.NoError(t, cmd.Start())
	defer func() {
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}()
	var page string
	require.Eventually(t, func() bool {
		page = scrape(t, "http://"+address+"/metrics")
		return strings.Contains(page, "nessie_catalog_requests")
	}, time.Minute, 50*time.Millisecond)
	assert.Contains(t, page, `nessie_catalog_requests{call="`)
	assert.Contains(t, page, `label="orders"`)
	assert.Contains(t, page, `table="shop.orders"`)
	assert.Contains(t, page, "go_goroutines ")
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		assert.NotContains(t, lines.Text(), "benthos_", "metrics keep the names that dashboards know")
	}
}

// scrape is "" while nobody answers.
func scrape(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

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

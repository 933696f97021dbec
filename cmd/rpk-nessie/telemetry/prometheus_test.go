// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func export(t *testing.T, yaml string) *exporter {
	t.Helper()
	e, err := newExporter(parse(t, prometheusSpec(), yaml), service.MockResources().Logger())
	require.NoError(t, err)
	t.Cleanup(func() { e.stop() })
	return e
}

// page is what a scrape gets.
func page(t *testing.T, e *exporter) string {
	t.Helper()
	answer := httptest.NewRecorder()
	e.HandlerFunc()(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

func TestMetricsHaveTheirNamesLabelsAndValues(t *testing.T) {
	e := export(t, "{}")
	rows := e.NewCounterCtor("nessie_rows_read", "table", "label")
	rows("sales.orders", "").Incr(3)
	e.NewCounterCtor("nessie_rows_read", "table", "label")("sales.orders", "").Incr(4)
	rows("sales.people", "x").Incr(1)
	e.NewGaugeCtor("nessie_lag_snapshots", "table")("sales.orders").Set(5)
	e.NewGaugeCtor("a.b-c")().Set(1)
	e.NewGaugeCtor("1st")().Set(1)
	e.NewTimerCtor("nessie_plan_ns", "table")("sales.orders").Timing(1500)
	got := page(t, e)
	for _, line := range []string{
		`nessie_rows_read{label="",table="sales.orders"} 7`, `nessie_rows_read{label="x",table="sales.people"} 1`,
		`nessie_lag_snapshots{table="sales.orders"} 5`, "\na_b_c 1", "\n_1st 1",
		`nessie_plan_ns{table="sales.orders",quantile="0.5"} 1500`, `quantile="0.9"`, `quantile="0.99"`, `nessie_plan_ns_count{table="sales.orders"} 1`,
	} {
		assert.Contains(t, got, line)
	}
	assert.NotContains(t, got, "go_goroutines")
	assert.NotContains(t, got, "process_")
}

func TestFractionsAreKept(t *testing.T) {
	e := export(t, "{}")
	e.NewCounterCtor("c")().(interface{ IncrFloat64(float64) }).IncrFloat64(0.5)
	e.NewGaugeCtor("g")().(interface{ SetFloat64(float64) }).SetFloat64(0.25)
	got := page(t, e)
	assert.Contains(t, got, "\nc 0.5\n")
	assert.Contains(t, got, "\ng 0.25\n")
}

func TestTimersAsHistogramsAreInSeconds(t *testing.T) {
	e := export(t, "use_histogram_timing: true\nhistogram_buckets: [ 0.1, 1 ]")
	e.NewTimerCtor("t")().Timing(int64(500 * time.Millisecond))
	got := page(t, e)
	for _, line := range []string{`t_bucket{le="0.1"} 0`, `t_bucket{le="1"} 1`, "t_sum 0.5", "t_count 1"} {
		assert.Contains(t, got, line)
	}
	e = export(t, "use_histogram_timing: true")
	e.NewTimerCtor("t")().Timing(1)
	assert.Contains(t, page(t, e), `t_bucket{le="0.005"} 1`)
}

func TestQuantilesCanBeChosen(t *testing.T) {
	e := export(t, "summary_quantiles_objectives: [ { quantile: 0.75, error: 0.01 } ]")
	e.NewTimerCtor("t")().Timing(7)
	got := page(t, e)
	assert.Contains(t, got, `t{quantile="0.75"} 7`)
	assert.NotContains(t, got, `quantile="0.5"`)
}

func TestMetricsOfProcessAndRuntime(t *testing.T) {
	got := page(t, export(t, "add_go_metrics: true\nadd_process_metrics: true"))
	assert.Contains(t, got, "go_goroutines")
	assert.Contains(t, got, "process_cpu_seconds_total")
}

func TestAMetricThatClashesIsLeftOut(t *testing.T) {
	e := export(t, "{}")
	e.NewCounterCtor("m", "a")("1").Incr(1)
	e.NewCounterCtor("m", "b")("1").Incr(1)
	e.NewGaugeCtor("m", "a")("1").Set(9)
	e.NewTimerCtor("m", "a")("1").Timing(9)
	e.NewCounterCtor("m", "a")("too", "many").Incr(1)
	assert.Contains(t, page(t, e), `m{a="1"} 1`)
}

func TestMetricsArePushed(t *testing.T) {
	pushes := make(chan string, 100)
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		pushes <- r.Method + " " + r.URL.Path + " " + user + ":" + password + " " + map[bool]string{true: "metrics", false: "nothing"}[len(body) > 0]
	}))
	defer gateway.Close()
	e := export(t, "push_url: "+gateway.URL+"\npush_interval: 10ms\npush_job_name: orders\npush_basic_auth: { username: ann, password: secret }")
	e.NewCounterCtor("m")().Incr(1)
	want := "PUT /metrics/job/orders ann:secret metrics"
	assert.Equal(t, want, <-pushes)
	assert.Equal(t, want, <-pushes)
	require.NoError(t, e.Close(t.Context()))

	e = export(t, "push_url: "+gateway.URL)
	e.NewCounterCtor("m")().Incr(1)
	for len(pushes) > 0 {
		<-pushes
	}
	require.NoError(t, e.Close(t.Context()))
	assert.Equal(t, "PUT /metrics/job/benthos_push : metrics", <-pushes)
}

func TestMetricsAreWrittenAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.txt")
	e := export(t, "file_output_path: "+path)
	e.NewCounterCtor("m")().Incr(3)
	require.NoError(t, e.Close(t.Context()))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(got), "\nm 3\n")
	assert.ErrorContains(t, export(t, "file_output_path: /nowhere/at/all").Close(t.Context()), "writing metrics to /nowhere/at/all")
	assert.ErrorContains(t, export(t, "push_url: http://127.0.0.1:1").Close(t.Context()), "pushing metrics")
}

func TestWrongPrometheusSettingsAreRefused(t *testing.T) {
	for yaml, says := range map[string]string{
		"push_interval: 5s":                                           "push_interval needs a push_url",
		"push_url: http://x\npush_interval: 0s":                       "must be more than 0",
		"histogram_buckets: [ 2, 1 ]":                                 "must rise",
		"summary_quantiles_objectives: [ { quantile: 5, error: 0 } ]": "5 is no quantile",
	} {
		_, err := newExporter(parse(t, prometheusSpec(), yaml), service.MockResources().Logger())
		require.ErrorContains(t, err, says)
	}
}

func TestAPipelineShowsItsMetrics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.txt")
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetLoggerYAML("level: OFF"))
	require.NoError(t, builder.SetMetricsYAML("prometheus: { file_output_path: "+path+" }"))
	require.NoError(t, builder.AddInputYAML("label: numbers\ngenerate: { count: 5, interval: '', mapping: root = 1 }"))
	require.NoError(t, builder.AddOutputYAML("drop: {}"))
	stream, err := builder.Build()
	require.NoError(t, err)
	require.NoError(t, stream.Run(context.Background()))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(got), `input_received{label="numbers",path="root.input"} 5`)
	assert.Contains(t, string(got), `output_sent{label="",path="root.output"} 5`)
}

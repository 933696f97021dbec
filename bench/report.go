// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// reporter writes Markdown, to standard output as it comes and into text.
type reporter struct{ text bytes.Buffer }

func (r *reporter) printf(format string, args ...any) {
	fmt.Printf(format, args...)
	fmt.Fprintf(&r.text, format, args...)
}

// begin says where and when.
func (r *reporter) begin(rounds int) {
	r.printf("Measured on %s, %d cores (%s), %s, %s/%s, commit %s; %d rounds, the slow ones (%s) once.\n",
		time.Now().Format("2 January 2006"), runtime.NumCPU(), processor(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit(), rounds, strings.Join(slow, ", "))
}

// processor is the processor's name, where the system tells.
func processor() string {
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": ")
		}
	}
	return "unknown processor"
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// spread is the median of some values and how far they reach.
type spread struct{ median, least, most float64 }

func spreadOf(runs []run, value func(run) float64) spread {
	var values []float64
	for _, r := range runs {
		values = append(values, value(r))
	}
	slices.Sort(values)
	n := len(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

func seconds(r run) float64 { return r.Seconds }
func cpu(r run) float64     { return r.cpu }
func peak(r run) float64    { return r.peak }
func other(r run) float64   { return r.other }

// ratioOf is a ratio that the project is held to, and the goal, "" where there is none.
type ratioOf struct {
	what, a, b string
	value      func(run) float64
	goal       string
}

var ratios = []ratioOf{
	{"json to drop against the ceiling (rows/s)", "json-drop", "ceiling", seconds, "0.85"},
	{"json to drop against RecordToJSON (rows/s)", "json-drop", "record-to-json-drop", seconds, "8"},
	{"CPU seconds of RecordToJSON against json to drop", "json-drop", "record-to-json-drop", cpu, ""},
	{"ndjson to drop against DuckDB, ordered (rows/s)", "ndjson-drop", "duckdb", seconds, "1"},
	{"CPU seconds of DuckDB against ndjson to drop", "ndjson-drop", "duckdb", cpu, "1"},
	{"ndjson to drop against Polars (rows/s)", "ndjson-drop", "polars", seconds, ""},
	{"CPU seconds of Polars against ndjson to drop", "ndjson-drop", "polars", cpu, ""},
	{"ndjson to drop against chDB (rows/s)", "ndjson-drop", "chdb", seconds, ""},
	{"CPU seconds of chDB against ndjson to drop", "ndjson-drop", "chdb", cpu, ""},
	{"ndjson to drop against PyIceberg with orjson (rows/s)", "ndjson-drop", "pyiceberg-orjson", seconds, ""},
	{"ndjson to drop against Spark streaming (rows/s)", "ndjson-drop", sparkPeer, seconds, ""},
	{"arrow to drop against iceberg-go's decoding alone (rows/s)", "arrow-drop", "decode", seconds, ""},
}

// table prints a table's results, and the ratios that the project is held to.
func (r *reporter) table(name string, t tableFiles, names []string, runs map[string][]run) {
	r.printf("\n### %s\n\n%d rows, %.0f MB of Parquet in %d files.\n\n", name, t.Rows, float64(t.Stored)/1e6, len(t.Files))
	r.printf("| measurement | M rows/s | stored MB/s | seconds (least to most) | CPU s (least to most) | peak MiB | others' share |\n|---|---|---|---|---|---|---|\n")
	for _, m := range names {
		s, c := spreadOf(runs[m], seconds), spreadOf(runs[m], cpu)
		r.printf("| %s | %.2f | %.0f | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.0f | %.0f %% |\n", m,
			float64(t.Rows)/s.median/1e6, float64(t.Stored)/s.median/1e6, s.median, s.least, s.most, c.median, c.least, c.most,
			spreadOf(runs[m], peak).median, 100*spreadOf(runs[m], other).median)
	}
	r.printf("\n| ratio, above 1 is better | median | least to most, round by round | goal |\n|---|---|---|---|\n")
	for _, p := range ratios {
		r.ratio(p, runs[p.a], runs[p.b])
	}
}

// large prints the peak memory of one measurement of several tables.
func (r *reporter) large(m string, tables []string, known map[string]tableFiles, runs []run) {
	r.printf("\n### Memory of %s\n\n| table | GB of Parquet | M rows/s | seconds | CPU s | peak MiB | others' share |\n|---|---|---|---|---|---|---|\n", m)
	for i, name := range tables {
		t, one := known[name], runs[i]
		r.printf("| %s | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f %% |\n", name, float64(t.Stored)/1e9, float64(t.Rows)/one.Seconds/1e6, one.Seconds, one.cpu, one.peak, 100*one.other)
	}
}

// ratio prints how many times less of its value a takes than b. Rounds are compared with themselves, as what disturbs one
// of a round disturbs the other.
func (r *reporter) ratio(of ratioOf, a, b []run) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	var all []run
	for i := range min(len(a), len(b)) {
		all = append(all, run{measured: measured{Seconds: of.value(b[i]) / of.value(a[i])}})
	}
	s := spreadOf(all, seconds)
	r.printf("| %s | %.2f | %.2f to %.2f | %s |\n", of.what, s.median, s.least, s.most, of.goal)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

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

// report prints a table's results as Markdown, and the ratios that the project is held to.
func report(name string, t tableFiles, names []string, runs map[string][]run) {
	fmt.Printf("\n### %s\n\n%d rows, %.0f MB of Parquet in %d files.\n\n", name, t.Rows, float64(t.Stored)/1e6, len(t.Files))
	fmt.Println("| measurement | M rows/s | stored MB/s | seconds (least to most) | CPU s (least to most) | peak MiB | others' share |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, m := range names {
		s, c := spreadOf(runs[m], seconds), spreadOf(runs[m], cpu)
		fmt.Printf("| %s | %.2f | %.0f | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.0f | %.0f %% |\n", m,
			float64(t.Rows)/s.median/1e6, float64(t.Stored)/s.median/1e6, s.median, s.least, s.most, c.median, c.least, c.most,
			spreadOf(runs[m], peak).median, 100*spreadOf(runs[m], other).median)
	}
	fmt.Println("\n| ratio | median | least to most, round by round |\n|---|---|---|")
	for _, p := range []struct{ what, a, b string }{
		{"json to drop against the ceiling (rows/s)", "json-drop", "ceiling"},
		{"json to drop against RecordToJSON (rows/s)", "json-drop", "record-to-json-drop"},
		{"ndjson to drop against DuckDB, ordered (rows/s)", "ndjson-drop", "duckdb"},
		{"ndjson to drop against Polars (rows/s)", "ndjson-drop", "polars"},
		{"ndjson to drop against chDB (rows/s)", "ndjson-drop", "chdb"},
	} {
		printRatio(p.what, runs[p.a], runs[p.b], seconds)
	}
	for _, peer := range []string{"duckdb", "polars", "chdb"} {
		printRatio("CPU seconds of "+peer+" against ndjson to drop", runs["ndjson-drop"], runs[peer], cpu)
	}
}

// printRatio prints how many times less of value a takes than b; above 1 a is better. Rounds are compared with
// themselves, as what disturbs one of a round disturbs the other.
func printRatio(what string, a, b []run, value func(run) float64) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	var ratios []run
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, run{measured: measured{Seconds: value(b[i]) / value(a[i])}})
	}
	s := spreadOf(ratios, seconds)
	fmt.Printf("| %s | %.2f | %.2f to %.2f |\n", strings.TrimSpace(what), s.median, s.least, s.most)
}

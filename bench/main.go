// SPDX-License-Identifier: Apache-2.0

// Bench measures how fast rows come from Iceberg files to Benthos outputs, beside Benthos's own ceiling and other
// programs that turn the same files into JSON.
//
//	bench run CACHE [-rounds n] [-tables a,b] [-only a,b]   all measurements in turn, each a process of its own
//	bench one MEASUREMENT CACHE TABLE                       one measurement; prints RESULT {json} to stderr
//
// CACHE is the folder that bench/prepare filled. See docs/performance.md for what is measured and the results.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

func main() {
	ctx := context.Background()
	var err error
	switch {
	case len(os.Args) >= 3 && os.Args[1] == "run":
		err = drive(ctx, os.Args[2], os.Args[3:])
	case len(os.Args) == 5 && os.Args[1] == "one":
		err = measureOne(ctx, os.Args[2], os.Args[3], os.Args[4])
	default:
		err = fmt.Errorf("usage: %s run CACHE [flags] | one MEASUREMENT CACHE TABLE", os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measured is what a measurement prints: what it did, and how long it took without the start of its process.
type measured struct {
	Rows    int64   `json:"rows"`
	Bytes   int64   `json:"bytes,omitempty"` // of JSON or Arrow, where the measurement counts them
	Seconds float64 `json:"inner_s"`
}

// measurement is one thing to time.
type measurement struct {
	name string
	what string
	run  func(context.Context, tableFiles, string) (measured, error)
}

func measureOne(ctx context.Context, name, cache, tableName string) error {
	tables, err := loadTables(cache)
	if err != nil {
		return err
	}
	t, ok := tables[tableName]
	if !ok {
		return fmt.Errorf("there is no table %q in %s", tableName, cache)
	}
	for _, m := range measurements {
		if m.name != name {
			continue
		}
		stop, err := profile()
		if err != nil {
			return err
		}
		defer stop()
		result, err := m.run(ctx, t, cache)
		if err != nil {
			return fmt.Errorf("measuring %s of %s: %w", name, tableName, err)
		}
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "RESULT", string(line))
		return nil
	}
	return fmt.Errorf("there is no measurement %q", name)
}

// timed runs f and fills in its time.
func timed(f func() (measured, error)) (measured, error) {
	start := time.Now()
	m, err := f()
	m.Seconds = time.Since(start).Seconds()
	return m, err
}

// SPDX-License-Identifier: Apache-2.0

// Bench measures how fast rows come from Iceberg files to Benthos outputs, beside Benthos's own ceiling and other
// programs that turn the same files into JSON.
//
//	bench run CACHE [flags]             all measurements in turn, each a process of its own; -h tells the flags
//	bench one MEASUREMENT CACHE TABLE   one measurement; prints RESULT {json} to stderr
//	bench one SCENE CACHE BINARY        the same for what makes its own tables; BINARY is rpk-nessie
//	bench keep-shop                     the servers that the scene small-files reads from, until stdin ends
//
// CACHE is the folder that bench/prepare filled. See docs/performance.md for what is measured and the results.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/heap"
)

func main() {
	ctx := context.Background()
	var err error
	switch {
	case len(os.Args) >= 3 && os.Args[1] == "run":
		err = drive(ctx, os.Args[2], os.Args[3:])
	case len(os.Args) == 5 && os.Args[1] == "one":
		err = measureOne(ctx, os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 2 && os.Args[1] == "keep-shop":
		err = keepShop(ctx, os.Stdin, os.Stdout)
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
	Values  []value `json:"values,omitempty"` // of a scene
	// What a peer's own child process took, which the system does not count as the peer's.
	ChildCPU  float64 `json:"child_cpu_s,omitempty"`
	ChildPeak float64 `json:"child_peak_mib,omitempty"`
}

// measurement is one thing to time.
type measurement struct {
	name string
	what string
	run  func(context.Context, tableFiles, string) (measured, error)
}

func measureOne(ctx context.Context, name, cache, tableName string) error {
	work, err := workOf(name, cache, tableName)
	if err != nil {
		return err
	}
	heap.Keep(heap.Least) // as the binary does
	stop, err := profile()
	if err != nil {
		return err
	}
	defer stop()
	result, err := work(ctx)
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

// workOf finds a scene, or a measurement of a table.
func workOf(name, cache, of string) (func(context.Context) (measured, error), error) {
	if s, ok := sceneNamed(name); ok {
		return func(ctx context.Context) (measured, error) { return s.run(ctx, settings{cache: cache, binary: of}) }, nil
	}
	tables, err := loadTables(cache)
	if err != nil {
		return nil, err
	}
	t, ok := tables[of]
	if !ok {
		return nil, fmt.Errorf("there is no table %q in %s", of, cache)
	}
	for _, m := range measurements {
		if m.name == name {
			return func(ctx context.Context) (measured, error) { return m.run(ctx, t, cache) }, nil
		}
	}
	return nil, fmt.Errorf("there is no measurement %q", name)
}

// timed runs f and fills in its time.
func timed(f func() (measured, error)) (measured, error) {
	start := time.Now()
	m, err := f()
	m.Seconds = time.Since(start).Seconds()
	return m, err
}

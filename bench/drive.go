// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// peers are the other programs; peers.py knows how each is called.
var peers = []string{"duckdb", "duckdb-unordered", "polars", "chdb", "pyiceberg-orjson"}

// slow measurements run once only: they take longer than all others together, and their ratios are far from 1.
var slow = []string{"record-to-json-drop", "pyiceberg-orjson"}

// run is one process that was measured.
type run struct {
	measured
	cpu   float64 // seconds, user and system
	peak  float64 // resident memory, MiB
	other float64 // share of the machine that other processes used meanwhile; -1 unknown
}

func drive(ctx context.Context, cache string, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each measurement is made")
	tables := flags.String("tables", "events10,flat5", "tables")
	only := flags.String("only", "", "measurements; empty: all")
	script := flags.String("peers", "bench/peers.py", "the script that runs the peers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	known, err := loadTables(cache)
	if err != nil {
		return err
	}
	names := allNames()
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	for name := range strings.SplitSeq(*tables, ",") {
		runs := map[string][]run{}
		for round := range *rounds {
			for _, m := range names {
				if round > 0 && slices.Contains(slow, m) {
					continue
				}
				r, err := child(ctx, m, cache, name, *script)
				if err != nil {
					return fmt.Errorf("measuring %s of %s: %w", m, name, err)
				}
				runs[m] = append(runs[m], r)
			}
		}
		report(name, known[name], names, runs)
	}
	return nil
}

func allNames() []string {
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	return append(names, peers...)
}

// child runs one measurement as a process of its own.
func child(ctx context.Context, name, cache, tableName, script string) (run, error) {
	var cmd *exec.Cmd
	if slices.Contains(peers, name) {
		python := filepath.Join(cache, "venv", "bin", "python")
		cmd = exec.CommandContext(ctx, python, script, name, cache, tableName)
	} else {
		self, err := os.Executable()
		if err != nil {
			return run{}, err
		}
		cmd = exec.CommandContext(ctx, self, "one", name, cache, tableName)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	before, start := busySeconds(), time.Now()
	err := cmd.Run()
	wall, after := time.Since(start).Seconds(), busySeconds()
	if err != nil {
		return run{}, fmt.Errorf("%w: %s", err, stderr.String())
	}
	r := run{other: -1}
	_, line, ok := strings.Cut(stderr.String(), "RESULT ")
	if !ok {
		return r, fmt.Errorf("it printed no result: %s", stderr.String())
	}
	if err := json.Unmarshal([]byte(strings.SplitN(line, "\n", 2)[0]), &r.measured); err != nil {
		return r, fmt.Errorf("reading its result: %w", err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	r.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.peak = float64(usage.Maxrss) / 1024
	if before >= 0 {
		r.other = max(after-before-r.cpu, 0) / (wall * float64(runtime.NumCPU()))
	}
	return r, nil
}

// busySeconds is how long the machine's cores have worked since it started, -1 where nothing tells.
func busySeconds() float64 {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var busy float64
	for i, field := range strings.Fields(line)[1:] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return -1
		}
		const idle, ioWait, guest = 3, 4, 8 // guest time is counted as user time too
		if i != idle && i != ioWait && i < guest {
			busy += ticks / 100
		}
	}
	return busy
}

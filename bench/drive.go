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
var peers = []string{"duckdb", "duckdb-unordered", "polars", "chdb", "pyiceberg-orjson", sparkPeer}

const sparkPeer = "spark-stream"

// slow measurements run once only: they take longer than all others together, and their ratios are far from 1.
var slow = []string{"record-to-json-drop", "pyiceberg-orjson", sparkPeer}

// once is what runs once only on the large tables, for the memory that it takes.
var once = []string{"ndjson-drop"}

// run is one process that was measured.
type run struct {
	measured
	cpu   float64 // seconds, user and system
	peak  float64 // resident memory, MiB
	other float64 // share of the machine that other processes used meanwhile; -1 unknown
}

// driver runs measurements one after another.
type driver struct {
	settings
	rounds int
	script string // that runs the peers
	only   []string
	report *reporter
}

func drive(ctx context.Context, cache string, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	d := driver{settings: settings{cache: cache}, report: &reporter{}}
	flags.IntVar(&d.rounds, "rounds", 3, "how often each measurement is made; slow ones are made once")
	flags.StringVar(&d.script, "peers", "bench/peers.py", "the script that runs the peers")
	flags.StringVar(&d.binary, "binary", "", "rpk-nessie, for the scene idle, which is left out without it")
	tables := flags.String("tables", "events10,flat5", "tables, comma-separated")
	large := flags.String("large", "flat-1gb,flat-5gb", "tables that are read once, for their peak memory")
	only := flags.String("only", "", "measurements and scenes, comma-separated; empty: all")
	out := flags.String("out", "", "a file that gets the results too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d.only = split(*only)
	known, err := loadTables(cache)
	if err != nil {
		return err
	}
	start := time.Now()
	d.report.begin(d.rounds)
	for _, name := range split(*tables) {
		if err := d.table(ctx, name, known[name]); err != nil {
			return err
		}
	}
	if err := d.large(ctx, split(*large), known); err != nil {
		return err
	}
	for _, s := range scenes {
		if err := d.scene(ctx, s); err != nil {
			return err
		}
	}
	d.report.printf("\nAll of it took %.1f minutes.\n", time.Since(start).Minutes())
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, d.report.text.Bytes(), 0o600)
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func (d *driver) wanted(name string) bool { return len(d.only) == 0 || slices.Contains(d.only, name) }

// table measures everything on one table, round by round, so that what disturbs the machine for a while disturbs all.
func (d *driver) table(ctx context.Context, name string, t tableFiles) error {
	names := slices.DeleteFunc(d.allNames(), func(m string) bool { return !d.wanted(m) })
	if len(names) == 0 {
		return nil
	}
	runs := map[string][]run{}
	for round := range d.rounds {
		for _, m := range names {
			if round > 0 && slices.Contains(slow, m) {
				continue
			}
			r, err := d.child(ctx, m, name)
			if err != nil {
				return err
			}
			runs[m] = append(runs[m], r)
		}
	}
	d.report.table(name, t, names, runs)
	return nil
}

func (d *driver) large(ctx context.Context, tables []string, known map[string]tableFiles) error {
	for _, m := range once {
		if !d.wanted(m) || len(tables) == 0 {
			continue
		}
		var runs []run
		for _, name := range tables {
			r, err := d.child(ctx, m, name)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		d.report.large(m, tables, known, runs)
	}
	return nil
}

func (d *driver) scene(ctx context.Context, s scene) error {
	if !d.wanted(s.name) || (s.needsBinary && d.binary == "") {
		return nil
	}
	rounds := d.rounds
	if s.rounds > 0 {
		rounds = min(rounds, s.rounds)
	}
	var runs []run
	for range rounds {
		r, err := d.child(ctx, s.name, d.binary)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	d.report.scene(s, runs)
	return nil
}

// allNames leaves Spark out where bench/prepare could not get it.
func (d *driver) allNames() []string {
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	for _, p := range peers {
		if _, err := os.Stat(filepath.Join(d.cache, "spark", "ready")); p == sparkPeer && err != nil {
			continue
		}
		names = append(names, p)
	}
	return names
}

// child runs one measurement as a process of its own.
func (d *driver) child(ctx context.Context, name, of string) (run, error) {
	r, err := d.measure(ctx, name, of)
	if err != nil {
		return run{}, fmt.Errorf("measuring %s of %s: %w", name, of, err)
	}
	fmt.Fprintf(os.Stderr, "%s %s: %.2f s, %.2f CPU s, %.0f MiB, others %.0f %%\n", name, of, r.Seconds, r.cpu, r.peak, 100*r.other)
	return r, nil
}

func (d *driver) measure(ctx context.Context, name, of string) (run, error) {
	cmd, err := d.command(ctx, name, of)
	if err != nil {
		return run{}, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	before, start := busySeconds(), time.Now()
	err = cmd.Run()
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
	r.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() + r.ChildCPU
	r.peak = float64(usage.Maxrss)/1024 + r.ChildPeak
	if before >= 0 {
		r.other = max(after-before-r.cpu, 0) / (wall * float64(runtime.NumCPU()))
	}
	return r, nil
}

func (d *driver) command(ctx context.Context, name, of string) (*exec.Cmd, error) {
	if !slices.Contains(peers, name) {
		self, err := os.Executable()
		return exec.CommandContext(ctx, self, "one", name, d.cache, of), err
	}
	python := filepath.Join(d.cache, "venv", "bin", "python")
	if name == sparkPeer {
		python = filepath.Join(d.cache, "spark", "venv", "bin", "python")
	}
	return exec.CommandContext(ctx, python, d.script, name, d.cache, of), nil
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

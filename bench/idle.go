// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

const (
	idleFor     = 20 * time.Second
	commitEvery = 2 * time.Second
)

// idle runs the binary against an in-memory Nessie in this process, first while nothing happens, then while the table gets
// a small commit every two seconds, and reads from /proc what CPU it took.
func idle(ctx context.Context, s settings) (m measured, err error) {
	if s.binary == "" {
		return m, errors.New("the flag -binary is missing")
	}
	dir, err := os.MkdirTemp("", "bench-idle")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	server, err := nessietest.Start(nessietest.Options{})
	if err != nil {
		return m, err
	}
	defer server.Close()
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	if err != nil {
		return m, err
	}
	defer client.Close()
	w, err := nessietest.NewWriter(ctx, nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + dir})
	if err != nil {
		return m, err
	}
	key := catalog.Key{"ns", "t"}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	if _, err := w.Create(ctx, key, schema, nessietest.TableOptions{}, nessietest.Append(`{"id":1}`)); err != nil {
		return m, err
	}
	process, err := startIdle(ctx, s.binary, dir, server.URL)
	if err != nil {
		return m, err
	}
	defer process.stop()
	time.Sleep(3 * time.Second) // for its start
	quiet, err := process.percentDuring(func() error { return pause(ctx, idleFor) })
	if err != nil {
		return m, err
	}
	commits := 0
	busy, err := process.percentDuring(func() error {
		for ; time.Duration(commits)*commitEvery < idleFor; commits++ {
			if _, err := w.Append(ctx, key, fmt.Sprintf(`{"id":%d}`, commits+2)); err != nil {
				return err
			}
			if err := pause(ctx, commitEvery); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	if lines := bytes.Count(process.delivered(), []byte("\n")); lines != commits+1 {
		return m, fmt.Errorf("the pipeline wrote %d rows instead of %d", lines, commits+1)
	}
	return measured{Values: []value{{"nothing happens", quiet, "%"}, {"a commit every 2 s", busy, "%"}}}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// idleProcess is the binary under measurement.
type idleProcess struct {
	cmd  *exec.Cmd
	out  string
	logs bytes.Buffer
}

func startIdle(ctx context.Context, binary, dir, server string) (*idleProcess, error) {
	p := &idleProcess{out: filepath.Join(dir, "out.json")}
	config := fmt.Sprintf(`
http: {enabled: false}
input:
  nessie:
    base_url: %s
    namespace: ns
    table: t
    poll_interval: 1s
    incremental_by_snapshot: true
    checkpoint_cache: progress
    storage: {local_root: %q}
output: {file: {path: %q, codec: lines}}
cache_resources:
  - label: progress
    nessie_durable_file: {directory: %q}
`, server, dir, p.out, filepath.Join(dir, "progress"))
	path := filepath.Join(dir, "pipeline.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, binary, "run", path)
	p.cmd.Stdout, p.cmd.Stderr = &p.logs, &p.logs
	return p, p.cmd.Start()
}

func (p *idleProcess) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

func (p *idleProcess) delivered() []byte {
	rows, _ := os.ReadFile(p.out)
	return rows
}

// percentDuring is the process's share of one core while f runs.
func (p *idleProcess) percentDuring(f func() error) (float64, error) {
	before, err := cpuSeconds(p.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("the binary ended: %w", err)
	}
	start := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	took := time.Since(start).Seconds()
	after, err := cpuSeconds(p.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("the binary ended: %w", err)
	}
	return 100 * (after - before) / took, nil
}

// cpuSeconds is what a process has used, from /proc: the fields after the name in parentheses, of which the twelfth and
// thirteenth are user and system time in hundredths of a second.
func cpuSeconds(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 || fields[0] == "Z" {
		return 0, fmt.Errorf("process %d has no times", pid)
	}
	var ticks float64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks / 100, nil
}

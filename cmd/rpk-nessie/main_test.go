// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/rpk-nessie/rpk-nessie/tests/ports"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

// binary is the built program; every test here drives it from outside.
var binary string

// corpusStack is a real Nessie over the corpus, for the tests that look at real tables.
var corpusStack servers.Shared

func TestMain(m *testing.M) {
	os.Exit(buildAndTest(m))
}

func buildAndTest(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rpk-nessie-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, name)
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v9.8.7 -X main.dateBuilt=2026-03-01", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the binary:", err)
		return 1
	}
	return corpusStack.Run(m)
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) all() string { return o.stdout + o.stderr }

// execute runs the binary in a folder of its own, with TMPDIR inside.
func execute(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	return finish(t, cmd, cmd.Run())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = t.TempDir()
	tmp := filepath.Join(cmd.Dir, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o700))
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cmd
}

func finish(t *testing.T, cmd *exec.Cmd, err error) outcome {
	t.Helper()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), fmt.Sprint(cmd.Stdout), fmt.Sprint(cmd.Stderr)}
}

// pipelineFile writes a pipeline whose nessie input has the given fields, one a line.
func pipelineFile(t *testing.T, fields ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipeline.yaml")
	yaml := "http:\n  enabled: false\ninput:\n  nessie:\n    " + strings.Join(fields, "\n    ") + "\noutput:\n  drop: {}\n"
	require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
	return path
}

func tableFields(url string, more ...string) []string {
	return append([]string{"base_url: " + url, "namespace: shop", "table: orders"}, more...)
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string { return "http://" + ports.Free(t) }

func TestBinaryIsNamedAsItself(t *testing.T) {
	for _, args := range [][]string{
		{"--help"},
		{"run", "--help"},
		{"lint", "--help"},
		{"test", "--help"},
		{"create", "--help"},
		{"list", "--help"},
		{"streams", "--help"},
		{"template", "--help"},
		{"demo", "--help"},
		{"create", "nessie//stdout"},
		{"create", "stdin//stdout"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := execute(t, args...)
			assert.Equal(t, 0, got.code, got.all())
			assert.NotContains(t, strings.ToLower(got.all()), "benthos")
			assert.NotEmpty(t, got.stdout)
		})
	}
}

func TestLogsNameTheProduct(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipeline.yaml")
	require.NoError(t, os.WriteFile(path, []byte("http:\n  enabled: false\ninput:\n  generate:\n    count: 1\n    mapping: root = {}\noutput:\n  drop: {}\n"), 0o600))
	got := execute(t, "run", path)
	assert.Equal(t, 0, got.code, got.all())
	assert.Contains(t, got.all(), "@service=rpk-nessie")
	assert.Contains(t, got.all(), "Launching a rpk-nessie instance")
	// Benthos's first line has the version under a key whose name is fixed.
	rest := strings.ReplaceAll(got.all(), "benthos_version=v9.8.7", "")
	assert.NotContains(t, strings.ToLower(rest), "benthos")
}

func TestVersionComesFromTheLinker(t *testing.T) {
	got := execute(t, "--version")
	assert.Equal(t, 0, got.code)
	assert.Equal(t, "Version: v9.8.7\nDate: 2026-03-01\n", got.stdout)
}

func TestStudioIsNotThere(t *testing.T) {
	got := execute(t, "studio")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "no studio command")
	assert.NotContains(t, execute(t, "--help").all(), "studio")
}

func TestListShowsOurComponents(t *testing.T) {
	assert.Contains(t, strings.Fields(execute(t, "list", "inputs").stdout), "nessie")
	assert.Contains(t, strings.Fields(execute(t, "list", "caches").stdout), "nessie_durable_file")
}

func TestExitCodes(t *testing.T) {
	const incremental = "incremental_by_snapshot: true"
	closed := closedPort(t)
	tests := map[string]struct {
		command string
		fields  []string
		code    int
		says    string
	}{
		"lint passes":                      {"lint", tableFields("http://localhost:19120"), 0, ""},
		"lint names an unknown field":      {"lint", tableFields("http://localhost:19120", "tabel: x"), 1, "(8,1) field tabel not recognised"},
		"lint misses the checkpoint cache": {"lint", tableFields("http://localhost:19120", incremental), 1, "checkpoint_cache"},
		"run refuses lint errors":          {"run", tableFields("http://localhost:19120", "start_from: latest"), 1, "incremental_by_snapshot"},
		"run refuses an unknown cache":     {"run", tableFields("http://localhost:19120", incremental, "checkpoint_cache: nowhere"), 1, "nowhere"},
		"a bounded run that cannot read": {
			"run", tableFields(closed, "poll_interval: 0s", "max_retries: 0"), 3, closed,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := execute(t, tc.command, pipelineFile(t, tc.fields...))
			assert.Equal(t, tc.code, got.code, got.all())
			assert.Contains(t, got.all(), tc.says)
		})
	}
}

// Arguments would be taken for settings that do something, and flags behind them are not read.
func TestCommandsRefuseArgumentsThatTheyDoNotTake(t *testing.T) {
	tried := 0
	var try func(at []string, command *cli.Command)
	try = func(at []string, command *cli.Command) {
		at = append(slices.Clone(at), command.Name)
		for _, sub := range command.Subcommands {
			try(at, sub)
		}
		if len(command.Subcommands) > 0 {
			return
		}
		tried++
		got := execute(t, append(at, "--base-url=http://nessie", "--namespace=shop", "--table=orders", "a", "b", "--json")...)
		assert.Equal(t, 1, got.code, "%v: %s", at, got.all())
		assert.Contains(t, got.stderr, "rpk-nessie "+strings.Join(at, " ")+" takes", "%v", at)
		assert.Contains(t, got.stderr, "argument", "%v", at)
	}
	for _, c := range commands() {
		if c.Name != "demo" {
			try(nil, c)
		}
	}
	assert.Greater(t, tried, 15)
	got := execute(t, "demo", "--keep", "a")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, `rpk-nessie demo takes flags and no arguments, got ["a"]`+"\nUsage: rpk-nessie demo [flags]; rpk-nessie demo --help lists them\n", got.stderr)
	assert.Empty(t, got.stdout)
}

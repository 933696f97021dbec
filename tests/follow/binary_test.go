// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is the built binary over one pipeline: the folder holds the checkpoint and what was delivered.
type program struct {
	t      *testing.T
	folder string
	r      *rig // of the table and its fields; it runs nothing itself
	output fields
	read   int // lines of the output file that were taken
}

// program makes a pipeline into a file of lines.
func (r *rig) program() *program {
	folder := r.t.TempDir()
	return &program{
		t: r.t, folder: folder, r: r,
		output: fields{"file": fields{"path": filepath.Join(folder, "rows"), "codec": "lines"}},
	}
}

// command is the binary on the pipeline's file.
func (p *program) command(more ...fields) *exec.Cmd {
	p.t.Helper()
	config, err := json.Marshal(fields{
		"http":     fields{"enabled": false},
		"logger":   fields{"level": "INFO", "format": "json"},
		"input":    fields{"nessie": p.r.s.input(p.r.branch, p.r.key, append([]fields{p.r.common}, more...)...)},
		"pipeline": fields{"threads": 1, "processors": []fields{{"mapping": "root.m = metadata()\nroot.r = content().string()"}}},
		"output":   p.output,
		"cache_resources": []fields{
			{"label": "place", "nessie_durable_file": fields{"directory": filepath.Join(p.folder, "place")}},
		},
	})
	require.NoError(p.t, err)
	path := filepath.Join(p.folder, "pipeline.yaml")
	require.NoError(p.t, os.WriteFile(path, config, 0o600))
	cmd := exec.CommandContext(p.t.Context(), binary, "run", path)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cmd
}

// run runs the binary to its end: its exit code and the messages of its ERROR lines.
func (p *program) run(more ...fields) (code int, failed []string) {
	p.t.Helper()
	cmd := p.command(more...)
	return p.ended(cmd, cmd.Run())
}

func (p *program) ended(cmd *exec.Cmd, err error) (code int, failed []string) {
	p.t.Helper()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	for line := range strings.Lines(cmd.Stdout.(*bytes.Buffer).String() + cmd.Stderr.(*bytes.Buffer).String()) {
		var entry struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Level == "error" {
			failed = append(failed, entry.Msg)
		}
	}
	return cmd.ProcessState.ExitCode(), failed
}

// rows are those that came since the last call.
func (p *program) rows() []received {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.folder, "rows"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(p.t, err)
	}
	var all []received
	for line := range strings.Lines(string(text)) {
		all = append(all, parseRow(p.t, []byte(line)))
	}
	fresh := all[p.read:]
	p.read = len(all)
	return fresh
}

func parseRow(t *testing.T, line []byte) received {
	t.Helper()
	var row struct {
		M map[string]any
		R string
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	require.NoError(t, d.Decode(&row), "%s", line)
	return received{body: []byte(row.R), meta: row.M}
}

// place is the checkpoint on disk.
func (p *program) place() stored {
	p.t.Helper()
	value, err := os.ReadFile(filepath.Join(p.folder, "place", "place"))
	require.NoError(p.t, err)
	return parsePlace(p.t, value)
}

// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

const killings = 10

// The program itself is killed with SIGKILL while it writes changes to a file.
// Whoever replays the file by key has the table.
func TestAFileOfAKilledProgramReplaysToTheTable(t *testing.T) {
	p := newProgram(t)
	rng := rand.New(rand.NewPCG(lanes.Seed(), 0))
	killed := 0
	for life := 0; killed < killings; life++ {
		require.Less(t, life, 20*killings)
		p.w.happenAtRandom(rng, 3)
		before := p.w.head()
		if p.kill(1 + rng.IntN(8)) {
			killed++
			continue
		}
		// It came to its end first.
		require.Equal(t, before, p.w.head())
		require.Empty(t, p.replay().differs(p.w.of(p.w.head().snapshot)), "%s", p.log())
	}
	code, out := p.run()
	require.Zero(t, code, out)
	require.Empty(t, p.replay().differs(p.w.of(p.w.head().snapshot)), "%s\n%v", p.log(), p.w.told)
}

// happenAtRandom makes changes whose draws need no test of rapid around them.
func (w *world) happenAtRandom(rng *rand.Rand, n int) {
	for range n {
		w.vault.Restore() // the program has no one who puts back what expires
		rapid.Custom(func(t *rapid.T) int { w.happen(t); return 0 }).Example(int(rng.Int32()))
	}
	w.vault.Restore()
}

// program is the built binary over one pipeline.
type program struct {
	t      *testing.T
	w      *world
	binary string
	folder string
	cut    int // lines that kills cut off
}

func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{t: t, folder: t.TempDir()}
	var err error
	p.binary, err = servers.BuildProgram(p.folder)
	require.NoError(t, err)
	p.w = newWorld(t.Context(), t, shape{version: "2", deletes: "merge-on-read"})
	rapid.Custom(func(rt *rapid.T) int { p.w.create(rt); return 0 }).Example(1)
	config, err := json.Marshal(map[string]any{
		"http":   map[string]any{"enabled": false},
		"logger": map[string]any{"level": "INFO", "static_fields": map[string]any{}},
		"input": map[string]any{"nessie": map[string]any{
			"base_url": p.w.Server.URL, "namespace": "shop", "table": "orders",
			"storage":       map[string]any{"local_root": p.w.Warehouse},
			"poll_interval": "0s", "incremental_by_snapshot": true, "changes": "changelog", "identifier_fields": []string{"id"},
			"checkpoint_cache": "place", "batch_rows": 1, "on_table_replaced": "restart",
		}},
		"pipeline": map[string]any{"threads": 1, "processors": []any{map[string]any{
			"mapping": "root.operation = @operation\nroot.snapshot = @snapshot_id\nroot.row = content().string()",
		}}},
		"output":          map[string]any{"file": map[string]any{"path": p.file(), "codec": "lines"}},
		"cache_resources": []any{map[string]any{"label": "place", "nessie_durable_file": map[string]any{"directory": filepath.Join(p.folder, "place")}}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.folder, "pipeline.yaml"), config, 0o600))
	return p
}

func (p *program) file() string { return filepath.Join(p.folder, "changes") }

func (p *program) command() *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.binary, "run", filepath.Join(p.folder, "pipeline.yaml"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd
}

// run runs to the end of what there is.
func (p *program) run() (code int, out string) {
	cmd := p.command()
	err := cmd.Run()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	return cmd.ProcessState.ExitCode(), cmd.Stdout.(*bytes.Buffer).String()
}

// kill runs until so many lines were written, and kills there. It reports false
// where the program came to its end before.
func (p *program) kill(lines int) bool {
	p.t.Helper()
	until := bytes.Count(p.log(), []byte("\n")) + lines
	cmd := p.command()
	require.NoError(p.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			require.NoError(p.t, err, "%s", cmd.Stdout)
			return false
		case <-tick.C:
			if bytes.Count(p.log(), []byte("\n")) < until {
				continue
			}
			require.NoError(p.t, cmd.Process.Kill())
			killed := <-ended != nil
			p.mend()
			return killed
		}
	}
}

// mend ends a line that a kill cut off.
func (p *program) mend() {
	p.t.Helper()
	text := p.log()
	if len(text) == 0 || bytes.HasSuffix(text, []byte("\n")) {
		return
	}
	p.cut++
	require.NoError(p.t, os.WriteFile(p.file(), append(text, '\n'), 0o600))
}

// log is what was written.
func (p *program) log() []byte {
	text, err := os.ReadFile(p.file())
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(p.t, err)
	}
	return text
}

// replay applies the file. A line that a kill cut off comes again.
func (p *program) replay() *replica {
	p.t.Helper()
	r, unreadable := newReplica(true), 0
	for line := range bytes.Lines(p.log()) {
		var m struct{ Operation, Snapshot, Row string }
		d := json.NewDecoder(bytes.NewReader(line))
		if err := d.Decode(&m); err != nil {
			unreadable++
			continue
		}
		id, err := strconv.ParseInt(m.Snapshot, 10, 64)
		require.NoError(p.t, err)
		require.NoError(p.t, r.apply(m.Operation, []byte(m.Row), p.w.of(id).schema))
	}
	require.LessOrEqual(p.t, unreadable, p.cut)
	return r
}

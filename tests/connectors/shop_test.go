// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// orders is a table of some snapshots.
type orders struct {
	*tables.Place
	rows map[string]bool // as the pipeline delivers them
	upTo map[string]int  // rows up to and with a snapshot, as checkpoints write its id
}

func openShop(t *testing.T, snapshots, rowsEach int) *orders {
	t.Helper()
	o := &orders{Place: tables.OpenOrders(t), rows: map[string]bool{}, upTo: map[string]int{"": 0}}
	for range snapshots {
		var bodies []string
		for range rowsEach {
			body := tables.Order(len(o.rows))
			o.rows[body] = true
			bodies = append(bodies, body)
		}
		written, err := o.Writer.Append(t.Context(), tables.Orders(), bodies...)
		require.NoError(t, err)
		o.upTo[strconv.FormatInt(written.SnapshotID(), 10)] = len(o.rows)
	}
	return o
}

// rowsInBatch are few, so that checkpoints are many.
const rowsInBatch = 20

// stored is how many rows a checkpoint stands behind.
func (o *orders) stored(t *testing.T, value []byte) int {
	t.Helper()
	c, err := cache.Decode("orders", value)
	require.NoError(t, err)
	rows, known := o.upTo[c.Last.SnapshotID]
	require.True(t, known, "snapshot %s", c.Last.SnapshotID)
	if c.Position != nil {
		rows += int(c.Position.Row)
	}
	return rows
}

// input is a bounded read of the table by snapshots.
func (o *orders) input() string {
	return fmt.Sprintf(`input:
  nessie:
    base_url: %s
    namespace: shop
    table: orders
    poll_interval: 0s
    incremental_by_snapshot: true
    start_from: earliest
    checkpoint_cache: progress
    checkpoint_cache_key: orders
    checkpoint_limit: 400
    batch_rows: %d
    storage: { local_root: %q }
`, o.Server.URL, rowsInBatch, o.Warehouse)
}

// sink takes rows over HTTP, one a line.
type sink struct {
	*httptest.Server

	mu       sync.Mutex
	received map[string]int
	total    int
	reached  map[int]chan struct{} // closed when that many came
}

func openSink(t *testing.T) *sink {
	t.Helper()
	k := &sink{received: map[string]int{}, reached: map[int]chan struct{}{}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off by a kill
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for line := range strings.Lines(string(body)) {
			k.received[strings.TrimSuffix(line, "\n")]++
			k.total++
		}
		for n, reached := range k.reached {
			if k.total >= n {
				close(reached)
				delete(k.reached, n)
			}
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// after is closed when n more rows came.
func (k *sink) after(n int) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	n += k.total
	if k.reached[n] == nil {
		k.reached[n] = make(chan struct{})
	}
	return k.reached[n]
}

func (k *sink) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total
}

func (k *sink) distinct() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]bool{}
	for row := range k.received {
		all[row] = true
	}
	return all
}

// output sends a batch as one request.
func (k *sink) output() string {
	return "pipeline:\n  threads: 1\n  processors: [ { archive: { format: lines } } ]\noutput:\n  http_client: { url: " + k.URL + ", verb: POST, max_in_flight: 1, timeout: 1m }\n"
}

// process is a pipeline in a process of its own.
type process struct {
	cmd *exec.Cmd
	log *bytes.Buffer
}

func start(t *testing.T, env []string, yaml ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	require.NoError(t, os.WriteFile(file, []byte("http: { enabled: false }\nlogger: { level: WARN }\n"+strings.Join(yaml, "\n")), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), self), log: &bytes.Buffer{}}
	p.cmd.Env = append(os.Environ(), append(env, pipelineVariable+"="+file)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	return p
}

// kill ends it as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait(), p.log)
}

func (p *process) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Wait(), "%s", p.log)
}

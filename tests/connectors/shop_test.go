// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// shop is a Nessie in this process with a table shop.orders of some snapshots.
type shop struct {
	url, warehouse string
	rows           map[string]bool // as the pipeline delivers them
}

func openShop(t *testing.T, snapshots, rowsEach int) *shop {
	t.Helper()
	server, err := nessietest.Start(nessietest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := &shop{url: server.URL, warehouse: t.TempDir(), rows: map[string]bool{}}
	writer, err := nessietest.NewWriter(t.Context(), nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + s.warehouse})
	require.NoError(t, err)
	key := catalog.Key{"shop", "orders"}
	_, err = writer.Create(t.Context(), key, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "item", Type: iceberg.PrimitiveTypes.String},
	), nessietest.TableOptions{})
	require.NoError(t, err)
	for range snapshots {
		var bodies []string
		for range rowsEach {
			body := fmt.Sprintf(`{"id":%d,"item":"item %[1]d"}`, len(s.rows))
			s.rows[body] = true
			bodies = append(bodies, body)
		}
		_, err = writer.Append(t.Context(), key, bodies...)
		require.NoError(t, err)
	}
	return s
}

// input is a bounded read of the table by snapshots, in batches of few rows so that checkpoints are many.
func (s *shop) input() string {
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
    batch_rows: 20
    storage: { local_root: %q }
`, s.url, s.warehouse)
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
		lines := bufio.NewScanner(r.Body)
		k.mu.Lock()
		defer k.mu.Unlock()
		for lines.Scan() {
			k.received[lines.Text()]++
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
	return "pipeline:\n  threads: 1\n  processors: [ { archive: { format: lines } } ]\noutput:\n  http_client: { url: " + k.URL + ", verb: POST, max_in_flight: 1 }\n"
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

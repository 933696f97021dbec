// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/ports"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

const (
	patience = time.Minute
	glance   = 10 * time.Millisecond
)

// stage is what pipelines of the binary run between: a Nessie with tables in a
// folder, a sink that takes rows over HTTP, and a folder for checkpoints.
type stage struct {
	*tables.Place
	t                      *testing.T
	warehouse, checkpoints string
	sink                   *httptest.Server

	mu     sync.Mutex
	rows   map[string][]string // by path
	before func(path, body string) bool
}

func newStage(t *testing.T, names ...string) *stage {
	t.Helper()
	s := &stage{Place: tables.Open(t, nessietest.Options{}, nessietest.WriterConfig{}), t: t, checkpoints: t.TempDir(), rows: map[string][]string{}}
	s.warehouse = s.Warehouse
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	for _, name := range names {
		_, err := s.Writer.Create(t.Context(), catalog.Key{"shop", name}, schema, nessietest.TableOptions{})
		require.NoError(t, err)
	}
	s.sink = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.sink.Close)
	return s
}

func (s *stage) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil && !before(r.URL.Path, string(body)) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[r.URL.Path] = append(s.rows[r.URL.Path], string(body))
}

// got is what came to a path of the sink.
func (s *stage) got(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows[path])
}

func (s *stage) decide(before func(path, body string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// add appends one snapshot and returns its id.
func (s *stage) add(table string, ids ...int) string {
	s.t.Helper()
	written, err := s.Writer.Append(s.t.Context(), catalog.Key{"shop", table}, ids2rows(ids)...)
	require.NoError(s.t, err)
	return strconv.FormatInt(written.SnapshotID(), 10)
}

func ids2rows(ids []int) []string {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = fmt.Sprintf(`{"id":%d}`, id)
	}
	return rows
}

func rowsOf(ids ...int) []string { return ids2rows(ids) }

// input is the flow YAML of a nessie input on a table.
func (s *stage) input(table string, more ...string) string {
	fields := append([]string{
		"base_url: " + s.Server.URL, "namespace: shop", "table: " + table, "max_retries: 0", "incremental_by_snapshot: true",
		"start_from: earliest", "checkpoint_cache: progress", "checkpoint_cache_key: " + table,
		fmt.Sprintf("storage: { local_root: %q }", s.warehouse),
	}, more...)
	return "{ nessie: { " + strings.Join(fields, ", ") + " } }"
}

func (s *stage) output(path string) string {
	return fmt.Sprintf("{ http_client: { url: '%s%s', verb: POST, max_in_flight: 1, retries: 0, timeout: 1m } }", s.sink.URL, path)
}

func (s *stage) resources() string {
	return fmt.Sprintf("cache_resources:\n  - label: progress\n    nessie_durable_file: { directory: %q }\n", s.checkpoints)
}

// pipeline is a whole file with the input at root.
func (s *stage) pipeline(input, output string) string {
	return "http: { enabled: false }\ninput: " + input + "\noutput: " + output + "\n" + s.resources()
}

func (s *stage) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// stored is the checkpoint of a table: the last whole snapshot, and the row in
// the step under way, -1 where there is none.
func (s *stage) stored(table string) (snapshot string, row int64) {
	text, err := os.ReadFile(filepath.Join(s.checkpoints, table))
	if err != nil {
		return "", -1
	}
	var place struct {
		Snapshot string               `json:"lastAckedSnapshotID"`
		Position *struct{ Row int64 } `json:"position"`
	}
	require.NoError(s.t, json.Unmarshal(text, &place))
	if place.Position == nil {
		return place.Snapshot, -1
	}
	return place.Snapshot, place.Position.Row
}

func (s *stage) eventually(condition func() bool, what string, p *process) {
	s.t.Helper()
	if !assert.Eventually(s.t, condition, patience, glance, what) {
		s.t.Logf("rows: %v\nlogs:\n%s", s.rows, p.log())
		s.t.FailNow()
	}
}

// stands waits until the checkpoint of a table is behind a snapshot.
func (s *stage) stands(table, snapshot string, p *process) {
	s.t.Helper()
	s.eventually(func() bool {
		at, row := s.stored(table)
		return at == snapshot && row == -1
	}, "the checkpoint of "+table, p)
}

// process is a run of the binary that goes on until it is stopped.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *safeBuffer
	once sync.Once
	code int
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (p *process) log() string { return p.out.text() }

func begin(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := command(t, args...)
	p := &process{t: t, cmd: cmd, out: &safeBuffer{}}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end sends a signal and returns the exit code.
func (p *process) end(signal os.Signal) int {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(signal) // it may have ended by itself
		_ = p.cmd.Wait()                 // the code says all
		p.code = p.cmd.ProcessState.ExitCode()
	})
	return p.code
}

func TestAKilledRunGoesOnInMidStep(t *testing.T) {
	s := newStage(t, "orders")
	last := s.add("orders", 1, 2, 3, 4, 5, 6, 7)
	path := s.file("pipeline.yaml", s.pipeline(s.input("orders", "batch_rows: 2", "checkpoint_limit: 1", "poll_interval: 10ms"), s.output("/a")))
	s.decide(func(string, string) bool { return len(s.got("/a")) < 5 })
	p := begin(t, "run", path)
	s.eventually(func() bool {
		_, row := s.stored("orders")
		return row == 4 && len(s.got("/a")) == 5
	}, "two batches and a row", p)
	p.end(syscall.SIGKILL)
	assert.Equal(t, rowsOf(1, 2, 3, 4, 5), s.got("/a"))

	s.decide(nil)
	path = s.file("pipeline.yaml", s.pipeline(s.input("orders", "batch_rows: 2", "poll_interval: 0s"), s.output("/b")))
	got := execute(t, "run", path)
	assert.Equal(t, 0, got.code, got.all())
	assert.Equal(t, rowsOf(5, 6, 7), s.got("/b"), "from the row behind the last acknowledged batch")
	at, row := s.stored("orders")
	assert.Equal(t, last, at)
	assert.Equal(t, int64(-1), row)
}

// What is left of a run that was to end is seen from its exit code; one without an end is meant to be stopped.
func TestASignalBeforeTheEndIsSeenFromTheExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		input, taken string // rows that the sink takes
		code         int
	}{
		"rows left":                   {"poll_interval: 0s", "1", exitInputFailed},
		"nothing delivered":           {"poll_interval: 0s", "0", exitInputFailed},
		"no end, rows left":           {"poll_interval: 10ms", "1", 0},
		"no end, everything is taken": {"poll_interval: 10ms", "3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "orders")
			s.add("orders", 1, 2, 3)
			asked := make(chan struct{}, 1)
			s.decide(func(string, string) bool {
				select {
				case asked <- struct{}{}:
				default:
				}
				return strconv.Itoa(len(s.got("/a"))) < tc.taken
			})
			path := s.file("pipeline.yaml", "shutdown_timeout: 2s\n"+s.pipeline(s.input("orders", "batch_rows: 1", "checkpoint_limit: 1", tc.input), s.output("/a")))
			p := begin(t, "run", path)
			s.eventually(func() bool { return strconv.Itoa(len(s.got("/a"))) == tc.taken && len(asked) > 0 }, "the rows that are taken", p)
			if tc.taken == "3" {
				s.eventually(func() bool { at, row := s.stored("orders"); return at != "" && row == -1 }, "the checkpoint", p)
			}
			assert.Equal(t, tc.code, p.end(syscall.SIGTERM), p.log())
		})
	}
}

func TestStreamsModeKeepsTheCheckpointsOfItsStreams(t *testing.T) {
	s := newStage(t, "a", "b")
	first := map[string]string{"a": s.add("a", 1, 2), "b": s.add("b", 11)}
	address := ports.Free(t)
	resources := s.file("resources.yaml", s.resources())
	root := s.file("root.yaml", "http: { address: "+address+" }\n")
	p := begin(t, "streams", "-o", root, "-r", resources)
	api := func(method, id, config string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/streams/"+id, strings.NewReader(config))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	stream := func(table, path string) string {
		return "input: " + s.input(table, "poll_interval: 10ms") + "\noutput: " + s.output(path) + "\n"
	}
	must := func(method, id, config string) {
		t.Helper()
		code, body := api(method, id, config)
		require.Equal(t, http.StatusOK, code, "%s %s\n%s", body, config, p.log())
	}
	s.eventually(func() bool { code, _ := api(http.MethodGet, "", ""); return code != 0 }, "the API", p)

	must(http.MethodPost, "a", stream("a", "/a"))
	must(http.MethodPost, "b", stream("b", "/b"))
	s.stands("a", first["a"], p)
	s.stands("b", first["b"], p)

	code, body := api(http.MethodPost, "c", stream("a", "/c"))
	assert.GreaterOrEqual(t, code, http.StatusBadRequest, body)
	assert.Contains(t, body, `share key "a" of cache "progress"`)

	must(http.MethodPut, "a", stream("a", "/a/updated"))
	must(http.MethodDelete, "b", "")
	now := map[string]string{"a": s.add("a", 3), "b": s.add("b", 12)}
	s.stands("a", now["a"], p)
	at, _ := s.stored("b")
	assert.Equal(t, first["b"], at, "a stopped stream's checkpoint stands still")
	must(http.MethodPost, "b", stream("b", "/b/again"))
	s.stands("b", now["b"], p)

	assert.Equal(t, 0, p.end(syscall.SIGTERM), p.log())
	assert.Equal(t, map[string][]string{
		"/a": rowsOf(1, 2), "/a/updated": rowsOf(3), "/b": rowsOf(11), "/b/again": rowsOf(12),
	}, s.rows)
}

func TestAReloadedPipelineGoesOn(t *testing.T) {
	s := newStage(t, "orders")
	first := s.add("orders", 1, 2)
	config := func(path string) string {
		return s.pipeline(s.input("orders", "poll_interval: 10ms"), s.output(path))
	}
	path := s.file("pipeline.yaml", config("/before"))
	p := begin(t, "run", "-w", path)
	s.stands("orders", first, p)
	require.NoError(t, os.WriteFile(path, []byte(config("/after")), 0o600))
	s.eventually(func() bool { return strings.Count(p.log(), "Input type nessie is now active") == 2 }, "the reload", p)
	second := s.add("orders", 3)
	s.stands("orders", second, p)
	assert.Equal(t, 0, p.end(syscall.SIGTERM), p.log())
	assert.Equal(t, map[string][]string{"/before": rowsOf(1, 2), "/after": rowsOf(3)}, s.rows)
}

func TestInputsInBrokersTemplatesAndResources(t *testing.T) {
	bounded := "poll_interval: 0s"
	tests := map[string]struct {
		input func(*stage) string
		want  []string
		code  int
		says  string
	}{
		"two in a broker": {
			func(s *stage) string {
				return "{ broker: { inputs: [ " + s.input("a", bounded) + ", " + s.input("b", bounded) + " ] } }"
			},
			rowsOf(1, 2, 11), 0, "",
		},
		"one in a broker cannot read": {
			func(s *stage) string {
				return "{ broker: { inputs: [ " + s.input("a", bounded) + ", " + s.input("c", bounded) + " ] } }"
			},
			rowsOf(1, 2), 3, `table \"c\" does not exist in namespace \"shop\" on main`,
		},
		"two on one key": {
			func(s *stage) string {
				one := func(label string) string {
					return strings.Replace(s.input("a", bounded), "{ ", "{ label: "+label+", ", 1)
				}
				return "{ broker: { inputs: [ " + one("first") + ", " + one("second") + " ] } }"
			},
			nil, 1, `inputs "first" and "second" share key "a" of cache "progress": give one of them another checkpoint_cache_key`,
		},
		"from a template":             {func(*stage) string { return "{ orders_of: { table: a } }" }, rowsOf(1, 2), 0, ""},
		"from a template that cannot": {func(*stage) string { return "{ orders_of: { table: c } }" }, nil, 3, `table \"c\" does not exist`},
		"a resource":                  {func(*stage) string { return "{ resource: stored }" }, rowsOf(11), 0, ""},
		"a sequence": {
			func(s *stage) string {
				return "{ sequence: { inputs: [ " + s.input("a", bounded) + ", " + s.input("b", bounded) + " ] } }"
			},
			rowsOf(1, 2, 11), 0, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "a", "b")
			s.add("a", 1, 2)
			s.add("b", 11)
			template := "name: orders_of\ntype: input\nfields:\n  - name: table\n    type: string\nmapping: |\n" +
				"  root.nessie.base_url = \"" + s.Server.URL + "\"\n  root.nessie.namespace = \"shop\"\n  root.nessie.table = this.table\n" +
				"  root.nessie.poll_interval = \"0s\"\n  root.nessie.incremental_by_snapshot = true\n  root.nessie.checkpoint_cache = \"progress\"\n" +
				"  root.nessie.storage.local_root = \"" + s.warehouse + "\"\n"
			text := s.pipeline(tc.input(s), s.output("/rows"))
			if strings.Contains(text, "resource: stored") {
				text += "input_resources:\n  - " + strings.Replace(s.input("b", bounded), "{ ", "{ label: stored, ", 1) + "\n"
			}
			got := execute(t, "run", "-t", s.file("template.yaml", template), s.file("pipeline.yaml", text))
			assert.Equal(t, tc.code, got.code, got.all())
			assert.Contains(t, got.all(), tc.says)
			assert.ElementsMatch(t, tc.want, s.got("/rows"))
		})
	}
}

func TestDroppedRowsExitWithThree(t *testing.T) {
	s := newStage(t, "orders")
	s.add("orders", 1, 2, 3)
	s.decide(func(_, body string) bool { return body != `{"id":2}` })
	got := execute(t, "run", s.file("pipeline.yaml", s.pipeline(s.input("orders", "batch_rows: 1", "auto_replay_nacks: false", "poll_interval: 0s"), s.output("/rows"))))
	assert.Equal(t, exitInputFailed, got.code, got.all())
	assert.Equal(t, rowsOf(1, 3), s.got("/rows"))
	assert.Contains(t, got.all(), "1 rows were dropped, because the output refused them and auto_replay_nacks is false")
}

func TestReadyTellsWhyAPipelineIsNot(t *testing.T) {
	s := newStage(t)
	address := ports.Free(t)
	p := begin(t, "run", s.file("pipeline.yaml", strings.Replace(s.pipeline(s.input("orders"), s.output("/rows")), "{ enabled: false }", "{ address: "+address+" }", 1)))
	var body string
	s.eventually(func() bool {
		res, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return false
		}
		_ = res.Close()
		answer, err := http.Get("http://" + address + "/ready")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		body = string(text)
		return err == nil && answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(body, "does not exist")
	}, "the reason", p)
	assert.Contains(t, body, `namespace \"shop\" does not exist on main`)
	assert.Equal(t, 0, p.end(syscall.SIGTERM), p.log())
}

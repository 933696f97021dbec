// SPDX-License-Identifier: Apache-2.0

// Package resources runs what lies in resources/ for real: each pipeline with the built binary, between an in-memory
// Nessie and outputs that need no server elsewhere.
package resources

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

const root = "../.."

var binary string

func TestMain(m *testing.M) { os.Exit(buildAndTest(m)) }

func buildAndTest(m *testing.M) int {
	return servers.WithProgram(func(built string) int {
		binary = built
		return m.Run()
	})
}

var (
	orders    = catalog.Key{"sales", "orders"}
	customers = catalog.Key{"sales", "customers"}

	schemas = map[string]*iceberg.Schema{"orders": named("item"), "customers": named("name")}
)

// named is a schema of an id and one column of text.
func named(column string) *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: column, Type: iceberg.PrimitiveTypes.String},
	)
}

// shop is a Nessie with the tables that the pipelines read.
type shop struct {
	t      *testing.T
	writer *nessietest.Writer
	env    []string
	dir    string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	server, err := nessietest.Start(nessietest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	dir := t.TempDir()
	s := &shop{t: t, dir: dir, env: []string{
		"NESSIE_URL=" + server.URL, "POLL_INTERVAL=0s", "LOCAL_ROOT=" + filepath.Join(dir, "warehouse"),
		"CHECKPOINT_DIR=" + filepath.Join(dir, "checkpoints"), "OUTPUT_DIR=" + filepath.Join(dir, "out"),
		"CUSTOMERS_DIR=" + filepath.Join(dir, "customers"),
	}}
	s.writer, err = nessietest.NewWriter(t.Context(), nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + filepath.Join(dir, "warehouse")})
	require.NoError(t, err)
	for _, key := range []catalog.Key{orders, customers} {
		_, err := s.writer.Create(t.Context(), key, schemas[key[1]], nessietest.TableOptions{})
		require.NoError(t, err)
	}
	return s
}

// recreate drops a table and makes another under its name.
func (s *shop) recreate(key catalog.Key, steps ...nessietest.Step) {
	s.t.Helper()
	_, err := s.writer.Recreate(s.t.Context(), key, schemas[key[1]], nessietest.TableOptions{}, steps...)
	require.NoError(s.t, err)
}

// commit changes a table in one Nessie commit and returns the snapshot's id.
func (s *shop) commit(key catalog.Key, steps ...nessietest.Step) string {
	s.t.Helper()
	written, err := s.writer.Commit(s.t.Context(), key, nessietest.Change{Message: "change", Steps: steps})
	require.NoError(s.t, err)
	return fmt.Sprint(written.SnapshotID())
}

func withID(id int64) iceberg.BooleanExpression { return iceberg.EqualTo(iceberg.Reference("id"), id) }

// run runs a pipeline to its end, which POLL_INTERVAL=0s gives it, and returns what it wrote to standard output.
func (s *shop) run(pipeline string, args ...string) string {
	s.t.Helper()
	return s.runOn("", pipeline, args...)
}

func (s *shop) runOn(stdin, pipeline string, args ...string) string {
	s.t.Helper()
	args = append([]string{"run", "-s", "http.enabled=false"}, args...)
	got := execute(s.t, stdin, s.env, append(args, "resources/pipelines/"+pipeline)...)
	require.Equal(s.t, 0, got.code, got.stdout+got.stderr)
	return got.stdout
}

// ask runs a query on an SQLite file with the binary's own processor, and returns the rows as JSON.
func (s *shop) ask(file, query string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "ask.yaml")
	config := fmt.Sprintf("http: { enabled: false }\nlogger: { level: \"OFF\" }\ninput: { generate: { count: 1, mapping: 'root = {}' } }\n"+
		"pipeline: { processors: [ { sql_raw: { driver: sqlite, dsn: %q, query: %q } } ] }\noutput: { stdout: {} }\n", "file:"+file, query)
	require.NoError(s.t, os.WriteFile(path, []byte(config), 0o600))
	got := execute(s.t, "", nil, "run", path)
	require.Equal(s.t, 0, got.code, got.stdout+got.stderr)
	return got.stdout
}

type outcome struct {
	code           int
	stdout, stderr string
}

// execute runs the binary in the repository's root, as the comments in resources/ say it.
func execute(t *testing.T, stdin string, env []string, args ...string) outcome {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = root, bytes.NewBufferString(stdin), &out, &log
	cmd.Env = append(os.Environ(), env...)
	err := cmd.Run()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// filesBelow reads every file below a folder, by path from there.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

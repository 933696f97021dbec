// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// Tables that Spark and Flink's habits wrote merge-on-read, in a real Nessie: position deletes, deletion vectors, an
// upgrade between the two, equality deletes, compaction of deleted rows, and the endpoint that erases the chain. A branch
// is moved along the table's commits. After each of them the table in PostgreSQL holds what Spark read there, also when
// the pipeline was killed or its connection broke at any byte of what it and the database say.
func TestPostgresEqualsTheTableAfterEveryCommit(t *testing.T) {
	stack, err := servers.StartStack()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stack.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: stack.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	p, db := openPostgres(t)
	rng := rand.New(rand.NewPCG(*seed, 0))
	for _, name := range []string{"mor", "dv", "dv_upgraded", "eqdel", "compacted_mor", "rest_mor"} {
		t.Run(name, func(t *testing.T) {
			expected, err := corpus.Load(name)
			require.NoError(t, err)
			commits := expected.Commits
			require.Greater(t, len(commits), 5)
			_, err = db.ExecContext(t.Context(), "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, doc JSONB)")
			require.NoError(t, err)
			branch, err := client.CreateReference(t.Context(), catalog.Branch, "follow-"+name, catalog.Ref{Hash: commits[0].Hash})
			require.NoError(t, err)
			gate := openGate(t, p.DSN)
			pipeline := copying(stack, name, expected.Key(), branch.Name, gate.dsn, t.TempDir())
			running := start(t, nil, pipeline)
			defer func() {
				running.kill(t)
				if t.Failed() {
					t.Logf("PostgreSQL holds\n%s\nthe last pipeline's log:\n%s", strings.Join(lines(t, db, "SELECT doc FROM "+name+" ORDER BY id"), "\n"), running.log)
				}
			}()
			kills, between, breaks := 0, 0, 0
			for i, commit := range commits {
				branch, err = client.AssignReference(t.Context(), branch, catalog.Ref{Hash: commit.Hash})
				require.NoError(t, err)
				want := sorted(t, commit.Rows)
				equal := func() bool { return slices.Equal(want, copied(t, db, name)) }
				switch i % 3 {
				case 1:
					killed := gate.breakAfter(1+rng.IntN(2500), running.cmd.Process.Kill)
					require.Eventually(t, func() bool { return killed() || equal() }, patience, 10*time.Millisecond, "commit %d", i)
					if gate.disarm() {
						between++
					}
					kills++
					running.kill(t)
					running = start(t, nil, pipeline)
				case 2:
					gate.breakAfter(1+rng.IntN(2500), func() error { breaks++; return nil })
				}
				require.Eventually(t, equal, patience, 20*time.Millisecond, "commit %d: %s", i, commit.Message)
				gate.disarm()
			}
			t.Logf("%d commits, %d kills, %d of them in the middle, and %d broken connections", len(commits), kills, between, breaks)
		})
	}
}

// copying follows a table into a table of PostgreSQL of the same name: the id and the whole row.
func copying(stack *servers.Stack, table string, key []string, branch, dsn, progress string) string {
	return fmt.Sprintf(`
input:
  nessie:
    base_url: %s
    branch: %s
    namespace: %s
    table: %s
    poll_interval: 50ms
    incremental_by_snapshot: true
    changes: changelog
    identifier_fields: [ id ]
    start_from: table_scan
    batch_rows: 10
    checkpoint_cache: progress
    storage: { aws_s3: { endpoint: %s, region: us-east-1, force_path_style_urls: true, credentials: { id: k, secret: s } } }
pipeline:
  threads: 1
  processors:
    - mapping: root = if @operation == "update_before" { deleted() }
output:
  sql_raw:
    driver: postgres
    dsn: %s
    queries:
      - query: DELETE FROM %[7]s WHERE id = $1
        args_mapping: root = [ this.id.or(null) ]
      - query: DELETE FROM %[7]s WHERE $1 = 'truncate'
        args_mapping: root = [ @operation ]
      - query: INSERT INTO %[7]s SELECT $1::bigint, $2::jsonb WHERE $3 NOT IN ('delete', 'truncate')
        args_mapping: root = [ this.id.or(null), this, @operation ]
    max_in_flight: 1
cache_resources:
  - label: progress
    nessie_durable_file: { directory: %[8]q }
`, stack.URL, branch, strings.Join(key[:len(key)-1], "."), key[len(key)-1], stack.S3.Endpoint, dsn, table, progress)
}

// copied are the rows in PostgreSQL, as sorted gives them.
func copied(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT doc FROM "+table)
	require.NoError(t, err)
	defer rows.Close()
	var all []json.RawMessage
	for rows.Next() {
		var doc []byte
		require.NoError(t, rows.Scan(&doc))
		all = append(all, doc)
	}
	require.NoError(t, rows.Err())
	return sorted(t, all)
}

// sorted brings rows into one form and order. A row that is older than a column has no such field: a null is left out.
func sorted(t *testing.T, rows []json.RawMessage) []string {
	t.Helper()
	all := make([]string, len(rows))
	for i, row := range rows {
		decoder := json.NewDecoder(bytes.NewReader(row))
		decoder.UseNumber()
		var fields map[string]any
		require.NoError(t, decoder.Decode(&fields))
		maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		all[i] = string(text)
	}
	slices.Sort(all)
	return all
}

// The published pipeline, as it is.
func TestThePublishedPipelineKeepsPostgresEqual(t *testing.T) {
	text, err := os.ReadFile("../../resources/pipelines/changelog_to_postgres.yaml")
	require.NoError(t, err)
	p, db := openPostgres(t)
	s := tables.Open(t, nessietest.Options{}, nessietest.WriterConfig{})
	customers := catalog.Key{"sales", "customers"}
	_, err = s.Writer.Create(t.Context(), customers, tables.Named("name"), nessietest.TableOptions{Properties: iceberg.Properties{"write.delete.mode": "merge-on-read"}})
	require.NoError(t, err)
	env := []string{"NESSIE_URL=" + s.Server.URL, "POLL_INTERVAL=0s", "LOCAL_ROOT=" + s.Warehouse, "CHECKPOINT_DIR=" + filepath.Join(t.TempDir(), "checkpoints"), "PG_DSN=" + p.DSN}
	for _, c := range []struct {
		step nessietest.Step
		want []string
	}{
		{nessietest.Append(`{"id":1,"name":"Ann"}`, `{"id":2,"name":"Bob"}`, `{"id":3}`), []string{"(1,Ann)", "(2,Bob)", "(3,)"}},
		{nessietest.Delete(iceberg.EqualTo(iceberg.Reference("id"), int64(1))), []string{"(2,Bob)", "(3,)"}},
		{nessietest.RowDelta([]string{`{"id":3,"name":"Cyd"}`, `{"id":4,"name":"D'Arcy"}`}, []string{"id"}, []string{`{"id":3}`}), []string{"(2,Bob)", "(3,Cyd)", "(4,D'Arcy)"}},
		{nessietest.Compact(), []string{"(2,Bob)", "(3,Cyd)", "(4,D'Arcy)"}},
	} {
		_, err := s.Writer.Commit(t.Context(), customers, nessietest.Change{Steps: []nessietest.Step{c.step}})
		require.NoError(t, err)
		start(t, env, string(text)).finish(t)
		assert.Equal(t, c.want, lines(t, db, "SELECT id, name FROM customers ORDER BY id"))
	}
}

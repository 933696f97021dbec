// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

// deliver sends a batch of bodies through processors and an output of a pipeline.
func deliver(t *testing.T, output string, bodies ...string) error {
	t.Helper()
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetLoggerYAML("level: OFF"))
	require.NoError(t, builder.AddOutputYAML(output))
	send, err := builder.AddBatchProducerFunc()
	require.NoError(t, err)
	stream, err := builder.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.WithoutCancel(t.Context())) }()
	var batch service.MessageBatch
	for _, body := range bodies {
		batch = append(batch, service.NewMessage([]byte(body)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = send(ctx, batch)
	require.NoError(t, stream.Stop(ctx))
	require.NoError(t, <-ended)
	return err
}

func openPostgres(t *testing.T) (*servers.Postgres, *sql.DB) {
	t.Helper()
	p := servers.StartPostgres(t)
	db, err := sql.Open("pgx", p.DSN)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return p, db
}

// lines are the rows of a query as text.
func lines(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT r::text FROM ("+query+") r")
	require.NoError(t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestPostgres(t *testing.T) {
	p, db := openPostgres(t)
	settings := func(kind string, more ...string) string {
		return kind + ":\n  driver: postgres\n  dsn: " + p.DSN + "\n  " + strings.Join(more, "\n  ")
	}
	t.Run("values fit their columns' types", func(t *testing.T) {
		columns := "id, name, price, at, day, fine, doc, u, code, data, note"
		output := settings("sql_insert", "table: kinds", "columns: [ "+columns+" ]",
			"args_mapping: root = [ this.id, this.name, this.price, this.at, this.day, this.fine, this.doc, this.u, this.code, this.data.decode(\"hex\"), this.note ]",
			"init_statement: CREATE TABLE kinds (id BIGINT, name TEXT, price NUMERIC, at TIMESTAMPTZ, day DATE, fine BOOLEAN, doc JSONB, u UUID, code TEXT, data BYTEA, note TEXT)")
		require.NoError(t, deliver(t, output,
			`{"id":9007199254740993,"name":"a'); DROP TABLE kinds; --","price":"12345678901234567890.123456789","at":"2026-03-01T09:00:00.000001+00:00","day":"2026-03-01","fine":true,"doc":{"a":[1,null]},"u":"0192d3f1-0000-7000-8000-000000000001","code":42,"data":"00ff","note":null}`,
			`{"id":-1,"name":"","price":0.1,"at":null,"day":null,"fine":null,"doc":[],"u":null,"code":1.5,"data":"","note":"x"}`))
		assert.Equal(t, []string{
			`(-1,"",0.1,,,,[],,1.5,"\\x",x)`,
			`(9007199254740993,"a'); DROP TABLE kinds; --",12345678901234567890.123456789,"2026-03-01 09:00:00.000001+00",2026-03-01,t,"{""a"": [1, null]}",0192d3f1-0000-7000-8000-000000000001,42,"\\x00ff",)`,
		}, lines(t, db, "SELECT id, name, price, (at AT TIME ZONE 'UTC')::text || '+00' AS at, day, fine, doc, u, code, data, note FROM kinds ORDER BY id"))
	})
	t.Run("upserts and deletes keep their order", func(t *testing.T) {
		output := settings("sql_raw",
			"init_statement: CREATE TABLE IF NOT EXISTS people (id BIGINT PRIMARY KEY, name TEXT); CREATE TABLE IF NOT EXISTS seen (n BIGINT)",
			"query: DELETE FROM people WHERE id = $1", "args_mapping: root = [ this.id ]",
			"queries:",
			"  - query: INSERT INTO people SELECT $1, $2 WHERE $3 <> 'delete'",
			"    args_mapping: root = [ this.id, this.name, this.op ]",
			"  - query: INSERT INTO seen SELECT count(*) FROM people")
		require.NoError(t, deliver(t, output,
			`{"op":"insert","id":1,"name":"ann"}`, `{"op":"insert","id":2,"name":"bob"}`, `{"op":"update","id":1,"name":"anna"}`, `{"op":"delete","id":2,"name":""}`))
		assert.Equal(t, []string{"(1,anna)"}, lines(t, db, "SELECT * FROM people ORDER BY id"))
		assert.Equal(t, []string{"(1)", "(2)", "(2)", "(1)"}, lines(t, db, "SELECT * FROM seen"))
	})
	t.Run("a batch is written whole or not at all", func(t *testing.T) {
		output := settings("sql_raw", "init_statement: CREATE TABLE once (id BIGINT PRIMARY KEY)", "query: INSERT INTO once VALUES ($1)", "args_mapping: root = [ this.id ]")
		require.ErrorContains(t, deliver(t, output, `{"id":1}`, `{"id":2}`, `{"id":1}`), "message 3 of 3, statement 1")
		assert.Empty(t, lines(t, db, "SELECT * FROM once"))
	})
	t.Run("more rows than a statement can bind", func(t *testing.T) {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE wide (a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT)")
		require.NoError(t, err)
		bodies := make([]string, 10_000)
		for i := range bodies {
			bodies[i] = `{"v":7}`
		}
		require.NoError(t, deliver(t, settings("sql_insert", "table: wide", "columns: [ a, b, c, d, e, f, g, h ]",
			"args_mapping: root = [ this.v, this.v, this.v, this.v, this.v, this.v, this.v, this.v ]"), bodies...))
		assert.Equal(t, []string{"(10000,70000)"}, lines(t, db, "SELECT count(*), sum(h) FROM wide"))
	})
	t.Run("processors look things up", func(t *testing.T) {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE looked (id BIGINT, name TEXT, price NUMERIC, at TIMESTAMPTZ, doc JSONB, tags TEXT[]); INSERT INTO looked VALUES (1, 'ann', 1.50, '2026-03-01T09:00:00Z', '{\"a\":1}', '{x,y}')")
		require.NoError(t, err)
		for _, processor := range []string{
			settings("sql_select", "table: looked", "columns: [ id, name, price, doc ]", "where: id = ? AND name <> '?'", "args_mapping: root = [ this.id ]"),
			settings("sql_raw", "query: SELECT id, name, price, doc FROM looked WHERE id = $1", "args_mapping: root = [ this.id ]"),
		} {
			output := "processors:\n  - " + strings.ReplaceAll(processor, "\n", "\n    ") + "\n" +
				settings("sql_raw", "query: INSERT INTO found VALUES ($1)", "args_mapping: root = [ this ]", "init_statement: CREATE TABLE IF NOT EXISTS found (rows JSONB)")
			require.NoError(t, deliver(t, output, `{"id":1}`))
		}
		want := `("[{""id"": 1, ""doc"": ""{\\""a\\"": 1}"", ""name"": ""ann"", ""price"": ""1.50""}]")`
		assert.Equal(t, []string{want, want}, lines(t, db, "SELECT rows FROM found"))
	})
}

// A server that goes away while the pipeline runs, and comes back.
func TestAnOutputGoesOnWhenPostgresComesBack(t *testing.T) {
	p, db := openPostgres(t)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
	require.NoError(t, err)
	s := openShop(t, 5, 2000)
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetYAML(s.input()+`
output:
  processors:
    - catch: []
  sql_raw:
    driver: pgx
    dsn: `+p.DSN+`
    query: INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET item = EXCLUDED.item
    args_mapping: root = [ this.id, this.item ]
    max_in_flight: 2
cache_resources:
  - label: progress
    memory: {}
logger: { level: "OFF" }
http: { enabled: false }
`))
	stream, err := builder.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(t.Context()) }()
	count := func() (n int) {
		if db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n) != nil {
			return -1
		}
		return n
	}
	require.Eventually(t, func() bool { return count() > 1000 }, patience, 1e7)
	require.NoError(t, p.Restart())
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool { return count() == len(s.rows) }, patience, 1e7)
}

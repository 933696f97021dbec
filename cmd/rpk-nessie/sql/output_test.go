// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ordersTable = "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)"

func raw(t *testing.T, yaml string) *rawOutput {
	t.Helper()
	o, err := newRawOutput(parse(t, rawOutputSpec(), yaml))
	require.NoError(t, err)
	require.NoError(t, o.Connect(t.Context()))
	t.Cleanup(func() { require.NoError(t, o.Close(t.Context())) })
	return o
}

func inserter(t *testing.T, yaml string) *insert {
	t.Helper()
	o, err := newInsert(parse(t, insertSpec(), yaml))
	require.NoError(t, err)
	require.NoError(t, o.Connect(t.Context()))
	t.Cleanup(func() { require.NoError(t, o.Close(t.Context())) })
	return o
}

// hostile is a value that would be a statement if it were pasted into one.
const hostile = `'); DROP TABLE orders; --`

func TestRawBindsValues(t *testing.T) {
	d := newDatabase(t, ordersTable)
	o := raw(t, d.yaml("query: INSERT INTO orders VALUES (?, ?)", "args_mapping: root = [ this.id, this.item ]"))
	require.NoError(t, o.WriteBatch(t.Context(), batchOf(`{"id":1,"item":"`+hostile+`"}`, `{"id":9007199254740993,"item":null}`)))
	assert.Equal(t, []any{
		object{"id": int64(1), "item": hostile},
		object{"id": int64(9007199254740993), "item": nil},
	}, d.rows(t, "SELECT * FROM orders ORDER BY id"))
}

func TestABatchIsWrittenWholeOrNotAtAll(t *testing.T) {
	d := newDatabase(t, ordersTable)
	for name, o := range map[string]service.BatchOutput{
		"raw":                 raw(t, d.yaml("query: INSERT INTO orders VALUES (?, ?)", "args_mapping: root = [ this.id, this.item ]")),
		"one statement":       inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: root = [ this.id, this.item ]")),
		"a statement per row": inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: root = [ this.id, this.item ]", "suffix: RETURNING id")),
	} {
		t.Run(name, func(t *testing.T) {
			err := o.WriteBatch(t.Context(), batchOf(`{"id":1}`, `{"id":2}`, `{"id":1}`))
			require.ErrorContains(t, err, "UNIQUE constraint failed")
			if name == "raw" {
				require.ErrorContains(t, err, "message 3 of 3, statement 1")
			}
			assert.Empty(t, d.rows(t, "SELECT * FROM orders"))
		})
	}
}

func TestRawRunsAllQueriesOfAMessage(t *testing.T) {
	d := newDatabase(t, ordersTable, "CREATE TABLE log (id INTEGER, n INTEGER)")
	o := raw(t, d.yaml(
		"query: INSERT INTO orders VALUES (?, ?)", "args_mapping: root = [ this.id, this.item ]",
		"queries:",
		"  - query: INSERT INTO log SELECT ?, count(*) FROM orders",
		"    args_mapping: root = [ this.id ]",
		"  - query: UPDATE orders SET item = upper(item)"))
	require.NoError(t, o.WriteBatch(t.Context(), batchOf(`{"id":5,"item":"a"}`, `{"id":6,"item":"b"}`)))
	assert.Equal(t, []any{object{"id": int64(5), "item": "A"}, object{"id": int64(6), "item": "B"}}, d.rows(t, "SELECT * FROM orders ORDER BY id"))
	assert.Equal(t, []any{object{"id": int64(5), "n": int64(1)}, object{"id": int64(6), "n": int64(2)}}, d.rows(t, "SELECT * FROM log ORDER BY id"))
}

func TestStatementsAreInterpolatedOnlyWhenAskedTo(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (v)", "CREATE TABLE b (v)")
	yaml := d.yaml("query: INSERT INTO ${! json(\"table\") } VALUES (?)", "args_mapping: root = [ this.v ]")
	require.Error(t, raw(t, yaml).WriteBatch(t.Context(), batchOf(`{"table":"a","v":1}`)))
	require.NoError(t, raw(t, yaml+"\nunsafe_dynamic_query: true").WriteBatch(t.Context(), batchOf(`{"table":"a","v":1}`, `{"table":"b","v":2}`)))
	assert.Equal(t, []any{object{"v": int64(1)}}, d.rows(t, "SELECT * FROM a"))
	assert.Equal(t, []any{object{"v": int64(2)}}, d.rows(t, "SELECT * FROM b"))
}

func TestInsertOfManyRowsIsParted(t *testing.T) {
	d := newDatabase(t, ordersTable)
	o := inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: root = [ this.id, this.item ]"))
	for _, rows := range []int{1, 2, rowsInStatement, rowsInStatement + 1, 2*rowsInStatement + 7} {
		_, err := d.db.ExecContext(t.Context(), "DELETE FROM orders")
		require.NoError(t, err)
		var bodies []string
		for i := range rows {
			bodies = append(bodies, fmt.Sprintf(`{"id":%d,"item":"item %d"}`, i, i))
		}
		require.NoError(t, o.WriteBatch(t.Context(), batchOf(bodies...)))
		assert.Equal(t, []any{object{"n": int64(rows), "fine": int64(rows)}},
			d.rows(t, "SELECT count(*) n, sum(item = 'item ' || id) fine FROM orders"))
	}
}

func TestAKeyMayComeTwiceInABatchWithASuffix(t *testing.T) {
	d := newDatabase(t, ordersTable)
	o := inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: root = [ this.id, this.item ]",
		"suffix: ON CONFLICT (id) DO UPDATE SET item = EXCLUDED.item"))
	require.NoError(t, o.WriteBatch(t.Context(), batchOf(`{"id":1,"item":"a"}`, `{"id":1,"item":"b"}`)))
	assert.Equal(t, []any{object{"id": int64(1), "item": "b"}}, d.rows(t, "SELECT * FROM orders"))
}

func TestOptionsPrefixAndSuffixOfAnInsert(t *testing.T) {
	d := newDatabase(t, ordersTable, "INSERT INTO orders VALUES (1, 'old')")
	o := inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: root = [ this.id, this.item ]",
		"options: [ OR, REPLACE ]", "prefix: WITH unused AS (SELECT 1)"))
	assert.Equal(t, "WITH unused AS (SELECT 1) INSERT OR REPLACE INTO orders (id, item) VALUES (?, ?), (?, ?)", o.statement(2))
	require.NoError(t, o.WriteBatch(t.Context(), batchOf(`{"id":1,"item":"new"}`)))
	assert.Equal(t, []any{object{"id": int64(1), "item": "new"}}, d.rows(t, "SELECT * FROM orders"))
}

func TestMappingsThatGiveNoValuesAreNamed(t *testing.T) {
	d := newDatabase(t, ordersTable)
	for mapping, says := range map[string]string{
		"root = this.id":                          "message 1 of 1: args_mapping must give an array",
		"root = [ this.id ]":                      "args_mapping gave 1 values for 2 columns",
		"root = [ this.id, this.id / this.zero ]": "args_mapping",
		"root = [ this.item.uppercase(), \"\" ]":  "args_mapping: ",
	} {
		o := inserter(t, d.yaml("table: orders", "columns: [ id, item ]", "args_mapping: '"+mapping+"'"))
		require.ErrorContains(t, o.WriteBatch(t.Context(), batchOf(`{"id":1}`)), says, mapping)
	}
}

func TestInitialisation(t *testing.T) {
	d := newDatabase(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "1.sql"), []byte("CREATE TABLE IF NOT EXISTS a (v); CREATE TABLE IF NOT EXISTS b (v);"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "2.sql"), []byte("INSERT INTO a VALUES (1); INSERT INTO b VALUES (2);"), 0o600))
	o := raw(t, d.yaml("query: DELETE FROM c", "init_files: [ '"+folder+"/*.sql' ]", "init_statement: 'CREATE TABLE c (v); INSERT INTO c SELECT v FROM a'"))
	assert.Equal(t, []any{object{"v": int64(1)}}, d.rows(t, "SELECT * FROM c"))
	require.NoError(t, o.Connect(t.Context()), "connecting again runs nothing again")

	for lines, says := range map[string]string{
		"init_statement: CREATE NONSENSE": "running init_statement",
		"init_files: [ /nowhere/x.sql ]":  "init_files",
		"init_files: [ /nowhere/*.sql ]":  `no file is named "/nowhere/*.sql"`,
	} {
		broken, err := newRawOutput(parse(t, rawOutputSpec(), d.yaml("query: SELECT 1", lines)))
		require.NoError(t, err)
		require.ErrorContains(t, broken.Connect(t.Context()), says)
		require.ErrorIs(t, broken.WriteBatch(t.Context(), batchOf(`{}`)), service.ErrNotConnected)
		require.NoError(t, broken.Close(t.Context()))
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, says string }{
		"unknown driver": {"driver: oracle\ndsn: x\nquery: y", "oracle"},
		"no database":    {"driver: sqlite\ndsn: ''\nquery: y", "dsn says no database"},
		"no query":       {"driver: sqlite\ndsn: x", "a query or queries are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := rawOutputSpec().ParseYAML(tc.yaml, nil)
			if err == nil {
				_, err = newRawOutput(conf)
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
	_, err := newInsert(parse(t, insertSpec(), "driver: sqlite\ndsn: x\ntable: t\ncolumns: []\nargs_mapping: root = []"))
	require.ErrorContains(t, err, "a table and its columns are needed")

	linter := service.NewEnvironment().NewComponentConfigLinter()
	for yaml, says := range map[string]string{
		"sql_raw: { driver: sqlite, dsn: x }":                                                      "a query or queries are needed",
		"sql_raw: { driver: sqlite, dsn: x, query: y, max_in_flight: 0 }":                          "max_in_flight must be at least 1",
		"sql_insert: { driver: sqlite, dsn: x, table: t, columns: [], args_mapping: 'root = []' }": "columns needs at least one",
	} {
		lints, err := linter.LintOutputYAML([]byte(yaml))
		require.NoError(t, err)
		require.Len(t, lints, 1, yaml)
		assert.Contains(t, lints[0].Error(), says)
	}
}

func TestParallelWritersOfOneFileWait(t *testing.T) {
	d := newDatabase(t, ordersTable)
	yaml := d.yaml("query: INSERT INTO orders VALUES (?, ?)", "args_mapping: root = [ this.id, this.item ]")
	outputs := []*rawOutput{raw(t, yaml), raw(t, yaml)}
	results := make(chan error)
	const each = 50
	for n, o := range outputs {
		for i := range each {
			go func() {
				results <- o.WriteBatch(t.Context(), batchOf(fmt.Sprintf(`{"id":%d}`, n*each+i), fmt.Sprintf(`{"id":%d}`, 1000+n*each+i)))
			}()
		}
	}
	for range len(outputs) * each {
		require.NoError(t, <-results)
	}
	assert.Equal(t, []any{object{"n": int64(2 * len(outputs) * each)}}, d.rows(t, "SELECT count(*) n FROM orders"))
}

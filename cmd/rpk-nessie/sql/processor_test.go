// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const customers = `CREATE TABLE customers (id INTEGER, name TEXT, since REAL, photo BLOB)`

func customersDatabase(t *testing.T) *database {
	t.Helper()
	return newDatabase(t, customers, `INSERT INTO customers VALUES (1, 'ann', 1.5, x'4142'), (2, 'bob', NULL, NULL), (3, 'ann', 3, NULL)`)
}

func processed(t *testing.T, p service.BatchProcessor, bodies ...string) service.MessageBatch {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, p.Close(t.Context())) })
	batches, err := p.ProcessBatch(t.Context(), batchOf(bodies...))
	require.NoError(t, err)
	require.Len(t, batches, 1)
	return batches[0]
}

func bodyOf(t *testing.T, m *service.Message) string {
	t.Helper()
	body, err := m.AsBytes()
	require.NoError(t, err)
	return string(body)
}

func TestSelectGivesRowsAsObjects(t *testing.T) {
	d := customersDatabase(t)
	p, err := newSelection(parse(t, selectSpec(), d.yaml("table: customers", "columns: [ '*' ]", "where: name = ? AND id > ?",
		"args_mapping: root = [ this.name, this.over ]", "suffix: ORDER BY id", "prefix: WITH unused AS (SELECT 1)")))
	require.NoError(t, err)
	got := processed(t, p, `{"name":"ann","over":0}`, `{"name":"bob","over":0}`, `{"name":"`+hostile+`","over":0}`, `{"name":"ann"}`, `no json`)
	assert.JSONEq(t, `[{"id":1,"name":"ann","since":1.5,"photo":"AB"},{"id":3,"name":"ann","since":3,"photo":null}]`, bodyOf(t, got[0]))
	assert.JSONEq(t, `[{"id":2,"name":"bob","since":null,"photo":null}]`, bodyOf(t, got[1]))
	assert.JSONEq(t, `[]`, bodyOf(t, got[2]))
	assert.JSONEq(t, `[]`, bodyOf(t, got[3]))
	require.ErrorContains(t, got[4].GetError(), "args_mapping")
	assert.Equal(t, "no json", bodyOf(t, got[4]))
}

func TestQuestionMarksBecomeWhatTheDatabaseKnows(t *testing.T) {
	pg, err := dialectOf(postgres)
	require.NoError(t, err)
	lite, err := dialectOf(sqlite)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"a = ? AND b > ?":         "a = $1 AND b > $2",
		"a = '?' AND \"x?\" = ?":  "a = '?' AND \"x?\" = $1",
		"a = 'it''s ?' AND b = ?": "a = 'it''s ?' AND b = $1",
		"doc ?? 'key' AND b = ?":  "doc ? 'key' AND b = $1",
		"":                        "",
	} {
		assert.Equal(t, want, pg.numbered(text))
		assert.Equal(t, text, lite.numbered(text))
	}
}

func TestRawProcessor(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  string
		fails string
	}{
		"takes the rows": {lines: []string{"query: SELECT name FROM customers WHERE id = ?", "args_mapping: root = [ this.id ]"}, want: `[{"name":"bob"}]`},
		"leaves the message": {
			lines: []string{"query: UPDATE customers SET name = 'x' WHERE id = ?", "args_mapping: root = [ this.id ]", "exec_only: true"}, want: `{"id":2}`,
		},
		"takes the last rows": {
			lines: []string{"query: SELECT 1", "queries:", "  - query: UPDATE customers SET name = 'cy' WHERE id = ?", "    args_mapping: root = [ this.id ]", "  - query: SELECT name FROM customers WHERE id = 2"},
			want:  `[{"name":"cy"}]`,
		},
		"takes the rows that it is told to": {
			lines: []string{"query: SELECT 1 AS one", "exec_only: false", "queries: [ { query: SELECT 2, exec_only: true } ]"}, want: `[{"one":1}]`,
		},
		"takes back what failed later": {
			lines: []string{"query: DELETE FROM customers", "queries: [ { query: SELECT nonsense } ]"}, want: `{"id":2}`, fails: "statement 2: ",
		},
		"interpolates if asked to": {
			lines: []string{"query: 'SELECT ${! json(\"id\") } AS v'", "unsafe_dynamic_query: true"}, want: `[{"v":2}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := customersDatabase(t)
			p, err := newRawProcessor(parse(t, rawProcessorSpec(), d.yaml(tc.lines...)))
			require.NoError(t, err)
			got := processed(t, p, `{"id":2}`)[0]
			assert.JSONEq(t, tc.want, bodyOf(t, got))
			if tc.fails != "" {
				require.ErrorContains(t, got.GetError(), tc.fails)
				assert.Len(t, d.rows(t, "SELECT * FROM customers"), 3)
				return
			}
			require.NoError(t, got.GetError())
		})
	}
}

func TestAProcessorWithoutADatabaseSaysSo(t *testing.T) {
	p, err := newRawProcessor(parse(t, rawProcessorSpec(), "driver: sqlite\ndsn: file:/nowhere/at/all.db\nquery: SELECT 1"))
	require.NoError(t, err)
	_, err = p.ProcessBatch(t.Context(), batchOf(`{}`))
	require.ErrorContains(t, err, "connecting to the sqlite database")
	require.NoError(t, p.Close(t.Context()))
}

func TestValuesAreBoundAsTheDatabaseWantsThem(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 123000, time.FixedZone("", 3600))
	for name, tc := range map[string]struct{ value, text, native any }{
		"null":           {nil, nil, nil},
		"text":           {"a", "a", "a"},
		"bytes":          {[]byte{0, 255}, []byte{0, 255}, []byte{0, 255}},
		"true":           {true, "true", true},
		"whole":          {int64(-5), "-5", int64(-5)},
		"int":            {5, "5", int64(5)},
		"large":          {uint64(1 << 63), "9223372036854775808", "9223372036854775808"},
		"float":          {1e21, "1e+21", 1e21},
		"JSON's whole":   {json.Number("9007199254740993"), "9007199254740993", int64(9007199254740993)},
		"JSON's decimal": {json.Number("1.50"), "1.50", 1.5},
		"time":           {at, "2026-03-01T09:00:00.000123+01:00", "2026-03-01T08:00:00.000123Z"},
		"object":         {object{"a": []any{1, "b"}}, `{"a":[1,"b"]}`, `{"a":[1,"b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := bindText(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.text, text)
			native, err := bindNative(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.native, native)
		})
	}
	_, err := bindText(object{"a": func() {}})
	require.ErrorContains(t, err, "as JSON")
}

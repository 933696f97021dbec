// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyType is a schema with a column of each type.
func everyType() *iceberg.Schema {
	f := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0,
		f(1, "b", p.Bool), f(2, "i", p.Int32), f(3, "l", p.Int64), f(4, "f", p.Float32), f(5, "d", p.Float64),
		f(6, "dec", iceberg.DecimalTypeOf(9, 2)), f(7, "day", p.Date), f(8, "t", p.Time), f(9, "ts", p.Timestamp), f(10, "tz", p.TimestampTz),
		f(11, "s", p.String), f(12, "u", p.UUID), f(13, "bin", p.Binary), f(14, "fix", iceberg.FixedTypeOf(3)),
		f(15, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{f(16, "x", p.Int64), f(17, "in.ner", &iceberg.StructType{FieldList: []iceberg.NestedField{f(18, "y", p.String)}})}}),
		f(19, "list", &iceberg.ListType{ElementID: 20, Element: p.Int64}),
		f(21, "amount", p.Int64), f(22, "select", p.Int64), f(23, "ns", p.TimestampNs))
}

func TestWhatAQueryMayNotSayIsRefusedByNameAndPlace(t *testing.T) {
	tests := []string{
		"", "  ", "i", "i = ", "= 1", "i = 1 AND", "i = 1 2", "(i = 1", "i = 1)", "i < l < 3", "i = 'x", `"i = 1`, `"" = 1`, "NOT", "AND i = 1",
		"i = l", "1 = 1", "5", "'x'", "i + 1 = 2", "s || 'x' = 'y'", "i = 1 + 1", "-i = 1", "i = -'x'",
		"lower(s) = 'x'", "count(*) > 1", "isnan(f, d)", "isnan(f + 1)", "isnan()", "i = abs(1)",
		"i IN (SELECT i FROM t)", "EXISTS (SELECT 1)", "CASE WHEN b THEN 1 END = 1", "CAST(s AS int) = 1", "s::int = 1", "i = ?", "i = :name", "i = 1; DROP TABLE t", "i = 1 -- all", "i /* x */ = 1",
		"i IN ()", "i IN (l)", "i IN (b)", "5 IN (1, 2)", "5 BETWEEN 1 AND 2", "i BETWEEN l AND 3", "(i = 1) = TRUE", "(i = 1) IS NULL", "NOT i",
		"b IS TRUE", "i IS NOT DISTINCT FROM 1", "count(DISTINCT i) > 1", "i <=> 1", "s ILIKE 'x'", "s RLIKE 'x'", "s SIMILAR TO 'x'", "s LIKE 5", `s LIKE 'a\b' ESCAPE '\'`, `s LIKE 'a\' ESCAPE '\'`, "s LIKE 'a' ESCAPE 'xy'", "s LIKE s",
		"day > INTERVAL '1 day'", "day = DATE '2024-02-30'", "t = TIME '25:00'", "ts = TIMESTAMP '2024-01-01 00:00:00.1234567890'", "ts = TIMESTAMP 'now'", "u = UUID 'x'", "bin = X'0'", "bin = X'zz'", "i = 1e5000", "i = 1.2.3",
		"amuont > 5", "AMOUNT > 5", "st.z = 1", "st.in.ner.y = 'x'", "s.x = 1", "list.element = 1", "list = 1", "st = 1", "i[0] = 1", "s -> 'x' = 'y'",
		"i = 'x'", "i = TRUE", "i = DATE '2024-01-01'", "b = 1", "b > 'x'", "f = '1'", "f IS NAN AND i IS NAN", "dec = '1.00'", "s = 1", "s = X'00'", "bin = 'x'", "u = 'x'", "u = 1", "fix = 'abc'",
		"day = 'x'", "day = 5", "day = TIMESTAMP '2024-01-01 00:00:00Z'", "t = '1'", "t = DATE '2024-01-01'", "ts = 'x'", "ts = TIMESTAMP '2024-01-01 00:00:00+01:00'", "ts = TIME '00:00'", "i LIKE 'x%'", "i IN (1, 'x')",
		"i = 1\nAND\tl = 'x'\nAND s = 'y'", "s = 'äöü' AND l = 'x'",
		`s = "x"`, "WHERE i = 1", "where (i = 1)", " Where\n\"i\" = 1",
		strings.Repeat("(", 101) + "i = 1" + strings.Repeat(")", 101),
	}
	var got strings.Builder
	for _, text := range tests {
		q, err := ParseQuery(text)
		if err == nil {
			_, err = q.bind(everyType())
		}
		var place *QueryError
		require.ErrorAs(t, err, &place, text)
		got.WriteString(err.Error() + "\n")
	}
	golden(t, "query_refusals.txt", got.String())
}

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestWhatAQueryMaySayBinds(t *testing.T) {
	for _, text := range []string{
		"b", "NOT b", "not not b", "b = true", "TRUE", "NULL", "i=1 and (l<>2 or not s='x')", "1 < i", "i == 1", "i != 1", "i in (1,2,NULL)", "i NOT IN (1)", "i between -1 and +2.5", "i NOT BETWEEN 1 AND 2",
		"i is null", "list IS NOT NULL", "f is nan", "d IS NOT NAN", "IsNaN(d)", "s LIKE 'a%'", "s NOT LIKE '%a_'", `s LIKE 'a\%%' ESCAPE '\'`, "((i)) = ((1))", "(b)",
		"day = DATE '2024-01-01'", "day < '2024-01-01'", "day < TIMESTAMP '2024-01-01 12:00:00'", "t = TIME '12:34:56.789'", "t = '12:34'", "ts = '2024-01-01T00:00'", "ts > DATE '2024-01-01'", "tz = TIMESTAMP '2024-01-01 00:00:00+02'", "ns = TIMESTAMP '2024-01-01 00:00:00.123456789'",
		"u = '00112233-4455-6677-8899-aabbccddeeff'", "u = UUID '00112233-4455-6677-8899-AABBCCDDEEFF'", "bin = X'00ff'", "fix > x''", "dec > 1.005", "f = 1e400", "l = 99999999999999999999999999", "s = 'it''s'",
		"st.x = 1", `"st"."in.ner"."y" = 'x'`, "`st`.`x` = 1", "\"select\" = 1", "st IS NULL", "st.`in.ner` IS NULL",
	} {
		q, err := ParseQuery(text)
		if assert.NoError(t, err, text) {
			_, err = q.bind(everyType())
			assert.NoError(t, err, text)
		}
	}
}

func TestAColumnMayBeNamedWhere(t *testing.T) {
	for _, text := range []string{"where = 1", "where IS NULL", "where.x = 1", "where NOT IN (1)", "1 < where", `"where" > 5`, "where"} {
		_, err := ParseQuery(text)
		assert.NoError(t, err, text)
	}
}

func FuzzQueriesNeverPanic(f *testing.F) {
	for _, seed := range []string{
		"i = 1 AND NOT (s LIKE 'a%_' ESCAPE '\\' OR d IS NOT NAN)", "day BETWEEN DATE '2024-01-01' AND '2024-12-31' OR u IN ('x', NULL)",
		"\"st\".`in.ner`.y <> X'00ff' -- x", "isnan(f) or 1e999 < dec", "CASE ( ' \" `",
	} {
		f.Add(seed)
	}
	schema := everyType()
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuery(text)
		if err == nil {
			_, err = q.bind(schema)
		}
		var place *QueryError
		if err != nil && len(text) < maxQueryBytes && (!errors.As(err, &place) || place.Error() == "") {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaultsThatMetadataHoldsAsTextAreFilledIn(t *testing.T) {
	for _, c := range []struct{ typ, text, want string }{
		{`"date"`, "1960-05-06", `"1960-05-06"`},
		{`"time"`, "23:59:59.000001", `"23:59:59.000001"`},
		{`"timestamp"`, "1960-05-06T07:08:09.000001", `"1960-05-06T07:08:09.000001"`},
		{`"timestamptz"`, "2020-01-02T03:04:05.000006+00:00", `"2020-01-02T03:04:05.000006+00:00"`},
		{`"timestamp_ns"`, "1960-05-06T07:08:09.000000001", `"1960-05-06T07:08:09.000000001"`},
		{`"timestamptz_ns"`, "2020-01-02T03:04:05.000000006+00:00", `"2020-01-02T03:04:05.000000006+00:00"`},
		{`"string"`, "1960-05-06", `"1960-05-06"`},
		{`"decimal(9, 2)"`, "-12.34", `"-12.34"`},
	} {
		t.Run(c.typ, func(t *testing.T) {
			eachForeignFile(t, func(t *testing.T, file foreignFile, _ *Plan) {
				if file.Name != "none_v1" {
					return
				}
				var fields []map[string]any
				require.NoError(t, json.Unmarshal(file.Fields, &fields))
				var err error
				later := map[string]any{"id": 90, "name": "later", "required": false, "type": json.RawMessage(c.typ), "initial-default": c.text, "write-default": c.text}
				file.Fields, err = json.Marshal(append(fields, later))
				require.NoError(t, err)
				file.Format = 3
				rows, err := readRows(t, file.plan(t), ReadOptions{})
				require.NoError(t, err)
				require.Len(t, rows, int(file.Rows))
				for _, row := range rows {
					var got map[string]json.RawMessage
					require.NoError(t, json.Unmarshal([]byte(row), &got))
					require.JSONEq(t, c.want, string(got["later"]))
				}
			})
		})
	}
}

// nestedText are the fields of a table whose structs, wherever they are, were given a field b with a default.
const nestedText = `[
  {"id": 1, "name": "s", "required": false, "type": {"type": "struct", "fields": [
    {"id": 11, "name": "a", "required": false, "type": "long"}, %[1]s
    {"id": 13, "name": "d", "required": false, "type": {"type": "struct", "fields": [
      {"id": 131, "name": "a", "required": false, "type": "long"}%[3]s]}}]}},
  {"id": 2, "name": "l", "required": false, "type": {"type": "list", "element-id": 20, "element-required": false, "element": {"type": "struct", "fields": [
    {"id": 21, "name": "a", "required": false, "type": "long"}%[2]s]}}},
  {"id": 3, "name": "m", "required": false, "type": {"type": "map", "key-id": 30, "key": "string", "value-id": 31, "value-required": false, "value": {"type": "struct", "fields": [
    {"id": 32, "name": "a", "required": false, "type": "long"}%[4]s]}}}
  %[5]s]`

func nestedFields(t *testing.T, added bool) []iceberg.NestedField {
	t.Helper()
	var parts [5]any
	for i := range parts {
		parts[i] = ""
	}
	if added {
		b := `{"id": %d, "name": "b", "required": true, "type": "%s", "initial-default": %s, "write-default": %s}`
		parts[0] = fmt.Sprintf(b, 12, "string", `"first"`, `"later"`) + ","
		parts[1] = "," + fmt.Sprintf(b, 22, "int", "7", "8")
		parts[2] = "," + fmt.Sprintf(b, 132, "date", `"2020-02-29"`, `"2021-01-01"`)
		parts[3] = "," + fmt.Sprintf(b, 33, "boolean", "true", "false")
		// Nothing but write-default: NULL. A struct that came later is NULL, whatever the defaults of its fields.
		parts[4] = `, {"id": 4, "name": "w", "required": false, "type": "long", "write-default": 5},
		  {"id": 5, "name": "n", "required": false, "type": {"type": "struct", "fields": [
		    {"id": 51, "name": "b", "required": true, "type": "int", "initial-default": 6, "write-default": 6}]}}`
	}
	var fields []iceberg.NestedField
	require.NoError(t, json.Unmarshal(fmt.Appendf(nil, nestedText, parts[:]...), &fields))
	return fields
}

func TestFieldsInsideOfColumnsHaveTheirInitialDefaults(t *testing.T) {
	f := newFixture(t, "")
	f.upgrade()
	rows := []string{
		`{"s": {"a": 1, "d": {"a": 2}}, "l": [{"a": 3}, null, {"a": 4}], "m": [{"key": "x", "value": {"a": 5}}]}`,
		`{"s": null, "l": null, "m": null}`,
		`{"s": {"a": null, "d": null}, "l": [], "m": [{"key": "y", "value": null}]}`,
	}
	size := f.writeParquet("a.parquet", arrowSchema(t, iceberg.NewSchema(1, nestedFields(t, false)...)), rows)
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("a.parquet"), iceberg.ParquetFile, nil, nil, nil, int64(len(rows)), size)
	require.NoError(t, err)
	state := f.commit("append", []change{added(b.Build())})
	schema := iceberg.NewSchema(1, nestedFields(t, true)...)
	want := []string{
		`{"s":{"a":1,"b":"first","d":{"a":2,"b":"2020-02-29"}},"l":[{"a":3,"b":7},null,{"a":4,"b":7}],"m":{"x":{"a":5,"b":true}},"w":null,"n":null}`,
		`{"s":null,"l":null,"m":null,"w":null,"n":null}`,
		`{"s":{"a":null,"b":"first","d":null},"l":[],"m":{"y":null},"w":null,"n":null}`,
	}
	plan := f.plan(Step{Way: WayTableScan, After: state, Schema: schema})
	encoder, err := NewEncoder(schema)
	require.NoError(t, err)
	for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
		got := []string{}
		for batch, err := range plan.Read(t.Context(), ReadOptions{Format: format}) {
			require.NoError(t, err)
			if format != FormatArrow {
				got = append(got, lines(t, format, batch)...)
				continue
			}
			r, err := ipc.NewReader(bytes.NewReader(batch.Messages[0]))
			require.NoError(t, err)
			for r.Next() {
				text, ends, err := encoder.Append(nil, nil, r.RecordBatch(), 0, int(r.RecordBatch().NumRows()))
				require.NoError(t, err)
				for _, row := range slice(text, ends) {
					got = append(got, string(row))
				}
			}
			r.Release()
		}
		assert.Equal(t, want, got, format)
	}
}

func TestDefaultsThatCannotBeFilledInAreRefused(t *testing.T) {
	for _, c := range []struct{ typ, initial, want string }{
		{`"long"`, `9007199254740993`, "an initial default beyond 2^53"},
		{`"long"`, `-9007199254740993`, "an initial default beyond 2^53"},
		{`"long"`, `9007199254740991`, ""},
		{`{"type": "struct", "fields": [{"id": 51, "name": "b", "required": false, "type": "int"}]}`, `{}`, "an initial default of a struct, list or map other than NULL"},
		{`{"type": "list", "element-id": 51, "element": "int", "element-required": false}`, `[1]`, "an initial default of a struct, list or map other than NULL"},
	} {
		t.Run(c.typ+c.initial, func(t *testing.T) {
			f := newFixture(t, "")
			f.upgrade()
			state := f.commit("append", []change{added(f.lineageFile("a.parquet", `{"id": 1}`).Build())})
			text := `[{"id": 1, "name": "id", "required": false, "type": "long"}, {"id": 50, "name": "x", "required": false, "type": %s, "initial-default": %s}]`
			var fields []iceberg.NestedField
			require.NoError(t, json.Unmarshal(fmt.Appendf(nil, text, c.typ, c.initial), &fields))
			plan := f.plan(Step{Way: WayTableScan, After: state, Schema: iceberg.NewSchema(1, fields...)})
			rows, err := readRows(t, plan, ReadOptions{})
			if c.want == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{`{"id":1,"x":` + c.initial + `}`}, rows)
				return
			}
			var unsupported *UnsupportedError
			require.ErrorAs(t, err, &unsupported)
			assert.Equal(t, UnsupportedError{What: c.want, Path: f.path("a.parquet")}, *unsupported)
			assert.Empty(t, rows)
		})
	}
}

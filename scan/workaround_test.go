// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIdentityPartitionColumnsThatTheFileLacksComeFromThePartition(t *testing.T) {
	f := newFixture(t, "")
	schema := arrowSchema(t, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String}))
	group := []change{}
	for i, partition := range []map[int]any{{1000: "x", 1001: int64(7)}, {1000: nil, 1001: int64(8)}} {
		name := fmt.Sprintf("%d.parquet", i)
		size := f.writeParquet(name, schema, []string{`{"name": "a"}`, `{"name": "b"}`})
		b, err := iceberg.NewDataFileBuilder(f.spec(2), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, partition, nil, nil, 2, size)
		require.NoError(t, err)
		group = append(group, added(b.Build()))
	}
	// A file that has the column keeps its own values.
	group = append(group, added(f.dataFile("2.parquet", 2, map[int]any{1000: "wrong", 1001: int64(9)}, numbered(3, 4)...)))
	state := f.commit("append", group)
	var got []string
	for batch, err := range f.plan(Step{Way: WaySnapshot, After: state}).Read(t.Context(), ReadOptions{}) {
		require.NoError(t, err)
		got = append(got, lines(t, FormatJSON, batch)...)
	}
	assert.Equal(t, []string{
		`{"id":7,"name":"a","cat":"x"}`, `{"id":7,"name":"b","cat":"x"}`,
		`{"id":8,"name":"a","cat":null}`, `{"id":8,"name":"b","cat":null}`,
		`{"id":3,"name":"name 3","cat":"a"}`,
	}, got)
}

func TestIdentityPartitionValuesOfEveryTypeAreFilledIn(t *testing.T) {
	decimal, err := iceberg.NewLiteral("-1.50").To(iceberg.DecimalTypeOf(9, 2))
	require.NoError(t, err)
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, test := range []struct {
		typ   string
		value any
		want  string
	}{
		{"boolean", true, "true"},
		{"int", int32(-7), "-7"},
		{"long", int64(1) << 60, "1152921504606846976"},
		{"long", int32(7), "7"}, // written before the column was promoted
		{"float", float32(1.1), "1.1"},
		{"double", 1.1, "1.1"},
		{"double", float32(1.5), "1.5"},
		{"decimal(9, 2)", decimal.Any(), `"-1.50"`},
		{"date", iceberg.Date(19723), `"2024-01-01"`},
		{"time", iceberg.Time(3_600_000_001), `"01:00:00.000001"`},
		{"timestamp", iceberg.Timestamp(1_704_067_200_000_001), `"2024-01-01T00:00:00.000001"`},
		{"timestamptz", iceberg.Timestamp(1_704_067_200_000_001), `"2024-01-01T00:00:00.000001+00:00"`},
		{"string", "x", `"x"`},
		{"string", nil, "null"},
		{"uuid", id, `"00112233-4455-6677-8899-aabbccddeeff"`},
		{"binary", []byte{1, 255}, `"01ff"`},
		{"fixed[2]", []byte{1, 255}, `"01ff"`},
	} {
		t.Run(fmt.Sprintf("%s %v", test.typ, test.value), func(t *testing.T) {
			f := newFixture(t, "")
			text := strings.Replace(fmt.Sprintf(tableText, f.dir, "{}"), `{"id": 3, "name": "cat", "required": false, "type": "string"}]}]`,
				fmt.Sprintf(`{"id": 3, "name": "cat", "required": false, "type": %q}]}]`, test.typ), 1)
			meta, err := table.ParseMetadataString(text)
			require.NoError(t, err)
			f.meta = meta
			schema := arrowSchema(t, iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}))
			size := f.writeParquet("a.parquet", schema, []string{`{"id": 1}`})
			b, err := iceberg.NewDataFileBuilder(f.spec(1), iceberg.EntryContentData, f.path("a.parquet"), iceberg.ParquetFile, nil, nil, nil, 1, size)
			require.NoError(t, err)
			plan := f.plan(Step{Way: WaySnapshot, After: f.commit("append", []change{added(b.Build())}), Columns: []string{"id", "cat"}})
			// The partition as a manifest gives it, whichever way a writer spelled it there.
			plan.Tasks[0].File.Data = partitioned{plan.Tasks[0].File.Data, cat(test.value)}
			for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
				require.NoError(t, err)
				assert.Equal(t, `{"id":1,"cat":`+test.want+`}`, string(batch.Messages[0]))
			}
		})
	}
}

// partitioned is a data file with another partition.
type partitioned struct {
	iceberg.DataFile
	partition map[int]any
}

func (p partitioned) Partition() map[int]any { return p.partition }

func TestAColumnThatNoFileHasIsNull(t *testing.T) {
	f := newFixture(t, "")
	old := arrowSchema(t, f.meta.Schemas()[0])
	size := f.writeParquet("old.parquet", old, []string{`{"id": 1, "cat": "a"}`, `{"id": 2, "cat": "b"}`})
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("old.parquet"), iceberg.ParquetFile, nil, nil, nil, 2, size)
	require.NoError(t, err)
	state := f.commit("append", []change{added(b.Build())})
	for want, columns := range map[string][]string{
		`{"name":null}{"name":null}`:                                   {"name"},
		`{"id":1,"name":null,"cat":"a"}{"id":2,"name":null,"cat":"b"}`: nil,
	} {
		plan := f.plan(Step{Way: WaySnapshot, After: state, Columns: columns})
		for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
			require.NoError(t, err)
			assert.Equal(t, want, string(bytes.Join(batch.Messages, nil)))
		}
	}
}

func TestAFileWhoseOwnColumnsHaveLeftTheSchemaKeepsItsRows(t *testing.T) {
	f := newFixture(t, "")
	old := iceberg.NewSchema(0, iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String})
	size := f.writeParquet("old.parquet", arrowSchema(t, old), []string{`{"name": "a"}`, `{"name": "b"}`})
	b, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path("old.parquet"), iceberg.ParquetFile, nil, nil, nil, 2, size)
	require.NoError(t, err)
	state := f.commit("append", []change{added(b.Build())})
	plan := f.plan(Step{Way: WaySnapshot, After: state, Schema: f.meta.Schemas()[0]}) // has no name
	for batch, err := range plan.Read(t.Context(), ReadOptions{}) {
		require.NoError(t, err)
		assert.Equal(t, `{"id":null,"cat":null}{"id":null,"cat":null}`, string(bytes.Join(batch.Messages, nil)))
	}
}

// schemasText is the metadata of a table whose columns were renamed, widened, dropped and added.
const schemasText = `{
  "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "%s",
  "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 12, "current-schema-id": 1, "last-partition-id": 999,
  "schemas": [
    {"type": "struct", "schema-id": 0, "fields": [
      {"id": 1, "name": "id", "required": false, "type": "int"}, {"id": 2, "name": "a", "required": false, "type": "string"},
      {"id": 3, "name": "n", "required": true, "type": "int"},
      {"id": 4, "name": "st", "required": false, "type": {"type": "struct", "fields": [
        {"id": 5, "name": "x", "required": false, "type": "int"}, {"id": 6, "name": "y", "required": false, "type": "string"}]}},
      {"id": 7, "name": "went", "required": false, "type": {"type": "struct", "fields": [
        {"id": 8, "name": "z", "required": true, "type": "float"}, {"id": 9, "name": "w", "required": false, "type": "int"}]}},
      {"id": 12, "name": "f", "required": false, "type": "float"}]},
    {"type": "struct", "schema-id": 1, "fields": [
      {"id": 1, "name": "id", "required": false, "type": "long"}, {"id": 2, "name": "b", "required": false, "type": "string"},
      {"id": 10, "name": "n", "required": false, "type": "string"},
      {"id": 4, "name": "st", "required": false, "type": {"type": "struct", "fields": [
        {"id": 5, "name": "x", "required": false, "type": "long"}, {"id": 11, "name": "y", "required": false, "type": "string"}]}},
      {"id": 12, "name": "f", "required": false, "type": "double"}]}],
  "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
  "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}}`

// oldFile is a data file of the first of those schemas.
func (f *fixture) oldFile() iceberg.DataFile {
	f.Helper()
	f.writeParquet("old.parquet", arrowSchema(f.TB, f.meta.Schemas()[0]), []string{
		`{"id": 1, "a": "p", "n": 10, "st": {"x": 7, "y": "k"}, "went": {"z": 0.5, "w": 1}, "f": -0.0}`,
		`{"id": 2, "a": "q", "n": 20, "st": {"x": null, "y": null}, "went": {"z": 1.5, "w": 3}, "f": 1.5}`,
		`{"id": null, "a": null, "n": 30, "st": null, "went": null, "f": null}`,
	})
	return f.entryFile("old.parquet", iceberg.EntryContentData, 0, none, 3)
}

func TestAFieldThatTheStructsOfAFileLackIsNull(t *testing.T) {
	for name, c := range map[string]struct {
		columns []string
		other   bool // none of the file's fields is left in the schema
		want    []string
	}{
		"of several, alone":    {[]string{"st.y"}, false, []string{`{"st":{"y":null}}`, `{"st":{"y":null}}`, `{"st":null}`}},
		"of several, in order": {[]string{"st.y", "id"}, false, []string{`{"id":1,"st":{"y":null}}`, `{"id":2,"st":{"y":null}}`, `{"id":null,"st":null}`}},
		"all, and the lineage": {[]string{"st", "_row_id"}, true, []string{`{"st":{"x":null,"y":null},"_row_id":null}`, `{"st":{"x":null,"y":null},"_row_id":null}`, `{"st":null,"_row_id":null}`}},
		"all, among all columns": {nil, true, []string{
			`{"id":1,"b":"p","n":null,"st":{"x":null,"y":null},"f":-0}`,
			`{"id":2,"b":"q","n":null,"st":{"x":null,"y":null},"f":1.5}`,
			`{"id":null,"b":null,"n":null,"st":null,"f":null}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			text := fmt.Sprintf(schemasText, f.dir)
			if c.other {
				text = strings.Replace(text, `"id": 5, "name": "x", "required": false, "type": "long"`, `"id": 13, "name": "x", "required": false, "type": "long"`, 1)
				text = strings.Replace(text, `"last-column-id": 12`, `"last-column-id": 13`, 1)
			}
			var err error
			f.meta, err = table.ParseMetadataString(text)
			require.NoError(t, err)
			state := f.commit("append", []change{added(f.oldFile())})
			rows, err := readRows(t, f.plan(Step{Way: WaySnapshot, After: state, Columns: c.columns}), ReadOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.want, rows)
		})
	}
}

func TestFormatsInSmallLettersAreRead(t *testing.T) {
	f := newFixture(t, "")
	data := capitals{DataFile: f.dataFile("a.parquet", 0, nil, `{"id": 1, "name": "x"}`), format: "parquet"}
	assert.Equal(t, iceberg.ParquetFile, upperCased(data).FileFormat())
	assert.NoError(t, unsupported("data file", upperCased(data)))
	assert.ErrorContains(t, unsupported("data file", upperCased(capitals{DataFile: data, format: "orc"})), "ORC data file")
	vector := capitals{DataFile: f.entryFile("v.puffin", iceberg.EntryContentPosDeletes, 0, nil, 1), format: "puffin"}
	assert.Equal(t, iceberg.PuffinFile, upperCased(vector).FileFormat())
	written := f.dataFile("b.parquet", 0, nil, `{"id": 2}`)
	assert.Equal(t, written, upperCased(written), "what is in capitals stays itself")
}

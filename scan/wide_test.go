// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withSchema is a fixture whose table has another schema.
func withSchema(t *testing.T, schema *iceberg.Schema) *fixture {
	t.Helper()
	f := newFixture(t, "")
	meta, err := table.NewMetadata(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, f.dir, iceberg.Properties{table.PropertyFormatVersion: "2"})
	require.NoError(t, err)
	f.meta = meta
	return f
}

// whole plans a scan of all files.
func (f *fixture) whole(files ...change) *Plan {
	f.Helper()
	state := f.commit("append", files)
	state.SchemaID = f.meta.CurrentSchema().ID
	return f.plan(Step{Way: WayTableScan, After: state})
}

// bodies are a plan's messages in one format, and its batches.
func bodies(t *testing.T, plan *Plan, opts ReadOptions) (rows []string, batches []Batch) {
	t.Helper()
	for batch, err := range plan.Read(t.Context(), opts) {
		require.NoError(t, err)
		batches = append(batches, batch)
		for _, m := range batch.Messages {
			if opts.Format == FormatNDJSON {
				rows = append(rows, strings.Split(strings.TrimSuffix(string(m), "\n"), "\n")...)
				continue
			}
			rows = append(rows, string(m))
		}
	}
	return rows, batches
}

// wideSchema has 300 columns, every other one nested, and rowOf the text of a row as it is written and as it is delivered.
func wideSchema() (schema *iceberg.Schema, rowOf func(i int) (written, delivered string)) {
	const columns = 300
	p := iceberg.PrimitiveTypes
	id := 0
	field := func(name string, t iceberg.Type) iceberg.NestedField {
		id++
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	var fields []iceberg.NestedField
	var texts []func(i int) (written, delivered string)
	same := func(format string) func(i int) (string, string) {
		return func(i int) (string, string) { text := fmt.Sprintf(format, i); return text, text }
	}
	for c := range columns {
		name := fmt.Sprintf("column_%d", c)
		switch c % 6 {
		case 0:
			fields, texts = append(fields, field(name, p.Int64)), append(texts, same("%d"))
		case 1:
			inner := []iceberg.NestedField{field("a", p.Int64), field("b", p.String)}
			fields, texts = append(fields, field(name, &iceberg.StructType{FieldList: inner})), append(texts, same(`{"a":%[1]d,"b":"é %[1]d"}`))
		case 2:
			fields, texts = append(fields, field(name, p.String)), append(texts, same(`"text \"%d\""`))
		case 3:
			id++
			list := &iceberg.ListType{ElementID: id, Element: p.Int64}
			fields, texts = append(fields, field(name, list)), append(texts, same(`[%[1]d,null,%[1]d]`))
		case 4:
			fields, texts = append(fields, field(name, p.Float64)), append(texts, same("%d.5"))
		default:
			id += 2
			m := &iceberg.MapType{KeyID: id - 1, KeyType: p.String, ValueID: id, ValueType: p.Int64}
			fields, texts = append(fields, field(name, m)), append(texts, func(i int) (string, string) {
				return fmt.Sprintf(`[{"key":"k","value":%d}]`, i), fmt.Sprintf(`{"k":%d}`, i)
			})
		}
	}
	return iceberg.NewSchema(0, fields...), func(i int) (string, string) {
		var written, delivered []string
		for c, f := range fields {
			w, d := "null", "null"
			if (i+c)%7 > 0 {
				w, d = texts[c](i * c)
			}
			written, delivered = append(written, fmt.Sprintf("%q:%s", f.Name, w)), append(delivered, fmt.Sprintf("%q:%s", f.Name, d))
		}
		return "{" + strings.Join(written, ",") + "}", "{" + strings.Join(delivered, ",") + "}"
	}
}

func TestRowsOfThreeHundredColumns(t *testing.T) {
	schema, rowOf := wideSchema()
	f := withSchema(t, schema)
	const files, rows = 3, 120
	var group []change
	var want []string
	for n := range files {
		var lines []string
		for i := range rows {
			written, delivered := rowOf(n*rows + i)
			lines, want = append(lines, written), append(want, delivered)
		}
		group = append(group, added(f.dataFile(fmt.Sprintf("%d.parquet", n), 0, nil, lines...)))
	}
	plan := f.whole(group...)
	for _, format := range []Format{FormatJSON, FormatNDJSON} {
		got, batches := bodies(t, plan, ReadOptions{Format: format, BatchRows: 50})
		assert.Equal(t, want, got, format)
		assert.Greater(t, len(batches), files, "rows of one file in several batches")
	}
	// An Arrow stream of it reads back, to the same rows.
	var rowsOfStreams []string
	_, batches := bodies(t, plan, ReadOptions{Format: FormatArrow, BatchRows: 50})
	encoder, err := NewEncoder(plan.Schema)
	require.NoError(t, err)
	for _, b := range batches {
		require.Len(t, b.Messages, 1)
		r, err := ipc.NewReader(bytes.NewReader(b.Messages[0]))
		require.NoError(t, err)
		for r.Next() {
			buf, ends, err := encoder.Append(nil, nil, r.RecordBatch(), 0, int(r.RecordBatch().NumRows()))
			require.NoError(t, err)
			rowsOfStreams = append(rowsOfStreams, splitRows(buf, ends)...)
		}
		require.NoError(t, r.Err())
		r.Release()
	}
	assert.Equal(t, want, rowsOfStreams)
}

// texts writes a file with a column of strings.
func (f *fixture) texts(name string, codec compress.Compression, groupRows int64, values []string) change {
	f.Helper()
	schema := arrowSchema(f.TB, f.meta.CurrentSchema())
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, v := range values {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(v)
	}
	record := b.NewRecordBatch()
	defer record.Release()
	out, err := os.Create(f.path(name))
	require.NoError(f, err)
	w, err := pqarrow.NewFileWriter(schema, out, parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithMaxRowGroupLength(groupRows)), pqarrow.DefaultWriterProps())
	require.NoError(f, err)
	require.NoError(f, w.Write(record))
	require.NoError(f, w.Close())
	info, err := os.Stat(f.path(name))
	require.NoError(f, err)
	file, err := iceberg.NewDataFileBuilder(f.spec(0), iceberg.EntryContentData, f.path(name), iceberg.ParquetFile, nil, nil, nil, int64(len(values)), info.Size())
	require.NoError(f, err)
	return added(file.Build())
}

func textSchema() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64}, iceberg.NestedField{ID: 2, Name: "text", Type: p.String})
}

func TestABatchOfHugeStringsKeepsItsBound(t *testing.T) {
	f := withSchema(t, textSchema())
	sizes := []int{3 << 20, 3 << 20, 3 << 20, 10, 10, 20 << 20, 10, 5 << 20, 5 << 20, 1 << 20, 1 << 20, 9 << 20, 0}
	var values, want []string
	for i, size := range sizes {
		values = append(values, strings.Repeat(string(rune('a'+i)), size))
		want = append(want, fmt.Sprintf(`{"id":%d,"text":"%s"}`, i, values[i]))
	}
	plan := f.whole(f.texts("a.parquet", compress.Codecs.Zstd, 100, values), f.texts("b.parquet", compress.Codecs.Zstd, 2, values))
	for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
		for _, most := range []int64{1 << 20, 8 << 20} {
			t.Run(fmt.Sprintf("%s %d MiB", format, most>>20), func(t *testing.T) {
				rows, batches := bodies(t, plan, ReadOptions{Format: format, BatchBytes: most})
				total := 0
				for _, b := range batches {
					total += b.Rows
					if b.Rows > 1 {
						assert.LessOrEqual(t, b.Bytes, most, "a batch of %d rows", b.Rows)
					}
				}
				assert.Equal(t, 2*len(values), total)
				if format == FormatArrow {
					return
				}
				require.Len(t, rows, 2*len(values))
				for i, row := range rows {
					if row != want[i%len(want)] {
						t.Errorf("row %d of %d bytes is not what was written", i, len(row)) // too long to print
					}
				}
			})
		}
	}
}

// liveHeap is how much of the heap is reachable.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What reading holds, whatever the table's size, is a quarter of its memory, and for each file that is read at once what a
// worker has in its hands: about 8 MiB. Reachable bytes are counted, after a collection for each batch, so that it does not
// matter when the collector runs.
func TestWhatIsHeldStaysWithinAQuarterOfTheMemory(t *testing.T) {
	const rows, size, limit, workers, perWorker = 8 << 10, 1 << 10, 32 << 20, 4, 8 << 20
	files := 12
	if testing.Short() {
		files = 5 // more than are read at once
	}
	f := withSchema(t, textSchema())
	var group []change
	rng := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 2*size)
	for n := range files {
		values := make([]string, rows)
		for i := range values {
			for k := range letters {
				letters[k] = 'a' + byte(rng.IntN(16))
			}
			values[i] = string(letters[:size/2+rng.IntN(size)])
		}
		group = append(group, f.texts(fmt.Sprintf("%d.parquet", n), compress.Codecs.Zstd, 2<<10, values))
	}
	plan := f.whole(group...)
	for _, format := range []Format{FormatJSON, FormatNDJSON, FormatArrow} {
		t.Run(string(format), func(t *testing.T) {
			before := liveHeap()
			var most, delivered int64
			for batch, err := range plan.Read(t.Context(), ReadOptions{Format: format, Memory: limit, BatchBytes: 1 << 20, Parallelism: workers}) {
				require.NoError(t, err)
				delivered += batch.Bytes
				most = max(most, liveHeap()-before)
			}
			t.Logf("%d MiB were delivered, %d KiB held at most", delivered>>20, most>>10)
			assert.Greater(t, delivered, int64(files)*rows*size*9/10)
			assert.LessOrEqual(t, most, int64(limit/4+workers*perWorker))
		})
	}
}

// Decoders say of the values of maps that they may be NULL though the table does not: the stream says what the table says.
func TestAnArrowStreamHasTheTypesOfTheTable(t *testing.T) {
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "m", Type: &iceberg.MapType{KeyID: 2, KeyType: p.String, ValueID: 3, ValueType: p.Int64, ValueRequired: true}},
		iceberg.NestedField{ID: 4, Name: "l", Required: true, Type: &iceberg.ListType{ElementID: 5, ElementRequired: true, Element: &iceberg.StructType{
			FieldList: []iceberg.NestedField{{ID: 6, Name: "x", Type: p.Int64, Required: true}},
		}}})
	f := withSchema(t, schema)
	plan := f.whole(added(f.dataFile("a.parquet", 0, nil, `{"m":[{"key":"a","value":1}],"l":[{"x":1},{"x":2}]}`, `{"m":null,"l":[]}`)))
	_, batches := bodies(t, plan, ReadOptions{Format: FormatArrow})
	require.Len(t, batches, 1)
	r, err := ipc.NewReader(bytes.NewReader(batches[0].Messages[0]))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	assert.True(t, r.Schema().Equal(arrowSchemaOf(t, plan)), r.Schema())
	text, err := r.RecordBatch().MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `[{"m":[{"key":"a","value":1}],"l":[{"x":1},{"x":2}]},{"m":null,"l":[]}]`, string(text))
}

func arrowSchemaOf(t *testing.T, plan *Plan) *arrow.Schema {
	t.Helper()
	schema, err := table.SchemaToArrowSchema(plan.Schema, nil, false, false)
	require.NoError(t, err)
	return schema
}

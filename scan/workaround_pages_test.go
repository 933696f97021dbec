// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// structOf is a Thrift struct of the fields, by their ids in rising order.
func structOf(fields ...thriftField) *thriftValue {
	return &thriftValue{kind: thriftStruct, fields: fields}
}

func ofInt(id int16, n int64) thriftField { return thriftField{id, thriftNumber(n)} }

func ofLong(id int16, n int64) thriftField {
	return thriftField{id, &thriftValue{kind: thriftInt64, number: n}}
}

func ofList(id int16, of ...*thriftValue) thriftField {
	v := &thriftValue{kind: thriftList, of: thriftStruct}
	for _, e := range of {
		v.list = append(v.list, *e)
	}
	return thriftField{id, v}
}

func inner(id int16, fields ...thriftField) thriftField { return thriftField{id, structOf(fields...)} }

// dataPageOf is a page of the first version, of so many values in PLAIN, as its header says and as it has bytes.
func dataPageOf(values int64, body []byte, size int64) []byte {
	return append(structOf(ofInt(1, dataPage), ofInt(2, size), ofInt(3, size),
		inner(5, ofInt(1, values), ofInt(2, encodingPlain), ofInt(3, encodingRLE), ofInt(4, encodingRLE))).appendTo(nil), body...)
}

func TestPagesThatWouldMakeTheDecoderPanicAreRefused(t *testing.T) {
	integers := chunk{values: 3, rows: 3, leafLevels: leafLevels{physical: 1}}
	body := make([]byte, 12)
	require.NoError(t, integers.check(dataPageOf(3, body, 12), &shapes{}))
	require.NoError(t, integers.check(append(dataPageOf(1, body[:4], 4), dataPageOf(2, body[:8], 8)...), &shapes{}))

	header := func(fields ...thriftField) []byte { return append(structOf(fields...).appendTo(nil), body...) }
	described := inner(5, ofInt(1, 3), ofInt(2, encodingPlain), ofInt(3, encodingRLE), ofInt(4, encodingRLE))
	snappy, booleans, misplaced := integers, integers, integers
	snappy.codec = int64(compress.Codecs.Snappy)
	booleans.physical = 0
	misplaced.start, misplaced.dictionary = 4, 99
	for _, c := range []struct {
		name  string
		chunk chunk
		data  []byte
		want  string
	}{
		{"no description of its kind", integers, header(ofInt(1, dataPage), ofInt(2, 12), ofInt(3, 12)), "does not describe"},
		{"the description of another kind", integers, header(ofInt(1, dictionaryPage), ofInt(2, 12), ofInt(3, 12), described), "does not describe"},
		{"an unknown kind", integers, header(ofInt(1, 7), ofInt(2, 12), ofInt(3, 12), described), "kind 7 is unknown"},
		{"fewer than no bytes", integers, header(ofInt(1, dataPage), ofInt(2, 12), ofInt(3, -1), described), "said to have -1 bytes"},
		{"more bytes than the chunk", integers, dataPageOf(3, body, 13), "said to have 13 bytes"},
		{"fewer than no values", integers, dataPageOf(-3, body, 12), "said to have -3 values"},
		{"fewer values than the footer says", integers, dataPageOf(2, body, 12), "have 2 values and its footer says 3"},
		{"more values than the footer says", integers, dataPageOf(4, body, 12), "have 4 values and its footer says 3"},
		{"an encoding of other types", integers, header(ofInt(1, dataPage), ofInt(2, 12), ofInt(3, 12),
			inner(5, ofInt(1, 3), ofInt(2, encodingDeltaBytes))), "encoding 7 is none for the physical type 1"},
		{"a dictionary of booleans", booleans, header(ofInt(1, dictionaryPage), ofInt(2, 12), ofInt(3, 12),
			inner(7, ofInt(1, 2), ofInt(2, encodingPlain))), "is none for the physical type 0"},
		{"a dictionary behind its indices", misplaced, header(ofInt(1, dataPage), ofInt(2, 12), ofInt(3, 12),
			inner(5, ofInt(1, 3), ofInt(2, encodingDictionary))), "dictionary is said to begin at byte 99"},
		{"a snappy block of another length", snappy, dataPageOf(3, append([]byte{0xff, 0xff, 0xff, 0xff, 0xf}, body[5:]...), 12), "and has 4294967295"},
		{"levels longer than a page of the second version", integers, header(ofInt(1, dataPageV2), ofInt(2, 12), ofInt(3, 12),
			inner(8, ofInt(1, 3), ofInt(3, 3), ofInt(4, encodingPlain), ofInt(5, 13), ofInt(6, 0))), errLevels.Error()},
		{"no header", integers, []byte{0x15}, errPageHeader.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.ErrorContains(t, c.chunk.check(c.data, &shapes{}), c.want)
		})
	}
}

func TestLevelsThatContradictTheFooterOrAnotherColumnAreRefused(t *testing.T) {
	// A list of structs of two columns: the first row has two elements, the second one.
	of := func(maxDef int) chunk {
		return chunk{values: 3, rows: 2, leafLevels: leafLevels{physical: 1, maxDef: maxDef, maxRep: 1, shared: []sharedNode{{1, 1, 1}}}}
	}
	levels := func(rep, def byte) []byte { // bit-packed runs of eight
		return append([]byte{2, 0, 0, 0, 3, rep}, 2, 0, 0, 0, 3, def)
	}
	check := func(c chunk, s *shapes, rep, def byte) error {
		body := append(levels(rep, def), make([]byte, 12)...)
		return c.check(dataPageOf(3, body, int64(len(body))), s)
	}
	s := &shapes{}
	require.NoError(t, check(of(1), s, 0b010, 0b111))
	require.NoError(t, check(of(1), s, 0b010, 0b111), "another column beside it")
	assert.ErrorContains(t, check(of(1), &shapes{}, 0b110, 0b111), "has 1 rows and its row group 2")
	assert.ErrorContains(t, check(of(1), s, 0b100, 0b111), "other lists than the one beside it")
	assert.ErrorContains(t, check(of(1), s, 0b010, 0b101), "other lists than the one beside it")
	assert.ErrorContains(t, check(of(2), &shapes{}, 0b010, 0b1111_1111), "it has the levels")

	c := of(1)
	body := []byte{99, 0, 0, 0}
	require.ErrorIs(t, c.check(dataPageOf(3, body, 4), &shapes{}), errLevels)
	require.ErrorIs(t, c.check(dataPageOf(3, []byte{0, 0, 0, 0, 0, 0, 0, 0}, 8), &shapes{}), errShortPage)
	c.codec = int64(compress.Codecs.Zstd)
	require.Error(t, c.check(dataPageOf(3, body, 4), &shapes{}), "what is no zstd")
}

func TestFootersThatWouldMakeTheDecoderPanicAreRefused(t *testing.T) {
	name := func(s string) thriftField {
		return thriftField{elementName, &thriftValue{kind: thriftBytes, bytes: []byte(s)}}
	}
	column := func(fields ...thriftField) *thriftValue {
		return structOf(append([]thriftField{ofInt(elementType, physicalInt64), ofInt(elementRepetition, 1), name("a")}, fields...)...)
	}
	schema := func(children int64, columns ...*thriftValue) thriftField {
		return ofList(2, append([]*thriftValue{structOf(name("root"), ofInt(elementChildren, children))}, columns...)...)
	}
	groups := func(values, length, start, rows int64) thriftField {
		meta := inner(3, ofInt(1, physicalInt64), ofInt(4, 0), ofLong(5, values), ofLong(7, length), ofLong(9, start))
		return ofList(4, structOf(ofList(1, structOf(meta)), ofLong(3, rows)))
	}
	footer := func(fields ...thriftField) []byte {
		return structOf(append([]thriftField{ofInt(1, 1)}, fields...)...).appendTo(nil)
	}
	chunks, err := chunksOf(footer(schema(1, column(ofInt(elementFieldID, 4))), ofLong(3, 5), groups(5, 60, 4, 5)), 100, []int{4})
	require.NoError(t, err)
	require.Equal(t, map[int64]chunk{4: {start: 4, length: 60, values: 5, rows: 5, leafLevels: leafLevels{physical: physicalInt64, maxDef: 1}}}, chunks)

	endless := footer(schema(1, column()))
	endless = append(endless[:len(endless)-1], 0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xf, 0) // row groups: 4294967295 structs
	fixed := structOf(ofInt(elementType, physicalFixed), ofInt(elementLength, 1<<30), ofInt(elementRepetition, 1), name("a"))
	for _, c := range []struct {
		name   string
		footer []byte
		want   string
	}{
		{"a column chunk longer than the file", footer(schema(1, column()), groups(5, 97, 4, 5)), "said to have 97 bytes"},
		{"a column chunk of fewer than no bytes", footer(schema(1, column()), groups(5, -1, 4, 5)), "said to have -1 bytes"},
		{"a column chunk before the file", footer(schema(1, column()), groups(5, 60, -4, 5)), "at byte -4"},
		{"a column of fewer values than rows", footer(schema(1, column()), groups(5, 60, 4, 6)), "5 values and its row group 6 rows"},
		{"more children than elements", footer(schema(3, column()), groups(5, 60, 4, 5)), "3 inside of it"},
		{"children that are missing", footer(schema(2, column()), groups(5, 60, 4, 5)), "no tree"},
		{"fewer than no children", footer(schema(1, column(ofInt(elementChildren, -2)))), "-2 inside of it"},
		{"an unknown physical type", footer(schema(1, structOf(ofInt(elementType, 12), ofInt(elementRepetition, 1), name("a")))), "physical type 12"},
		{"values as large as memory", footer(schema(1, fixed)), "1073741824 bytes each"},
		{"no logical type in one", footer(schema(1, column(inner(elementLogical)))), "its schema is broken"},
		{"two columns of an id", footer(schema(2, column(ofInt(elementFieldID, 4)), column(ofInt(elementFieldID, 4)))), "field id 4"},
		{"more row groups than bytes", endless, errThrift.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := chunksOf(c.footer, 100, []int{4})
			assert.ErrorContains(t, err, c.want)
		})
	}
	unasked := footer(schema(2, column(ofInt(elementFieldID, 4)), column(ofInt(elementFieldID, 4))))
	_, err = chunksOf(unasked, 100, []int{5})
	require.NoError(t, err, "columns that are not read may share an id")
}

func chunksOf(data []byte, limit int64, wanted []int) (map[int64]chunk, error) {
	f := &guardedFile{footer: limit, wanted: wanted}
	err := f.lookAtFooter(data)
	return f.chunks, err
}

// Files of many writers are read in the format that goes through the decoder's goroutines, where a panic would end this
// test's process.
func TestDamagedFilesOfOtherWritersAreNamedOrReadInFull(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	eachForeignFile(t, func(t *testing.T, c foreignFile, plan *Plan) {
		if c.Refused != "" || c.Rows == 0 {
			return
		}
		path := plan.Tasks[0].File.path
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		for range 40 {
			damaged := append([]byte{}, raw...)
			for range 1 + rng.IntN(3) {
				damaged[rng.IntN(len(damaged))] ^= 1 << rng.IntN(8)
			}
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			var rows int64
			var failed error
			for batch, err := range plan.Read(t.Context(), ReadOptions{Format: FormatArrow}) {
				rows += int64(batch.Rows)
				failed = err
			}
			var corrupt *CorruptFileError
			var unsupported *UnsupportedError
			if failed == nil {
				require.Equal(t, c.Rows, rows)
			} else {
				require.True(t, errors.As(failed, &corrupt) || errors.As(failed, &unsupported), "%T: %v", failed, failed)
				require.ErrorContains(t, failed, path)
			}
		}
	})
}

// The value is beyond what arrow-go allows a page to have by default, 64 MiB as stored.
func TestAValueLargerThanPagesMostlyAreIsRead(t *testing.T) {
	f := newFixture(t, "")
	row := `{"id": 1, "name": "` + strings.Repeat("x", 65<<20) + `", "cat": "a"}`
	schema := arrowSchema(t, f.meta.CurrentSchema())
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+row+"]"))
	require.NoError(t, err)
	defer rec.Release()
	file, err := os.Create(f.path("a.parquet"))
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, file, parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithStats(false)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close()) // of the file too
	data := f.entryFile("a.parquet", iceberg.EntryContentData, 0, none, 1)
	plan := f.plan(Step{Way: WayTableScan, After: f.commit("append", []change{added(data)})})
	rows, err := readRows(t, plan, ReadOptions{})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	want := `{"id":1,"name":"` + strings.Repeat("x", 65<<20) + `","cat":"a"}`
	assert.Equal(t, sha256.Sum256([]byte(want)), sha256.Sum256([]byte(rows[0])), "a difference would be long to print")
}

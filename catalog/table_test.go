// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// metadataJSON is a metadata file of format version 2 with these snapshots (JSON objects).
func metadataJSON(current int64, snapshots ...string) string {
	return fmt.Sprintf(`{"format-version":2,"table-uuid":"6f1b8a6e-0000-4000-8000-000000000001","location":"mem://t","last-sequence-number":99999,
"last-updated-ms":1700000000000,"last-column-id":1,"current-schema-id":1,"schemas":[
{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"int"}]},
{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}],
"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,
"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"current-snapshot-id":%d,"snapshots":[%s],"refs":{}}`, current, strings.Join(snapshots, ","))
}

func mem(t *testing.T, files map[string]string) *iceio.MemFS {
	t.Helper()
	fsys := iceio.NewMemFS()
	for name, content := range files {
		require.NoError(t, fsys.WriteFile(name, []byte(content)))
	}
	return fsys
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func zstandard(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer func() { _ = w.Close() }()
	return string(w.EncodeAll([]byte(text), nil))
}

const oneSnapshot = `{"snapshot-id":11,"sequence-number":3,"timestamp-ms":1700000000000,"manifest-list":"mem://t/metadata/snap-11-1-x.avro",
"summary":{"operation":"append","total-records":"42"},"schema-id":0}`

func TestLoadTableReadsWhateverTheNameSays(t *testing.T) {
	text := metadataJSON(11, oneSnapshot)
	for name, content := range map[string]string{
		"mem://t/1.metadata.json":      text,
		"mem://t/1.gz.metadata.json":   gzipped(t, text),
		"mem://t/1.metadata.json.gz":   gzipped(t, text),
		"mem://t/2.metadata.json":      gzipped(t, text),
		"mem://t/1.zstd.metadata.json": zstandard(t, text),
		"mem://t/1.metadata.json.zstd": zstandard(t, text),
		"mem://t/3.metadata.json":      zstandard(t, text),
		"mem://t/4.gz.metadata.json":   text,
	} {
		table, err := LoadTable(t.Context(), mem(t, map[string]string{name: content}), name, "c-1")
		require.NoError(t, err, name)
		parent := (*int64)(nil)
		assert.Equal(t, State{
			TableUUID: "6f1b8a6e-0000-4000-8000-000000000001", ContentID: "c-1", SnapshotID: 11, ParentID: parent, Sequence: 3,
			TimestampMs: 1700000000000, ManifestList: "mem://t/metadata/snap-11-1-x.avro", SchemaID: 0, Operation: "append", Records: 42,
			MetadataLocation: name, FormatVersion: 2,
		}, table.Current())
	}
}

func TestStateOfNoSnapshotIsAState(t *testing.T) {
	for _, text := range []string{
		metadataJSON(-1), metadataJSON(-1, oneSnapshot), strings.Replace(metadataJSON(-1), `"current-snapshot-id":-1,`, "", 1),
	} {
		table, err := LoadTable(t.Context(), mem(t, map[string]string{"mem://m": text}), "mem://m", "c")
		require.NoError(t, err)
		s := table.Current()
		assert.True(t, s.Empty())
		assert.Equal(t, 1, s.SchemaID)
		assert.Zero(t, s.Records)
	}
}

func TestStateFillsWhatASnapshotLeavesOut(t *testing.T) {
	bare := `{"snapshot-id":11,"sequence-number":0,"timestamp-ms":1,"parent-snapshot-id":-1,"manifests":["mem://t/m1.avro","mem://t/m2.avro"],"summary":{"operation":"append"}}`
	text := strings.NewReplacer(`"format-version":2`, `"format-version":1`, `"last-sequence-number":99999,`, "").Replace(metadataJSON(11, bare))
	text = strings.Replace(text, `"current-schema-id":1`, `"schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]},"partition-spec":[],"current-schema-id":1`, 1)
	table, err := LoadTable(t.Context(), mem(t, map[string]string{"mem://m": text}), "mem://m", "c")
	require.NoError(t, err)
	s, ok := table.State(11)
	require.True(t, ok)
	assert.Equal(t, []string{"mem://t/m1.avro", "mem://t/m2.avro"}, s.Manifests)
	assert.Nil(t, s.ParentID, "-1 is no parent")
	assert.Equal(t, 1, s.SchemaID, "the current schema")
	assert.Equal(t, int64(-1), s.Records, "unknown")
	_, ok = table.State(12)
	assert.False(t, ok)
	assert.NotNil(t, table.Schema(0))
	assert.Nil(t, table.Schema(7))
}

func TestLoadTableNamesWhatIsBroken(t *testing.T) {
	text := metadataJSON(11, oneSnapshot)
	for name, content := range map[string]string{
		"cut":          text[:len(text)/2],
		"cut gzip":     gzipped(t, text)[:200],
		"cut zstd":     zstandard(t, text)[:200],
		"empty":        "",
		"another file": "PAR1 and more",
		"no metadata":  `{"hello":"world"}`,
		"html":         "<html>502</html>",
	} {
		_, err := LoadTable(t.Context(), mem(t, map[string]string{"mem://m.json": content}), "mem://m.json", "")
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		assert.Equal(t, "metadata file", corrupt.Kind, name)
		assert.Equal(t, "mem://m.json", corrupt.Location, name)
		assert.ErrorContains(t, err, "mem://m.json")
	}
	_, err := LoadTable(t.Context(), mem(t, nil), "mem://m.json", "")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLoadTableRefusesWhatItCanNotRead(t *testing.T) {
	text := metadataJSON(11, oneSnapshot)
	for want, content := range map[string]string{
		"format version 4": strings.Replace(text, `"format-version":2`, `"format-version":4`, 1),
		"encryption":       strings.Replace(text, `"properties":{}`, `"properties":{"encryption.key-id":"k"}`, 1),
	} {
		_, err := LoadTable(t.Context(), mem(t, map[string]string{"mem://m.json": content}), "mem://m.json", "")
		var unsupported *UnsupportedTableError
		require.ErrorAs(t, err, &unsupported, want)
		assert.Equal(t, want, unsupported.What)
		assert.ErrorContains(t, err, "mem://m.json")
	}
}

func TestLoadTableBoundsWhatItReads(t *testing.T) {
	bomb := gzipped(t, strings.Repeat(" ", 1<<20))
	fsys := mem(t, map[string]string{"mem://bomb": bomb, "mem://large": strings.Repeat(" ", 1<<20)})
	for _, location := range []string{"mem://bomb", "mem://large"} {
		_, err := loadTable(t.Context(), fsys, location, "", 1<<16)
		require.ErrorIs(t, err, errTooLarge, location)
	}
}

func TestFilesOfTheCorpusAreRead(t *testing.T) {
	all, err := corpus.LoadAll()
	require.NoError(t, err)
	files, err := corpus.NewFiles()
	require.NoError(t, err)
	headers := 0
	for _, e := range all {
		for i, c := range e.Commits {
			if c.Op != string(Put) || len(e.Commits) > 100 && i%40 != 0 {
				continue // the files of the one long table differ only in length
			}
			table, err := LoadTable(t.Context(), files, c.MetadataLocation, c.ContentID)
			require.NoError(t, err, e.Name)
			s, ok := table.State(c.SnapshotID)
			require.True(t, ok, e.Name)
			assert.Equal(t, c.TableUUID, s.TableUUID, e.Name)
			assert.Equal(t, c.FormatVersion, s.FormatVersion, e.Name)
			if c.SnapshotID == NoSnapshot || c.ManifestListIsMissing {
				continue
			}
			want, _ := e.Snapshot(c.SnapshotID)
			if s.Records >= 0 {
				assert.Equal(t, want.Summary["total-records"], strconv.FormatInt(s.Records, 10), e.Name)
			}
			header, err := ReadListHeader(t.Context(), files, s.ManifestList)
			require.NoError(t, err, e.Name)
			assert.Equal(t, ListHeader{
				SnapshotID: c.SnapshotID, ParentID: want.ParentInHeader, NamesParent: true, Sequence: want.Sequence, FormatVersion: header.FormatVersion,
			}, header, e.Name)
			headers++
		}
	}
	assert.Greater(t, headers, 250)
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// avroFile starts an Avro file with this metadata, in blocks with and without their size.
func avroFile(keys ...string) []byte {
	var b, block bytes.Buffer
	b.WriteString("Obj\x01")
	text := func(w *bytes.Buffer, s string) {
		w.Write(binary.AppendVarint(nil, int64(len(s))))
		w.WriteString(s)
	}
	for i := 0; i < len(keys); i += 2 {
		block.Reset()
		text(&block, keys[i])
		text(&block, keys[i+1])
		if i%4 == 0 {
			b.Write(binary.AppendVarint(nil, 1))
		} else {
			b.Write(binary.AppendVarint(nil, -1))
			b.Write(binary.AppendVarint(nil, int64(block.Len())))
		}
		b.Write(block.Bytes())
	}
	b.WriteByte(0)
	return b.Bytes()
}

// listBytes is a manifest list as iceberg-go writes it.
func listBytes(t testing.TB, version int, id int64, parent *int64, sequence int64, manifests ...iceberg.ManifestFile) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, iceberg.WriteManifestList(version, &b, id, parent, &sequence, 0, manifests))
	return b.String()
}

func TestListHeaderOfEachVersion(t *testing.T) {
	fsys := mem(t, map[string]string{
		"mem://root": listBytes(t, 2, 7, nil, 1), "mem://child": listBytes(t, 2, 8, new(int64(7)), 2), "mem://v1": listBytes(t, 1, 9, new(int64(8)), 0),
		"mem://silent": string(avroFile("avro.schema", "{}", "snapshot-id", "10")),
		"mem://minus":  string(avroFile("snapshot-id", "10", "parent-snapshot-id", "-1")),
		"mem://bare":   string(avroFile("avro.schema", "{}", "avro.codec", "null")), // DuckDB
	})
	for location, want := range map[string]ListHeader{
		"mem://root":   {SnapshotID: 7, NamesParent: true, Sequence: 1, FormatVersion: 2},
		"mem://child":  {SnapshotID: 8, ParentID: new(int64(7)), NamesParent: true, Sequence: 2, FormatVersion: 2},
		"mem://v1":     {SnapshotID: 9, ParentID: new(int64(8)), NamesParent: true, FormatVersion: 1},
		"mem://silent": {SnapshotID: 10},
		"mem://minus":  {SnapshotID: 10, NamesParent: true},
		"mem://bare":   {},
	} {
		got, err := ReadListHeader(t.Context(), fsys, location)
		require.NoError(t, err, location)
		assert.Equal(t, want, got, location)
	}
}

func TestListHeaderMayBeLarge(t *testing.T) {
	fsys := mem(t, map[string]string{"mem://l": string(avroFile("avro.schema", strings.Repeat("x", 3*firstHeaderRead), "snapshot-id", "5"))})
	got, err := ReadListHeader(t.Context(), fsys, "mem://l")
	require.NoError(t, err)
	assert.Equal(t, int64(5), got.SnapshotID)
}

func TestListHeaderThatIsNone(t *testing.T) {
	whole := listBytes(t, 2, 7, nil, 1)
	for name, content := range map[string]string{
		"empty":       "",
		"cut":         whole[:100],
		"cut magic":   "Ob",
		"parquet":     "PAR1" + whole,
		"no number":   string(avroFile("snapshot-id", "seven")),
		"bad parent":  string(avroFile("snapshot-id", "7", "parent-snapshot-id", "none")),
		"bad seq":     string(avroFile("snapshot-id", "7", "sequence-number", "x")),
		"bad version": string(avroFile("snapshot-id", "7", "format-version", "x")),
		"long number": "Obj\x01" + strings.Repeat("\xff", 20),
		"huge length": "Obj\x01\x02" + string(binary.AppendVarint(nil, 1<<40)),
		"minus":       "Obj\x01\x02" + string(binary.AppendVarint(nil, -5)),
	} {
		_, err := ReadListHeader(t.Context(), mem(t, map[string]string{"mem://l": content}), "mem://l")
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		assert.Equal(t, "manifest list", corrupt.Kind)
		require.ErrorContains(t, err, "mem://l")
	}
	_, err := ReadListHeader(t.Context(), mem(t, nil), "mem://l")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestListHeaderTakesAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		if rapid.Bool().Draw(t, "Avro") {
			content = append([]byte("Obj\x01"), content...)
		}
		_, err := avroHeader(content)
		if err != nil && !errors.Is(err, errShort) && strings.TrimSpace(err.Error()) == "" {
			t.Fatal("an error without a text")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// manifest is an entry of a manifest list: a manifest that a snapshot added. Snapshot ids and sequence numbers are equal
// here.
func manifest(path string, snapshot int64) iceberg.ManifestFile {
	return iceberg.NewManifestFile(2, path, 1, 0, snapshot).SequenceNum(snapshot, snapshot).Build()
}

const listFolder = "mem://t/metadata/"

// hiddenSnapshot is a table at snapshot 3, whose header names 2, which no metadata file has; 1 is known from the log. In
// the folder lie the given files.
func hiddenSnapshot(t *testing.T, lists map[string]string) (*History, State, *iceio.MemFS) {
	t.Helper()
	m1, m2, m3 := manifest("mem://t/m1.avro", 1), manifest("mem://t/m2.avro", 2), manifest("mem://t/m3.avro", 3)
	at3 := strings.ReplaceAll(restSnapshot(3), "rest://", "mem://")
	files := map[string]string{
		"mem://1": metadataJSON(1, strings.ReplaceAll(restSnapshot(1), "rest://", "mem://")), "mem://3": metadataJSON(3, at3),
		listFolder + "snap-3-1-x.avro": listBytes(t, 2, 3, new(int64(2)), 3, m1, m2, m3),
		listFolder + "snap-1-1-x.avro": listBytes(t, 2, 1, nil, 1, m1),
		listFolder + "m0.avro":         "no list",
	}
	for name, content := range lists {
		files[listFolder+name] = content
	}
	log := newFakeLog()
	log.add("c1", nil, put("t", "id", 1, "mem://1"))
	log.add("c3", []string{"c1"}, put("t", "id", 3, "mem://3"))
	fsys := mem(t, files)
	h, s := historyAt(t, log, fsys, "t", "c3")
	return h, s, fsys
}

func TestAHiddenSnapshotIsTheOneListThatItsChildCanBeBuiltOn(t *testing.T) {
	m0, m1, m2 := manifest("mem://t/m0.avro", 9), manifest("mem://t/m1.avro", 1), manifest("mem://t/m2.avro", 2)
	m2b := manifest("mem://t/m2b.avro", 2)
	one, zero := new(int64(1)), new(int64(9))
	right := listBytes(t, 2, 2, one, 2, m1, m2)
	for name, test := range map[string]struct {
		lists map[string]string
		want  string // the list, or what Why says
	}{
		"one list":                       {map[string]string{"snap-2-1-a.avro": right}, "snap-2-1-a.avro"},
		"a name that lies":               {map[string]string{"snap-2-1-a.avro": right, "snap-2-2-b.avro": listBytes(t, 2, 7, one, 2, m1, m2)}, "snap-2-1-a.avro"},
		"another id with the same start": {map[string]string{"snap-2-1-a.avro": right, "snap-22-1-b.avro": listBytes(t, 2, 2, one, 2, m1, m2)}, "snap-2-1-a.avro"},
		"an attempt on an older parent":  {map[string]string{"snap-2-1-a.avro": listBytes(t, 2, 2, zero, 1, m0, m2), "snap-2-2-b.avro": right}, "snap-2-2-b.avro"},
		"an attempt after the child":     {map[string]string{"snap-2-1-a.avro": right, "snap-2-2-b.avro": listBytes(t, 2, 2, one, 3, m1, m2)}, "snap-2-1-a.avro"},
		"an attempt with manifests that nobody took": {
			map[string]string{"snap-2-1-a.avro": listBytes(t, 2, 2, one, 2, m1, m2b, m2), "snap-2-2-b.avro": listBytes(t, 2, 2, one, 1, m1, m2)}, "2 manifest lists",
		},
		"two attempts that say the same":  {map[string]string{"snap-2-1-a.avro": right, "snap-2-2-b.avro": right}, "snap-2-1-a.avro"},
		"two that differ in their parent": {map[string]string{"snap-2-1-a.avro": right, "snap-2-2-b.avro": listBytes(t, 2, 2, zero, 2, m1, m2)}, "2 manifest lists"},
		"half of a list beside it":        {map[string]string{"snap-2-1-a.avro": right, "snap-2-2-b.avro": right[:50]}, "snap-2-1-a.avro"},
		"none":                            {nil, "no manifest list " + listFolder + "snap-2-*"},
		"only an attempt on an older parent": {
			map[string]string{"snap-2-1-a.avro": listBytes(t, 2, 2, zero, 1, m0, m2)}, "none of the 1 manifest lists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, _ := hiddenSnapshot(t, test.lists)
			link, err := h.Parent(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, Link{ParentID: 2, By: "header"}, link)
			found, err := h.Find(t.Context(), 2, s)
			require.NoError(t, err)
			if !strings.HasPrefix(test.want, "snap-") {
				assert.False(t, found.OK)
				assert.Contains(t, found.Why, test.want)
				return
			}
			require.True(t, found.OK, found.Why)
			assert.Equal(t, Found{OK: true, By: "listing", State: State{
				TableUUID: s.TableUUID, ContentID: "id", SnapshotID: 2, Sequence: 2, ManifestList: listFolder + test.want, SchemaID: s.SchemaID,
				Records: -1, MetadataLocation: "mem://3", FormatVersion: 2,
			}}, found)
			link, err = h.Parent(t.Context(), found.State)
			require.NoError(t, err)
			assert.Equal(t, Link{ParentID: 1, By: "header"}, link)
			found, err = h.Find(t.Context(), 1, found.State)
			require.NoError(t, err)
			assert.Equal(t, "log", found.By)
		})
	}
}

func TestTheChildMayHaveDroppedAManifestOfItsHiddenParent(t *testing.T) {
	m1, m2 := manifest("mem://t/m1.avro", 1), manifest("mem://t/m2.avro", 2)
	h, s, fsys := hiddenSnapshot(t, map[string]string{
		"snap-2-1-a.avro": listBytes(t, 2, 2, new(int64(1)), 2, m1, m2),
		"snap-3-1-x.avro": listBytes(t, 2, 3, new(int64(2)), 3, manifest("mem://t/merged.avro", 3)),
	})
	found, err := h.Find(t.Context(), 2, s)
	require.NoError(t, err)
	assert.True(t, found.OK, found.Why)

	require.NoError(t, fsys.WriteFile(listFolder+"snap-2-2-b.avro", []byte(listBytes(t, 2, 2, new(int64(9)), 2, m2))))
	h, s = historyAt(t, h.log.log.(*fakeLog), fsys, "t", "c3")
	found, err = h.Find(t.Context(), 2, s)
	require.NoError(t, err)
	assert.False(t, found.OK, "nothing tells the two apart")
}

// listing replaces how a file IO lists.
type listing struct {
	*iceio.MemFS
	err error
}

func (l listing) ListPrefix(string) ([]string, error) { return nil, l.err }

// plainIO can open files and nothing else.
type plainIO struct{ iceio.IO }

func TestListingThatIsRefusedFindsNothingAndListingThatFailsIsAnError(t *testing.T) {
	h, s, fsys := hiddenSnapshot(t, nil)
	find := func(fsys iceio.IO) (Found, error) {
		h.cfg.FS = fsys
		return h.Find(t.Context(), 2, s)
	}
	for _, refusing := range []iceio.IO{
		listing{fsys, &fs.PathError{Op: "list", Err: fs.ErrPermission}}, listing{fsys, errors.ErrUnsupported}, plainIO{fsys},
	} {
		found, err := find(refusing)
		require.NoError(t, err)
		assert.False(t, found.OK)
		assert.Contains(t, found.Why, "can't be listed")
	}
	_, err := find(listing{fsys, errors.New("connection reset")})
	require.ErrorContains(t, err, "connection reset", "it may work the next time")
}

func TestHiddenSnapshotsOfTheCorpusOnS3(t *testing.T) {
	server, err := corpus.StartCorpusS3()
	require.NoError(t, err)
	s := newStorage(t, StorageConfig{S3: S3Config{Endpoint: server.Endpoint, AccessKeyID: "k", SecretAccessKey: "s", MaxAttempts: 1}})
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, server.Close())
	})
	log, all := newCorpusLog(t)
	for _, e := range all {
		if e.Name != "rest_multi" && e.Name != "pyice" {
			continue
		}
		chain := func() walked {
			head := e.Head()
			table, err := LoadTable(t.Context(), s.FS(), head.MetadataLocation, head.ContentID)
			require.NoError(t, err)
			h := NewHistory(HistoryConfig{
				Log: log, FS: s.FS(), Key: e.Key(), Table: table,
				Head: Head{Reference: Reference{Type: Branch, Name: e.Ref, Hash: head.Hash}, Content: Content{ID: head.ContentID, SnapshotID: head.SnapshotID}},
			})
			state, _ := table.State(head.SnapshotID)
			return walk(t, h, state)
		}
		w := chain()
		assert.True(t, w.root, w.why)
		assert.Equal(t, 1, w.foundBy["listing"])

		server.Fail(func(r corpus.S3Request) *corpus.Fault {
			if strings.Contains(r.Query, "list-type=2") {
				return &corpus.Fault{Status: http.StatusForbidden}
			}
			return nil
		})
		w = chain()
		assert.False(t, w.root)
		assert.Contains(t, w.why, "can't be listed")
		assert.Len(t, w.chain, len(e.HeadChain)-1)
		server.Fail(nil)
	}
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// localStorage is a storage whose root holds t/f.avro, and whose neighbour holds a secret.
func localStorage(t *testing.T) (s *Storage, root, outside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root, outside = filepath.Join(base, "root"), filepath.Join(base, "outside")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "t"), 0o755))
	require.NoError(t, os.MkdirAll(outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "t", "f.avro"), []byte("inside"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f.avro"), []byte("secret"), 0o600))
	s = newStorage(t, StorageConfig{LocalRoot: root})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s, root, outside
}

func TestLocalFilesAreReadBelowTheRoot(t *testing.T) {
	s, root, _ := localStorage(t)
	for _, prefix := range []string{"", "file:", "file://", "file://localhost", "FILE:"} {
		location := prefix + root + "/t/f.avro"
		assert.Equal(t, "inside", string(readAll(t, s.FS(), location)), location)
		content, err := s.FS().(iceio.ReadFileIO).ReadFile(location)
		require.NoError(t, err, location)
		assert.Equal(t, "inside", string(content))
		info, err := s.FS().(iceio.StatIO).Stat(location)
		require.NoError(t, err, location)
		assert.Equal(t, int64(6), info.Size())
		listed, err := s.FS().(prefixLister).ListPrefix(location[:len(location)-4])
		require.NoError(t, err)
		assert.Equal(t, []string{location}, listed)
	}
	none, err := s.FS().(prefixLister).ListPrefix(root + "/none/snap-")
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestLocalFilesOutsideTheRootAreRefused(t *testing.T) {
	s, root, outside := localStorage(t)
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "f.avro"), filepath.Join(root, "file-link")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "none"), filepath.Join(root, "dangling")))
	for _, location := range []string{
		outside + "/f.avro", "file:" + outside + "/f.avro", "file://" + outside + "/none.avro", "/etc/passwd",
		root + "/../outside/f.avro", root + "/%2e%2e/outside/f.avro", root + "/link/f.avro", root + "/link/none", root + "/file-link",
		root + "-other/f.avro", "file://elsewhere" + root + "/t/f.avro", "file:relative/f.avro", "file:",
	} {
		_, err := s.FS().Open(location)
		require.ErrorIs(t, err, ErrLocationRefused, location)
		require.NotErrorIs(t, err, fs.ErrNotExist, location)
		_, err = s.FS().(iceio.StatIO).Stat(location)
		require.ErrorIs(t, err, ErrLocationRefused, location)
		_, err = s.FS().(prefixLister).ListPrefix(location + "/")
		require.Error(t, err, location)
		require.NotErrorIs(t, err, fs.ErrNotExist, location)
	}
	_, err := s.FS().Open(root + "/dangling")
	require.Error(t, err)
}

func TestLocalLinksWithinTheRootAreFollowed(t *testing.T) {
	s, root, _ := localStorage(t)
	require.NoError(t, os.Symlink(filepath.Join(root, "t"), filepath.Join(root, "alias")))
	assert.Equal(t, "inside", string(readAll(t, s.FS(), "file:"+root+"/alias/f.avro")))
	toRoot := filepath.Join(t.TempDir(), "to-root")
	require.NoError(t, os.Symlink(root, toRoot))
	assert.Equal(t, "inside", string(readAll(t, s.FS(), "file:"+toRoot+"/t/f.avro")))
	linked := newStorage(t, StorageConfig{LocalRoot: toRoot})
	assert.Equal(t, "inside", string(readAll(t, linked.FS(), "file:"+root+"/t/f.avro")))
	require.NoError(t, linked.Close())
}

func TestLocalNamesAreTakenAsTheyAreAndElseDecoded(t *testing.T) {
	s, root, _ := localStorage(t)
	for _, name := range []string{"100%.avro", "a b.avro", "a%20b.avro", "q?x#y.avro", `back\slash.avro`, "größe.avro"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
		assert.Equal(t, name, string(readAll(t, s.FS(), "file:"+root+"/"+name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "c d.avro"), []byte("decoded"), 0o600))
	assert.Equal(t, "decoded", string(readAll(t, s.FS(), "file://"+root+"/c%20d.avro")))
}

func TestARootMayBeEncodedInLocations(t *testing.T) {
	root, outside := filepath.Join(t.TempDir(), "my tables"), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "t"), 0o755))
	require.NoError(t, os.MkdirAll(root+" of old", 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "t", "f.avro"), []byte("inside"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root+" of old", "f.avro"), []byte("outside"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "to outside")))
	s := newStorage(t, StorageConfig{LocalRoot: root})
	encoded := "file://" + strings.ReplaceAll(root, " ", "%20")
	assert.Equal(t, "inside", string(readAll(t, s.FS(), encoded+"/t/f.avro")))
	for _, location := range []string{encoded + "%20of%20old/f.avro", encoded + "/to%20outside/f.avro", encoded + "/%2e%2e/my%20tables/t/f.avro"} {
		_, err := s.FS().Open(location)
		require.ErrorIs(t, err, ErrLocationRefused, location)
	}
	_, err := s.FS().Open(encoded + "/t/none.avro")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Close())
}

func TestLocalFilesNeedARoot(t *testing.T) {
	s := newStorage(t, StorageConfig{})
	_, err := s.FS().Open("file:///etc/passwd")
	require.ErrorIs(t, err, ErrLocationRefused)
	require.ErrorContains(t, err, "storage.local_root")

	missing := newStorage(t, StorageConfig{LocalRoot: filepath.Join(t.TempDir(), "none")})
	_, err = missing.FS().Open("file:///etc/passwd")
	require.ErrorContains(t, err, "storage.local_root")
	require.NotErrorIs(t, err, fs.ErrNotExist, "a wrong root must not make every file look expired")
}

func TestMissingLocalFilesAreMissing(t *testing.T) {
	s, root, _ := localStorage(t)
	for _, location := range []string{root + "/none.avro", "file:" + root + "/none/deep/x.avro"} {
		_, err := s.FS().Open(location)
		require.ErrorIs(t, err, fs.ErrNotExist, location)
		_, err = s.FS().(iceio.StatIO).Stat(location)
		require.ErrorIs(t, err, fs.ErrNotExist, location)
		_, err = ReadListHeader(t.Context(), s.FS(), location)
		require.ErrorIs(t, err, fs.ErrNotExist, location)
		require.ErrorContains(t, err, location)
	}
}

func TestOtherLocationsAreNotSupported(t *testing.T) {
	s := newStorage(t, StorageConfig{LocalRoot: t.TempDir()})
	for _, location := range []string{"ftp://b/k", "gs:///k", "abfss://", "hdfs://n/k", "relative/path", "", "s3:///key", "s3:bucket/key", "s3://"} {
		_, err := s.FS().Open(location)
		require.ErrorIs(t, err, ErrLocationUnsupported, location)
	}
	require.Error(t, s.FS().Remove("s3://bucket/key"))
}

// SPDX-License-Identifier: Apache-2.0

// Package corpus gives tests a set of Iceberg tables that Spark, PyIceberg and plain HTTP wrote into a real Nessie, and
// what a reader must find in them, worked out by those writers and never by the code under test.
//
// The archives lie in tests/testdata/corpus. They are unpacked once into the cache folder, under a name made of their
// contents, and shared by every test binary from there; nobody writes into that folder.
package corpus

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// Bucket is the S3 bucket that every location in the corpus names.
const Bucket = "bucket"

// Dir is where the corpus lies unpacked: s3/<key> for each object of Bucket, rocks for Nessie's database (copy it before
// a server opens it) and expected/<table>.json. The folder is shared: do not write into it.
func Dir() (string, error) { return dir() }

var dir = sync.OnceValues(func() (string, error) {
	sum := sha256.New()
	for _, name := range archives {
		if err := readArchive(name, func(r io.Reader) error { _, err := io.Copy(sum, r); return err }); err != nil {
			return "", err
		}
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, "corpus-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	return final, unpackAll(cache, final)
})

var archives = []string{"expected.tar.gz", "rocks.tar.gz", "s3.tar.gz"}

// CacheDir is the folder for what tests fetch or unpack: $RPK_NESSIE_CACHE, else rpk-nessie in the user's cache folder.
// It exists when CacheDir returns.
func CacheDir() (string, error) {
	cache := os.Getenv("RPK_NESSIE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache folder (RPK_NESSIE_CACHE names another): %w", err)
		}
		cache = filepath.Join(user, "rpk-nessie")
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	return cache, nil
}

// unpackAll unpacks beside the final place and renames, so that test binaries that run at once see all or nothing.
func unpackAll(cache, final string) error {
	tmp, err := os.MkdirTemp(cache, "corpus-unpacking-")
	if err != nil {
		return fmt.Errorf("unpacking the corpus: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	for _, name := range archives {
		if err := readArchive(name, func(r io.Reader) error { return Unpack(r, tmp) }); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp, final); err != nil {
		if _, statErr := os.Stat(final); statErr == nil {
			return nil // another test binary was faster
		}
		return fmt.Errorf("unpacking the corpus: %w", err)
	}
	return nil
}

// Unpack writes the files of a gzipped tar below folder.
func Unpack(r io.Reader, folder string) error {
	return eachFile(r, func(name string, body io.Reader) error {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, body)
		return errors.Join(err, f.Close())
	})
}

func eachFile(r io.Reader, visit func(name string, body io.Reader) error) error {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return zr.Close()
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if !fs.ValidPath(h.Name) {
			return fmt.Errorf("refusing the name %q", h.Name)
		}
		if err := visit(h.Name, tr); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func readArchive(name string, read func(io.Reader) error) (err error) {
	_, source, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(source), "..", "testdata", "corpus", name)
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the corpus: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := read(f); err != nil {
		return fmt.Errorf("reading the corpus %s: %w", path, err)
	}
	return nil
}

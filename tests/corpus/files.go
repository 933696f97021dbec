// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
)

// Files reads the corpus' objects from disk under their s3:// locations, without a server. It remembers what was opened
// and can hide files. It is safe for concurrent use.
type Files struct {
	root   string
	mu     sync.Mutex
	opened []string
	hidden map[string]bool
}

var (
	_ iceio.ReadFileIO = (*Files)(nil)
	_ iceio.StatIO     = (*Files)(nil)
	_ iceio.ListableIO = (*Files)(nil)
)

// NewFiles gives a fresh view of the corpus' objects.
func NewFiles() (*Files, error) {
	root, err := Dir()
	if err != nil {
		return nil, err
	}
	return &Files{root: filepath.Join(root, "s3"), hidden: map[string]bool{}}, nil
}

const bucketURL = "s3://" + Bucket + "/"

// Path is the file on disk behind a location, for tests that look at bytes.
func (f *Files) Path(location string) (string, error) {
	key, ok := strings.CutPrefix(strings.Replace(location, "s3a://", "s3://", 1), bucketURL)
	if !ok || (key != "" && !fs.ValidPath(strings.TrimSuffix(key, "/"))) {
		return "", &fs.PathError{Op: "open", Path: location, Err: fs.ErrInvalid}
	}
	return filepath.Join(f.root, filepath.FromSlash(key)), nil
}

// Hide makes locations look deleted.
func (f *Files) Hide(locations ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range locations {
		f.hidden[l] = true
	}
}

// Opened lists the locations that were opened or read since the last call, in order, failed attempts included.
func (f *Files) Opened() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	opened := f.opened
	f.opened = nil
	return opened
}

func (f *Files) visible(op, location string) (string, error) {
	path, err := f.Path(location)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if op != "stat" {
		f.opened = append(f.opened, location)
	}
	if f.hidden[location] {
		return "", &fs.PathError{Op: op, Path: location, Err: fs.ErrNotExist}
	}
	return path, nil
}

// Open opens an object.
func (f *Files) Open(location string) (iceio.File, error) {
	path, err := f.visible("open", location)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// ReadFile reads an object whole.
func (f *Files) ReadFile(location string) ([]byte, error) {
	path, err := f.visible("open", location)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Stat describes an object.
func (f *Files) Stat(location string) (fs.FileInfo, error) {
	path, err := f.visible("stat", location)
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// Remove always fails: the corpus is shared.
func (f *Files) Remove(location string) error {
	return &fs.PathError{Op: "remove", Path: location, Err: errors.ErrUnsupported}
}

// WalkDir visits every object whose location begins with root, in order, as an object store lists a prefix.
func (f *Files) WalkDir(root string, visit fs.WalkDirFunc) error {
	path, err := f.Path(root)
	if err != nil {
		return err
	}
	folder := path
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		folder = filepath.Dir(path)
	}
	var locations []string
	entries := map[string]fs.DirEntry{}
	err = filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key, err := filepath.Rel(f.root, p)
		if location := bucketURL + filepath.ToSlash(key); err == nil && strings.HasPrefix(location, root) && !f.isHidden(location) {
			locations = append(locations, location)
			entries[location] = d
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Sort(locations)
	for _, l := range locations {
		if err := visit(l, entries[l], nil); errors.Is(err, fs.SkipAll) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) isHidden(location string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hidden[location]
}

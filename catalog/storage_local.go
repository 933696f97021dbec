// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
)

// localFiles reads files of this machine, only below root. Symbolic links are resolved before that is decided, and the
// file is then opened through the root's handle, so that a link that changes in between leads nowhere else.
type localFiles struct {
	root string

	mu     sync.Mutex
	folder *os.Root
	real   string // root with its links resolved
}

// beneath opens the root when it is first needed.
func (l *localFiles) beneath() (*os.Root, string, error) {
	if l.root == "" {
		return nil, "", fmt.Errorf("%w: files of this machine are read only below storage.local_root, which is not set", ErrLocationRefused)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder != nil {
		return l.folder, l.real, nil
	}
	abs, err := filepath.Abs(l.root)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	var folder *os.Root
	if err == nil {
		folder, err = os.OpenRoot(abs)
	}
	if err != nil {
		// Not wrapped: a root that is not there must not look like a table file that is not there.
		return nil, "", fmt.Errorf("opening storage.local_root %s: %s", l.root, err.Error())
	}
	l.folder, l.real = folder, abs
	return folder, abs, nil
}

func (l *localFiles) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == nil {
		return nil
	}
	err := l.folder.Close()
	l.folder = nil
	return err
}

// localPath takes file:/x, file:///x, file://localhost/x or /x to a path.
func localPath(location string) (string, error) {
	path := location
	if !strings.HasPrefix(location, "/") {
		_, path, _ = strings.Cut(location, ":")
		if host, rest, ok := strings.Cut(strings.TrimPrefix(path, "//"), "/"); strings.HasPrefix(path, "//") {
			if !ok || (host != "" && !strings.EqualFold(host, "localhost")) {
				return "", fmt.Errorf("%w: it names another machine", ErrLocationRefused)
			}
			path = "/" + rest
		}
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: it is no absolute path", ErrLocationRefused)
	}
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return "", fmt.Errorf("%w: it holds \"..\"", ErrLocationRefused)
	}
	return path, nil
}

// resolve answers location's path relative to the root. Most writers put paths into locations as they are, some
// percent-encode them, the root's part too: what is not below the root, or not there, is looked for decoded.
func (l *localFiles) resolve(location string) (*os.Root, string, error) {
	folder, root, err := l.beneath()
	if err != nil {
		return nil, "", err
	}
	path, err := localPath(location)
	if err != nil {
		return nil, "", err
	}
	rel, err := below(root, path)
	if err == nil {
		if _, statErr := folder.Lstat(rel); !errors.Is(statErr, fs.ErrNotExist) {
			return folder, rel, nil
		}
	}
	decoded, decodeErr := url.PathUnescape(path)
	if decodeErr != nil || decoded == path {
		return folder, rel, err
	}
	if path, err = localPath("file://" + decoded); err != nil {
		return nil, "", err
	}
	if rel, err = below(root, path); err != nil {
		return nil, "", err
	}
	return folder, rel, nil
}

// below resolves the links of path, whose last elements need not exist, and answers it relative to root.
func below(root, path string) (string, error) {
	missing := ""
	resolved, err := filepath.EvalSymlinks(path)
	for dir := path; errors.Is(err, fs.ErrNotExist) && dir != "/"; {
		missing = filepath.Join(filepath.Base(dir), missing)
		dir = filepath.Dir(dir)
		resolved, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, filepath.Join(resolved, missing))
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%w: it lies outside of storage.local_root (%s)", ErrLocationRefused, root)
	}
	return rel, nil
}

// countedLocal is localFiles for a reader whose bytes are counted.
type countedLocal struct {
	*localFiles
	count func(int64)
}

func (l *countedLocal) open(_ context.Context, location string) (iceio.File, error) {
	folder, rel, err := l.resolve(location)
	if err != nil {
		return nil, err
	}
	f, err := folder.Open(rel)
	if err != nil {
		return nil, plain(err)
	}
	return &countedFile{File: f, count: l.count}, nil
}

func (l *countedLocal) prefix(ctx context.Context, location string, n int64) (_ []byte, err error) {
	f, err := l.open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, plain(err)
	}
	var from io.Reader = f
	expected := info.Size()
	if n >= 0 {
		from, expected = io.LimitReader(f, n), min(expected, n)
	}
	var buf bytes.Buffer
	buf.Grow(int(expected) + bytes.MinRead) // the end is found without growing it
	_, err = buf.ReadFrom(from)
	return buf.Bytes(), err
}

func (l *countedLocal) stat(_ context.Context, location string) (fs.FileInfo, error) {
	folder, rel, err := l.resolve(location)
	if err != nil {
		return nil, err
	}
	info, err := folder.Stat(rel)
	if err != nil {
		return nil, plain(err)
	}
	return info, nil
}

func (l *countedLocal) list(_ context.Context, prefix string) ([]string, error) {
	cut := strings.LastIndexByte(prefix, '/') + 1
	folder, rel, err := l.resolve(prefix[:cut])
	if err != nil {
		return nil, err
	}
	var locations []string
	err = fs.WalkDir(folder.FS(), filepath.ToSlash(rel), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // as with an object store: nothing starts with the prefix
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(rel, path)
		location := prefix[:cut] + filepath.ToSlash(name)
		switch {
		case entry.IsDir() && name != "." && !strings.HasPrefix(location, prefix) && !strings.HasPrefix(prefix, location):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasPrefix(location, prefix):
			locations = append(locations, location)
		}
		return nil
	})
	return locations, plain(err)
}

// plain takes the relative path out of an error of the root, for the location to stand there instead.
func plain(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return named.Err
	}
	return err
}

// countedFile counts the bytes that are read from a file.
type countedFile struct {
	*os.File
	count func(int64)
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.count(int64(n))
	return n, err
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.count(int64(n))
	return n, err
}

// WriteTo is not passed on: it would copy past the counter.
func (f *countedFile) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

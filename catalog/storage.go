// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"
)

// StorageConfig says how the files of tables are reached. What a table's own properties say about it is never used:
// whoever may write a table could otherwise send the credentials elsewhere.
type StorageConfig struct {
	S3    S3Config
	GCS   GCSConfig
	Azure AzureConfig
	// LocalRoot is the folder below which files of this machine may be read; "" refuses them all.
	LocalRoot string
	// Timeout bounds how long an object store may deliver nothing; 0 is 60 s.
	Timeout time.Duration
	// MaxAttempts is how often an object store is asked before a read counts as failed, and how often a read may be cut off
	// without a byte in between; 0 is the default of the store's client, and 5.
	MaxAttempts int
	// OnBytes is told the number of bytes of each read; nil: nobody is. It is called from many goroutines.
	OnBytes func(n int64)
	// OnRetry hears of what is asked again, with the location where it is known and the error before; nil is nobody. It is
	// called from many goroutines.
	OnRetry func(location string, err error)
}

// Storage reads files by their location: s3, s3a and s3n, gs and gcs (one client each for all buckets), abfs, abfss, wasb and wasbs (of
// one account), and file, or a bare absolute path.
// It is safe for concurrent use and read-only.
type Storage struct {
	s3    *s3Client
	gcs   *gcsStore
	azure *azureStore
	local *countedLocal

	objects struct{ s3, gcs, azure *objectFiles }
}

var (
	// ErrLocationRefused says that a location may not be read, by configuration or because it could lie anywhere.
	ErrLocationRefused = errors.New("location refused")
	// ErrLocationUnsupported says that nothing here reads such a location.
	ErrLocationUnsupported = errors.New("location not supported")
)

// NewStorage checks cfg and does no I/O: clients are made when the first location asks for them.
func NewStorage(cfg StorageConfig) (*Storage, error) {
	if err := cmp.Or(cfg.S3.check(), cfg.GCS.check(), cfg.Azure.check()); err != nil {
		return nil, err
	}
	if cfg.OnBytes == nil {
		cfg.OnBytes = func(int64) {}
	}
	if cfg.OnRetry == nil {
		cfg.OnRetry = func(string, error) {}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultReadTimeout
	}
	attempts := cmp.Or(cfg.MaxAttempts, defaultReadAttempts)
	if cfg.S3.MaxAttempts == 0 {
		cfg.S3.MaxAttempts = cfg.MaxAttempts
	}
	s := &Storage{
		s3:    &s3Client{cfg: cfg.S3, timeout: cfg.Timeout, retried: cfg.OnRetry},
		gcs:   &gcsStore{cfg: cfg.GCS, timeout: cfg.Timeout, attempts: attempts, retried: cfg.OnRetry},
		azure: &azureStore{cfg: cfg.Azure, timeout: cfg.Timeout, attempts: attempts, retried: cfg.OnRetry},
		local: &countedLocal{localFiles: &localFiles{root: cfg.LocalRoot}, count: cfg.OnBytes},
	}
	reads := reads{count: cfg.OnBytes, attempts: attempts, retried: cfg.OnRetry}
	s.objects.s3 = &objectFiles{s3Store{s.s3}, reads}
	s.objects.gcs = &objectFiles{s.gcs, reads}
	s.objects.azure = &objectFiles{s.azure, reads}
	return s, nil
}

// FS is a file IO for any location. Besides iceio.IO it implements ReadFileIO, StatIO and ListableIO; Remove is refused.
// A missing file satisfies errors.Is(err, fs.ErrNotExist). Reads that are cut off go on where they stopped, a few times.
func (s *Storage) FS() iceio.IO { return s.Within(context.Background()) }

// Within is FS with reads that end when ctx does.
func (s *Storage) Within(ctx context.Context) iceio.IO { return &storageFS{Storage: s, ctx: ctx} }

// Close gives idle connections and the local root back. Files that are still open stay usable.
func (s *Storage) Close() error {
	s.s3.close()
	s.gcs.close()
	s.azure.close()
	return s.local.close()
}

// Within answers fsys bound to ctx where it can be bound, as the one of Storage.FS can; others are returned as they are.
func Within(ctx context.Context, fsys iceio.IO) iceio.IO {
	if b, ok := fsys.(interface {
		Within(ctx context.Context) iceio.IO
	}); ok {
		return b.Within(ctx)
	}
	return fsys
}

// storageFS is the Storage as a file IO; its reads end with ctx, since the methods of file IOs take none.
type storageFS struct {
	*Storage
	ctx context.Context
}

var (
	_ iceio.ReadFileIO = (*storageFS)(nil)
	_ iceio.StatIO     = (*storageFS)(nil)
	_ iceio.ListableIO = (*storageFS)(nil)
	_ prefixIO         = (*storageFS)(nil)
	_ prefixLister     = (*storageFS)(nil)
)

// files is what one kind of store does with its part of a location.
type files interface {
	open(ctx context.Context, location string) (iceio.File, error)
	prefix(ctx context.Context, location string, n int64) ([]byte, error)
	stat(ctx context.Context, location string) (fs.FileInfo, error)
	// list answers the locations that start with prefix, in order, folders left out.
	list(ctx context.Context, prefix string) ([]string, error)
}

// store picks who reads location. Only scheme and bucket are looked at: the rest is an opaque key, which can hold '%',
// '?', '#', '\' and spaces that mean nothing but themselves.
func (f *storageFS) store(location string) (files, error) {
	scheme, rest, ok := strings.Cut(location, ":")
	switch {
	case strings.HasPrefix(location, "/"):
		return f.local, nil
	case !ok:
		return nil, fmt.Errorf("%w: %q has no scheme and is no absolute path", ErrLocationUnsupported, location)
	}
	switch strings.ToLower(scheme) {
	case "file":
		return f.local, nil
	}
	if bucket, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); !strings.HasPrefix(rest, "//") || bucket == "" {
		return nil, fmt.Errorf("%w: %q names no bucket", ErrLocationUnsupported, location)
	}
	switch strings.ToLower(scheme) {
	case "s3", "s3a", "s3n":
		return f.objects.s3, nil
	case "gs", "gcs":
		return f.objects.gcs, nil
	case "abfs", "abfss", "wasb", "wasbs":
		return f.objects.azure, nil
	}
	return nil, fmt.Errorf("%w: scheme %q of %s; s3, s3a, s3n, gs, abfs, abfss, wasb, wasbs and file can be read", ErrLocationUnsupported, scheme, location)
}

// Within binds the same storage to another context.
func (f *storageFS) Within(ctx context.Context) iceio.IO { return f.Storage.Within(ctx) }

func (f *storageFS) Open(location string) (iceio.File, error) {
	return at(f, "open", location, func(s files) (iceio.File, error) { return s.open(f.ctx, location) })
}

func (f *storageFS) ReadFile(location string) ([]byte, error) {
	return at(f, "read", location, func(s files) ([]byte, error) { return s.prefix(f.ctx, location, -1) })
}

// ReadPrefix reads the first n bytes of a file, fewer where it is shorter.
func (f *storageFS) ReadPrefix(location string, n int64) ([]byte, error) {
	return at(f, "read", location, func(s files) ([]byte, error) { return s.prefix(f.ctx, location, n) })
}

func (f *storageFS) Stat(location string) (fs.FileInfo, error) {
	return at(f, "stat", location, func(s files) (fs.FileInfo, error) { return s.stat(f.ctx, location) })
}

// ListPrefix answers the locations of all files that start with prefix, in order.
func (f *storageFS) ListPrefix(prefix string) ([]string, error) {
	return at(f, "list", prefix, func(s files) ([]string, error) { return s.list(f.ctx, prefix) })
}

// Remove is refused: nothing here writes to a table.
func (f *storageFS) Remove(location string) error {
	return &fs.PathError{Op: "remove", Path: location, Err: errors.ErrUnsupported}
}

// WalkDir visits root and every file below it, in order. Folders in between are not visited: object stores have none.
func (f *storageFS) WalkDir(root string, visit fs.WalkDirFunc) error {
	folder := strings.TrimRight(root, "/") + "/"
	locations, err := f.ListPrefix(folder)
	if err := visit(root, rootEntry{name: root}, err); err != nil {
		return skipped(err)
	}
	for _, location := range locations {
		if err := visit(location, fileEntry{fsys: f, location: location}, nil); err != nil {
			return skipped(err)
		}
	}
	return nil
}

// skipped ends a walk without an error where that was asked for. A file that skips its folder ends the walk: all files
// lie in the one folder that was visited.
func skipped(err error) error {
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// at runs one operation on the store of location and makes its error one that names the location.
func at[T any](f *storageFS, op, location string, run func(files) (T, error)) (T, error) {
	var none T
	if err := f.ctx.Err(); err != nil {
		return none, &fs.PathError{Op: op, Path: location, Err: err}
	}
	store, err := f.store(location)
	if err != nil {
		return none, &fs.PathError{Op: op, Path: location, Err: err}
	}
	result, err := run(store)
	var named *fs.PathError
	if err != nil && !errors.As(err, &named) {
		err = &fs.PathError{Op: op, Path: location, Err: err}
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

// rootEntry is the folder that a walk starts from.
type rootEntry struct{ name string }

func (e rootEntry) Name() string               { return e.name }
func (e rootEntry) IsDir() bool                { return true }
func (e rootEntry) Type() fs.FileMode          { return fs.ModeDir }
func (e rootEntry) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// fileEntry is a file that a walk met.
type fileEntry struct {
	fsys     *storageFS
	location string
}

func (e fileEntry) Name() string               { return baseName(e.location) }
func (e fileEntry) IsDir() bool                { return false }
func (e fileEntry) Type() fs.FileMode          { return 0 }
func (e fileEntry) Info() (fs.FileInfo, error) { return e.fsys.Stat(e.location) }

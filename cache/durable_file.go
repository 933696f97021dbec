// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	dfFieldDirectory = "directory"

	// Temporary files of all processes have these names, and no key has.
	temporaryPrefix = ".nessie_durable_file-"
	temporarySuffix = ".tmp"

	longestFileName = 200 // bytes; leaves room for what file systems of 255 add
)

func init() {
	service.MustRegisterCache("nessie_durable_file", durableFileSpec(),
		func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
			directory, err := conf.FieldString(dfFieldDirectory)
			if err != nil {
				return nil, err
			}
			return newDurableFile(directory)
		})
}

func durableFileSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Local").
		Summary("Stores each item as a file that survives a crash of the process and of the machine, for checkpoints.").
		Description(`An item is written to a temporary file, synced, renamed over the file of its key, and the directory is synced. So a reader, also in another process, finds the old value or the new one, and never a part of one; an item that was stored stays stored; and a full disk fails the write and leaves the old value.

The directory is created with its parents, readable by its owner only, when the cache is made. If it can't be written the cache fails there and not at the first item. Temporary files that a crash left behind are removed then.

A key is the name of a file in the directory. Keys that are no plain file name are refused: empty ones, those that hold a slash, a backslash or a control character, end with a dot or a space, start with ` + "`" + temporaryPrefix + "`" + `, or are longer than 200 bytes. On file systems that ignore case so do the keys.

Items never expire: a TTL is ignored. Adding an item needs a file system with hard links. Deleting an item that is absent is no error.`).
		Field(service.NewStringField(dfFieldDirectory).
			Description("The directory that holds the items. Nothing else should be in it. Several processes may use one directory.").
			Example("/var/lib/rpk-nessie/checkpoints").
			LintRule(`root = if this.trim() == "" { [ "directory must not be empty" ] }`))
}

// durableFile keeps items as files of one directory. It holds no state, so it
// can be used concurrently, by several processes too.
type durableFile struct {
	directory string
}

func newDurableFile(directory string) (*durableFile, error) {
	if strings.TrimSpace(directory) == "" {
		return nil, errors.New("directory must not be empty")
	}
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return nil, fmt.Errorf("finding directory %q: %w", directory, err)
	}
	d := &durableFile{directory: absolute}
	if err := makeDirectory(absolute); err != nil {
		return nil, fmt.Errorf("creating directory %q: %w", absolute, err)
	}
	if err := d.removeTemporary(); err != nil {
		return nil, fmt.Errorf("removing temporary files from directory %q: %w", absolute, err)
	}
	if err := d.probe(); err != nil {
		return nil, fmt.Errorf("directory %q can't be written: %w", absolute, err)
	}
	return d, nil
}

func (d *durableFile) Get(ctx context.Context, key string) ([]byte, error) {
	path, err := d.path(ctx, key)
	if err != nil {
		return nil, err
	}
	value, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// A directory that is gone (not mounted, say) is not an absent key.
		if _, err := os.Stat(d.directory); err != nil {
			return nil, fmt.Errorf("reading key %q: %w", key, err)
		}
		return nil, service.ErrKeyNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading key %q: %w", key, err)
	}
	return value, nil
}

func (d *durableFile) Set(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	path, err := d.path(ctx, key)
	if err != nil {
		return err
	}
	if err := d.store(path, value, os.Rename); err != nil {
		return fmt.Errorf("writing key %q: %w", key, err)
	}
	return nil
}

func (d *durableFile) Add(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	path, err := d.path(ctx, key)
	if err != nil {
		return err
	}
	// Unlike a rename, a link fails if the name is there, whoever made it.
	err = d.store(path, value, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return service.ErrKeyAlreadyExists
	}
	if err != nil {
		return fmt.Errorf("adding key %q: %w", key, err)
	}
	return nil
}

func (d *durableFile) Delete(ctx context.Context, key string) error {
	path, err := d.path(ctx, key)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("deleting key %q: %w", key, err)
	}
	if err := syncDirectory(d.directory); err != nil {
		return fmt.Errorf("deleting key %q: %w", key, err)
	}
	return nil
}

func (d *durableFile) Close(context.Context) error { return nil }

// path returns the file of a key, or an error that names a key that is no
// plain file name on every system.
func (d *durableFile) path(ctx context.Context, key string) (string, error) {
	refused := ""
	switch {
	case key == "":
		refused = "it is empty"
	case len(key) > longestFileName:
		refused = fmt.Sprintf("it is longer than %d bytes", longestFileName)
	case strings.ContainsAny(key, `/\`):
		refused = "it holds a path separator"
	case strings.ContainsFunc(key, unicode.IsControl):
		refused = "it holds a control character"
	case strings.HasSuffix(key, ".") || strings.HasSuffix(key, " "):
		refused = "it ends with a dot or a space"
	case strings.HasPrefix(strings.ToLower(key), temporaryPrefix):
		refused = "that is the name of a temporary file"
	case !filepath.IsLocal(key):
		refused = "this system does not take it as a file name"
	}
	if refused != "" {
		return "", fmt.Errorf("key %q is refused: %s", key, refused)
	}
	return filepath.Join(d.directory, key), ctx.Err()
}

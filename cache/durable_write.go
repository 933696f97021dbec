// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// attempts bounds how often a write is repeated whose temporary file another
// process removed, as it does when it starts.
const attempts = 10

// store makes value the content of path, durably and at once, by these steps:
//
//  1. a temporary file in the same directory gets the content, so that place
//     stays within one file system;
//  2. it is synced, so that the name never leads to a file without content;
//  3. place (os.Rename or os.Link) gives it the name, which is atomic;
//  4. the directory is synced, so that the name survives a crash too.
//
// After an error the old content is still there, or in step 4 either.
func (d *durableFile) store(path string, value []byte, place func(from, to string) error) error {
	var err error
	for range attempts {
		if err = d.storeOnce(path, value, place); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (d *durableFile) storeOnce(path string, value []byte, place func(from, to string) error) error {
	temporary, err := d.writeTemporary(value)
	if err != nil {
		return err
	}
	placed := place(temporary, path)
	// After a rename nothing is left to remove. What can't be removed for
	// another reason is removed at the next start.
	_ = os.Remove(temporary)
	if placed != nil {
		return placed
	}
	return syncDirectory(d.directory)
}

// writeTemporary returns the name of a new file that holds value and is synced.
func (d *durableFile) writeTemporary(value []byte) (name string, err error) {
	file, err := os.CreateTemp(d.directory, temporaryPrefix+"*"+temporarySuffix) // mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(value)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name()) // else at the next start
		return "", err
	}
	return file.Name(), nil
}

// probe does all that store does, except for placing the file.
func (d *durableFile) probe() error {
	temporary, err := d.writeTemporary([]byte("probe"))
	if err != nil {
		return err
	}
	// Another process may start at the same time and remove it.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDirectory(d.directory)
}

// removeTemporary removes what a crash left behind. If another process is just
// writing such a file, it notices and writes again.
func (d *durableFile) removeTemporary() error {
	entries, err := os.ReadDir(d.directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, temporaryPrefix) || !strings.HasSuffix(name, temporarySuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(d.directory, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeDirectory creates path and its parents, for the owner only, and syncs
// each directory that got a new entry: the path has to survive a crash as its
// content does.
func makeDirectory(path string) error {
	parent := filepath.Dir(path)
	if _, err := os.Stat(path); err == nil || parent == path {
		return os.MkdirAll(path, 0o700) // an error if it is a file
	}
	if err := makeDirectory(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(parent)
}

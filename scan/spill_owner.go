// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	spillPrefix = "rpk-nessie-changes-"

	// spillOwner is locked for as long as the process lives that made the folder, and holds the name of its machine: a lock
	// says nothing about the processes of another that shares the disk.
	spillOwner = "owner"
)

// own marks a new folder as one of a living process. The mark gets its name once it is locked, so that whoever finds one that
// is not locked knows that its process is gone. It is nil where the file system has no locks; such a folder stays when its
// process is killed.
func own(folder string) *os.File {
	mark, err := os.OpenFile(filepath.Join(folder, spillOwner+".new"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	host, err := os.Hostname()
	if err == nil {
		_, err = mark.WriteString(host)
	}
	if err != nil || !lock(mark) || os.Rename(mark.Name(), filepath.Join(folder, spillOwner)) != nil {
		_ = mark.Close()
		return nil
	}
	return mark
}

// sweep removes the folders in parent that killed processes of this machine left behind. What it can't prove to be one stays,
// and no link leads it out of parent. That a folder stays is no error: the next one tries again.
func sweep(parent string) {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return
	}
	defer root.Close()
	host, err := os.Hostname()
	if err != nil {
		return
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), spillPrefix) && abandoned(root, e.Name(), host) {
			_ = root.RemoveAll(e.Name())
		}
	}
}

// abandoned tells whether the folder's process ran on host and is gone.
func abandoned(root *os.Root, folder, host string) bool {
	name := filepath.Join(folder, spillOwner)
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	mark, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer mark.Close()
	if !lock(mark) {
		return false
	}
	from, err := io.ReadAll(io.LimitReader(mark, 1<<10))
	return err == nil && string(from) == host
}

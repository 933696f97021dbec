// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package cache

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// syncDirectory makes the entries of a directory durable. File systems that
// can't sync a directory (some network ones) say so with EINVAL or ENOTSUP.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	err = directory.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	if closed := directory.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("syncing directory %q: %w", path, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !illumos && !solaris

package scan

import (
	"os"
	"syscall"
)

// lock takes the file for this process, until it is closed or the process ends. It is false where another has it, or where
// the file system has no locks.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

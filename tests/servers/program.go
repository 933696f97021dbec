// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// WithProgram builds rpk-nessie into a temporary folder and returns what run returns, the exit code of a TestMain; 1 where
// building fails, which is told on stderr.
func WithProgram(run func(binary string) int) int {
	folder, err := os.MkdirTemp("", "rpk-nessie-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "rpk-nessie")
	build := exec.Command("go", "build", "-o", binary, "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the binary:", err)
		return 1
	}
	return run(binary)
}

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
	binary, err := BuildProgram(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(binary)
}

// BuildProgram builds rpk-nessie into a folder.
func BuildProgram(folder string) (binary string, err error) {
	binary = filepath.Join(folder, "rpk-nessie")
	text, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, text)
	}
	return binary, nil
}

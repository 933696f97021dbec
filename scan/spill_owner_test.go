// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scan

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const spillingIn = "RPK_NESSIE_TEST_SPILLING_IN"

// spilling is a process that keeps rows in a folder below parent until it is killed, which the returned function does.
func spilling(t *testing.T, parent string) (folder string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFoldersOfKilledProcessesAreRemoved$")
	cmd.Env = append(os.Environ(), spillingIn+"="+parent)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line), func() {
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		_ = in.Close()
	}
}

// spill opens a file, says where, and stays until its standard input ends.
func spill(t *testing.T, parent string) {
	t.Helper()
	folder := newSpillFolder(parent)
	_, err := folder.open()
	require.NoError(t, err)
	fmt.Println(folder.path)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	if parent := os.Getenv(spillingIn); parent != "" {
		spill(t, parent)
		return
	}
	parent, elsewhere := t.TempDir(), t.TempDir()
	killed, kill := spilling(t, parent)
	alive, killLast := spilling(t, parent)
	defer killLast()
	assert.FileExists(t, filepath.Join(killed, spillOwner))
	keep := []string{alive}
	// What looks like one, but is not proved to be one, stays.
	for name, owner := range map[string]string{"of-an-older-version": "", "of-another-machine": "another.example.com"} {
		folder := filepath.Join(parent, spillPrefix+name)
		require.NoError(t, os.Mkdir(folder, 0o700))
		keep = append(keep, folder)
		if owner != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, spillOwner), []byte(owner), 0o600))
		}
	}
	// Links lead to an abandoned folder that lies elsewhere.
	abandonedElsewhere, killElsewhere := spilling(t, elsewhere)
	killElsewhere()
	require.NoError(t, os.Symlink(abandonedElsewhere, filepath.Join(parent, spillPrefix+"link")))
	linked := filepath.Join(parent, spillPrefix+"linked")
	require.NoError(t, os.Mkdir(linked, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(abandonedElsewhere, spillOwner), filepath.Join(linked, spillOwner)))
	keep = append(keep, linked, abandonedElsewhere, filepath.Join(parent, spillPrefix+"link"))

	kill()
	mine := newSpillFolder(parent)
	_, err := mine.open()
	require.NoError(t, err)
	assert.NoDirExists(t, killed)
	for _, path := range append(keep, mine.path) {
		_, err := os.Lstat(path)
		assert.NoError(t, err)
	}
	second := newSpillFolder(parent) // of this process too
	_, err = second.open()
	require.NoError(t, err)
	assert.DirExists(t, mine.path)
	require.NoError(t, mine.remove())
	require.NoError(t, second.remove())
	assert.NoDirExists(t, mine.path)
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cache

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const directoryVariable = "CACHE_TEST_DIRECTORY"

func init() {
	roles["write for ever"] = writeForEver
	roles["write beyond the limit"] = writeBeyondTheLimit
}

func subprocess(ctx context.Context, t *testing.T, role, directory string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, directoryVariable+"="+directory)
	cmd.Stderr = os.Stderr
	return cmd
}

// writeForEver stores one checkpoint after another, and prints the step of
// each once it is stored.
func writeForEver() int {
	d, err := newDurableFile(os.Getenv(directoryVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for step := int64(1); ; step++ {
		encoded, err := Encode(at(step, 0))
		if err == nil {
			err = d.Set(context.Background(), testKey, encoded, nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(step)
	}
}

func TestAKilledWriterLeavesAWholeValueThatIsNotOlderThanItSaid(t *testing.T) {
	directory := t.TempDir()
	for round := range 20 {
		cmd := subprocess(t.Context(), t, "write for ever", directory)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines, said := bufio.NewScanner(out), int64(0)
		for lines.Scan() {
			said, err = strconv.ParseInt(lines.Text(), 10, 64)
			require.NoError(t, err)
			if said == int64(3+7*round) {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")

		d, err := newDurableFile(directory)
		require.NoError(t, err)
		assert.Equal(t, []string{testKey}, files(t, directory))
		value, err := d.Get(t.Context(), testKey)
		require.NoError(t, err)
		c, err := Decode(testKey, value)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, c.Step, said)
		assert.LessOrEqual(t, c.Step, said+1)
	}
}

// writeBeyondTheLimit stores a value that fits, then one that does not.
func writeBeyondTheLimit() int {
	// As on a full disk a part of the value is written, and then none.
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		fmt.Println(err)
		return 1
	}
	limit := syscall.Rlimit{Cur: 1000, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }() // for files of the test binary
	d, err := newDurableFile(os.Getenv(directoryVariable))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, size := range []int{900, 1100} {
		fmt.Println(d.Set(context.Background(), "k", []byte(strings.Repeat("x", size)), nil))
	}
	fmt.Println(d.Add(context.Background(), "added", []byte(strings.Repeat("x", 1100)), nil))
	return 0
}

func TestAFullDiskFailsTheWriteAndKeepsTheOldValue(t *testing.T) {
	directory := t.TempDir()
	out, err := subprocess(t.Context(), t, "write beyond the limit", directory).Output()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(string(out), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, "<nil>", lines[0])
	assert.Contains(t, lines[1], `writing key "k": `)
	assert.Contains(t, lines[2], `adding key "added": `)
	assert.Equal(t, []string{"k"}, files(t, directory), "no temporary file, nothing added")
	value, err := os.ReadFile(filepath.Join(directory, "k"))
	require.NoError(t, err)
	assert.Len(t, value, 900)
}

func TestFilesAndDirectoriesAreForTheirOwnerOnly(t *testing.T) {
	d, directory := durable(t)
	require.NoError(t, d.Set(t.Context(), "k", nil, nil))
	for path, want := range map[string]os.FileMode{
		filepath.Dir(directory): 0o700, directory: 0o700, filepath.Join(directory, "k"): 0o600,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
}

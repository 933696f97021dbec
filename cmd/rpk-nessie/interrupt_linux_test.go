// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// full tells whether nothing more goes into a pipe.
func full(t *testing.T, pipe *os.File) bool {
	t.Helper()
	conn, err := pipe.SyscallConn()
	require.NoError(t, err)
	var held int32
	var room uintptr
	require.NoError(t, conn.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&held)))
		require.Zero(t, errno)
		const getPipeSize = 1032
		room, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, getPipeSize, 0)
		require.Zero(t, errno)
	}))
	return uintptr(held) == room
}

func TestOneInterruptEndsReadWhileNobodyReadsItsOutput(t *testing.T) {
	s := newStage(t, "orders")
	ids := make([]int, 40_000)
	for i := range ids {
		ids[i] = 1_000_000 + i
	}
	s.add("orders", ids...)
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		reader, output, err := os.Pipe()
		require.NoError(t, err)
		defer reader.Close()
		cmd := command(t, "read", "--base-url", s.Server.URL, "--namespace", "shop", "--table", "orders", "--local-root", s.warehouse)
		cmd.Stdout = output
		require.NoError(t, cmd.Start())
		require.NoError(t, output.Close())
		require.Eventually(t, func() bool { return full(t, reader) }, patience, glance)
		require.NoError(t, cmd.Process.Signal(signal))
		got := finish(t, cmd, cmd.Wait())
		assert.Equal(t, exitInterrupted, got.code)
		assert.Equal(t, "interrupted\n", got.stderr)
	}
}

// asked starts a command that asks on a terminal, and waits for its question. What it says comes to told.
func asked(t *testing.T, s *stage) (cmd *exec.Cmd, keyboard *os.File, told *safeBuffer) {
	t.Helper()
	s.add("orders", 1)
	keyboard, terminal := pseudoTerminal(t, 24, 80)
	cmd = command(t, "checkpoint", "set", "--base-url", s.Server.URL, "--namespace", "shop", "--table", "orders", "--local-root", s.warehouse,
		"--checkpoint-dir", s.checkpoints, "none")
	told = &safeBuffer{}
	cmd.Stdin, cmd.Stderr = terminal, told
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "Do it? [y/N]") }, patience, glance)
	return cmd, keyboard, told
}

func TestOneInterruptEndsACommandThatAsks(t *testing.T) {
	s := newStage(t, "orders")
	cmd, _, told := asked(t, s)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	assert.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
	assert.Contains(t, told.text(), "interrupted")
	snapshot, _ := s.stored("orders")
	assert.Empty(t, snapshot)
}

func TestAnEndOfInputIsANo(t *testing.T) {
	s := newStage(t, "orders")
	cmd, keyboard, told := asked(t, s)
	const endOfInput = 4
	_, err := keyboard.Write([]byte{endOfInput})
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	assert.Contains(t, told.text(), "nothing was written")
	assert.NotContains(t, told.text(), "EOF")
}

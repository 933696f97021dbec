// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
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

func TestOneInterruptEndsACommandThatAsks(t *testing.T) {
	s := newStage(t, "orders")
	s.add("orders", 1)
	_, terminal := pseudoTerminal(t, 24, 80)
	defer terminal.Close()
	cmd := command(t, "checkpoint", "set", "--base-url", s.Server.URL, "--namespace", "shop", "--table", "orders", "--local-root", s.warehouse,
		"--checkpoint-dir", s.checkpoints, "none")
	var told safeBuffer
	cmd.Stdin, cmd.Stderr = terminal, &told
	require.NoError(t, cmd.Start())
	said := func() string {
		told.mu.Lock()
		defer told.mu.Unlock()
		return told.b.String()
	}
	require.Eventually(t, func() bool { return strings.Contains(said(), "Do it? [y/N]") }, patience, glance)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	assert.Error(t, cmd.Wait())
	assert.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
	assert.Contains(t, said(), "interrupted")
	snapshot, _ := s.stored("orders")
	assert.Empty(t, snapshot)
}

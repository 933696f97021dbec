// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pseudoTerminal opens one of the given size, in cells. The first end gets what is written to the second.
func pseudoTerminal(t *testing.T, rows, columns uint16) (reader, terminal *os.File) {
	t.Helper()
	reader, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	control := func(request uintptr, value unsafe.Pointer) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, reader.Fd(), request, uintptr(value))
		require.Zero(t, errno)
	}
	var unlocked, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := struct{ rows, columns, x, y uint16 }{rows, columns, 0, 0}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return reader, terminal
}

func TestReadShowsItsProgressOnTerminalsOfAnySize(t *testing.T) {
	s := newStage(t, "orders")
	s.add("orders", 1, 2, 3)
	for _, size := range [][2]uint16{{0, 0}, {24, 80}} {
		reader, terminal := pseudoTerminal(t, size[0], size[1])
		cmd := command(t, "read", "--base-url", s.Server.URL, "--namespace", "shop", "--table", "orders", "--local-root", s.warehouse)
		var rows bytes.Buffer
		cmd.Stdout, cmd.Stderr = &rows, terminal
		require.NoError(t, cmd.Start())
		require.NoError(t, terminal.Close())
		shown, _ := io.ReadAll(reader) // it ends with an error once nobody has the other end
		require.NoError(t, cmd.Wait())
		assert.Contains(t, string(shown), "3 of 3 rows", "%v", size)
		assert.Contains(t, string(shown), "shop.orders  [====", "%v", size)
		assert.Equal(t, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", rows.String())
	}
}

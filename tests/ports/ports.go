// SPDX-License-Identifier: Apache-2.0

// Package ports finds ports for servers that tests start, and for servers that are not there.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports that no system gives to a connection or to a listener that asks for any: what is free there stays so until a
// server is started on it.
const lowest, highest = 12_000, 32_000

// Free is an address of this machine where nobody listens, 127.0.0.1:port.
func Free(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue // taken
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no port of this machine is free")
	return ""
}

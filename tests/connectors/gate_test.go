// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gate stands between a pipeline and its database. It can break their connection at a byte of what the two say.
type gate struct {
	dsn string // of the database, through the gate
	to  string // host:port

	mu    sync.Mutex
	left  int          // bytes until then
	then  func() error // nil: not armed
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

func openGate(t *testing.T, dsn string) *gate {
	t.Helper()
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{to: address.Host, conns: map[net.Conn]bool{}}
	address.Host = listener.Addr().String()
	g.dsn = address.String()
	g.work.Go(func() { g.serve(listener) })
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		g.mu.Lock()
		for conn := range g.conns {
			_ = conn.Close()
		}
		g.mu.Unlock()
		g.work.Wait()
	})
	return g
}

func (g *gate) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", g.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		g.mu.Lock()
		g.conns[client], g.conns[server] = true, true
		g.mu.Unlock()
		g.work.Go(func() { g.pass(client, server) })
		g.work.Go(func() { g.pass(server, client) })
	}
}

// pass hands on what comes until either side ends.
func (g *gate) pass(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.conns, from)
		delete(g.conns, to)
	}()
	some := make([]byte, 256)
	for {
		n, err := from.Read(some)
		if err != nil || !g.allow(n) {
			return
		}
		if _, err := to.Write(some[:n]); err != nil {
			return
		}
	}
}

// breakAfter arms the gate: so many bytes later a connection breaks, after then. What it returns tells whether it has.
func (g *gate) breakAfter(bytes int, then func() error) (broken func() bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.then = bytes, then
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.then == nil
	}
}

// disarm lets everything pass. It tells whether the gate had broken a connection.
func (g *gate) disarm() (broken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	broken = g.then == nil
	g.then = nil
	return broken
}

func (g *gate) allow(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.then == nil {
		return true
	}
	if g.left -= n; g.left > 0 {
		return true
	}
	_ = g.then()
	g.then = nil
	return false
}

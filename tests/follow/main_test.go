// SPDX-License-Identifier: Apache-2.0

// Package follow drives the nessie input, and the built binary around it, over the corpus in a real Nessie and an S3
// server, and compares every message with what other readers found in the tables.
package follow

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

var (
	corpusStack servers.Shared
	binary      string // the built program

	// A change is judged by the kills of the one before; the soak draws others.
	seed = flag.Uint64("seed", 1, "of the rows at which the binary is killed")
)

func TestMain(m *testing.M) { os.Exit(buildAndTest(m)) }

func buildAndTest(m *testing.M) int {
	return servers.WithProgram(func(built string) int {
		binary = built
		code := corpusStack.Run(m)
		http.DefaultClient.CloseIdleConnections()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	})
}

// site is the stack with a client for what tests change in it.
type site struct {
	*servers.Stack
	client *catalog.Client
	known  *stories
}

func open(t *testing.T) *site {
	t.Helper()
	stack := corpusStack.Get(t)
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: stack.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	known, err := loadTables()
	require.NoError(t, err)
	return &site{Stack: stack, client: client, known: known}
}

var names = struct {
	sync.Mutex
	used int
}{}

// newName is one that no reference has.
func newName() string {
	names.Lock()
	defer names.Unlock()
	names.used++
	return fmt.Sprintf("follow-%d", names.used)
}

// ref is a branch or tag of a test.
type ref struct {
	t  *testing.T
	s  *site
	at catalog.Reference
	// key is the table's new one where the test renamed it.
	key []string
}

// branch makes a branch that stands at a commit.
func (s *site) branch(t *testing.T, hash string) *ref {
	return s.ref(t, catalog.Branch, newName(), hash)
}

func (s *site) ref(t *testing.T, kind catalog.ReferenceType, name, hash string) *ref {
	t.Helper()
	at, err := s.client.CreateReference(t.Context(), kind, name, catalog.Ref{Hash: hash})
	require.NoError(t, err)
	return &ref{t: t, s: s, at: at}
}

// move assigns it to another commit, whatever that has to do with the one before.
func (r *ref) move(hash string) {
	r.t.Helper()
	to, err := r.s.client.AssignReference(r.t.Context(), r.at, catalog.Ref{Hash: hash})
	require.NoError(r.t, err)
	r.at = to
}

// remake deletes the reference and makes it anew elsewhere.
func (r *ref) remake(hash string) {
	r.t.Helper()
	require.NoError(r.t, r.s.client.DeleteReference(r.t.Context(), r.at))
	at, err := r.s.client.CreateReference(r.t.Context(), r.at.Type, r.at.Name, catalog.Ref{Hash: hash})
	require.NoError(r.t, err)
	r.at = at
}

func (r *ref) commit(message string, ops ...catalog.Operation) {
	r.t.Helper()
	after, err := r.s.client.Commit(r.t.Context(), r.at, message, ops)
	require.NoError(r.t, err)
	r.at = after
}

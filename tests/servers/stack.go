// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// Stack is a real Nessie over the corpus, and an S3 server with the corpus' objects in the test's own process. The
// server may be written to: branches that a test makes should have a name of their own.
type Stack struct {
	*Nessie
	S3 *corpus.S3
}

// StartStack starts both. The caller closes it.
func StartStack() (*Stack, error) {
	s3, err := corpus.StartCorpusS3()
	if err != nil {
		return nil, err
	}
	nessie, err := StartNessie(Options{Corpus: true, S3: s3.Endpoint})
	if err != nil {
		return nil, errors.Join(err, s3.Close())
	}
	return &Stack{Nessie: nessie, S3: s3}, nil
}

// Close stops both and forgets what they wrote.
func (s *Stack) Close() error { return errors.Join(s.Stop(), s.forget(), s.S3.Close()) }

// Shared is one Stack for all tests of a package, started by the first that asks. A package has one as a variable and
// runs its tests through it:
//
//	var corpusStack servers.Shared
//
//	func TestMain(m *testing.M) { os.Exit(corpusStack.Run(m)) }
type Shared struct {
	mu      sync.Mutex
	running bool
	stack   *Stack
	err     error
}

// Run runs the package's tests and then closes the stack if one was started. It gives the exit code. After a failure the
// server's log is kept.
func (s *Shared) Run(m *testing.M) int {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if s.stack == nil {
		return code
	}
	err := errors.Join(s.stack.Stop(), s.stack.S3.Close())
	if code == 0 {
		err = errors.Join(err, s.stack.forget())
	} else {
		fmt.Fprintln(os.Stderr, "the log of Nessie is in", s.stack.log)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stopping the corpus' servers:", err)
		return max(code, 1)
	}
	return code
}

// Get is the package's stack. It belongs to every test of the package: faults that a test injects are its own to end.
func (s *Shared) Get(t testing.TB) *Stack {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		t.Fatal("the package's TestMain must run its tests through servers.Shared, or nobody stops the server")
	}
	if s.stack == nil && s.err == nil {
		s.stack, s.err = StartStack()
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.stack
}

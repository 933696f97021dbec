// SPDX-License-Identifier: Apache-2.0

// Package nessietest is a Nessie server in memory, as net/http/httptest is a web server for tests, and a writer of
// Iceberg tables that commits to it or to a real one. The demo uses both.
//
// The server speaks the part of API v2 that readers and committers use: config, references, contents, entries, diff,
// the commit log, commit, merge and transplant. It was built beside Nessie 0.99.0, and one contract suite holds both to
// the same answers. What it does not know it refuses with 400 instead of guessing.
package nessietest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// NoAncestor is the hash before the first commit, the same as every real server has.
const NoAncestor = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"

// Options shape a server. The zero value is a server as 0.99.0 is without settings.
type Options struct {
	// SpecVersion is what the config answers, "2.2.0" if empty. Below 2.1.0 the server is as 0.60.1 in what matters to
	// clients: no relative references (~N, ^N, *time), no escaped keys, no Delete and Put of one key in a commit, and
	// name@hash only for commits on the branch.
	SpecVersion string

	// Seed goes into every hash and content id. Servers with one seed and one Clock give equal answers to equal requests.
	Seed string

	// Clock tells commit times; time.Now if nil. It is asked once a commit, one call at a time.
	Clock func() time.Time

	// Token makes the server ask for this bearer token and answer 401 without it.
	Token string
}

// Nessie is the server as an http.Handler. It is safe for concurrent use.
type Nessie struct {
	opts   Options
	begun  time.Time
	oldAPI bool

	mu         sync.Mutex // guards the store
	commits    map[string]*storedCommit
	references map[string]*storedRef
	ordinal    int // of the next thing that gets an identity

	logMu     sync.Mutex // guards what was asked
	requests  []Request
	counts    map[string]int
	intercept func(http.ResponseWriter, *http.Request) bool
}

// New makes a server with an empty branch main.
func New(opts Options) *Nessie {
	if opts.SpecVersion == "" {
		opts.SpecVersion = "2.2.0"
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	n := &Nessie{
		opts: opts, begun: opts.Clock(), oldAPI: strings.HasPrefix(opts.SpecVersion, "2.0."),
		commits: map[string]*storedCommit{}, references: map[string]*storedRef{}, counts: map[string]int{},
	}
	n.commits[NoAncestor] = &storedCommit{hash: NoAncestor, contents: map[string]keyed{}}
	n.references[defaultBranch] = &storedRef{kind: branch, name: defaultBranch, hash: NoAncestor}
	return n
}

// identity is a digest that no other call gives, and that depends on nothing but the seed and the calls before it.
func (n *Nessie) identity(parts ...string) [sha256.Size]byte {
	n.ordinal++
	return sha256.Sum256([]byte(fmt.Sprintf("%q %d %q", n.opts.Seed, n.ordinal, parts)))
}

func (n *Nessie) newContentID() string {
	id := n.identity("content")
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// Server is a Nessie that listens on a free port of 127.0.0.1.
type Server struct {
	*Nessie
	URL string // http://127.0.0.1:port, without /api/v2

	http   *http.Server
	served chan struct{}
}

// Start makes a server and lets it listen. The caller closes it.
func Start(opts Options) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the in-memory Nessie: %w", err)
	}
	s := &Server{Nessie: New(opts), URL: "http://" + listener.Addr().String(), served: make(chan struct{})}
	s.http = &http.Server{Handler: s.Nessie, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // always ErrServerClosed: Close is the one way out
	}()
	return s, nil
}

// Close breaks what is under way and waits until nothing is served any more.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

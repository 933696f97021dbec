// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fault is what a proxy does to a request instead of forwarding it as it is.
type fault string

// The faults. Delays are short: what is tested is that they are survived, not how long a client can wait.
const (
	tooMany     fault = "429"              // with Retry-After
	internal    fault = "500"              // no body that a client could read
	unavailable fault = "503"              // likewise
	hangup      fault = "connection reset" // before any answer
	cut         fault = "body cut"         // after some bytes of the right answer
	slow        fault = "slow body"        // the right answer, a few bytes at a time
	down        fault = "server not there" // not drawn: the target could not be reached
)

var drawn = []fault{tooMany, internal, unavailable, hangup, cut, slow}

const (
	longestCut = 2000 // bytes before a body is cut, at most
	slowChunk  = 512
	slowPause  = 5 * time.Millisecond
)

// proxy is an HTTP proxy in front of one server. It is safe for concurrent use.
type proxy struct {
	*httptest.Server

	share  atomic.Uint64 // of requests that fail, in millionths
	target atomic.Pointer[url.URL]

	mu     sync.Mutex
	rng    *rand.Rand
	counts map[fault]int
}

// newProxy forwards to a server and lets a share of the requests fail, between 0 and 1.
func newProxy(t *testing.T, target string, share float64, seed uint64) *proxy {
	t.Helper()
	p := &proxy{rng: rand.New(rand.NewPCG(seed, 0)), counts: map[fault]int{}}
	p.fail(share)
	p.aim(t, target)
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

// aim changes the server that requests go to from now on.
func (p *proxy) aim(t *testing.T, target string) {
	t.Helper()
	to, err := url.Parse(target)
	require.NoError(t, err)
	p.target.Store(to)
}

// fail changes the share of requests that fail.
func (p *proxy) fail(share float64) { p.share.Store(uint64(share * 1e6)) }

// draw decides about one request. size is where a body is cut.
func (p *proxy) draw() (f fault, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rng.Uint64N(1e6) >= p.share.Load() {
		return "", 0
	}
	f = drawn[p.rng.IntN(len(drawn))]
	p.counts[f]++
	return f, p.rng.Int64N(longestCut)
}

func (p *proxy) count(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[f]++
}

// ServeHTTP forwards one request, or lets it fail.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, size := p.draw()
	switch f {
	case tooMany:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case internal:
		w.WriteHeader(http.StatusInternalServerError)
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case hangup:
		reset(w)
	case cut:
		p.forward(w, r, func(body io.ReadCloser) io.ReadCloser { return &cutBody{body, size} })
	case slow:
		p.forward(w, r, func(body io.ReadCloser) io.ReadCloser { return &slowBody{body, r.Context()} })
	default:
		p.forward(w, r, nil)
	}
}

// forward hands the request to the target; change may replace the body of the answer.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, change func(io.ReadCloser) io.ReadCloser) {
	to := p.target.Load()
	forward := httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(to)
			out.Out.Host = out.In.Host // S3 clients sign it
		},
		FlushInterval: -1,
		ErrorLog:      p.Config.ErrorLog,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			p.count(down)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	if change != nil {
		forward.ModifyResponse = func(answer *http.Response) error {
			answer.Body = change(answer.Body)
			return nil
		}
	}
	forward.ServeHTTP(w, r)
}

// reset breaks the connection so that the client sees a reset and no end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

var errCut = errors.New("the body is cut here")

// cutBody ends in the middle: the reverse proxy then breaks the connection.
type cutBody struct {
	io.ReadCloser
	left int64
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// slowBody gives a few bytes at a time.
type slowBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b *slowBody) Read(p []byte) (int, error) {
	pause := time.NewTimer(slowPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	return b.ReadCloser.Read(p[:min(len(p), slowChunk)])
}

// describe is one line about what proxies did.
func describe(proxies ...*proxy) string {
	sum, total := map[fault]int{}, 0
	for _, p := range proxies {
		p.mu.Lock()
		counts := maps.Clone(p.counts)
		p.mu.Unlock()
		for f, n := range counts {
			sum[f] += n
			total += n
		}
	}
	parts := make([]string, 0, len(drawn)+1)
	for _, f := range append(slices.Clip(drawn), down) {
		parts = append(parts, fmt.Sprintf("%s %d", f, sum[f]))
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(parts, ", "))
}

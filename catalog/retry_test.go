// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// script is a transport whose n-th attempt is answered by its n-th entry, the last one for ever.
type script struct {
	answers []func(*http.Request) (*http.Response, error)
	at      []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(s.at)
	s.at = append(s.at, time.Now())
	return s.answers[min(n, len(s.answers)-1)](r)
}

func status(code int, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Set(header[i], header[i+1])
		}
		return resp, nil
	}
}

func success(r *http.Request) (*http.Response, error) {
	body := headOfT
	if r.Method != http.MethodGet {
		body = `{"targetBranch":{"type":"BRANCH","name":"main","hash":"` + hashB + `"}}`
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func broken(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// cut gives a body that breaks off.
func cut(r *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(`{"content":`), readerFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }))
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// silence answers only when the attempt is given up.
func silence(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var (
	errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	errDial  = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

func readHead(ctx context.Context, c *Client) error {
	_, err := c.Head(ctx, Ref{Name: "main"}, Key{"t"})
	return err
}

func writeCommit(ctx context.Context, c *Client) error {
	_, err := c.Commit(ctx, Reference{Type: Branch, Name: "main", Hash: hashA}, "m", nil)
	return err
}

func TestRetries(t *testing.T) {
	type answers = []func(*http.Request) (*http.Response, error)
	tests := []struct {
		name     string
		answers  answers
		do       func(context.Context, *Client) error
		attempts int
		err      error
	}{
		{"429 is tried again", answers{status(429), success}, readHead, 2, nil},
		{"5xx is tried again", answers{status(500), status(502), status(504), success}, readHead, 4, nil},
		{"network error is tried again", answers{broken(errReset), success}, readHead, 2, nil},
		{"body that breaks off is tried again", answers{cut, success}, readHead, 2, nil},
		{"attempt without an answer is given up and tried again", answers{silence, success}, readHead, 2, nil},
		{"it ends after max retries", answers{status(503)}, readHead, 4, ErrUnavailable},
		{"network errors end after max retries", answers{broken(errDial)}, readHead, 4, ErrUnavailable},
		{"400 is not tried again", answers{status(400)}, readHead, 1, ErrBadRequest},
		{"401 is not tried again", answers{status(401)}, readHead, 1, ErrUnauthorized},
		{"404 is not tried again", answers{status(404)}, readHead, 1, ErrNotNessie},
		{"409 is not tried again", answers{status(409)}, writeCommit, 1, ErrConflict},
		{"write is tried again when the server is busy", answers{status(429), status(503), success}, writeCommit, 3, nil},
		{"write is tried again when there was no connection", answers{broken(errDial), success}, writeCommit, 2, nil},
		{"write whose answer got lost is not repeated", answers{broken(errReset), success}, writeCommit, 1, ErrUnavailable},
		{"write whose answer broke off is not repeated", answers{cut, success}, writeCommit, 1, ErrUnavailable},
		{"write that failed inside the server is not repeated", answers{status(500), success}, writeCommit, 1, ErrUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &script{answers: test.answers}
				c := newClient(t, ClientConfig{BaseURL: "http://nessie", Transport: transport, MaxRetries: 3})
				err := test.do(t.Context(), c)
				if test.err == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.err)
				}
				assert.Len(t, transport.at, test.attempts)
			})
		})
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, header := range map[string]func() string{
		"in seconds": func() string { return "90" },
		"as a date":  func() string { return time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		for _, code := range []int{429, 503, 500} {
			t.Run(fmt.Sprintf("%s with %d", name, code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					transport := &script{answers: []func(*http.Request) (*http.Response, error){status(code, "Retry-After", header()), success}}
					c := newClient(t, ClientConfig{BaseURL: "http://nessie", Transport: transport, MaxRetries: 1})
					require.NoError(t, readHead(t.Context(), c))
					waited := transport.at[1].Sub(transport.at[0])
					assert.GreaterOrEqual(t, waited, 90*time.Second)
					assert.Less(t, waited, 91*time.Second)
				})
			})
		}
	}
}

func TestRetryAfterValues(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "99999999999": time.Hour,
		"Tue, 01 Jan 2030 00:00:30 GMT": 30 * time.Second, "Mon, 31 Dec 2029 00:00:00 GMT": 0, "Tue, 01 Jan 2031 00:00:00 GMT": time.Hour,
		"Tuesday, 01-Jan-30 00:00:30 GMT": 30 * time.Second,
	} {
		got, ok := retryAfter(header, now)
		assert.True(t, ok, header)
		assert.Equal(t, want, got, header)
	}
	for _, header := range []string{"", "-1", "soon", "1.5", "99999999999999999999999"} {
		_, ok := retryAfter(header, now)
		assert.False(t, ok, header)
	}
}

func TestWaitGrowsWithJitterInsideItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(0, 100).Draw(t, "attempt")
		full := min(retryWaitMin<<min(attempt, 20), retryWaitMax)
		wait := retryWait(retryWaitMin, retryWaitMax, attempt, nil)
		assert.LessOrEqual(t, wait, full)
		assert.GreaterOrEqual(t, wait, full/2)
	})
	waits := map[time.Duration]bool{}
	for range 50 {
		waits[retryWait(retryWaitMin, retryWaitMax, 3, nil)] = true
	}
	assert.Greater(t, len(waits), 10, "readers that failed together come back together")
}

func TestTimeoutIsOfOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &script{answers: []func(*http.Request) (*http.Response, error){silence}}
		var statuses []int
		c := newClient(t, ClientConfig{
			BaseURL: "http://nessie", Transport: transport, Timeout: 5 * time.Second, MaxRetries: 1,
			OnAttempt: func(_ string, status int) { statuses = append(statuses, status) },
		})
		start := time.Now()
		err := readHead(t.Context(), c)
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "no whole answer within 5s")
		assert.GreaterOrEqual(t, time.Since(start), 10*time.Second)
		assert.Equal(t, []int{0, 0}, statuses)
	})
}

func TestCancelledContextReturnsAtOnce(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"in an attempt": silence, "between attempts": status(503, "Retry-After", "3600"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, ClientConfig{
					BaseURL: "http://nessie", MaxRetries: 5, Timeout: time.Hour,
					Transport: &script{answers: []func(*http.Request) (*http.Response, error){answer}},
				})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				start := time.Now()
				err := readHead(ctx, c)
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, ErrUnavailable)
				assert.Equal(t, time.Second, time.Since(start))
			})
		})
	}
}

func TestTokenErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		asked    int
		sentinel error
	}{
		"lasting is not tried again": {fmt.Errorf("the identity provider says no: %w", ErrUnauthorized), 1, ErrUnauthorized},
		"other is tried again":       {errors.New("the identity provider is away"), 3, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := newClient(t, ClientConfig{
					BaseURL: "http://nessie", MaxRetries: 2, Transport: &script{answers: []func(*http.Request) (*http.Response, error){success}},
					Token:     func(context.Context) (string, error) { asked++; return "", test.err },
					OnAttempt: func(string, int) { t.Error("nothing was sent") },
				})
				err := readHead(t.Context(), c)
				require.ErrorIs(t, err, test.sentinel)
				require.ErrorIs(t, err, test.err)
				assert.Equal(t, test.asked, asked)
			})
		})
	}
}

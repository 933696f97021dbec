// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	hashA   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB   = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	config2 = `{"defaultBranch":"main","minSupportedApiVersion":1,"maxSupportedApiVersion":2,"specVersion":"2.2.0","noAncestorHash":"` + hashB + `"}`
	headOfT = `{"content":{"type":"ICEBERG_TABLE","id":"c1","metadataLocation":"file:///a %41\\b.json","snapshotId":9007199254740993,` +
		`"schemaId":1,"specId":2,"sortOrderId":3},"effectiveReference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`
)

// server answers by escaped path below /api/v2, and remembers what it was asked. What is not listed is a 404.
type server struct {
	*httptest.Server
	answers map[string]http.HandlerFunc

	mu    sync.Mutex
	asked []*http.Request
	body  []string
}

func newServer(t *testing.T, answers map[string]http.HandlerFunc) *server {
	t.Helper()
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked, s.body = append(s.asked, r), append(s.body, string(body))
		s.mu.Unlock()
		if answer := s.answers[strings.TrimPrefix(r.URL.EscapedPath(), "/api/v2")]; answer != nil {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, r := range s.asked {
		paths = append(paths, r.Method+" "+strings.TrimPrefix(r.URL.EscapedPath(), "/api/v2"))
	}
	return paths
}

func answerJSON(body string) http.HandlerFunc { return answerStatus(http.StatusOK, body) }

func answerStatus(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func newClient(t *testing.T, cfg ClientConfig) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestBaseURL(t *testing.T) {
	for given, want := range map[string]string{
		"http://nessie:19120":                "http://nessie:19120/api/v2",
		"http://nessie:19120/":               "http://nessie:19120/api/v2",
		"https://nessie/api/v2":              "https://nessie/api/v2",
		"https://nessie/api/v2/":             "https://nessie/api/v2",
		"https://gate.example/team%20a/":     "https://gate.example/team%20a/api/v2",
		"https://gate.example/nessie/api/v2": "https://gate.example/nessie/api/v2",
		"http://[::1]:19120":                 "http://[::1]:19120/api/v2",
	} {
		t.Run(given, func(t *testing.T) {
			c := newClient(t, ClientConfig{BaseURL: given})
			assert.Equal(t, want, c.base)
		})
	}
}

func TestBaseURLThatCanNotBe(t *testing.T) {
	for given, want := range map[string]string{
		"":                              "must be an http or https URL",
		"nessie:19120":                  "must be an http or https URL",
		"ftp://nessie":                  "must be an http or https URL",
		"http://":                       "must be an http or https URL",
		"http://h:hunter2@x y/":         "must be an http or https URL",
		"http://me:hunter2@nessie":      "user information",
		"http://hunter2@nessie":         "user information",
		"http://nessie?token=hunter2":   "a query or a fragment",
		"http://nessie#hunter2":         "a query or a fragment",
		"http://nessie:19120/api/v1":    "API v2 is needed",
		"http://nessie:19120/x/api/v1/": "API v2 is needed",
	} {
		t.Run(given, func(t *testing.T) {
			_, err := NewClient(ClientConfig{BaseURL: given})
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestHeaderThatCanNotBeSentIsRefusedWithoutItsValue(t *testing.T) {
	_, err := NewClient(ClientConfig{BaseURL: "http://nessie", Headers: map[string]string{"X-Key": "hunter2\r\nEvil: 1"}})
	require.ErrorContains(t, err, "X-Key")
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestConfigIsAskedOnce(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/config": answerJSON(config2)})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	for range 3 {
		config, err := c.Config(t.Context())
		require.NoError(t, err)
		assert.Equal(t, ServerConfig{DefaultBranch: "main", MinAPIVersion: 1, MaxAPIVersion: 2, SpecVersion: "2.2.0", NoAncestorHash: hashB}, config)
	}
	assert.Len(t, s.paths(), 1)
}

func TestServerWithoutAPIv2IsRefused(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/config": answerJSON(`{"defaultBranch":"main","maxSupportedApiVersion":1}`)})
	_, err := newClient(t, ClientConfig{BaseURL: s.URL}).Config(t.Context())
	require.ErrorIs(t, err, ErrNotNessie)
	require.ErrorContains(t, err, "supports API versions 0 to 1, and 2 is needed")
}

func TestEveryHTTPRequestIsAnAttempt(t *testing.T) {
	failures := 2
	s := newServer(t, map[string]http.HandlerFunc{"/trees/moved/contents/t": answerJSON(headOfT)})
	s.answers["/trees/main/contents/t"] = func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		http.Redirect(w, r, "/api/v2/trees/moved/contents/t", http.StatusTemporaryRedirect)
	}
	var before int
	var after []string
	c := newClient(t, ClientConfig{
		BaseURL: s.URL, MaxRetries: 3,
		BeforeAttempt: func(context.Context) error { before++; return nil },
		OnAttempt:     func(call string, status int) { after = append(after, fmt.Sprint(call, " ", status)) },
	})
	c.http.RetryWaitMin = time.Nanosecond
	_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"t"})
	require.NoError(t, err)
	assert.Equal(t, 4, before)
	assert.Equal(t, []string{"head 503", "head 503", "head 307", "head 200"}, after)
	assert.Len(t, s.paths(), 4)
}

func TestNoLeaveNoRequest(t *testing.T) {
	s := newServer(t, nil)
	refused := errors.New("the rate limit is gone")
	c := newClient(t, ClientConfig{
		BaseURL: s.URL, MaxRetries: 5,
		BeforeAttempt: func(context.Context) error { return refused },
		OnAttempt:     func(string, int) { t.Error("nothing was attempted") },
	})
	_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"t"})
	require.ErrorIs(t, err, refused)
	assert.Empty(t, s.paths())
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	var other *http.Request
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		other = r
		answerJSON(headOfT)(w, r)
	}))
	defer elsewhere.Close()
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main/contents/t": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/x", http.StatusFound)
	}})
	c := newClient(t, ClientConfig{
		BaseURL: s.URL, Headers: map[string]string{"X-Key": "hunter2"},
		Token: func(context.Context) (string, error) { return "secret", nil },
	})
	_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"t"})
	require.NoError(t, err)
	assert.Equal(t, "Bearer secret", s.asked[0].Header.Get("Authorization"))
	assert.Equal(t, "hunter2", s.asked[0].Header.Get("X-Key"))
	assert.Empty(t, other.Header.Get("Authorization"))
	assert.Empty(t, other.Header.Get("X-Key"))
}

func TestCredentialsMayFollowToHTTPSOnTheSameHost(t *testing.T) {
	plain, err := parseBaseURL("http://nessie:19120")
	require.NoError(t, err)
	secure, err := parseBaseURL("https://nessie:19120")
	require.NoError(t, err)
	assert.True(t, (&attempts{home: plain}).trusts(secure))
	assert.False(t, (&attempts{home: secure}).trusts(plain))
}

func TestConnectionIsUsedAgain(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main/contents/t": answerJSON(headOfT)})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	for range 5 {
		_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"t"})
		require.NoError(t, err)
		_, err = c.Head(t.Context(), Ref{Name: "main"}, Key{"gone"})
		require.ErrorIs(t, err, ErrNotNessie)
	}
	connections := map[string]bool{}
	for _, r := range s.asked {
		connections[r.RemoteAddr] = true
	}
	assert.Len(t, connections, 1)
}

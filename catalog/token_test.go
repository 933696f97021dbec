// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clientSecret = "very/secret value"

// tokenEndpoint gives token-1, token-2, … to one client, by HTTP's basic authentication or in the form.
type tokenEndpoint struct {
	*httptest.Server
	given   atomic.Int64
	expires atomic.Int64 // seconds; 0 tells nothing
	answer  atomic.Pointer[func(http.ResponseWriter, *http.Request)]
	scope   atomic.Pointer[string]
}

func newTokenEndpoint(t *testing.T) *tokenEndpoint {
	t.Helper()
	e := &tokenEndpoint{}
	e.expires.Store(3600)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := e.answer.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		id, secret, _ := r.BasicAuth()
		if id == "" {
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		} else {
			secret, _ = url.QueryUnescape(secret)
		}
		scope := r.FormValue("scope")
		e.scope.Store(&scope)
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("grant_type") != "client_credentials" || id != "reader" || secret != clientSecret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"no client has the secret %s"}`, secret)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":%d}`, e.given.Add(1), e.expires.Load())
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *tokenEndpoint) tokens(t *testing.T, secret string) *Tokens {
	t.Helper()
	tokens, err := NewTokens(OAuth2Config{ServerURI: e.URL + "/token", ClientID: "reader", ClientSecret: secret, Scope: "catalog sign"})
	require.NoError(t, err)
	return tokens
}

func TestATokenIsFetchedOnceAndKept(t *testing.T) {
	e := newTokenEndpoint(t)
	tokens := e.tokens(t, clientSecret)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			token, err := tokens.Token(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, "token-1", token)
		})
	}
	all.Wait()
	assert.Equal(t, int64(1), e.given.Load())
	assert.Equal(t, "catalog sign", *e.scope.Load())
}

func TestATokenThatExpiresIsFetchedAgain(t *testing.T) {
	e := newTokenEndpoint(t)
	e.expires.Store(5) // less than what is left to a token that is used
	tokens := e.tokens(t, clientSecret)
	for i := range 3 {
		token, err := tokens.Token(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("token-%d", i+1), token)
	}
}

// A token that the server refuses before it expires is no use any more.
func TestARefusedTokenIsFetchedAgain(t *testing.T) {
	e := newTokenEndpoint(t)
	tokens := e.tokens(t, clientSecret)
	var revoked atomic.Bool
	nessie := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token == "" || token == "Bearer token-1" && revoked.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"minSupportedApiVersion":1,"maxSupportedApiVersion":2}`)
	}))
	t.Cleanup(nessie.Close)
	client, err := NewClient(ClientConfig{BaseURL: nessie.URL, Token: tokens.Token, TokenRefused: tokens.Forget})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ask := func() error { _, err := client.askConfig(t.Context()); return err }
	require.NoError(t, ask())
	revoked.Store(true)
	require.ErrorIs(t, ask(), ErrUnauthorized)
	require.NoError(t, ask())
	assert.Equal(t, int64(2), e.given.Load())
}

func TestAnEndpointThatGivesNoTokenIsNamed(t *testing.T) {
	tests := map[string]struct {
		secret string
		answer func(http.ResponseWriter, *http.Request)
		says   string
		kind   error
	}{
		"wrong secret": {secret: "wrong secret", says: "/token: status 401 invalid_client: no client has the secret ***", kind: ErrUnauthorized},
		"overloaded":   {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, says: "/token: status 503: the endpoint gives no token", kind: ErrUnavailable},
		"not one":      {answer: http.NotFound, says: "/token: status 404: the endpoint gives no token"},
		"elsewhere": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, says: "/token: status 307: the endpoint gives no token"},
		"bad scope": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_scope"}`)
		}, says: "/token: status 400 invalid_scope: the endpoint gives no token", kind: ErrUnauthorized},
		"no token in it": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, says: "/token: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := newTokenEndpoint(t)
			if tc.answer != nil {
				e.answer.Store(&tc.answer)
			}
			_, err := e.tokens(t, cmp.Or(tc.secret, clientSecret)).Token(t.Context())
			require.ErrorContains(t, err, "fetching a token: POST "+e.URL+tc.says)
			if tc.kind != nil {
				require.ErrorIs(t, err, tc.kind)
			}
			assert.NotContains(t, err.Error(), clientSecret)
			assert.NotContains(t, err.Error(), "wrong secret")
		})
	}
	e := newTokenEndpoint(t)
	tokens := e.tokens(t, clientSecret)
	e.Close()
	_, err := tokens.Token(t.Context())
	require.ErrorIs(t, err, ErrUnavailable)
	assert.ErrorContains(t, err, "connection refused")
}

func TestOAuth2SettingsAreChecked(t *testing.T) {
	for name, cfg := range map[string]OAuth2Config{
		"no URL":           {ServerURI: "login", ClientID: "a", ClientSecret: "b"},
		"another scheme":   {ServerURI: "ftp://login", ClientID: "a", ClientSecret: "b"},
		"user information": {ServerURI: "http://a:b@login", ClientID: "a", ClientSecret: "b"},
		"no id":            {ServerURI: "http://login", ClientSecret: "b"},
		"no secret":        {ServerURI: "http://login", ClientID: "a"},
	} {
		_, err := NewTokens(cfg)
		assert.Error(t, err, name)
	}
}

// Programs may have put a transport of their own in the place of net/http's.
func TestAReplacedDefaultTransportIsLeftAlone(t *testing.T) {
	standard := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = standard })
	http.DefaultTransport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, assert.AnError })
	e := newTokenEndpoint(t)
	token, err := e.tokens(t, clientSecret).Token(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "token-1", token)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

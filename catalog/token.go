// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// OAuth2Config is OAuth 2.0's client credentials grant (RFC 6749, section 4.4).
type OAuth2Config struct {
	// ServerURI is the token endpoint.
	ServerURI              string
	ClientID, ClientSecret string
	// Scope holds the scopes, separated by spaces; "" asks for none.
	Scope string
	// TLS is for the connection to the token endpoint; nil are the usual settings.
	TLS *tls.Config
	// Timeout bounds one request for a token. 0 is 30 s.
	Timeout time.Duration
}

// Check says what is wrong with the configuration, and shows none of its values.
func (c OAuth2Config) Check() error {
	u, err := url.Parse(c.ServerURI)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("server_uri must be the http or https URL of the token endpoint")
	case u.User != nil:
		return errors.New("server_uri must not hold user information: use client_id and client_secret")
	case c.ClientID == "" || c.ClientSecret == "":
		return errors.New("client_id and client_secret must not be empty")
	}
	return nil
}

// Tokens fetches a token when one is needed and keeps it until shortly before it expires. It is safe for concurrent use.
type Tokens struct {
	cfg    OAuth2Config
	client *http.Client

	mu    sync.Mutex // held while a token is fetched: one is enough for all that wait
	token *oauth2.Token
}

// NewTokens checks the configuration and does no I/O.
func NewTokens(cfg OAuth2Config) (*Tokens, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	transport := NewTransport(cfg.TLS)
	transport.DisableKeepAlives = true // tokens live for minutes or hours
	return &Tokens{cfg: cfg, client: &http.Client{
		Transport: transport, Timeout: cfg.Timeout,
		// The secret goes to the endpoint that was configured, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Token answers a valid access token. Its errors are *Error.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token.Valid() {
		return t.token.AccessToken, nil
	}
	grant := clientcredentials.Config{
		ClientID: t.cfg.ClientID, ClientSecret: t.cfg.ClientSecret, TokenURL: t.cfg.ServerURI, Scopes: strings.Fields(t.cfg.Scope),
	}
	token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
	if err != nil {
		return "", t.explain(ctx, err)
	}
	t.token = token
	return token.AccessToken, nil
}

// Forget drops a token that a server refused, so that the next request gets another.
func (t *Tokens) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = nil
}

// explain names the endpoint and the status, and what the endpoint says of the reason: not its answer, which can repeat
// the credentials.
func (t *Tokens) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := &Error{Call: "token", Method: http.MethodPost, Message: "the endpoint gives no token", kind: ErrUnavailable}
	if u, parseErr := url.Parse(t.cfg.ServerURI); parseErr == nil {
		failed.URL = publicURL(u)
	}
	var (
		refused *oauth2.RetrieveError
		sending *url.Error
	)
	switch {
	case errors.As(err, &refused):
		failed.Status, failed.Code = refused.Response.StatusCode, t.shown(refused.ErrorCode)
		failed.kind = kindOf(failed.Status, failed.Code)
		if failed.Status == http.StatusBadRequest || failed.Code != "" {
			failed.kind = ErrUnauthorized // invalid_client, invalid_scope, …: what is sent will not get better
		}
		if refused.ErrorDescription != "" {
			failed.Message = t.shown(refused.ErrorDescription)
		}
	case errors.As(err, &sending):
		failed.Message, failed.cause = t.shown(sending.Err.Error()), sending.Err
	default:
		failed.Message = t.shown(err.Error())
	}
	return fmt.Errorf("fetching a token: %w", failed)
}

// shown is text as it may be told.
func (t *Tokens) shown(text string) string {
	for _, secret := range []string{t.cfg.ClientSecret, url.QueryEscape(t.cfg.ClientSecret)} {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return presentable(text, &http.Request{})
}

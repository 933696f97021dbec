// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// An answer larger than this is none of Nessie's: a full page of the log is about a megabyte.
const largestBody = 64 << 20

// attempts makes each HTTP request count as one attempt, be it a first one, a retry or a redirect: it asks leave,
// adds the credentials, bounds the time, reads the whole answer and reports the status. An answer that breaks off is
// an error of the attempt, so that it is retried, and since each is read to its end its connection is used again.
type attempts struct {
	ClientConfig
	home *url.URL
}

type heldError struct{ err error }

func (e *heldError) Error() string { return e.err.Error() }
func (e *heldError) Unwrap() error { return e.err }

var errAnswerTooLarge = fmt.Errorf("the answer is larger than %d bytes", largestBody)

// RoundTrip is http.RoundTripper's, with a body that is in memory.
func (a *attempts) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.BeforeAttempt != nil {
		if err := a.BeforeAttempt(req.Context()); err != nil {
			return notSent(req, &heldError{err})
		}
	}
	ctx, cancel := context.WithTimeout(req.Context(), a.Timeout)
	defer cancel()
	sent := req.Clone(ctx)
	if a.trusts(req.URL) {
		if err := a.addCredentials(sent); err != nil {
			return notSent(req, err)
		}
	}
	resp, err := a.exchange(sent)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && req.Context().Err() == nil {
		err = fmt.Errorf("no whole answer within %s", a.Timeout)
	}
	if err == nil && resp.StatusCode == http.StatusUnauthorized && a.TokenRefused != nil && a.trusts(req.URL) {
		a.TokenRefused()
	}
	if a.OnAttempt != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		a.OnAttempt(callOf(req.Context()).name, status)
	}
	return resp, err
}

// notSent closes the body, as a RoundTripper must whatever happens.
func notSent(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

func (a *attempts) exchange(req *http.Request) (*http.Response, error) {
	resp, err := a.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, largestBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case len(data) > largestBody:
		return nil, errAnswerTooLarge
	}
	if _, err := url.Parse(resp.Header.Get("Location")); err != nil {
		return nil, errors.New("the server redirects to an address that can't be read") // net/http would show it
	}
	resp.Body, resp.Request = io.NopCloser(bytes.NewReader(data)), req
	return resp, nil
}

// trusts says whether the credentials may go to u: the server that they are for, or its https side.
func (a *attempts) trusts(u *url.URL) bool {
	if u.Scheme == a.home.Scheme && u.Host == a.home.Host {
		return true
	}
	return a.home.Scheme == "http" && u.Scheme == "https" && u.Hostname() == a.home.Hostname()
}

func (a *attempts) addCredentials(req *http.Request) error {
	for name, value := range a.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if a.Token == nil {
		return nil
	}
	token, err := a.Token(req.Context())
	if err != nil {
		return fmt.Errorf("asking for a token: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

const longestMessage = 500

// Headers that this package sets itself or net/http does: no secrets.
var ownHeaders = []string{"Accept", "Accept-Encoding", "Content-Type", "Referer", "User-Agent"}

// presentable is text of the server's as it may be shown: on one line, not too long, and without what was sent as a
// credential, which some servers and proxies repeat.
func presentable(s string, req *http.Request) string {
	for name, values := range req.Header {
		if slices.Contains(ownHeaders, name) {
			continue
		}
		for _, value := range values {
			for _, secret := range []string{value, strings.TrimPrefix(value, "Bearer ")} {
				if len(secret) >= 4 {
					s = strings.ReplaceAll(s, secret, "***")
				}
			}
		}
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(s); len(runes) > longestMessage {
		s = string(runes[:longestMessage]) + "…"
	}
	return s
}

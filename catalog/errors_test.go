// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func answerText(code int, kind, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := success(r)
		resp.StatusCode = code
		resp.Header.Set("Content-Type", kind)
		resp.Body = http.NoBody
		if body != "" {
			resp.Body = readCloser{strings.NewReader(body)}
		}
		return resp, err
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func answerError(code int, errorCode, message string) func(*http.Request) (*http.Response, error) {
	return answerText(code, "application/json", `{"status":1,"reason":"r","message":"`+message+`","errorCode":"`+errorCode+`","serverStackTrace":"java.lang"}`)
}

// The texts that a user meets, one golden line each. Each answer that can repeats the credentials that it was sent.
func TestErrorTexts(t *testing.T) {
	const html = "<html>hunter2 secret-token</html>"
	tests := []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		is     error
	}{
		{"unauthorized with an empty body", answerText(401, "", ""), ErrUnauthorized},
		{"unauthorized with a body that repeats the credentials", answerError(401, "", `no hunter2, no Bearer secret-token`), ErrUnauthorized},
		{"forbidden", answerError(403, "FORBIDDEN", "'READ_ENTITY_VALUE' is not allowed for role 'x'"), ErrUnauthorized},
		{"html with success", answerText(200, "text/html; charset=utf-8", html), ErrNotNessie},
		{"html with 404", answerText(404, "text/html", html), ErrNotNessie},
		{"empty success", answerText(200, "", ""), ErrNotNessie},
		{"empty 404", answerText(404, "", ""), ErrNotNessie},
		{"JSON with 404 of something else", answerText(404, "application/json", `{"detail":"Not Found"}`), ErrNotNessie},
		{"JSON of something else", answerText(200, "application/json", `{"hello":"world"}`), ErrNotNessie},
		{"JSON that is cut", answerText(200, "application/json", `{"content":{`), ErrNotNessie},
		{"JSON without a reference", answerText(200, "application/json", `{"content":{"type":"ICEBERG_TABLE"}}`), ErrNotNessie},
		{"html with 502", answerText(502, "text/html", html), ErrUnavailable},
		{"unavailable", answerError(503, "SERVICE_UNAVAILABLE", "backend\\n is  away"), ErrUnavailable},
		{"too many requests", answerText(429, "", ""), ErrUnavailable},
		{"bad request", answerError(400, "BAD_REQUEST", "no "+strings.Repeat("é", 600)), ErrBadRequest},
		{"unsupported media type", answerError(415, "UNSUPPORTED_MEDIA_TYPE", "no"), ErrBadRequest},
		{"conflict", answerError(409, "REFERENCE_CONFLICT", "the branch moved"), ErrConflict},
		{"no connection", broken(errDial), ErrUnavailable},
		{"redirect without end", status(302, "Location", "/api/v2/trees/main/contents/t?token=hunter2"), ErrUnavailable},
		{"redirect that can't be read", status(302, "Location", "http://me:hunter2@x y/"), ErrUnavailable},
	}
	var texts strings.Builder
	for _, test := range tests {
		c := newClient(t, ClientConfig{
			BaseURL: "http://nessie:19120", Headers: map[string]string{"X-Key": "hunter2"},
			Transport: &script{answers: []func(*http.Request) (*http.Response, error){test.answer}},
			Token:     func(context.Context) (string, error) { return "secret-token", nil },
		})
		err := readHead(t.Context(), c)
		require.ErrorIs(t, err, test.is, test.name)
		var failure *Error
		require.ErrorAs(t, err, &failure, test.name)
		assert.Equal(t, "head", failure.Call)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, err.Error(), "secret-token")
		texts.WriteString(test.name + ": " + err.Error() + "\n")
	}
	golden(t, "errors.txt", texts.String())
}

func TestErrorIsOfOneKind(t *testing.T) {
	kinds := []error{ErrUnknownReference, ErrUnknownContent, ErrUnauthorized, ErrConflict, ErrUnavailable, ErrBadRequest, ErrNotNessie}
	for code := 300; code < 600; code++ {
		for _, errorCode := range []string{"", "REFERENCE_NOT_FOUND", "CONTENT_NOT_FOUND", "OTHER"} {
			n := 0
			for _, kind := range kinds {
				if errors.Is(&Error{kind: kindOf(code, errorCode)}, kind) {
					n++
				}
			}
			assert.Equal(t, 1, n, code)
		}
	}
}

func TestAnswerWithoutEndIsRefused(t *testing.T) {
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	transport := &script{answers: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
		resp, err := success(r)
		resp.Body = endlessBody{endless}
		return resp, err
	}}}
	err := readHead(t.Context(), newClient(t, ClientConfig{BaseURL: "http://nessie", Transport: transport, MaxRetries: 3}))
	require.ErrorIs(t, err, ErrNotNessie)
	assert.Len(t, transport.at, 1)
}

type endlessBody struct{ readerFunc }

func (endlessBody) Close() error { return nil }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

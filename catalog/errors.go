// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// What a failed call means to its caller. Every error of a Client that comes from the server or the network is an
// *Error that unwraps to one of these; a context that ended stays context.Canceled or context.DeadlineExceeded.
var (
	// ErrUnknownReference is a branch, tag or commit that does not exist.
	ErrUnknownReference = errors.New("unknown reference")
	// ErrUnknownContent is a key that holds nothing at the reference. Nessie does not tell an unknown table from an
	// unknown namespace: *UnknownError does.
	ErrUnknownContent = errors.New("unknown content")
	// ErrUnauthorized is a refused or missing credential, or a permission that it lacks.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrConflict is a write that lost against another, or that would make what exists already.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable is a server that can't be reached or can't answer now: all retries failed.
	ErrUnavailable = errors.New("unavailable")
	// ErrBadRequest is a request that the server will never accept as it is.
	ErrBadRequest = errors.New("bad request")
	// ErrNotNessie is an answer that no Nessie server with API v2 would give, often from a wrong base URL or a proxy.
	ErrNotNessie = errors.New("not a Nessie server with API v2")
)

// Error is a call to the server that failed. URL has no query and no user information; neither URL nor Message ever
// holds a credential. Status is 0 where no answer came; Code is Nessie's error code where there was one.
type Error struct {
	Call    string
	Method  string
	URL     string
	Status  int
	Code    string
	Message string

	kind  error
	cause error
}

// Error says what was asked, of whom, and what came back.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Method, e.URL)
	if e.Status != 0 {
		fmt.Fprintf(&b, "status %d", e.Status)
		if e.Code != "" {
			b.WriteString(" " + e.Code)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap gives the sentinel that classifies the error and, where there is one, what caused it.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// ContentTypeError is a key that holds something else than an Iceberg table: a view, a namespace, a Delta table.
type ContentTypeError struct {
	Key  Key
	Type string
}

// Error names the type that was found.
func (e *ContentTypeError) Error() string {
	return fmt.Sprintf("%s is of type %s: only %s can be read", e.Key, e.Type, ContentTypeIceberg)
}

// MissingMetadataError is a metadata file that a commit names and that is not there. It unwraps to fs.ErrNotExist.
type MissingMetadataError struct {
	Location string
	Err      error
}

func (e *MissingMetadataError) Error() string {
	return fmt.Sprintf("reading metadata file %s: %v", e.Location, e.Err)
}

func (e *MissingMetadataError) Unwrap() error { return e.Err }

// kindOf classifies an answer that is no success. Nessie says what is missing in its error code; a 404 without one
// comes from something else.
func kindOf(status int, code string) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return ErrUnauthorized
	case status == http.StatusTooManyRequests, status >= 500:
		return ErrUnavailable
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		return ErrConflict
	case code == "REFERENCE_NOT_FOUND":
		return ErrUnknownReference
	case code == "CONTENT_NOT_FOUND", code == "NAMESPACE_NOT_FOUND":
		return ErrUnknownContent
	case status == http.StatusNotFound && code == "", status < 400:
		return ErrNotNessie
	default:
		return ErrBadRequest
	}
}

// publicURL is what of a URL may be shown.
func publicURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return shown.String()
}

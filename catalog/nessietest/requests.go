// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"io"
	"maps"
	"net/http"
)

// Request is one request as it came in, with the status that it was answered with.
type Request struct {
	Call   string // config, references, reference, create, assign, delete, content, contents, entries, diff, history, commit, merge, transplant; "" is none of them
	Method string
	Path   string // as it was sent: still percent-encoded
	Query  string
	Status int
}

// Requests lists what was asked since the last call, in the order of the answers.
func (n *Nessie) Requests() []Request {
	n.logMu.Lock()
	defer n.logMu.Unlock()
	requests := n.requests
	n.requests = nil
	return requests
}

// Counts says how often each call was made since the server began.
func (n *Nessie) Counts() map[string]int {
	n.logMu.Lock()
	defer n.logMu.Unlock()
	return maps.Clone(n.counts)
}

// Intercept shows every request from now on to before, which answers it and says true, or leaves it to the server. It
// runs for several requests at once, and may panic with http.ErrAbortHandler to break the connection. nil ends it.
func (n *Nessie) Intercept(before func(http.ResponseWriter, *http.Request) bool) {
	n.logMu.Lock()
	defer n.logMu.Unlock()
	n.intercept = before
}

// ServeHTTP answers one request.
func (n *Nessie) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := routeOf(r)
	seen := &statusWriter{ResponseWriter: w, answered: func(status int) {
		n.logMu.Lock()
		defer n.logMu.Unlock()
		n.counts[call.name]++
		n.requests = append(n.requests, Request{
			Call: call.name, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Status: status,
		})
	}}
	defer seen.answer(0) // nothing was, as the connection was broken
	n.logMu.Lock()
	before := n.intercept
	n.logMu.Unlock()
	if before != nil && before(seen, r) {
		return
	}
	if n.opts.Token != "" && r.Header.Get("Authorization") != "Bearer "+n.opts.Token {
		seen.Header().Set("WWW-Authenticate", "Bearer")
		seen.WriteHeader(http.StatusUnauthorized) // a real one sends no body either
		return
	}
	if call.serve == nil {
		seen.WriteHeader(call.status)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		writeError(seen, badRequest("reading the request: %v", err))
		return
	}
	answer, err := n.serve(call, arguments{path: call.arguments, query: r.URL.Query(), body: body})
	if err != nil {
		writeError(seen, err)
		return
	}
	writeJSON(seen, http.StatusOK, answer)
}

func (n *Nessie) serve(c call, a arguments) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.serve(n, a)
}

// statusWriter tells the status before any of the answer leaves: a client can have all that it wants before the handler
// returns.
type statusWriter struct {
	http.ResponseWriter
	answered func(status int)
	told     bool
}

func (w *statusWriter) answer(status int) {
	if !w.told {
		w.told = true
		w.answered(status)
	}
}

func (w *statusWriter) WriteHeader(status int) {
	w.answer(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.answer(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets an interceptor flush and hijack.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

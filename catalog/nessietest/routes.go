// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const apiPath = "/api/v2"

// arguments is what a request says: the path's parameters in order, decoded once, and the rest as it came.
type arguments struct {
	path  []string
	query url.Values
	body  []byte
}

type route struct {
	name, method, pattern string // {} in a pattern stands for one path segment
	serve                 func(*Nessie, arguments) (any, error)
}

var routes = []route{
	{"config", http.MethodGet, "/config", (*Nessie).serveConfig},
	{"references", http.MethodGet, "/trees", (*Nessie).serveReferences},
	{"create", http.MethodPost, "/trees", (*Nessie).serveCreate},
	{"reference", http.MethodGet, "/trees/{}", (*Nessie).serveReference},
	{"assign", http.MethodPut, "/trees/{}", (*Nessie).serveAssign},
	{"delete", http.MethodDelete, "/trees/{}", (*Nessie).serveDelete},
	{"contents", http.MethodPost, "/trees/{}/contents", (*Nessie).serveContents},
	{"content", http.MethodGet, "/trees/{}/contents/{}", (*Nessie).serveContent},
	{"entries", http.MethodGet, "/trees/{}/entries", (*Nessie).serveEntries},
	{"diff", http.MethodGet, "/trees/{}/diff/{}", (*Nessie).serveDiff},
	{"history", http.MethodGet, "/trees/{}/history", (*Nessie).serveHistory},
	{"commit", http.MethodPost, "/trees/{}/history/commit", (*Nessie).serveCommit},
	{"merge", http.MethodPost, "/trees/{}/history/merge", (*Nessie).serveMerge},
	{"transplant", http.MethodPost, "/trees/{}/history/transplant", (*Nessie).serveTransplant},
}

// call is the route that a request takes; without one serve is nil and status says why.
type call struct {
	name      string
	arguments []string
	serve     func(*Nessie, arguments) (any, error)
	status    int
}

func routeOf(r *http.Request) call {
	// The path is split before it is decoded: a reference or a key can hold an encoded slash.
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), apiPath)
	found := call{status: http.StatusNotFound}
	if !ok {
		return found
	}
	for _, candidate := range routes {
		parameters, fits := match(candidate.pattern, path)
		switch {
		case fits && candidate.method == r.Method:
			return call{name: candidate.name, arguments: parameters, serve: candidate.serve}
		case fits:
			found.status = http.StatusMethodNotAllowed
		}
	}
	return found
}

func match(pattern, path string) (parameters []string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, segment := range want {
		if segment != "{}" {
			if segment != got[i] {
				return nil, false
			}
			continue
		}
		parameter, err := url.PathUnescape(got[i])
		if err != nil || parameter == "" {
			return nil, false
		}
		parameters = append(parameters, parameter)
	}
	return parameters, true
}

func (a arguments) decode(into any) error {
	if len(a.body) == 0 {
		return badRequest("the request must not be null")
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return badRequest("reading the request: %v", err)
	}
	return nil
}

const largestPage = 250

// pageSize is max-records: none, zero and less stand for the largest page.
func (a arguments) pageSize() (int, error) {
	text := a.query.Get("max-records")
	if text == "" {
		return largestPage, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil {
		return 0, unreadable()
	}
	if size <= 0 || size > largestPage {
		size = largestPage
	}
	return size, nil
}

// only refuses parameters that this server does not know.
func (a arguments) only(known ...string) error {
	for name := range a.query {
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ") {
			return badRequest("the in-memory Nessie does not know the parameter %q here", name)
		}
	}
	return nil
}

// apiError is an answer that is not 200, in Nessie's words.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.message) }

func badRequest(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "BAD_REQUEST", fmt.Sprintf(format, args...)}
}

func unknownReference(format string, args ...any) error {
	return &apiError{http.StatusNotFound, "REFERENCE_NOT_FOUND", fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &apiError{http.StatusConflict, "REFERENCE_CONFLICT", fmt.Sprintf(format, args...)}
}

// unreadable is how the real server answers a parameter that it can't turn into its type: an empty 404.
func unreadable() error { return &apiError{status: http.StatusNotFound} }

func writeError(w http.ResponseWriter, err error) {
	api := &apiError{http.StatusInternalServerError, "UNKNOWN", err.Error()}
	errors.As(err, &api)
	if api.code == "" {
		w.WriteHeader(api.status)
		return
	}
	writeJSON(w, api.status, map[string]any{
		"status": api.status, "reason": http.StatusText(api.status), "message": api.message,
		"errorCode": api.code, "serverStackTrace": nil,
	})
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is its own business
}

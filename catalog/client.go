// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// ClientConfig says where the server is and how to speak to it.
type ClientConfig struct {
	// BaseURL is the server's root, or that with /api/v2, over http or https. User information, a query or a fragment
	// in it is an error.
	BaseURL string
	// Transport sends the requests; nil makes one of the client's own that keeps connections open.
	Transport http.RoundTripper
	// Token gives the bearer token of an attempt; nil or an empty token sends none. Its error is retried like one of the
	// network unless it is ErrUnauthorized. It is called from many goroutines.
	Token func(context.Context) (string, error)
	// TokenRefused hears that the server answered 401, as it does where a token ended early; nil is nobody.
	TokenRefused func()
	// Headers are sent with every request. Like the token they go to the base URL's host only, wherever it redirects to.
	Headers map[string]string
	// Timeout bounds one attempt, from sending it to the last byte of its answer. 0 is 30 s.
	Timeout time.Duration
	// MaxRetries is how often a request is tried again: on 429, 5xx and network errors. 0 is never.
	MaxRetries int
	// BeforeAttempt is asked before each HTTP request, retries and redirects included, and may wait; its error ends the
	// call. nil lets all pass.
	BeforeAttempt func(context.Context) error
	// OnAttempt hears of each HTTP request that was made: the call that it belongs to (config, head, reference,
	// references, entries, log, commit, merge, transplant, create_reference, assign_reference, delete_reference) and
	// the status, 0 where no whole answer came. nil is nobody.
	OnAttempt func(call string, status int)
}

const defaultTimeout = 30 * time.Second

// Client speaks Nessie's API v2. It is safe for concurrent use.
type Client struct {
	base   string // ends in /api/v2
	http   *retryablehttp.Client
	close  func()
	config atomic.Pointer[ServerConfig]
}

// NewClient checks the configuration. It does no I/O. Its errors never show the base URL, which may hold what it must not.
func NewClient(cfg ClientConfig) (*Client, error) {
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := CheckHeaders(cfg.Headers); err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	closeIdle := func() {}
	if cfg.Transport == nil {
		own := NewTransport(nil)
		own.MaxIdleConnsPerHost = 16
		cfg.Transport, closeIdle = own, own.CloseIdleConnections
	}
	return &Client{
		base: base.String(),
		http: &retryablehttp.Client{
			HTTPClient:   &http.Client{Transport: &attempts{ClientConfig: cfg, home: base}},
			RetryWaitMin: retryWaitMin,
			RetryWaitMax: retryWaitMax,
			RetryMax:     max(cfg.MaxRetries, 0),
			CheckRetry:   shouldRetry,
			Backoff:      retryWait,
			ErrorHandler: retryablehttp.PassthroughErrorHandler,
		},
		close: closeIdle,
	}, nil
}

// Close lets go of connections that are kept open. A Transport that was given is left alone.
func (c *Client) Close() { c.close() }

// CheckBaseURL says what is wrong with a base URL, and does not show it.
func CheckBaseURL(s string) error {
	_, err := parseBaseURL(s)
	return err
}

// CheckHeaders names a header that can't be sent, and does not show its value.
func CheckHeaders(headers map[string]string) error {
	for name, value := range headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("header %q can't be sent: its name or its value holds a character that HTTP forbids", name)
		}
	}
	return nil
}

func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("base_url must be an http or https URL such as http://nessie:19120")
	case u.User != nil:
		return nil, errors.New("base_url must not hold user information: use auth")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("base_url must not hold a query or a fragment")
	}
	path := strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(path, "/api/v1") {
		return nil, errors.New("base_url names API v1: API v2 is needed, leave the path away or end it in /api/v2")
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(path, "/api/v2")}
	return root.JoinPath("api", "v2"), nil
}

// Config is what the server says of itself. It is asked once in the client's life.
func (c *Client) Config(ctx context.Context) (ServerConfig, error) {
	if known := c.config.Load(); known != nil {
		return *known, nil
	}
	config, err := c.askConfig(ctx)
	if err != nil {
		return ServerConfig{}, fmt.Errorf("reading the server's configuration: %w", err)
	}
	c.config.Store(&config)
	return config, nil
}

func (c *Client) askConfig(ctx context.Context) (ServerConfig, error) {
	var answer struct {
		DefaultBranch          string `json:"defaultBranch"`
		MinSupportedAPIVersion int    `json:"minSupportedApiVersion"`
		MaxSupportedAPIVersion int    `json:"maxSupportedApiVersion"`
		SpecVersion            string `json:"specVersion"`
		NoAncestorHash         string `json:"noAncestorHash"`
	}
	req := request{call: "config", method: http.MethodGet, path: "/config"}
	if err := c.do(ctx, req, &answer); err != nil {
		return ServerConfig{}, err
	}
	if answer.MaxSupportedAPIVersion < 2 || answer.MinSupportedAPIVersion > 2 {
		return ServerConfig{}, c.notNessie(req, fmt.Sprintf("the server supports API versions %d to %d, and 2 is needed",
			answer.MinSupportedAPIVersion, answer.MaxSupportedAPIVersion))
	}
	return ServerConfig{
		DefaultBranch: answer.DefaultBranch, MinAPIVersion: answer.MinSupportedAPIVersion,
		MaxAPIVersion: answer.MaxSupportedAPIVersion, SpecVersion: answer.SpecVersion, NoAncestorHash: answer.NoAncestorHash,
	}, nil
}

// escapesKeys is true from Nessie spec 2.2.0 on.
func (s ServerConfig) escapesKeys() bool {
	majorText, rest, _ := strings.Cut(s.SpecVersion, ".")
	minorText, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(majorText)
	if err != nil {
		return false
	}
	minor, _ := strconv.Atoi(minorText)
	return major > 2 || major == 2 && minor >= 2
}

// request is one call of the API. Its path is percent-encoded and begins with a slash.
type request struct {
	call   string
	method string
	path   string
	query  url.Values
	body   any
}

func (c *Client) url(req request) string {
	if len(req.query) == 0 {
		return c.base + req.path
	}
	return c.base + req.path + "?" + req.query.Encode()
}

// do sends a request, with its retries, and reads the answer's JSON into answer.
func (c *Client) do(ctx context.Context, req request, answer any) error {
	var body any
	if req.body != nil {
		encoded, err := json.Marshal(req.body)
		if err != nil {
			return fmt.Errorf("encoding the body of %s: %w", req.call, err)
		}
		body = encoded
	}
	r, err := retryablehttp.NewRequestWithContext(withCall(ctx, req), req.method, c.url(req), body)
	if err != nil {
		return fmt.Errorf("%w: making the request %s", ErrBadRequest, req.call)
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return c.failed(ctx, req, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) // in memory already, see attempts
	if err != nil {
		return c.failed(ctx, req, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(req, resp, data)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		failure := refusal(req, resp, nil)
		failure.Message, failure.kind = "the server answered with "+mediaType(resp, data)+hint, ErrNotNessie
		return failure
	}
	return nil
}

const hint = ": is base_url the root of a Nessie server?"

// failed is a request that got no answer.
func (c *Client) failed(ctx context.Context, req request, err error) error {
	failure := &Error{Call: req.call, Method: req.method, URL: c.base + req.path, kind: ErrUnavailable, cause: err}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		failure.cause = wrapped.Err // what wraps it shows the whole URL
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", failure.Method, failure.URL, ctx.Err())
	}
	var held *heldError
	switch {
	case errors.As(err, &held):
		return fmt.Errorf("%s %s: %w", failure.Method, failure.URL, held.err)
	case errors.Is(err, ErrUnauthorized):
		failure.kind = ErrUnauthorized
	case errors.Is(err, errAnswerTooLarge):
		failure.kind = ErrNotNessie
	}
	failure.Message = failure.cause.Error()
	return failure
}

// refusal is an answer that is no success.
func refusal(req request, resp *http.Response, data []byte) *Error {
	var body struct {
		Message   string `json:"message"`
		ErrorCode string `json:"errorCode"`
	}
	isJSON := json.Unmarshal(data, &body) == nil
	failure := &Error{
		Call: req.call, Method: req.method, URL: publicURL(resp.Request.URL), Status: resp.StatusCode, Code: body.ErrorCode,
		Message: presentable(body.Message, resp.Request), kind: kindOf(resp.StatusCode, body.ErrorCode),
	}
	said := failure.Message
	if said == "" {
		said = http.StatusText(resp.StatusCode)
	}
	switch {
	case failure.kind == ErrUnauthorized:
		failure.Message = "the server did not accept the credentials: " + said
	case failure.kind == ErrNotNessie && !isJSON && len(data) > 0:
		failure.Message = "the server answered with " + mediaType(resp, data) + hint
	case failure.kind == ErrNotNessie:
		failure.Message = said + hint
	default:
		failure.Message = said
	}
	return failure
}

// notNessie is an answer that is JSON and a success and still not what was asked for.
func (c *Client) notNessie(req request, why string) error {
	return &Error{Call: req.call, Method: req.method, URL: c.base + req.path, Status: http.StatusOK, Message: why + hint, kind: ErrNotNessie}
}

// checked passes the value on, and turns the error of a part that the answer lacks into one of the call.
func checked[T any](c *Client, req request, part func() (T, error)) (T, error) {
	value, err := part()
	if err != nil {
		err = c.notNessie(req, err.Error())
	}
	return value, err
}

func mediaType(resp *http.Response, data []byte) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "an empty body"
	case kind == "" || kind == "application/json":
		return "something that is not the JSON it asked for"
	default:
		return presentable(kind, resp.Request)
	}
}

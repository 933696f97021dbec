// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyrand "github.com/aws/smithy-go/rand"
)

// s3Patterns asks for objects without the SDK's client wherever that makes no difference. The client finds out anew for
// each request where a bucket is and how to ask for it, which takes longer than reading a small file. Here the first
// request that it made for a bucket's object is the pattern of the others: key and range are put in, and the SDK's signer
// signs with the SDK's credentials. Whatever comes back other than the object is handed to the client as the answer to
// its first attempt, so that attempts, waits, clocks and errors are the client's.
//
// It stands between the client and the HTTP client, to see that first request and to hand over answers. Safe for
// concurrent use.
type s3Patterns struct {
	http        s3.HTTPClient
	signer      s3.HTTPSignerV4
	credentials aws.CredentialsProvider
	retryer     aws.Retryer

	byBucket sync.Map // string to *s3Pattern; nil: the client does more for this bucket than a pattern can
}

// s3Get is one request for an object.
type s3Get struct {
	bucket, key, rng string
	// first is what its first attempt was answered, where the client does not know yet that it was made.
	first *s3Answer
}

type s3Answer struct {
	request  *http.Request
	response *http.Response
	err      error
}

type s3GetKey struct{}

// within is the context for the client to make the request with.
func (g *s3Get) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, s3GetKey{}, g)
}

// take answers an attempt of the client, if it is the first and was made already.
func (g *s3Get) take(request *http.Request) *s3Answer {
	first := g.first
	if first == nil || first.request.URL.String() != request.URL.String() {
		return nil
	}
	g.first = nil
	return first
}

// drop closes what the client did not ask for.
func (g *s3Get) drop() {
	if g.first != nil && g.first.err == nil {
		_ = g.first.response.Body.Close() // nobody reads it
	}
	g.first = nil
}

// use makes the client's options those of a client whose requests p knows.
func (p *s3Patterns) use(o *s3.Options) {
	p.http, p.signer, p.credentials, p.retryer = o.HTTPClient, o.HTTPSignerV4, o.Credentials, o.Retryer
	o.HTTPClient = p
}

// get makes the request by its bucket's pattern. On nil the client has to make it, within its context, and to drop it.
func (p *s3Patterns) get(ctx context.Context, g *s3Get) *http.Response {
	g.first = p.attempt(ctx, g)
	first := g.first
	if first == nil || first.err != nil || !isObject(first.response) {
		return nil
	}
	g.first = nil
	p.succeeded(ctx)
	return first.response
}

func isObject(r *http.Response) bool {
	return r.StatusCode == http.StatusOK || r.StatusCode == http.StatusPartialContent
}

// attempt is nil where no request was made.
func (p *s3Patterns) attempt(ctx context.Context, g *s3Get) *s3Answer {
	known, _ := p.byBucket.Load(g.bucket)
	pattern, _ := known.(*s3Pattern)
	if pattern == nil || !plainKey(g.key) {
		return nil
	}
	credentials, err := p.credentials.Retrieve(ctx)
	if err != nil {
		return nil
	}
	request, err := pattern.request(ctx, g.key, g.rng)
	if err != nil {
		return nil
	}
	if err := pattern.sign(p.signer, credentials, request, time.Now().Add(pattern.skew)); err != nil {
		return nil
	}
	response, err := p.http.Do(request) //nolint:bodyclose // whoever gets the answer does
	if err != nil || !isObject(response) {
		p.byBucket.CompareAndDelete(g.bucket, pattern) // it may have been right once
	}
	return &s3Answer{request, response, err}
}

// succeeded tells the retryer what it hears of each first attempt that succeeds: its quota of retries grows again.
func (p *s3Patterns) succeeded(ctx context.Context) {
	if r, ok := p.retryer.(aws.RetryerV2); ok {
		if release, err := r.GetAttemptToken(ctx); err == nil {
			_ = release(nil) // only counts
		}
	}
}

// Do is called by the client.
func (p *s3Patterns) Do(request *http.Request) (*http.Response, error) {
	g, _ := request.Context().Value(s3GetKey{}).(*s3Get)
	if g == nil || request.Method != http.MethodGet {
		return p.http.Do(request)
	}
	if first := g.take(request); first != nil {
		return first.response, first.err
	}
	response, err := p.http.Do(request)
	if err == nil && isObject(response) {
		p.learn(g, request)
	}
	return response, err
}

// learn keeps the request as a pattern if making it by the pattern would have made the same, signature included.
func (p *s3Patterns) learn(g *s3Get, request *http.Request) {
	if _, known := p.byBucket.Load(g.bucket); known || !plainKey(g.key) || !strings.HasPrefix(request.Header.Get(attemptHeader), "attempt=1;") {
		return
	}
	pattern, sent := patternOf(g, request)
	if pattern != nil && !p.makes(pattern, g, request, sent) {
		pattern = nil
	}
	p.byBucket.LoadOrStore(g.bucket, pattern)
}

func (p *s3Patterns) makes(pattern *s3Pattern, g *s3Get, want *http.Request, sent time.Time) bool {
	ctx := want.Context()
	credentials, err := p.credentials.Retrieve(ctx)
	if err != nil {
		return false
	}
	made, err := pattern.request(ctx, g.key, g.rng)
	if err != nil {
		return false
	}
	made.Header[invocationHeader] = want.Header[invocationHeader]
	if pattern.sign(p.signer, credentials, made, sent) != nil {
		return false
	}
	return made.URL.String() == want.URL.String() && made.Host == want.Host && want.ContentLength == 0 &&
		maps.EqualFunc(made.Header, want.Header, slices.Equal)
}

const (
	attemptHeader    = "Amz-Sdk-Request"
	invocationHeader = "Amz-Sdk-Invocation-Id"
	signingTime      = "20060102T150405Z"
)

// s3Pattern is what all requests for the objects of a bucket have in common.
type s3Pattern struct {
	url         url.URL // of the bucket: keys are appended to the path
	host        string
	header      http.Header // without what signing adds
	payloadHash string
	service     string
	region      string
	skew        time.Duration // of the store's clock, as far as the client has corrected for it
}

// patternOf takes a request apart that was sent for g; nil where it is none that a pattern makes.
func patternOf(g *s3Get, request *http.Request) (p *s3Pattern, sent time.Time) {
	scope, _, _ := strings.Cut(strings.TrimPrefix(request.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), ",")
	parts := strings.Split(scope, "/") // id, date, region, service, aws4_request; an id may hold slashes
	sent, err := time.Parse(signingTime, request.Header.Get("X-Amz-Date"))
	if err != nil || len(parts) < 5 {
		return nil, sent
	}
	p = &s3Pattern{
		url: *request.URL, host: request.Host, header: request.Header.Clone(), payloadHash: request.Header.Get("X-Amz-Content-Sha256"),
		region: parts[len(parts)-3], service: parts[len(parts)-2],
	}
	var plain, escaped bool
	p.url.Path, plain = strings.CutSuffix(p.url.Path, g.key)
	p.url.RawPath, escaped = strings.CutSuffix(p.url.RawPath, httpbinding.EscapePath(g.key, false))
	if !plain || !escaped {
		return nil, sent
	}
	for _, signed := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Range", invocationHeader} {
		p.header.Del(signed)
	}
	if skew := time.Until(sent); skew.Abs() > 5*time.Second { // less is the time since then
		p.skew = skew
	}
	return p, sent
}

// request is unsigned.
func (p *s3Pattern) request(ctx context.Context, key, rng string) (*http.Request, error) {
	id, err := smithyrand.NewUUID(rand.Reader).GetUUID()
	if err != nil {
		return nil, err
	}
	at := p.url
	at.Path += key
	at.RawPath += httpbinding.EscapePath(key, false)
	r := &http.Request{
		Method: http.MethodGet, URL: &at, Host: p.host, Header: maps.Clone(p.header), // values are replaced, never changed
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	r.Header[invocationHeader] = []string{id}
	if rng != "" {
		r.Header["Range"] = []string{rng}
	}
	return r.WithContext(ctx), nil
}

func (p *s3Pattern) sign(signer s3.HTTPSignerV4, credentials aws.Credentials, r *http.Request, at time.Time) error {
	return signer.SignHTTP(r.Context(), credentials, r, p.payloadHash, p.service, p.region, at, func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // S3 escapes once
	})
}

// plainKey tells whether a key is one that no layer could take for a path to tidy up.
func plainKey(key string) bool {
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

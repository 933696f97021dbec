// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// recorder is an S3 server whose objects are all there and hold ten bytes.
type recorder struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []*http.Request
	answer func(w http.ResponseWriter, r *http.Request) bool // true: answered
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Clone(context.Background()))
	answer := s.answer
	s.mu.Unlock()
	if answer == nil || !answer(w, r) {
		http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), strings.NewReader("0123456789"))
	}
}

// since is what was asked since the last call.
func (s *recorder) since() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *recorder) answers(with func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = with
}

// refuses answers everything with an S3 error.
func refuses(status int, code string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
		return true
	}
}

func (s *recorder) config() S3Config {
	return S3Config{Endpoint: s.URL, Region: "eu-west-3", AccessKeyID: "id/of", SecretAccessKey: "secret", SessionToken: "token"}
}

// open is a storage of one bucket that knows the pattern.
func (s *recorder) open(t *testing.T, cfg S3Config) *Storage {
	t.Helper()
	storage := newStorage(t, StorageConfig{S3: cfg})
	t.Cleanup(func() { assert.NoError(t, storage.Close()) })
	assert.Equal(t, "0123456789", string(readAll(t, storage.FS(), "s3://bucket/first.avro")))
	require.NotNil(t, storage.pattern("bucket"), "the first request is a pattern")
	s.since()
	return storage
}

func (s *Storage) pattern(bucket string) *s3Pattern {
	known, _ := s.s3.patterns.byBucket.Load(bucket)
	pattern, _ := known.(*s3Pattern)
	return pattern
}

// withoutPattern makes the client do everything.
func (s *Storage) withoutPattern(bucket string) *Storage {
	s.s3.patterns.byBucket.Store(bucket, (*s3Pattern)(nil))
	return s
}

// known is what requests for the same object have in common.
func known(r *http.Request) (string, http.Header) {
	header := r.Header.Clone()
	_, signed, _ := strings.Cut(header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	header.Set("Authorization", signed)
	for _, own := range []string{"X-Amz-Date", invocationHeader} {
		if header.Get(own) != "" {
			header.Set(own, "there")
		}
	}
	return r.Method + " " + r.Host + " " + r.RequestURI, header
}

func TestS3PatternsMakeTheRequestsOfTheClient(t *testing.T) {
	server := startRecorder(t)
	byPattern := server.open(t, server.config())
	byClient := newStorage(t, StorageConfig{S3: server.config()}).withoutPattern("bucket")
	defer byClient.Close() //nolint:errcheck // only read
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(
			rapid.StringMatching(`[a-z0-9=_.~/ %+&?#:;@!$'()*,"\\é日-]{1,30}`), rapid.StringN(1, 20, -1),
		).Draw(t, "key")
		n := rapid.SampledFrom([]int64{-1, 1, 10, 12}).Draw(t, "bytes")
		var contents [2][]byte
		var errs [2]error
		var asked [2][]*http.Request
		for i, s := range []*Storage{byPattern, byClient} {
			contents[i], errs[i] = s.FS().(prefixIO).ReadPrefix("s3://bucket/"+key, n)
			asked[i] = server.since()
		}
		assert.Equal(t, contents[1], contents[0])
		assert.Equal(t, errs[1] == nil, errs[0] == nil)
		require.Len(t, asked[0], len(asked[1]))
		for i, want := range asked[1] {
			wantLine, wantHeader := known(want)
			line, header := known(asked[0][i])
			assert.Equal(t, wantLine, line)
			assert.Equal(t, wantHeader, header)
		}
	})
	assert.NotNil(t, byPattern.pattern("bucket"))
}

func TestS3PatternsAreSigned(t *testing.T) {
	server := startRecorder(t)
	s := server.open(t, server.config())
	assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/a=1/b c.parquet")))
	asked := server.since()
	require.Len(t, asked, 1)
	got := asked[0]
	sent, err := time.Parse(signingTime, got.Header.Get("X-Amz-Date"))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), sent, time.Minute)

	again := got.Clone(t.Context())
	again.URL.Host, again.URL.Scheme = got.Host, "http"
	_, signed, _ := strings.Cut(got.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	for name := range again.Header {
		if !strings.Contains(";"+signed+";", ";"+strings.ToLower(name)+";") {
			again.Header.Del(name)
		}
	}
	require.NoError(t, v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "id/of", SecretAccessKey: "secret", SessionToken: "token"},
		again, got.Header.Get("X-Amz-Content-Sha256"), "s3", "eu-west-3", sent, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }))
	assert.Equal(t, again.Header.Get("Authorization"), got.Header.Get("Authorization"))
}

// The client answers for what a pattern's request was refused, and that request counts among its attempts.
func TestS3PatternsLeaveErrorsToTheClient(t *testing.T) {
	for name, test := range map[string]struct {
		status   int
		code     string
		attempts int
		check    func(t *testing.T, err error)
	}{
		"missing":   {http.StatusNotFound, "NoSuchKey", 1, func(t *testing.T, err error) { require.ErrorIs(t, err, fs.ErrNotExist) }},
		"no bucket": {http.StatusNotFound, "NoSuchBucket", 1, func(t *testing.T, err error) { require.NotErrorIs(t, err, fs.ErrNotExist) }},
		"refused":   {http.StatusForbidden, "AccessDenied", 1, func(t *testing.T, err error) { require.ErrorIs(t, err, fs.ErrPermission) }},
		"throttled": {http.StatusServiceUnavailable, "SlowDown", 2, func(t *testing.T, err error) { require.ErrorContains(t, err, "SlowDown") }},
		"elsewhere": {http.StatusMovedPermanently, "PermanentRedirect", 1, func(t *testing.T, err error) { require.ErrorContains(t, err, "PermanentRedirect") }},
	} {
		t.Run(name, func(t *testing.T) {
			server := startRecorder(t)
			cfg := server.config()
			cfg.MaxAttempts = 2
			s := server.open(t, cfg)
			server.answers(refuses(test.status, test.code))
			_, err := s.FS().Open("s3://bucket/other.parquet")
			test.check(t, err)
			assert.Len(t, server.since(), test.attempts)
			assert.Nil(t, s.pattern("bucket"), "it may be why")

			server.answers(nil)
			for range 2 {
				assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/other.parquet")))
			}
			assert.Len(t, server.since(), 2)
			assert.NotNil(t, s.pattern("bucket"))
		})
	}
}

func TestS3PatternsGoOnAfterAThrottledRequest(t *testing.T) {
	server := startRecorder(t)
	s := server.open(t, server.config())
	var once sync.Once
	server.answers(func(w http.ResponseWriter, r *http.Request) (answered bool) {
		once.Do(func() { answered = refuses(http.StatusServiceUnavailable, "SlowDown")(w, r) })
		return answered
	})
	assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/other.parquet")))
	asked := server.since()
	require.Len(t, asked, 2)
	assert.Contains(t, asked[0].Header.Get(attemptHeader), "attempt=1")
	assert.Contains(t, asked[1].Header.Get(attemptHeader), "attempt=2")
}

// A store whose clock is an hour ahead takes what is signed by its clock.
func TestS3PatternsFollowTheClockOfTheStore(t *testing.T) {
	server := startRecorder(t)
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	server.answers(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Date", ahead().UTC().Format(http.TimeFormat))
		sent, err := time.Parse(signingTime, r.Header.Get("X-Amz-Date"))
		assert.NoError(t, err)
		if ahead().Sub(sent).Abs() < 15*time.Minute {
			return false
		}
		return refuses(http.StatusForbidden, "RequestTimeTooSkewed")(w, r)
	})
	s := newStorage(t, StorageConfig{S3: server.config()})
	defer s.Close() //nolint:errcheck // only read
	for range 2 {
		assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/f.parquet")))
	}
	server.since()
	require.NotNil(t, s.pattern("bucket"))
	assert.InDelta(t, time.Hour, s.pattern("bucket").skew, float64(time.Minute))
	assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/f.parquet")))
	assert.Len(t, server.since(), 1)
}

func TestS3PatternsAreSignedWithTheCredentialsOfTheTime(t *testing.T) {
	server := startRecorder(t)
	s := server.open(t, server.config())
	s.s3.patterns.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "later", SecretAccessKey: "s"}, nil
	})
	assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/f.parquet")))
	asked := server.since()
	require.Len(t, asked, 1)
	assert.Contains(t, asked[0].Header.Get("Authorization"), "Credential=later/")
	assert.Empty(t, asked[0].Header.Get("X-Amz-Security-Token"))
}

func TestS3PatternsEndWithTheirContext(t *testing.T) {
	server := startRecorder(t)
	s := server.open(t, server.config())
	ctx, cancel := context.WithCancel(t.Context())
	server.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	_, err := s.Within(ctx).Open("s3://bucket/f.parquet")
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, server.since(), 1)
}

// Nobody signs for a bucket that is read anonymously: there is no pattern, and reading works.
func TestS3PatternsNeedASignature(t *testing.T) {
	server := startRecorder(t)
	s := newStorage(t, StorageConfig{S3: server.config()})
	defer s.Close() //nolint:errcheck // only read
	client, err := s.s3.get(t.Context())
	require.NoError(t, err)
	require.NotNil(t, client)
	g := &s3Get{bucket: "bucket", key: "f.avro"}
	request, err := http.NewRequestWithContext(g.within(t.Context()), http.MethodGet, server.URL+"/bucket/f.avro", nil)
	require.NoError(t, err)
	request.Header.Set(attemptHeader, "attempt=1; max=3")
	response, err := s.s3.patterns.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Nil(t, s.pattern("bucket"))
	assert.Equal(t, "0123456789", string(readAll(t, s.FS(), "s3://bucket/f.avro")))
}

// Requests that succeed pay back what attempts cost, whoever makes them.
func TestS3PatternsPayIntoTheQuotaOfRetries(t *testing.T) {
	bucket := ratelimit.NewTokenRateLimit(10)
	p := &s3Patterns{retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter = bucket })}
	_, err := bucket.GetToken(t.Context(), 10)
	require.NoError(t, err)
	_, err = bucket.GetToken(t.Context(), 1)
	require.Error(t, err)
	p.succeeded(t.Context())
	_, err = bucket.GetToken(t.Context(), 1)
	require.NoError(t, err)
}

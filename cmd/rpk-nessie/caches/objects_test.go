// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failing answers the first requests with a status, and then as next does.
func failing(status, times int, next http.Handler) http.Handler {
	var left atomic.Int64
	left.Store(int64(times))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) >= 0 {
			_, _ = io.Copy(io.Discard, r.Body) // an answer before the end would break the connection
			w.WriteHeader(status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func s3Server(t *testing.T, status, times int) string {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("pipelines"))
	server := httptest.NewServer(failing(status, times, gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()))
	t.Cleanup(server.Close)
	return server.URL
}

func s3Cache(t *testing.T, endpoint, bucket string) service.Cache {
	t.Helper()
	s, err := newS3(parse(t, s3Spec(), "bucket: "+bucket+"\nendpoint: "+endpoint+"\nforce_path_style_urls: true\ncredentials: { id: k, secret: s }\nretries: { initial_interval: 1ms, max_interval: 5ms, max_elapsed_time: 2s }"))
	require.NoError(t, err)
	return objects{s}
}

func TestS3(t *testing.T) { contract(t, s3Cache(t, s3Server(t, 0, 0), "pipelines")) }

func TestS3IsTriedAgain(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusTooManyRequests} {
		c := s3Cache(t, s3Server(t, status, 3), "pipelines")
		require.NoError(t, c.Set(t.Context(), "k", []byte("v"), nil), "%d", status)
		value, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, "v", string(value))
		require.NoError(t, c.Close(t.Context()))
	}
}

func TestS3SaysWhatIsWrong(t *testing.T) {
	missing := s3Cache(t, s3Server(t, 0, 0), "nowhere")
	_, err := missing.Get(t.Context(), "k")
	require.ErrorContains(t, err, `reading object "k": bucket "nowhere" does not exist`)
	require.NotErrorIs(t, err, service.ErrKeyNotFound)
	require.ErrorContains(t, missing.Set(t.Context(), "k", nil, nil), `writing object "k": bucket "nowhere" does not exist`)
	require.NoError(t, missing.Close(t.Context()))
	forbidden := s3Cache(t, s3Server(t, http.StatusForbidden, 100), "pipelines")
	_, err = forbidden.Get(t.Context(), "k")
	require.ErrorContains(t, err, "the credentials lack a permission")
	require.NoError(t, forbidden.Close(t.Context()))
}

func TestWrongS3SettingsAreRefused(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	for yaml, says := range map[string]string{
		"credentials: { id: a }":                                          "id and secret go together",
		"credentials: { id: a, secret: b, from_ec2_role: true }":          "exclude each other",
		"credentials: { role_external_id: a }":                            "role_external_id needs a role",
		"credentials: { id: a, secret: b }":                               "no region",
		"retries: { initial_interval: x }":                                "initial_interval",
		"region: x\ncredentials: { id: a, secret: b, role: r, token: t }": "",
		"region: x\ncredentials: { from_ec2_role: true }":                 "",
	} {
		s, err := newS3(parse(t, s3Spec(), "bucket: b\n"+yaml))
		if says == "" {
			require.NoError(t, err, yaml)
			require.NoError(t, s.close())
			continue
		}
		require.ErrorContains(t, err, says, yaml)
	}
}

// bucket is a bucket as Google's documentation of the JSON API describes it: media uploads, preconditions, errors.
type bucket struct {
	mu      sync.Mutex
	objects map[string]string
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := r.URL.EscapedPath()
	switch {
	case !strings.Contains(path, "/b/pipelines/o"):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":{"code":404,"message":"The specified bucket does not exist."}}`)
	case r.Method == http.MethodPost && path == "/upload/storage/v1/b/pipelines/o" && r.URL.Query().Get("uploadType") == "media":
		name := r.URL.Query().Get("name")
		if _, exists := b.objects[name]; exists && r.URL.Query().Get("ifGenerationMatch") == "0" {
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"error":{"code":412,"message":"At least one of the pre-conditions you specified did not hold."}}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		b.objects[name] = string(body)
		fmt.Fprint(w, `{}`)
	default:
		b.object(w, r, strings.TrimPrefix(r.URL.Path, "/storage/v1/b/pipelines/o/"))
	}
}

func (b *bucket) object(w http.ResponseWriter, r *http.Request, name string) {
	value, exists := b.objects[name]
	switch {
	case !exists:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "No such object: pipelines/"+name)
	case r.Method == http.MethodDelete:
		delete(b.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && r.URL.Query().Get("alt") == "media":
		fmt.Fprint(w, value)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

func gcsCache(t *testing.T, bucket string, handler http.Handler) service.Cache {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv(gcsEmulator, strings.TrimPrefix(server.URL, "http://"))
	s, err := newGCS(parse(t, gcsSpec(), "bucket: "+bucket+"\ncontent_type: application/json"))
	require.NoError(t, err)
	s.retries.InitialInterval, s.retries.MaxElapsedTime = time.Millisecond, time.Second
	return objects{s}
}

func TestGCS(t *testing.T) {
	contract(t, gcsCache(t, "pipelines", &bucket{objects: map[string]string{}}))
}

func TestGCSIsTriedAgain(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		c := gcsCache(t, "pipelines", failing(status, 3, &bucket{objects: map[string]string{}}))
		require.NoError(t, c.Set(t.Context(), "k", []byte("v"), nil), "%d", status)
		require.NoError(t, c.Close(t.Context()))
	}
}

func TestGCSSaysWhatIsWrong(t *testing.T) {
	missing := gcsCache(t, "nowhere", &bucket{})
	_, err := missing.Get(t.Context(), "k")
	require.ErrorContains(t, err, `reading object "k": bucket "nowhere" does not exist`)
	require.NotErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, missing.Close(t.Context()))
	forbidden := gcsCache(t, "pipelines", failing(http.StatusForbidden, 100, nil))
	require.ErrorContains(t, forbidden.Set(t.Context(), "k", nil, nil), "the account needs the role Storage Object User: 403 Forbidden")
	require.NoError(t, forbidden.Close(t.Context()))
	t.Setenv(gcsEmulator, "")
	_, err = newGCS(parse(t, gcsSpec(), "bucket: b\ncredentials_json: 'no { secret'"))
	require.EqualError(t, err, "credentials_json: not a service account's key")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
	_, err = newGCS(parse(t, gcsSpec(), "bucket: b"))
	require.ErrorContains(t, err, "finding Google's default credentials (or set credentials_json)")
}

func TestWrongAzureSettingsAreRefused(t *testing.T) {
	for yaml, says := range map[string]string{
		"container: c": "storage_connection_string or storage_account is needed",
		"container: ''\nstorage_account: a\nstorage_access_key: k":    "container is needed",
		"container: c\nstorage_account: a":                            "",
		"container: c\nstorage_account: a\nstorage_access_key: '%%'":  "not a key in base64",
		"container: c\nstorage_connection_string: nonsense":           "not a connection string",
		"container: c\nstorage_account: a\nstorage_access_key: a2V5":  "",
		"container: c\nstorage_account: a\nstorage_sas_token: ?sig=x": "",
	} {
		s, err := newAzure(parse(t, azureSpec(), yaml))
		if says == "" {
			require.NoError(t, err, yaml)
			require.NoError(t, s.close())
			continue
		}
		require.ErrorContains(t, err, says, yaml)
	}
	lints, err := service.NewEnvironment().NewComponentConfigLinter().LintCacheYAML([]byte("label: x\nazure_blob_storage: { container: c }"))
	require.NoError(t, err)
	require.Len(t, lints, 1)
	assert.Contains(t, lints[0].Error(), "storage_account is needed")
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCredentialsForOneAccountAreNotSentToAnother(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		t.Error("asked")
	}))
	t.Cleanup(server.Close)
	for _, cfg := range []AzureConfig{
		{Account: "mine", Endpoint: server.URL, SASToken: "sig=secret"},
		{ConnectionString: "DefaultEndpointsProtocol=http;AccountName=mine;AccountKey=c2VjcmV0;BlobEndpoint=" + server.URL + "/mine;"},
	} {
		s := newStorage(t, StorageConfig{Azure: cfg})
		_, err := s.FS().Open("abfss://lake@theirs.dfs.core.windows.net/f.avro")
		require.ErrorIs(t, err, ErrLocationRefused)
		assert.ErrorContains(t, err, "it lies in account theirs, and storage.azure_blob_storage is for mine")
		require.NoError(t, s.Close())
	}
}

func TestAzureErrorsShowNoSignature(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "secret", r.URL.Query().Get("sig"))
		w.Header().Set("X-Ms-Error-Code", "AuthenticationFailed")
		w.WriteHeader(http.StatusForbidden)
	}))
	s := newStorage(t, StorageConfig{MaxAttempts: 1, Azure: AzureConfig{Account: "mine", Endpoint: server.URL, SASToken: "?sv=2024&sig=secret"}})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	_, err := s.FS().Open("abfss://lake@mine.dfs.core.windows.net/f.avro")
	require.ErrorContains(t, err, "Azure Blob Storage of mine: status 403 AuthenticationFailed")
	assert.NotContains(t, err.Error(), "secret")
	server.Close()
	_, err = s.FS().Open("abfss://lake@mine.dfs.core.windows.net/f.avro")
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "secret")
}

func TestGoogleErrorsNameTheEndpoint(t *testing.T) {
	answers := map[string]int{"gone": http.StatusNotFound, "mine": http.StatusForbidden}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, status := range answers {
			if r.URL.Path == "/storage/v1/b/lake/o/"+key {
				w.WriteHeader(status)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"code":404,"message":"The specified bucket does not exist."}}`))
	}))
	t.Cleanup(server.Close)
	s := newStorage(t, StorageConfig{MaxAttempts: 1, GCS: GCSConfig{Endpoint: server.URL}})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	_, err := s.FS().Open("gs://lake/gone")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.FS().Open("gs://lake/mine")
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "Google Cloud Storage at "+server.URL+": status 403")
	_, err = s.FS().Open("gs://nothing/f")
	require.NotErrorIs(t, err, fs.ErrNotExist, "a bucket that does not exist must not look like files that are gone")
	assert.ErrorContains(t, err, "The specified bucket does not exist")
}

func TestGoogleAsksAgainWhereAStoreStalls(t *testing.T) {
	content := someBytes(50_000)
	server := newStalling(t, content, func(n int64) (int, bool) { return map[int64]int{1: -1, 2: 20_000}[n], n <= 2 })
	s := newStorage(t, StorageConfig{Timeout: shortWhile, MaxAttempts: 3, GCS: GCSConfig{Endpoint: server.URL}})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	assert.Equal(t, content, readAll(t, s.FS(), "gs://lake/f.avro"))
	assert.Equal(t, int64(3), server.requests.Load())
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nobody leaves no identity that this machine may have by itself.
func nobody(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE",
		"IDENTITY_SERVER_THUMBPRINT", "MSI_ENDPOINT",
	} {
		t.Setenv(name, "") // brings back what it is when the test is done
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "prod")
}

// identityEndpoint issues the tokens of a machine's managed identity, as Azure's App Service does.
func identityEndpoint(t *testing.T, token string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "of-this-app" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		assert.Equal(t, "https://storage.azure.com", r.URL.Query().Get("resource"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_on":"%d","resource":"https://storage.azure.com","token_type":"Bearer"}`, token, time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(server.Close)
	t.Setenv("IDENTITY_ENDPOINT", server.URL)
	t.Setenv("IDENTITY_HEADER", "of-this-app")
}

// lake is an account with one blob that it gives to the bearer of a token.
func lake(token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("X-Ms-Error-Code", "NoAuthenticationInformation")
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/lake/f.avro":
			_, _ = w.Write([]byte("rows"))
		default:
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// azureAt trusts the server's certificate, as if it were Azure's.
func azureAt(t *testing.T, server *httptest.Server) *Storage {
	t.Helper()
	s := newStorage(t, StorageConfig{MaxAttempts: 1, Timeout: time.Minute, Azure: AzureConfig{Account: "mine", Endpoint: server.URL}})
	s.azure.transport = storeTransport(time.Minute)
	s.azure.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestAzureIsAskedWithTheMachinesIdentity(t *testing.T) {
	nobody(t)
	identityEndpoint(t, "for-the-lake")
	server := httptest.NewTLSServer(lake("for-the-lake"))
	t.Cleanup(server.Close)
	s := azureAt(t, server)
	assert.Equal(t, "rows", string(readAll(t, s.FS(), "abfss://lake@mine.dfs.core.windows.net/f.avro")))
	_, err := s.FS().Open("abfss://lake@mine.dfs.core.windows.net/none.avro")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// What nobody vouches for must not look like files that are gone, or like a list that may not be read.
func TestAzureWithoutAnIdentitySaysWhatWasTried(t *testing.T) {
	nobody(t)
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	server := httptest.NewTLSServer(lake("for-the-lake"))
	t.Cleanup(server.Close)
	_, err := azureAt(t, server).FS().Open("abfss://lake@mine.dfs.core.windows.net/f.avro")
	require.ErrorContains(t, err, "asking Azure Blob Storage of mine: ")
	require.ErrorContains(t, err, "EnvironmentCredential")
	assert.NotContains(t, err.Error(), "\n")
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, fs.ErrPermission)
}

func TestAzureTokensDoNotTravelInPlainText(t *testing.T) {
	nobody(t)
	identityEndpoint(t, "for-the-lake")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("public"))
	}))
	t.Cleanup(server.Close)
	s := newStorage(t, StorageConfig{MaxAttempts: 1, Azure: AzureConfig{Account: "mine", Endpoint: server.URL}})
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	assert.Equal(t, "public", string(readAll(t, s.FS(), "abfss://lake@mine.dfs.core.windows.net/f.avro")))
}

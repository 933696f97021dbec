// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// blobs is a container as Azure's documentation of the REST API describes it, for the bearer of a token.
type blobs struct {
	token string

	mu    sync.Mutex
	named map[string]string
}

func (b *blobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := r.URL.EscapedPath()
	content, exists := b.named[name]
	refuse := func(status int, code string) {
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+b.token:
		refuse(http.StatusForbidden, "AuthorizationPermissionMismatch")
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		refuse(http.StatusConflict, "BlobAlreadyExists")
	case r.Method == http.MethodPut:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		b.named[name] = string(body)
		w.WriteHeader(http.StatusCreated)
	case !exists:
		refuse(http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(b.named, name)
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = io.WriteString(w, content)
	}
}

// identified is a cache of an account without a key, and tokens of an identity as Azure's App Service issues them. The server
// stands in for shop.blob.core.windows.net.
func identified(t *testing.T, token string) service.Cache {
	t.Helper()
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "of-this-app", r.Header.Get("X-Identity-Header"))
		assert.Equal(t, "https://storage.azure.com", r.URL.Query().Get("resource"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_on":"%d","token_type":"Bearer"}`, token, time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(identity.Close)
	for name, value := range map[string]string{
		"IDENTITY_ENDPOINT": identity.URL, "IDENTITY_HEADER": "of-this-app", "IDENTITY_SERVER_THUMBPRINT": "",
		"AZURE_TENANT_ID": "", "AZURE_CLIENT_ID": t.Name(), "AZURE_CLIENT_SECRET": "", "AZURE_FEDERATED_TOKEN_FILE": "", "AZURE_TOKEN_CREDENTIALS": "prod",
	} {
		t.Setenv(name, value)
	}
	server := httptest.NewTLSServer(&blobs{token: "may-write", named: map[string]string{}})
	t.Cleanup(server.Close)
	s, err := newAzure(parse(t, azureSpec(), "container: pipelines\nstorage_account: shop"))
	require.NoError(t, err)
	s.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	s.transport.TLSClientConfig.ServerName = "example.com" // httptest's
	direct := s.transport.DialContext
	s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "shop.blob.core.windows.net:443" {
			address = server.Listener.Addr().String()
		}
		return direct(ctx, network, address)
	}
	return objects{s}
}

func TestAzureWithTheMachinesIdentity(t *testing.T) { contract(t, identified(t, "may-write")) }

func TestAzureWithAnIdentityThatMayNothing(t *testing.T) {
	c := identified(t, "may-nothing")
	_, err := c.Get(t.Context(), "k")
	require.ErrorContains(t, err, `container "pipelines": the credentials are wrong or may not read`)
	assert.NotContains(t, err.Error(), "may-nothing")
	require.NoError(t, c.Close(t.Context()))
}

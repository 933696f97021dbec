// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

const tableBucket = "lake"

// drafts are a store's tables before they are put into it: iceberg-go's own writers for these stores would link their whole
// SDKs.
func drafts(scheme string) *iceio.MemFS {
	files := iceio.NewMemFS()
	iceio.Register(scheme, func(context.Context, *url.URL, map[string]string) (iceio.IO, error) { return files, nil })
	return files
}

var tableStores = map[string]struct {
	scheme, warehouse string
	// start gives the input's settings, and how to put a file.
	start func(t *testing.T) (settings string, put func(key string, content []byte))
	// refuses are settings that are answered with an error.
	refuses func(settings string) string
	says    string
}{
	"gcp_cloud_storage": {
		scheme: "gs", warehouse: "gs://" + tableBucket + "/wh",
		start: func(t *testing.T) (string, func(string, []byte)) {
			g := servers.StartGCS(t, tableBucket)
			return "gcp_cloud_storage: { endpoint: '" + g.Host + "' }", func(key string, content []byte) {
				target := g.Host + "/upload/storage/v1/b/" + tableBucket + "/o?" + url.Values{"uploadType": {"media"}, "name": {key}}.Encode()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, bytes.NewReader(content))
				require.NoError(t, err)
				res, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				require.Equal(t, http.StatusOK, res.StatusCode)
				http.DefaultClient.CloseIdleConnections()
			}
		},
		refuses: func(string) string { return "gcp_cloud_storage: { credentials_json: nothing }" },
		says:    "the credentials are none of type service_account",
	},
	"azure_blob_storage": {
		scheme: "abfss", warehouse: "abfss://" + tableBucket + "@devstoreaccount1.dfs.core.windows.net/wh",
		start: func(t *testing.T) (string, func(string, []byte)) {
			a := servers.StartAzurite(t)
			client, err := container.NewClientFromConnectionString(a.ConnectionString, tableBucket, nil)
			require.NoError(t, err)
			_, err = client.Create(t.Context(), nil)
			require.NoError(t, err)
			return "azure_blob_storage: { storage_connection_string: '" + a.ConnectionString + "' }", func(key string, content []byte) {
				_, err := client.NewBlockBlobClient(key).UploadBuffer(t.Context(), content, nil)
				require.NoError(t, err)
			}
		},
		refuses: func(settings string) string {
			return strings.ReplaceAll(settings, "storage_connection_string:", "container: another, storage_connection_string:")
		},
		says: "only container another may be read",
	},
}

// A table that lies in the store is read as from anywhere: whole, in increments, and through files that are gone.
func TestTablesAreReadFromObjectStores(t *testing.T) {
	for name, store := range tableStores {
		t.Run(name, func(t *testing.T) {
			files := drafts(store.scheme)
			settings, put := store.start(t)
			s := tables.Open(t, nessietest.Options{}, nessietest.WriterConfig{Warehouse: store.warehouse})
			_, err := s.Writer.Create(t.Context(), tables.Orders(), tables.OrdersSchema(), nessietest.TableOptions{}, nessietest.Append(`{"id":1,"item":"a b/ö"}`))
			require.NoError(t, err)
			_, err = s.Writer.Append(t.Context(), tables.Orders(), `{"id":2,"item":"c"}`)
			require.NoError(t, err)
			for location, content := range contents(t, files, store.warehouse) {
				put(strings.TrimPrefix(location, strings.TrimSuffix(store.warehouse, "wh")), content)
			}

			rows, logged := readOrders(t, s.Server.URL, settings, "start_from: earliest", "incremental_by_snapshot: true", "snapshot_checkpoints: false")
			assert.Equal(t, []string{`{"id":1,"item":"a b/ö"}`, `{"id":2,"item":"c"}`}, rows, logged)
			rows, logged = readOrders(t, s.Server.URL, settings)
			assert.ElementsMatch(t, []string{`{"id":1,"item":"a b/ö"}`, `{"id":2,"item":"c"}`}, rows, logged)

			rows, logged = readOrders(t, s.Server.URL, store.refuses(settings))
			assert.Empty(t, rows)
			assert.Contains(t, logged, store.says)

			// What is not there is told as such.
			_, err = s.Writer.Append(t.Context(), tables.Orders(), `{"id":3,"item":"d"}`)
			require.NoError(t, err)
			rows, logged = readOrders(t, s.Server.URL, settings)
			assert.Empty(t, rows)
			assert.Contains(t, logged, "file does not exist. Restore the file")
		})
	}
}

func contents(t *testing.T, files *iceio.MemFS, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	require.NoError(t, files.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		all[name], err = io.ReadAll(f)
		return errors.Join(err, f.Close())
	}))
	require.NotEmpty(t, all)
	return all
}

// readOrders runs a pipeline that reads what is there; it answers the rows and the log.
func readOrders(t *testing.T, nessie, storage string, more ...string) (rows []string, logged string) {
	t.Helper()
	var (
		mu   sync.Mutex
		text bytes.Buffer
	)
	b := service.NewStreamBuilder()
	b.SetLogger(slog.New(slog.NewTextHandler(&text, nil)))
	b.SetHTTPMux(http.NewServeMux())
	fields := append([]string{"base_url: " + nessie, "namespace: shop", "table: orders", "poll_interval: 0s", "max_retries: 1", "storage: { " + storage + " }"}, more...)
	require.NoError(t, b.AddInputYAML("nessie:\n  "+strings.Join(fields, "\n  ")))
	require.NoError(t, b.AddConsumerFunc(func(_ context.Context, m *service.Message) error {
		body, err := m.AsBytes()
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, string(body))
		return err
	}))
	stream, err := b.Build()
	require.NoError(t, err)
	require.NoError(t, stream.Run(t.Context()))
	return rows, text.String()
}

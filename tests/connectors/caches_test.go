// SPDX-License-Identifier: Apache-2.0

//go:build unix

package connectors

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

// place is a cache behind a server, or a file.
type place struct {
	yaml  string   // of the cache, without its label
	env   []string // of processes that use it
	crash func() error
}

// places start what they need.
var places = map[string]func(t *testing.T) place{
	"redis": func(t *testing.T) place {
		r := servers.StartRedis(t)
		return place{yaml: "redis: { url: " + r.URL + ", prefix: 'nessie:' }", crash: r.Restart}
	},
	"sql on postgres, text":  func(t *testing.T) place { return onPostgres(t, "TEXT") },
	"sql on postgres, bytes": func(t *testing.T) place { return onPostgres(t, "BYTEA") },
	"sql on sqlite": func(t *testing.T) place {
		return place{yaml: sqlCache("sqlite", "file:"+filepath.Join(t.TempDir(), "progress.db"), "BLOB")}
	},
	"aws_s3": func(t *testing.T) place {
		s3, err := corpus.StartS3()
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s3.Close()) })
		return place{yaml: fmt.Sprintf("aws_s3: { bucket: %s, endpoint: '%s', force_path_style_urls: true, credentials: { id: k, secret: s } }", corpus.Bucket, s3.Endpoint)}
	},
	"gcp_cloud_storage": func(t *testing.T) place {
		g := servers.StartGCS(t, "pipelines")
		return place{yaml: "gcp_cloud_storage: { bucket: pipelines }", env: []string{"STORAGE_EMULATOR_HOST=" + g.Host}}
	},
	"azure_blob_storage": func(t *testing.T) place {
		a := servers.StartAzurite(t)
		client, err := container.NewClientFromConnectionString(a.ConnectionString, "pipelines", nil)
		require.NoError(t, err)
		_, err = client.Create(t.Context(), nil)
		require.NoError(t, err)
		return place{yaml: "azure_blob_storage: { container: pipelines, storage_connection_string: '" + a.ConnectionString + "' }"}
	},
}

func onPostgres(t *testing.T, valueType string) place {
	p := servers.StartPostgres(t)
	return place{yaml: sqlCache("postgres", p.DSN, valueType), crash: p.Restart}
}

func sqlCache(driver, dsn, valueType string) string {
	return fmt.Sprintf(`sql:
  driver: %s
  dsn: %s
  table: checkpoints
  key_column: key
  value_column: value
  set_suffix: ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value
  init_statement: CREATE TABLE IF NOT EXISTS checkpoints (key TEXT PRIMARY KEY, value %s NOT NULL)`, driver, dsn, valueType)
}

func (p place) resource() string {
	return "cache_resources:\n  - label: progress\n    " + strings.ReplaceAll(p.yaml, "\n", "\n    ") + "\n"
}

// use gives the cache to the test.
func (p place) use(t *testing.T, work func(service.Cache)) {
	t.Helper()
	for _, pair := range p.env {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, value)
	}
	builder := service.NewResourceBuilder()
	require.NoError(t, builder.AddCacheYAML("label: progress\n"+p.yaml))
	resources, stop, err := builder.Build()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop(context.WithoutCancel(t.Context()))) }()
	require.NoError(t, resources.AccessCache(t.Context(), "progress", work))
}

// stands is how many rows the stored checkpoint stands behind.
func (p place) stands(t *testing.T, o *orders) (rows int) {
	t.Helper()
	p.use(t, func(c service.Cache) {
		value, err := c.Get(t.Context(), "orders")
		if errors.Is(err, service.ErrKeyNotFound) {
			return
		}
		require.NoError(t, err)
		rows = o.stored(t, value)
	})
	return rows
}

func TestCacheContract(t *testing.T) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			text := []byte(`{"a": "ä\\n"}`)
			p.use(t, func(c service.Cache) {
				_, err := c.Get(t.Context(), "key")
				require.ErrorIs(t, err, service.ErrKeyNotFound)
				require.NoError(t, c.Set(t.Context(), "key", []byte("first"), nil))
				require.NoError(t, c.Set(t.Context(), "key", text, nil))
				if name != "gcp_cloud_storage" { // its emulator knows no conditions
					require.ErrorIs(t, c.Add(t.Context(), "key", []byte("other"), nil), service.ErrKeyAlreadyExists)
				}
				require.NoError(t, c.Add(t.Context(), "another key/ä", text, nil))
			})
			if p.crash != nil {
				require.NoError(t, p.crash())
			}
			p.use(t, func(c service.Cache) {
				for _, key := range []string{"key", "another key/ä"} {
					value, err := c.Get(t.Context(), key)
					require.NoError(t, err)
					assert.Equal(t, string(text), string(value))
					require.NoError(t, c.Delete(t.Context(), key))
					require.NoError(t, c.Delete(t.Context(), key))
					_, err = c.Get(t.Context(), key)
					require.ErrorIs(t, err, service.ErrKeyNotFound)
				}
			})
		})
	}
}

// The pipeline is killed in the middle, the cache's server too where it keeps things on disk. No row may be missing, and
// again comes only what the stored checkpoint did not say yet.
func TestACheckpointSurvivesKills(t *testing.T) {
	const snapshots, rowsEach, lives, rowsPerLife = 6, 500, 3, 800
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			p, s, k := open(t), openShop(t, snapshots, rowsEach), openSink(t)
			yaml := []string{s.input(), k.output(), p.resource()}
			stood, came, mayCome := 0, 0, 0
			for range lives {
				enough := k.after(rowsPerLife)
				running := start(t, p.env, yaml...)
				select {
				case <-enough:
				case <-t.Context().Done():
				}
				running.kill(t)
				if p.crash != nil {
					require.NoError(t, p.crash())
				}
				stands, total := p.stands(t, s), k.count()
				mayCome += stood + (total - came) - stands + rowsInBatch // a batch may still be on its way
				stood, came = stands, total
			}
			start(t, p.env, yaml...).finish(t)
			assert.Equal(t, s.rows, k.distinct())
			total := k.count()
			assert.LessOrEqual(t, total, len(s.rows)+mayCome, "rows came again that the checkpoint stood behind")
			start(t, p.env, yaml...).finish(t)
			assert.Equal(t, total, k.count(), "a run with nothing new delivers nothing")
		})
	}
}

func TestACacheThatCannotBeReachedNamesItself(t *testing.T) {
	for name, yaml := range map[string]string{
		"redis":              "redis: { url: 'redis://:secret@127.0.0.1:1', retries: { max_elapsed_time: 100ms } }",
		"aws_s3":             "aws_s3: { bucket: b, endpoint: 'http://127.0.0.1:1', credentials: { id: k, secret: secret }, retries: { initial_interval: 1ms, max_elapsed_time: 10ms } }",
		"sql":                sqlCache("postgres", "postgres://follower:secret@127.0.0.1:1/x", "TEXT"),
		"azure_blob_storage": "azure_blob_storage: { container: c, storage_connection_string: 'DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a;' }",
	} {
		t.Run(name, func(t *testing.T) {
			place{yaml: yaml}.use(t, func(c service.Cache) {
				_, err := c.Get(t.Context(), "key")
				require.Error(t, err)
				require.NotErrorIs(t, err, service.ErrKeyNotFound)
				assert.NotContains(t, err.Error(), "secret")
				assert.NotContains(t, err.Error(), "c2VjcmV0")
				assert.ErrorContains(t, err, "127.0.0.1:1")
			})
		})
	}
}

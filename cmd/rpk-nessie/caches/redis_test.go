// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What Redis does is tested on a real server, in tests/connectors.

func TestRedisURLs(t *testing.T) {
	opts, err := redisOptions("rediss://ann:secret@one:7001/3, redis://two:7002,redis://one:7001")
	require.NoError(t, err)
	assert.Equal(t, []string{"one:7001", "two:7002"}, opts.Addrs)
	assert.Equal(t, 3, opts.DB)
	assert.Equal(t, "ann", opts.Username)
	assert.Equal(t, "secret", opts.Password)
	require.NotNil(t, opts.TLSConfig)
	assert.Empty(t, opts.TLSConfig.ServerName)
}

func TestWrongRedisSettingsAreRefused(t *testing.T) {
	for yaml, says := range map[string]string{
		"url: http://x":                                                   "url: ",
		"url: 'redis://:secret@x:port'":                                   "url: ",
		"url: redis://a,redis://b":                                        "kind simple takes one url",
		"url: redis://a\nkind: failover":                                  "kind failover needs the name of its master",
		"url: redis://a\nkind: ring":                                      "ring",
		"url: redis://a\ndefault_ttl: -1s":                                "default_ttl must not be negative",
		"url: redis://a\ntls: { enabled: true, root_cas_file: /nowhere }": "/nowhere",
		"url: redis://a,redis://b\nkind: cluster":                         "",
		"url: redis://a,redis://b\nkind: failover\nmaster: m":             "",
	} {
		conf, err := redisSpec().ParseYAML(yaml, nil)
		if err == nil {
			var c *redisCache
			if c, err = newRedis(conf); err == nil {
				require.NoError(t, c.Close(t.Context()))
			}
		}
		if says == "" {
			require.NoError(t, err, yaml)
			continue
		}
		require.ErrorContains(t, err, says, yaml)
		assert.NotContains(t, err.Error(), "secret")
	}
	lints, err := service.NewEnvironment().NewComponentConfigLinter().LintCacheYAML([]byte("label: x\nredis: { url: 'redis://a', kind: failover }"))
	require.NoError(t, err)
	require.Len(t, lints, 1)
	assert.Contains(t, lints[0].Error(), "needs the name of its master")
}

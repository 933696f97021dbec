// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newTestCache(t *testing.T, d *database, lines ...string) *cache {
	t.Helper()
	c, err := newCache(parse(t, cacheSpec(), d.yaml(append(lines, "table: kept", "key_column: k", "value_column: v",
		"init_statement: CREATE TABLE IF NOT EXISTS kept (k TEXT PRIMARY KEY, v BLOB)")...)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(t.Context())) })
	return c
}

func TestCacheContract(t *testing.T) {
	for name, lines := range map[string][]string{
		"with the suffix of its own": nil,
		"with a suffix":              {"set_suffix: ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			c := newTestCache(t, d, lines...)
			_, err := c.Get(t.Context(), "a")
			require.ErrorIs(t, err, service.ErrKeyNotFound)
			require.NoError(t, c.Set(t.Context(), "a", []byte("1"), nil))
			require.NoError(t, c.Set(t.Context(), "a", []byte{0, 255}, nil))
			require.ErrorIs(t, c.Add(t.Context(), "a", []byte("3"), nil), service.ErrKeyAlreadyExists)
			require.NoError(t, c.Add(t.Context(), hostile, []byte("4"), nil))

			again := newTestCache(t, d, lines...)
			value, err := again.Get(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, []byte{0, 255}, value)
			value, err = again.Get(t.Context(), hostile)
			require.NoError(t, err)
			assert.Equal(t, "4", string(value))
			require.NoError(t, again.Delete(t.Context(), "a"))
			require.NoError(t, again.Delete(t.Context(), "a"), "what is absent is deleted")
			_, err = c.Get(t.Context(), "a")
			require.ErrorIs(t, err, service.ErrKeyNotFound)
		})
	}
}

func TestACacheThatFailsNamesTheKey(t *testing.T) {
	d := newDatabase(t)
	c := newTestCache(t, d)
	require.NoError(t, c.Set(t.Context(), "a", []byte("1"), nil))
	_, err := d.db.ExecContext(t.Context(), "DROP TABLE kept")
	require.NoError(t, err)
	_, err = c.Get(t.Context(), "a")
	require.ErrorContains(t, err, `reading key "a": `)
	require.NotErrorIs(t, err, service.ErrKeyNotFound)
	require.ErrorContains(t, c.Set(t.Context(), "a", nil, nil), `writing key "a": `)
	require.ErrorContains(t, c.Add(t.Context(), "a", nil, nil), `adding key "a": `)
	require.ErrorContains(t, c.Delete(t.Context(), "a"), `deleting key "a": `)
}

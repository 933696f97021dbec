// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, spec *service.ConfigSpec, yaml string) *service.ParsedConfig {
	t.Helper()
	conf, err := spec.ParseYAML(yaml, nil)
	require.NoError(t, err)
	return conf
}

// contract is what every cache promises.
func contract(t *testing.T, c service.Cache) {
	t.Helper()
	_, err := c.Get(t.Context(), "a/b ä?")
	require.ErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, c.Delete(t.Context(), "a/b ä?"))
	require.NoError(t, c.Add(t.Context(), "a/b ä?", []byte{0, 255}, nil))
	require.ErrorIs(t, c.Add(t.Context(), "a/b ä?", []byte("other"), nil), service.ErrKeyAlreadyExists)
	value, err := c.Get(t.Context(), "a/b ä?")
	require.NoError(t, err)
	assert.Equal(t, []byte{0, 255}, value)
	require.NoError(t, c.Set(t.Context(), "a/b ä?", []byte("new"), nil))
	require.NoError(t, c.Set(t.Context(), "empty", nil, nil))
	value, err = c.Get(t.Context(), "a/b ä?")
	require.NoError(t, err)
	assert.Equal(t, "new", string(value))
	value, err = c.Get(t.Context(), "empty")
	require.NoError(t, err)
	assert.Empty(t, value)
	require.NoError(t, c.Delete(t.Context(), "a/b ä?"))
	_, err = c.Get(t.Context(), "a/b ä?")
	require.ErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, c.Close(t.Context()))
}

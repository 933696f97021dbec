// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/rpk-nessie/rpk-nessie"
)

var ours = []string{"input nessie", "cache nessie_durable_file"}

// schemaAndKnown is the schema of this process, with only the plugin's components not known.
func schemaAndKnown(t *testing.T) (*bytes.Reader, map[string]bool) {
	t.Helper()
	text, err := service.GlobalEnvironment().FullConfigSchema("v0", "never").MarshalJSONV0()
	require.NoError(t, err)
	known := namesIn(service.GlobalEnvironment())
	for _, id := range ours {
		require.True(t, known[id])
		delete(known, id)
	}
	return bytes.NewReader(text), known
}

func TestThePluginsPagesAreUpToDate(t *testing.T) {
	schema, known := schemaAndKnown(t)
	dir := t.TempDir()
	require.NoError(t, generate(schema, known, dir, false))
	for _, name := range []string{"input_nessie.md", "cache_nessie_durable_file.md"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", "reference", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "make docs writes it anew")
	}
}

func TestCheckNamesEveryPageThatIsStale(t *testing.T) {
	schema, known := schemaAndKnown(t)
	dir := t.TempDir()
	require.NoError(t, generate(schema, maps.Clone(known), dir, false))
	again := func(check bool) error {
		_, err := schema.Seek(0, 0)
		require.NoError(t, err)
		return generate(schema, known, dir, check)
	}
	require.NoError(t, again(true))

	require.NoError(t, os.Remove(filepath.Join(dir, "README.md")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "input_nessie.md"), []byte("edited"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "output_gone.md"), []byte("left over"), 0o600))
	assert.ErrorContains(t, again(true), "README.md, input_nessie.md, output_gone.md")

	require.NoError(t, again(false))
	assert.NoError(t, again(true))
	assert.NoFileExists(t, filepath.Join(dir, "output_gone.md"))
}

func TestAComponentWithoutDescriptionsIsRefused(t *testing.T) {
	env := service.NewEnvironment()
	known := namesIn(env)
	spec := service.NewConfigSpec().Summary("Does things.").Field(service.NewStringField("mute"))
	require.NoError(t, env.RegisterCache("shy", spec, nil))
	_, err := pagesOf(env, known)
	assert.ErrorContains(t, err, "describing cache shy: field mute has no description")
}

func TestTextsOfAnotherSiteLoseTheirLinks(t *testing.T) {
	assert.Equal(t, "A Bloblang query that", markdown("A xref:guides:bloblang/about.adoc[Bloblang query] that"))
	assert.Equal(t, "see the manual.", markdown("see https://example.org/x[the manual^]."))
	assert.Equal(t, "see [here](https://example.org).", markdown("see [here](https://example.org)."))
}

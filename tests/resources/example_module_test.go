// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// buildExample builds docs/example-module in a folder of its own, with the checksums that this module has, so that it
// follows what is required here.
func buildExample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	for from, to := range map[string]string{
		"docs/example-module/main.go": "main.go", "docs/example-module/go.mod": "go.mod", "go.sum": "go.sum",
	} {
		text, err := os.ReadFile(filepath.Join(root, from))
		require.NoError(t, err)
		if to == "go.mod" {
			text = []byte(strings.Replace(string(text), "=> ../..", "=> "+strconv.Quote(here), 1))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), text, 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", "stream", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "stream")
}

func TestTheExampleModuleBuildsAndRuns(t *testing.T) {
	built := binary
	t.Cleanup(func() { binary = built })
	binary = buildExample(t)

	inputs := strings.Fields(execute(t, "", nil, "list", "inputs").stdout)
	assert.Contains(t, inputs, "nessie")
	assert.NotContains(t, inputs, "kafka_franz", "the plugin registers its own names only")
	caches := strings.Fields(execute(t, "", nil, "list", "caches").stdout)
	assert.Contains(t, caches, "nessie_durable_file")

	s := newShop(t)
	s.commit(orders, nessietest.Append(`{"id":1,"item":"lamp"}`))
	pipeline := "docs/example-module/pipeline.yaml"
	got := execute(t, "", s.env, "lint", pipeline)
	assert.Equal(t, 0, got.code, got.stdout+got.stderr)
	run := []string{"run", "-s", "http.enabled=false", "-s", "logger.level=ERROR", pipeline}
	got = execute(t, "", s.env, run...)
	assert.Equal(t, outcome{0, "{\"id\":1,\"item\":\"lamp\"}\n", ""}, got)

	s.commit(orders, nessietest.Delete(withID(1)))
	got = execute(t, "", s.env, run...)
	assert.Equal(t, 0, got.code, "only the rpk-nessie binary has an exit code for an input that ended early")
	assert.Contains(t, got.stdout+got.stderr, "Ending early: snapshot")
}

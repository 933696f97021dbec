// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEnvironmentFilesAreReadAsRunReadsThem(t *testing.T) {
	tests := map[string]struct {
		text string
		want map[string]string
		says string
	}{
		"comments and blank lines":  {"# all\n\n  \nA=x # why\nB=\nC = y", map[string]string{"A": "x", "B": "", "C": "y"}, ""},
		"quotes":                    {`A="x # \"y\"\n"` + "\nB=\"\"\"l1\nl2\"\"\"\nC='z'", map[string]string{"A": "x # \"y\"\n", "B": "l1\nl2", "C": "'z'"}, ""},
		"an equals sign in a value": {"A=b=c==", map[string]string{"A": "b=c=="}, ""},
		"a name twice":              {"A=x\nA=y", map[string]string{"A": "y"}, ""},
		"lines of Windows":          {"A=x\r\nB=\"y\"\n", map[string]string{"A": "x\r", "B": "y"}, ""},
		"a line for a shell":        {"A=x\nexport B=secret", nil, "line 2 char 8: expected Environment variable assignment: it takes lines NAME=value"},
		"a quote that does not end": {`A="secret y`, nil, "line 1 char 12: required: expected end quote: it takes lines"},
		"nothing":                   {"", map[string]string{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseDotenv([]byte(tc.text))
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestABearerTokenMayComeFromAnEnvironmentFile(t *testing.T) {
	s := newStage(t, "orders")
	var sent atomic.Value
	s.Server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		sent.Store(r.Header.Get("Authorization"))
		return false
	})
	env := filepath.Join(pipelineFolder(t, map[string]string{".env": "RPK_NESSIE_BEARER=from-the-file"}), ".env")
	flags := []string{"plan", "--base-url", s.Server.URL, "--namespace", "shop", "--table", "orders", "--local-root", s.warehouse}
	for want, more := range map[string][]string{"": nil, "Bearer from-the-file": {"-e", env}, "Bearer given": {"-e", env, "--bearer", "given"}} {
		cmd := command(t, append(flags, more...)...)
		got := finish(t, cmd, cmd.Run())
		assert.Equal(t, exitPlanEmpty, got.code, got.all())
		assert.Equal(t, want, sent.Load())
	}
}

func TestLookCommandsTakeEnvironmentFiles(t *testing.T) {
	s := newStage(t, "orders")
	s.add("orders", 1, 2)
	folder := pipelineFolder(t, map[string]string{
		"p.yaml": s.pipeline(`{ nessie: { base_url: "${SOME_URL}", namespace: shop, table: "${SOME_TABLE}", storage: { local_root: "`+s.warehouse+`" } } }`, "{ drop: {} }"),
		".env":   "SOME_URL=" + s.Server.URL + "\nSOME_TABLE=\"orders\"\n",
	})
	config, env := filepath.Join(folder, "p.yaml"), filepath.Join(folder, ".env")
	for _, command := range [][]string{{"plan"}, {"lineage"}, {"read"}, {"inspect", "files"}, {"doctor"}} {
		got := execute(t, append(command, "--config", config, "-e", env)...)
		assert.Equal(t, 0, got.code, "%v: %s", command, got.all())
	}
	assert.Equal(t, 0, execute(t, "lint", "-e", env, config).code, "as lint has it")

	got := execute(t, "plan", "--config", config)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "environment variables SOME_URL, SOME_TABLE are not set")
	got = execute(t, "plan", "--config", config, "-e", filepath.Join(folder, "none.env"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "none.env")
}

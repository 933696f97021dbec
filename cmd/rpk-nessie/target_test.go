// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipelineFolder writes files and answers their folder.
func pipelineFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

const severalInputs = `
input:
  broker:
    inputs:
      - label: a
        nessie: {base_url: "${NESSIE_URL:http://nessie}", namespace: shop, table: "${TABLE_A}", auth: {bearer: "${SECRET}"}}
      - shop_table: {table: returns}
      - label: c
        shop_table: {table: carts, namespace: web}
      - resource: from_resources
output: {drop: {}}
input_resources:
  - label: in_the_file
    nessie: {base_url: http://nessie, namespace: shop, table: stock}
`

const moreResources = `
input_resources:
  - label: from_resources
    nessie: {base_url: http://nessie, namespace: shop, table: "p${{X}}"}
cache_resources:
  - label: kept
    nessie_durable_file: {directory: /tmp/unused}
`

const shopTemplate = `
name: shop_table
type: input
fields:
  - {name: table, type: string}
  - {name: namespace, type: string, default: shop}
mapping: |
  root.label = @label
  root.nessie.base_url = "http://nessie"
  root.nessie.namespace = this.namespace
  root.nessie.table = this.table
`

func TestEveryNessieInputOfAPipelineIsFound(t *testing.T) {
	folder := pipelineFolder(t, map[string]string{"p.yaml": severalInputs, "r.yaml": moreResources, "t.yaml": shopTemplate})
	t.Setenv("TABLE_A", "orders")
	t.Setenv("SECRET", "hush")
	in := func(name string) string { return filepath.Join(folder, name) }
	p, err := inspectFiles(in("p.yaml"), []string{in("r*.yaml")}, []string{in("t.yaml")})
	require.NoError(t, err)

	found := map[string]string{}
	for _, i := range p.inputs {
		found[i.name()] = i.conf.Key.String()
	}
	assert.Equal(t, map[string]string{
		"a": "shop.orders", "input.broker.inputs.1": "shop.returns", "c": "web.carts", "in_the_file": "shop.stock",
		"from_resources": "shop.p${X}",
	}, found)
	assert.Equal(t, "nessie_durable_file", p.cacheTypes["kept"])

	chosen, err := p.choose("a")
	require.NoError(t, err)
	assert.Equal(t, "hush", chosen.conf.Bearer, "secrets are whole")
	assert.Equal(t, "http://nessie", chosen.conf.BaseURL)
	_, err = p.choose("")
	require.ErrorContains(t, err, "5 nessie inputs: choose one with --label")
	require.ErrorContains(t, err, "c (web.carts on main)")
	_, err = p.choose("z")
	require.ErrorContains(t, err, `no nessie input "z"`)
}

func TestPipelinesThatRunWouldRefuse(t *testing.T) {
	tests := map[string]struct {
		pipeline string
		args     []string
		says     string
	}{
		"a variable that is not set": {"input: {nessie: {base_url: http://x, namespace: a, table: \"${NOBODY_SETS_THIS}\"}}\noutput: {drop: {}}", nil, "NOBODY_SETS_THIS is not set"},
		"a lint error":               {"input: {nessie: {base_url: http://x, namespace: a, tabel: b}}\noutput: {drop: {}}", nil, "tabel not recognised"},
		"no nessie input":            {"input: {generate: {mapping: root = 1}}\noutput: {drop: {}}", nil, "has no nessie input"},
		"no such resources":          {"input: {nessie: {base_url: http://x, namespace: a, table: b}}\noutput: {drop: {}}", []string{"-r", "/nowhere/*.yaml"}, "/nowhere/*.yaml"},
		"both ways at once":          {"input: {nessie: {base_url: http://x, namespace: a, table: b}}\noutput: {drop: {}}", []string{"--table", "c"}, "give one of them"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := pipelineFolder(t, map[string]string{"p.yaml": tc.pipeline})
			got := execute(t, append([]string{"plan", "--config", filepath.Join(folder, "p.yaml")}, tc.args...)...)
			assert.Equal(t, 1, got.code)
			assert.Contains(t, got.stderr, tc.says)
		})
	}
	got := execute(t, "plan")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "--config FILE")
}

func TestVariablesAreReplacedAsBenthosReplacesThem(t *testing.T) {
	env := map[string]string{"A": "x", "EMPTY": "", "LINES": "a\nb", "B64": "aGk="}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for text, want := range map[string]string{
		"${A}-${A:y}":         "x-x",
		"${NONE:y}":           "y",
		"${EMPTY:y}":          "y",
		"${EMPTY}":            "",
		"${LINES}":            `a\nb`,
		"${B64|base64decode}": "hi",
		"${{A}}":              "${A}",
		"$A {A} ${ A }":       "$A {A} ${ A }",
		"${NONE:http://h:1}":  "http://h:1",
	} {
		got, err := replaceEnv(text, lookup)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{"${NONE}": "variable NONE is not set", "${NO} ${A} ${NE} ${NO}": "variables NO, NE are not set", "${A|rot13}": "rot13", "${A|base64decode}": "decoding"} {
		_, err := replaceEnv(text, lookup)
		require.ErrorContains(t, err, says)
	}
}

func TestATableOutsideAnyPipeline(t *testing.T) {
	got := onCorpus(t, "inspect history", "events", "--json")
	require.Equal(t, 0, got.code, got.all())
	got = onCorpus(t, "inspect history", "events", "--branch", "@"+strings.Repeat("0", 64))
	assert.Equal(t, 1, got.code)
}

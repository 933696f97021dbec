// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// typeValues are YAML values of every type, some as people write what they mean as another.
var typeValues = []string{
	"many", "5", "'5'", "1.5", "true", "'true'", "yes", "null", "", "''", "99999999999999999999", "[ 1 ]", "{ a: b }", "!!str 5",
}

// Every field of the input gets values of every type.
func TestLintRefusesTheTypesThatTheStartRefuses(t *testing.T) {
	types, err := componentTypes(schema())
	require.NoError(t, err)
	linter := schema().NewStreamConfigLinter().SetEnvVarLookupFunc(keepForms)
	tried, refused := 0, 0
	for _, path := range valuePaths(nil, types.components["input"]["nessie"].Children) {
		if path[0] == "tls" || strings.Join(path, ".") == "batching.check" {
			continue // Benthos's own, which it lints by itself
		}
		for _, value := range typeValues {
			tried++
			fields := fieldsWith(path, value)
			text := "input:\n  nessie:\n    " + strings.ReplaceAll(fields, "\n", "\n    ") + "\n"
			_, started := nessie.ParseInput(fields)
			lints, err := linter.LintYAML([]byte(text))
			require.NoError(t, err, text)
			linted := len(lints) > 0 || len(types.wrong(text)) > 0
			if started != nil {
				refused++
			}
			if slices.Contains([]string{"", "''", "null"}, value) {
				assert.False(t, linted && started == nil, "%s\n%v", fields, lints)
				continue // what is empty may be a variable that is not set
			}
			assert.Equal(t, started != nil, linted, "%s\nstart: %v\nlint: %v", fields, started, lints)
		}
	}
	assert.Greater(t, tried, 700)
	assert.Greater(t, refused, 400)
}

// valuePaths are the places of all values below fields.
func valuePaths(at []string, fields []fieldType) [][]string {
	var paths [][]string
	for _, f := range fields {
		here := append(slices.Clip(at), f.Name)
		if len(f.Children) > 0 {
			paths = append(paths, valuePaths(here, f.Children)...)
		} else {
			paths = append(paths, here)
		}
	}
	return paths
}

// fieldsWith are those of an input that starts, and one more or another.
func fieldsWith(path []string, value string) string {
	for _, name := range slices.Backward(path[1:]) {
		value = "{ " + name + ": " + value + " }"
	}
	lines := []string{path[0] + ": " + value}
	for _, line := range []string{"base_url: http://nessie", "namespace: shop", "table: orders", "incremental_by_snapshot: true", "checkpoint_cache: progress"} {
		if !strings.HasPrefix(line, path[0]+":") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestTypesAreLintedWhereverAComponentStands(t *testing.T) {
	types, err := componentTypes(schema())
	require.NoError(t, err)
	for text, want := range map[string]string{
		"input:\n  generate:\n    count: many\n":                                                             `3 field count must be a whole number, got "many"`,
		"input:\n  broker:\n    inputs:\n      - generate: { count: '5' }\n":                                 `4 field count must be a whole number without quotes, got "5"`,
		"input:\n  stdin: {}\n  processors:\n    - log: { }\n    - compress: { level: x }\n":                 `5 field level must be a whole number, got "x"`,
		"pipeline:\n  processors:\n    - branch:\n        processors:\n          - compress: { level: x }\n": `5 field level must be a whole number, got "x"`,
		"cache_resources:\n  - label: a\n    memory:\n      compaction_interval: 5\n      shards: no\n":      `5 field shards must be a whole number, got "no"`,
		"output:\n  switch:\n    cases:\n      - output: { drop: {} }\n        continue: maybe\n":            `5 field continue must be true or false, got "maybe"`,
		"output:\n  kafka_franz:\n    tls: { enabled: 'true' }\n":                                            `3 field enabled must be true or false without quotes, got "true"`,
		"input:\n  generate: &same\n    count: x\noutput:\n  broker: { outputs: [ { drop: {} } ] }\n":        `3 field count must be a whole number, got "x"`,
		"input:\n  generate:\n    <<: { count: x }\n":                                                        `3 field count must be a whole number, got "x"`,
		"output: stdout\n":                                 `1 expected a component of the kind output, got "stdout"`,
		"http:\n  enabled: maybe\n":                        "", // Benthos says it
		"input:\n  generate: { count: 1.5, mapping: 5 }\n": "",
		"input:\n  nobody_has_this: { count: x }\n":        "",
		"just text":  "",
		"input: [ x": "",
		"":           "",
	} {
		var got []string
		for _, w := range types.wrong(text) {
			got = append(got, fmt.Sprintf("%d %s", w.line, w.what))
		}
		assert.Equal(t, want, strings.Join(got, "\n"), text)
	}
}

func TestLintTellsWrongTypesBesideTheRest(t *testing.T) {
	folder := pipelineFolder(t, map[string]string{
		"a.yaml": "input:\n  nessie:\n    base_url: http://nessie\n    namespace: shop\n    table: orders\n    checkpoint_limit: \"${LIMIT}\"\n    batch_rows: ${ROWS}\n    poll_interval: soon\noutput: { drop: {} }\n",
		"b.yml":  "input:\n  generate: { mapping: root = 1, count: 5 }\noutput: { drop: {} }\n",
	})
	cmd := command(t, "lint", "--skip-env-var-check", folder+"/...")
	cmd.Env = append(cmd.Env, "LIMIT=5", "ROWS=5")
	got := finish(t, cmd, cmd.Run())
	a := filepath.Join(folder, "a.yaml")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, a+`(6,1) field checkpoint_limit must be a whole number without quotes, got "5"`+"\n"+
		a+`(8,1) field poll_interval must be a duration such as 10s, got "soon"`+"\n", got.stderr)

	cmd = command(t, "lint", filepath.Join(folder, "b.yml"))
	assert.Equal(t, 0, finish(t, cmd, cmd.Run()).code)
	got = execute(t, "plan", "--config", filepath.Join(pipelineFolder(t, map[string]string{
		"p.yaml": "input:\n  nessie:\n    base_url: http://nessie\n    namespace: shop\n    table: orders\n    batch_rows: '5'\noutput: { drop: {} }\n",
	}), "p.yaml"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, `(6,1) field batch_rows must be a whole number without quotes, got "5"`)
}

func TestDurationsOfTheConnectorsAreLinted(t *testing.T) {
	const pipeline = "input: { stdin: {} }\noutput: { drop: {} }\n"
	for _, component := range []string{
		"cache_resources: [ { label: a, redis: { url: 'redis://localhost', default_ttl: %s } } ]",
		"cache_resources: [ { label: a, sql: { driver: sqlite, dsn: 'file:a', table: t, key_column: k, value_column: v, conn_max_idle_time: %s } } ]",
		"cache_resources: [ { label: a, sql: { driver: sqlite, dsn: 'file:a', table: t, key_column: k, value_column: v, conn_max_life_time: %s } } ]",
		"metrics: { prometheus: { push_url: 'http://localhost', push_interval: %s } }",
	} {
		require.NoError(t, lint(pipeline+fmt.Sprintf(component, "10s")), component)
		require.NoError(t, lint(pipeline+fmt.Sprintf(component, "''")), component)
		require.ErrorContains(t, lint(pipeline+fmt.Sprintf(component, "soon")), `(3,1) expected a duration such as 10s, got "soon"`, component)
	}
}

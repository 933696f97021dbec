// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDoctorFindsNothingWrong(t *testing.T) {
	p := newCorpusPipeline(t, "events")
	got := p.on("doctor")
	require.Equal(t, 0, got.code, got.all())
	golden(t, "doctor/well.txt", got.stdout)
	left, err := os.ReadDir(p.folder)
	require.NoError(t, err)
	assert.Empty(t, left, "the probe is deleted")
	assert.Equal(t, 0, p.on("doctor", "--json").code)
}

func TestDoctorSaysWhatToChange(t *testing.T) {
	stack := corpusStack.Get(t)
	flags := func(url, table string, more ...string) []string {
		return append([]string{"--base-url", url, "--namespace", "demo", "--table", table}, more...)
	}
	s3 := []string{"--s3-endpoint", stack.S3.Endpoint, "--s3-region", "us-east-1", "--s3-path-style"}
	tests := map[string]struct {
		args []string
		says []string
	}{
		"no server":      {flags(closedPort(t), "events"), []string{"failed       server", "Check that base_url"}},
		"not Nessie":     {flags(stack.S3.Endpoint, "events"), []string{"failed       server", "Set base_url to the root"}},
		"unknown branch": {flags(stack.URL, "events", "--branch", "mian"), []string{"failed       branch", "mian", "inspect refs lists them"}},
		"unknown table":  {flags(stack.URL, "evnts", s3...), []string{"failed       table", "events"}},
		"no storage":     {flags(stack.URL, "events", "--s3-endpoint", closedPort(t), "--s3-region", "us-east-1", "--s3-path-style"), []string{"failed       metadata file", "Check storage.aws_s3"}},
		"Avro files":     {flags(stack.URL, "formats", s3...), []string{"ok           metadata file"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := withKeys(t, append([]string{"doctor"}, tc.args...)...)
			if name != "Avro files" {
				assert.Equal(t, 1, got.code, got.all())
			}
			for _, says := range tc.says {
				assert.Contains(t, got.stdout, says)
			}
		})
	}
}

func TestDoctorChecksWhatTheInputChecksBeforeItReads(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		says   string
	}{
		"columns":           {[]string{"columns: [id, nme]"}, `"nme"`},
		"identifier fields": {[]string{"changes: changelog", "identifier_fields: [idd]"}, `"idd"`},
		"keys left unread":  {[]string{"changes: changelog", "columns: [cat]", "identifier_fields: [id]"}, `"id" is not among the columns`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newCorpusPipeline(t, "rest_multi", tc.fields...)
			got := p.on("doctor")
			assert.Equal(t, 1, got.code, got.all())
			assert.Contains(t, got.stdout, "failed       columns")
			assert.Contains(t, got.stdout, tc.says)
			assert.Contains(t, got.stdout, "inspect schemas lists them")
		})
	}
}

func TestDoctorChecksTheColumnsOfAQuery(t *testing.T) {
	s := newStage(t, "orders")
	for query, code := range map[string]int{"id > 1": 0, "nosuch > 1": 1} {
		input := fmt.Sprintf("{ nessie: { base_url: %q, namespace: shop, table: orders, query: %q, storage: { local_root: %q } } }", s.Server.URL, query, s.warehouse)
		got := execute(t, "doctor", "--config", s.file("pipeline.yaml", s.pipeline(input, "{ drop: {} }")))
		assert.Equal(t, code, got.code, got.all())
		assert.Equal(t, code == 1, strings.Contains(got.stdout, "failed       columns") && strings.Contains(got.stdout, "nosuch"), got.stdout)
	}
}

func TestDoctorSeesThatACheckpointIsAnotherTables(t *testing.T) {
	p := newCorpusPipeline(t, "events", "checkpoint_cache_key: shared")
	require.Equal(t, 0, p.on("checkpoint set", "--yes", chain(t, "events")[5]).code)
	assert.Equal(t, 0, p.on("doctor").code)
	p.path = p.write("rest_multi", "checkpoint_cache_key: shared")
	got := p.on("doctor")
	assert.Equal(t, 1, got.code, got.all())
	assert.Contains(t, got.stdout, "failed       checkpoint       the stored checkpoint can't be used")
	assert.Contains(t, got.stdout, "checkpoint_cache_key that no other")
	assert.Equal(t, 1, p.on("plan").code, "as plan says")
}

func TestDoctorSaysWhatIsWrongWithTheCache(t *testing.T) {
	p := newCorpusPipeline(t, "events")
	text, err := os.ReadFile(p.path)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct{ old, changed, says string }{
		"no such resource":            {"checkpoint_cache: progress", "checkpoint_cache: progres", "There is no such resource: set checkpoint_cache to the label of one, or give the file that has it by -r."},
		"a folder that can't be made": {p.folder, filepath.Join(file, "below"), "Check the cache resource progress"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipeline.yaml")
			changed := strings.Replace(string(text), tc.old, tc.changed, 1)
			require.NotEqual(t, string(text), changed)
			require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
			got := withKeys(t, "doctor", "--config", path)
			assert.Equal(t, 1, got.code, got.all())
			assert.Contains(t, got.stdout, "failed       checkpoint cache")
			assert.Contains(t, got.stdout, tc.says)
			assert.Contains(t, got.stdout, "not checked  checkpoint ")
			assert.NotContains(t, got.all(), "--force")
		})
	}
}

func TestMissingCredentialsAreToldByTheSettings(t *testing.T) {
	stack := corpusStack.Get(t)
	cmd := command(t, "plan", "--base-url", stack.URL, "--namespace", "demo", "--table", "events", "--s3-endpoint", stack.S3.Endpoint)
	cmd.Env = append(cmd.Env, "AWS_EC2_METADATA_DISABLED=true", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_CONFIG_FILE=/dev/null")
	got := finish(t, cmd, cmd.Run())
	assert.Equal(t, 1, got.code, got.all())
	assert.Contains(t, got.stderr, "Set storage.aws_s3.credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
}

func TestDoctorWarnsOfCachesThatForget(t *testing.T) {
	p := newCorpusPipeline(t, "events")
	text, err := os.ReadFile(p.path)
	require.NoError(t, err)
	for cache, says := range map[string]string{
		"memory: {}":                            "forgets the place",
		`file: {directory: "` + p.folder + `"}`: "empty value after a crash",
	} {
		path := filepath.Join(t.TempDir(), "pipeline.yaml")
		changed := strings.Replace(string(text), `nessie_durable_file: {directory: "`+p.folder+`"}`, cache, 1)
		require.NotEqual(t, string(text), changed)
		require.NoError(t, os.MkdirAll(p.folder, 0o700))
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		got := withKeys(t, "doctor", "--config", path)
		assert.Equal(t, 0, got.code, got.all())
		assert.Contains(t, got.stdout, says)
		assert.Contains(t, got.stdout, "Use nessie_durable_file")
	}
}

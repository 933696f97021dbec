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
		"unknown branch": {flags(stack.URL, "events", "--branch", "mian"), []string{"failed       branch", "mian"}},
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

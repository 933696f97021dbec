// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// golden compares what a command printed with a file. Ports differ from run to run.
func golden(t *testing.T, name, got string) {
	t.Helper()
	stack := corpusStack.Get(t)
	got = strings.NewReplacer(
		stack.URL, "http://nessie:19120", stack.S3.Endpoint, "http://s3",
		strings.ReplaceAll(strings.TrimPrefix(stack.URL, "http://"), ":", "-"), "nessie-19120", // in derived keys
	).Replace(got)
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "-update writes it")
	assert.Equal(t, string(want), got)
}

// onCorpus runs a command on a table of the corpus, named by flags.
func onCorpus(t *testing.T, command, table string, args ...string) outcome {
	t.Helper()
	stack := corpusStack.Get(t)
	all := append(strings.Fields(command), "--base-url", stack.URL, "--namespace", "demo", "--table", table,
		"--s3-endpoint", stack.S3.Endpoint, "--s3-region", "us-east-1", "--s3-path-style")
	return withKeys(t, append(all, args...)...)
}

// withKeys runs the binary with credentials for the corpus' S3 server.
func withKeys(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s")
	return finish(t, cmd, cmd.Run())
}

// corpusPipeline is a pipeline that follows a table of the corpus, with its checkpoint in a folder of the test's own.
// Lines are more fields of the input.
type corpusPipeline struct {
	t      *testing.T
	folder string
	path   string
}

func newCorpusPipeline(t *testing.T, table string, lines ...string) *corpusPipeline {
	t.Helper()
	p := &corpusPipeline{t: t, folder: filepath.Join(t.TempDir(), "checkpoints")}
	p.path = p.write(table, lines...)
	return p
}

// write makes a pipeline with the same checkpoints.
func (p *corpusPipeline) write(table string, lines ...string) string {
	stack := corpusStack.Get(p.t)
	yaml := `
http: {enabled: false}
input:
  label: orders
  nessie:
    base_url: ` + stack.URL + `
    namespace: demo
    table: ` + table + `
    poll_interval: 0s
    incremental_by_snapshot: true
    checkpoint_cache: progress
    storage: {aws_s3: {endpoint: "` + stack.S3.Endpoint + `", region: us-east-1, force_path_style_urls: true, credentials: {id: k, secret: s}}}
    ` + strings.Join(lines, "\n    ") + `
output: {stdout: {}}
cache_resources:
  - label: progress
    nessie_durable_file: {directory: "` + p.folder + `"}
`
	path := filepath.Join(p.t.TempDir(), "pipeline.yaml")
	require.NoError(p.t, os.WriteFile(path, []byte(yaml), 0o600))
	return path
}

// on runs a command with the pipeline; what follows the command's name comes behind its flags.
func (p *corpusPipeline) on(command string, args ...string) outcome {
	p.t.Helper()
	return withKeys(p.t, append(append(strings.Fields(command), "--config", p.path), args...)...)
}

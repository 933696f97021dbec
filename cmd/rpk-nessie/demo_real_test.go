// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// references are all of the corpus' server, with their hashes.
func references(t *testing.T) map[string]string {
	t.Helper()
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: corpusStack.Get(t).URL})
	require.NoError(t, err)
	defer client.Close()
	all := map[string]string{}
	for ref, err := range client.References(t.Context()) {
		require.NoError(t, err)
		all[ref.Name] = ref.Hash
	}
	return all
}

// objects lists the keys below a prefix of the corpus' bucket.
func objects(t *testing.T, bucket, prefix string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, corpusStack.Get(t).S3.Endpoint+"/"+bucket+"?list-type=2&prefix="+prefix, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, string(text))
	return string(text)
}

func demoFlagsOf(t *testing.T, warehouse string, more ...string) []string {
	t.Helper()
	stack := corpusStack.Get(t)
	return append([]string{"demo", "--nessie", stack.URL, "--warehouse", warehouse, "--s3-endpoint", stack.S3.Endpoint}, more...)
}

func TestDemoOnARealNessieLeavesItAsItWas(t *testing.T) {
	before := references(t)
	got := withKeys(t, demoFlagsOf(t, "s3://bucket/demos")...)
	require.Equal(t, 0, got.code, got.all())
	assert.Contains(t, got.stdout, "All 14 rows came once, in order.")
	assert.Contains(t, got.stdout, "endpoint: ")
	assert.Contains(t, got.stdout, "Removed branch rpk-nessie-demo-")
	assert.Contains(t, got.stdout, "Removed s3://bucket/demos/rpk-nessie-demo-")
	assert.Equal(t, before, references(t))
	assert.NotContains(t, objects(t, "bucket", "demos/"), "<Key>")
}

func TestDemoOnARealNessieKeepsItsTable(t *testing.T) {
	warehouse := "file://" + filepath.Join(t.TempDir(), "w")
	before := references(t)
	got := execute(t, "demo", "--keep", "--nessie", corpusStack.Get(t).URL, "--warehouse", warehouse)
	require.Equal(t, 0, got.code, got.all())
	assert.NotContains(t, got.stdout, "Removed")
	after := references(t)
	assert.Len(t, after, len(before)+1)
	for name := range after {
		if _, old := before[name]; !old {
			assert.Contains(t, got.stdout, "Kept branch "+name+" and "+warehouse+"/"+name)
			assert.DirExists(t, strings.TrimPrefix(warehouse, "file://")+"/"+name)
			read := execute(t, "read", "--base-url", corpusStack.Get(t).URL, "--branch", name, "--namespace", "shop", "--table", "orders",
				"--local-root", strings.TrimPrefix(warehouse, "file://"))
			assert.Equal(t, 14, strings.Count(read.stdout, "\n"), read.all())
			dropBranch(t, name, after[name])
		}
	}
	assert.Equal(t, before, references(t), "other tests list the branches")
}

func dropBranch(t *testing.T, name, hash string) {
	t.Helper()
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: corpusStack.Get(t).URL})
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.DeleteReference(t.Context(), catalog.Reference{Type: catalog.Branch, Name: name, Hash: hash}))
}

func TestDemoOnARealNessieInterruptedCleansUp(t *testing.T) {
	before := references(t)
	cmd := command(t, demoFlagsOf(t, "s3://bucket/interrupted")...)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s")
	interruptDemo(t, cmd)
	assert.Equal(t, before, references(t))
	assert.NotContains(t, objects(t, "bucket", "interrupted/"), "<Key>")
}

func TestDemoOnARealNessieSaysWhatIsWrong(t *testing.T) {
	stack := corpusStack.Get(t)
	before := references(t)
	tests := map[string]struct {
		args []string
		says string
	}{
		"no warehouse":      {[]string{"demo", "--nessie", stack.URL}, "--nessie and --warehouse go together"},
		"no server":         {[]string{"demo", "--warehouse", "s3://bucket"}, "--nessie and --warehouse go together"},
		"another store":     {[]string{"demo", "--nessie", stack.URL, "--warehouse", "ftp://a"}, "it is a folder at s3://bucket/… or file:///…"},
		"nobody listens":    {[]string{"demo", "--nessie", closedPort(t), "--warehouse", "file:///tmp/none"}, "connection refused"},
		"no URL":            {[]string{"demo", "--nessie", "nessie", "--warehouse", "file:///tmp/none"}, "--nessie: base_url must be an http or https URL"},
		"no such bucket":    {demoFlagsOf(t, "s3://nothing-here"), "NoSuchBucket"},
		"endpoint for file": {demoFlagsOf(t, "file:///tmp/none"), "--s3-endpoint needs a --warehouse at s3://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := withKeys(t, tc.args...)
			assert.Equal(t, 1, got.code, got.all())
			assert.Contains(t, got.stderr, tc.says)
		})
	}
	assert.Equal(t, before, references(t), "what failed leaves no branch")
}

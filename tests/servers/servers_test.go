// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

var shared Shared

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		panic(err)
	}
	os.Exit(code)
}

func getJSON(t *testing.T, url string) map[string]any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, string(text))
	var answer map[string]any
	require.NoError(t, json.Unmarshal(text, &answer))
	return answer
}

func TestTheStackServesTheCorpus(t *testing.T) {
	stack := shared.Get(t)
	assert.Same(t, stack, shared.Get(t))
	e, err := corpus.Load("events")
	require.NoError(t, err)

	content := getJSON(t, stack.URL+"/api/v2/trees/main/contents/demo.events")["content"].(map[string]any)
	assert.Equal(t, e.Head().MetadataLocation, content["metadataLocation"])

	loaded := getJSON(t, stack.URL+"/iceberg/v1/main/namespaces/demo/tables/events")
	assert.Equal(t, e.Head().MetadataLocation, loaded["metadata-location"])
	assert.NotEmpty(t, stack.S3.Requests(), "Iceberg REST reads the metadata from the S3 server")
	assert.Contains(t, stack.Log(), "Listening on")
}

func TestAnOldServerStartsAndStops(t *testing.T) {
	n, err := StartNessie(Options{Version: Old})
	require.NoError(t, err)
	assert.Equal(t, "2.0.0", getJSON(t, n.URL+"/api/v2/config")["specVersion"])
	require.NoError(t, n.Stop())
	require.NoError(t, n.Stop(), "twice is once")
	require.NoError(t, n.forget())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.Error(t, err)
}

func TestAServerThatCantStartSaysWhy(t *testing.T) {
	_, err := StartNessie(Options{Settings: []string{"nessie.version.store.type=NONSENSE"}})
	require.ErrorContains(t, err, "starting Nessie 0.99.0: it ended")
	require.ErrorContains(t, err, "NONSENSE")
}

func TestMissingPartsNameTheCommand(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("RPK_NESSIE_CACHE", empty)
	_, err := findJar(Current)
	require.ErrorContains(t, err, "scripts/fetch-servers")
	require.ErrorContains(t, err, filepath.Join(empty, "nessie", "nessie-quarkus-0.99.0-runner.jar"))
}

func TestJavaVersions(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	write := func(script string) {
		require.NoError(t, os.WriteFile(java, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	for script, want := range map[string]int{
		`echo 'openjdk version "25.0.1" 2025-10-21 LTS' >&2`: 25,
		`echo 'openjdk version "21" 2023-09-19' >&2`:         21,
		`echo 'java version "1.8.0_302"' >&2`:                1,
		`exit 1`:                                             0,
		`echo nonsense`:                                      0,
	} {
		write(script)
		assert.Equal(t, want, javaVersion(java), script)
	}
}

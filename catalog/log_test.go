// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logServer holds a log of n commits, newest first, that change table t, and for every third also table u. Like older
// servers it takes no notice of filters.
func logServer(t *testing.T, n int) (*server, *[]int) {
	var pages []int
	return newServer(t, map[string]http.HandlerFunc{"/trees/main@" + hashA + "/history": func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "ALL", r.URL.Query().Get("fetch"))
		assert.False(t, r.URL.Query().Has("limit-hash"))
		size, err := strconv.Atoi(r.URL.Query().Get("max-records"))
		assert.NoError(t, err)
		pages = append(pages, size)
		from, _ := strconv.Atoi(r.URL.Query().Get("page-token"))
		var entries []any
		for i := from; i < min(from+size, n); i++ {
			operations := []any{map[string]any{"type": "PUT", "key": map[string]any{"elements": []string{"t"}}, "content": map[string]any{"type": "ICEBERG_TABLE", "id": "c", "snapshotId": i}}}
			if i%3 == 0 {
				operations = append(operations, map[string]any{"type": "DELETE", "key": map[string]any{"elements": []string{"u"}}})
			}
			entries = append(entries, map[string]any{
				"commitMeta": map[string]any{
					"hash": fmt.Sprint("h", i), "message": "m", "commitTime": "2026-01-02T03:04:05.123456789Z",
					"parentCommitHashes": []string{fmt.Sprint("h", i+1)},
				},
				"operations": operations,
			})
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"hasMore": from+size < n, "token": fmt.Sprint(from + size), "logEntries": entries}))
	}}), &pages
}

func TestLogGoesThroughAllPagesThatGrow(t *testing.T) {
	s, pages := logServer(t, 1000)
	n := 0
	for commit, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), LogQuery{From: Ref{"main", hashA}}) {
		require.NoError(t, err)
		if n == 0 {
			assert.Equal(t, Commit{
				Hash: "h0", Message: "m", Time: time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC), Parents: []string{"h1"},
				Operations: []Operation{
					{Put, Key{"t"}, Content{Type: ContentTypeIceberg, ID: "c"}},
					{Delete, Key{"u"}, Content{}},
				},
			}, commit)
		}
		assert.Equal(t, fmt.Sprint("h", n), commit.Hash)
		n++
	}
	assert.Equal(t, 1000, n)
	assert.Equal(t, []int{16, 32, 64, 128, 250, 250, 250, 250}, *pages)
}

func TestLogIsAskedOnlyAsFarAsItIsRead(t *testing.T) {
	s, pages := logServer(t, 1000)
	n := 0
	for _, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), LogQuery{From: Ref{"main", hashA}}) {
		require.NoError(t, err)
		if n++; n == 17 {
			break
		}
	}
	assert.Equal(t, []int{16, 32}, *pages)
}

func TestLogIsCheckedAgainForTheKeys(t *testing.T) {
	s, pages := logServer(t, 100)
	n := 0
	query := LogQuery{From: Ref{"main", hashA}, Keys: []Key{{"u"}, {"w"}}, PageSize: 20}
	for commit, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), query) {
		require.NoError(t, err)
		assert.Len(t, commit.Operations, 2, "the operations on other keys stay")
		n++
	}
	assert.Equal(t, 34, n)
	assert.Equal(t, []int{16, 20, 20, 20, 20, 20}, *pages)
	assert.Equal(t, "operations.exists(op, op.keyElements==['u'] || op.keyElements==['w'])", s.asked[0].URL.Query().Get("filter"))
}

func TestLogOfANameIsPinnedFirst(t *testing.T) {
	s, _ := logServer(t, 40)
	s.answers["/trees/main"] = answerJSON(`{"reference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`)
	for _, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), LogQuery{From: Ref{Name: "main"}}) {
		require.NoError(t, err)
	}
	history := "GET /trees/main@" + hashA + "/history"
	assert.Equal(t, []string{"GET /trees/main", history, history}, s.paths())
}

func TestLogEndsWithItsError(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/@" + hashA + "/history": answerStatus(404, `{"errorCode":"REFERENCE_NOT_FOUND","message":"no"}`)})
	var errs []error
	for _, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), LogQuery{From: Ref{Hash: hashA}}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], ErrUnknownReference)
}

func TestAnswerWithoutAListIsNoEndOfTheLog(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/@" + hashA + "/history": answerJSON(`{}`)})
	var errs []error
	for _, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Log(t.Context(), LogQuery{From: Ref{Hash: hashA}}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], ErrNotNessie)
}

func TestKeyFilter(t *testing.T) {
	assert.Empty(t, keyFilter(nil))
	assert.Equal(t, `operations.exists(op, op.keyElements==['demo','dot.name'])`, keyFilter([]Key{{"demo", "dot.name"}}))
	assert.Equal(t, `operations.exists(op, op.keyElements==['q\'uote','back\\slash','dq"x'])`, keyFilter([]Key{{"q'uote", `back\slash`, `dq"x`}}))
	assert.Empty(t, keyFilter([]Key{{strings.Repeat("x", longestFilter)}}), "too long for a URL: the client filters alone")
}

// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask sends one request straight to the handler and gives status and decoded answer.
func ask(t *testing.T, n *Nessie, method, path string, body any) (int, map[string]any) {
	t.Helper()
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		sent = bytes.NewReader(text)
	}
	recorder := httptest.NewRecorder()
	n.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, "http://nessie"+apiPath+path, sent))
	var answer map[string]any
	if recorder.Body.Len() > 0 {
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	}
	return recorder.Code, answer
}

func icebergTable(location, id string) map[string]any {
	content := map[string]any{"type": "ICEBERG_TABLE", "metadataLocation": location, "snapshotId": 1, "schemaId": 0, "specId": 0, "sortOrderId": 0}
	if id != "" {
		content["id"] = id
	}
	return content
}

func putOp(content map[string]any, key ...string) map[string]any {
	return map[string]any{"type": "PUT", "key": keyJSON{key}, "content": content}
}

// commitTo commits to main at a hash and gives the new hash and the id of the first new content.
func commitTo(t *testing.T, n *Nessie, hash, message string, ops ...map[string]any) (newHash, id string) {
	t.Helper()
	status, answer := ask(t, n, http.MethodPost, "/trees/main@"+hash+"/history/commit",
		map[string]any{"commitMeta": map[string]any{"message": message}, "operations": ops})
	require.Equal(t, http.StatusOK, status, answer)
	if added, _ := answer["addedContents"].([]any); len(added) > 0 {
		id = added[0].(map[string]any)["contentId"].(string)
	}
	return answer["targetBranch"].(map[string]any)["hash"].(string), id
}

func TestServersWithOneSeedAnswerTheSame(t *testing.T) {
	history := func(seed string) map[string]any {
		at := time.Unix(1_700_000_000, 0)
		n := New(Options{Seed: seed, Clock: func() time.Time { at = at.Add(time.Second); return at }})
		hash, id := commitTo(t, n, NoAncestor, "one", putOp(icebergTable("a", ""), "t"))
		commitTo(t, n, hash, "two", putOp(icebergTable("b", id), "t"))
		_, answer := ask(t, n, http.MethodGet, "/trees/main/history?fetch=ALL", nil)
		return answer
	}
	first := history("a")
	assert.Equal(t, first, history("a"))
	assert.NotEqual(t, first, history("b"))
}

func TestEqualCommitsAreStillTwo(t *testing.T) {
	n := New(Options{})
	first, _ := commitTo(t, n, NoAncestor, "same", putOp(icebergTable("a", ""), "t"))
	status, _ := ask(t, n, http.MethodPut, "/trees/main@"+first, map[string]any{"type": detached, "hash": NoAncestor})
	require.Equal(t, http.StatusOK, status)
	second, _ := commitTo(t, n, NoAncestor, "same", putOp(icebergTable("a", ""), "t"))
	assert.NotEqual(t, first, second)
}

func TestCallsAreLoggedAndCounted(t *testing.T) {
	n := New(Options{})
	ask(t, n, http.MethodGet, "/config", nil)
	ask(t, n, http.MethodGet, "/trees/-/contents/a%20b", nil)
	ask(t, n, http.MethodGet, "/trees/-/contents/a%20b?for-write=true", nil)
	ask(t, n, http.MethodGet, "/nowhere", nil)
	ask(t, n, http.MethodDelete, "/config", nil)
	assert.Equal(t, []Request{
		{Call: "config", Method: "GET", Path: "/api/v2/config", Status: 200},
		{Call: "content", Method: "GET", Path: "/api/v2/trees/-/contents/a%20b", Status: 404},
		{Call: "content", Method: "GET", Path: "/api/v2/trees/-/contents/a%20b", Query: "for-write=true", Status: 404},
		{Method: "GET", Path: "/api/v2/nowhere", Status: 404},
		{Method: "DELETE", Path: "/api/v2/config", Status: 405},
	}, n.Requests())
	assert.Empty(t, n.Requests())
	assert.Equal(t, map[string]int{"config": 1, "content": 2, "": 2}, n.Counts())
}

func TestInterceptorsAnswerInsteadAndBreakConnections(t *testing.T) {
	s, err := Start(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v2/config", nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	status, err := get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusTooManyRequests, status)

	s.Intercept(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	_, err = get()
	require.Error(t, err)

	s.Intercept(nil)
	status, err = get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, map[string]int{"config": 3}, s.Counts())
	requests := s.Requests()
	assert.Equal(t, []int{429, 0, 200}, []int{requests[0].Status, requests[1].Status, requests[2].Status})
}

func TestATokenIsAskedFor(t *testing.T) {
	n := New(Options{Token: "secret"})
	status, answer := ask(t, n, http.MethodGet, "/config", nil)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Nil(t, answer, "a real server sends no body")

	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://nessie/api/v2/config", nil)
	request.Header.Set("Authorization", "Bearer secret")
	n.ServeHTTP(recorder, request)
	assert.Equal(t, http.StatusOK, recorder.Code)
}

func TestOldServersKnowNeitherEscapesNorRelativeReferences(t *testing.T) {
	n := New(Options{SpecVersion: "2.0.0"})
	hash, _ := commitTo(t, n, NoAncestor, "one", putOp(icebergTable("a", ""), "dot.ted"))
	for path, want := range map[string]int{
		"/trees/main/contents/dot%1Dted":   200,
		"/trees/main/contents/.dot*.ted":   400,
		"/trees/main~1/contents/dot%1Dted": 400,
		"/trees/main@" + hash + "/history": 200,
	} {
		status, _ := ask(t, n, http.MethodGet, path, nil)
		assert.Equal(t, want, status, path)
	}
}

func TestATimestampFindsTheCommitOfThatMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		first, id := commitTo(t, n, NoAncestor, "one", putOp(icebergTable("a", ""), "t"))
		between := time.Now().Add(time.Second)
		time.Sleep(time.Minute) // the bubble's clock, not the world's
		commitTo(t, n, first, "two", putOp(icebergTable("b", id), "t"))

		for _, at := range []string{fmt.Sprint(between.UnixMilli()), between.UTC().Format("2006-01-02T15:04:05.000Z")} {
			_, answer := ask(t, n, http.MethodGet, "/trees/main*"+url.PathEscape(at)+"/contents/t", nil)
			assert.Equal(t, first, answer["effectiveReference"].(map[string]any)["hash"])
		}
		status, _ := ask(t, n, http.MethodGet, "/trees/main*1000/contents/t", nil)
		assert.Equal(t, http.StatusNotFound, status)
	})
}

func TestFiltersFollowCEL(t *testing.T) {
	n := New(Options{})
	root, id := commitTo(t, n, NoAncestor, "a", putOp(icebergTable("x", ""), "a"))
	quoted, _ := commitTo(t, n, root, "quoted", putOp(icebergTable("x", ""), `it's "\`))
	commitTo(t, n, quoted, "gone", map[string]any{"type": "DELETE", "key": keyJSON{[]string{"a"}}})
	for filter, want := range map[string]any{
		`operations.exists(op, op.key=='a')`:                                               []string{"gone", "a"},
		`operations.exists(op,op.keyElements==['a'] && op.type == "PUT")`:                  []string{"a"},
		`operations.exists(op, op.key in ['a', 'b'])`:                                      []string{"gone", "a"},
		`operations.exists(op, op.key != 'a')`:                                             []string{"quoted"},
		`operations.exists(op, op.name.startsWith('it'))`:                                  []string{"quoted"},
		`operations.exists(op, op.name=='it\'s \"\\')`:                                     []string{"quoted"},
		`operations.exists(op, op.key=='\u0061' && (op.type=='PUT' || op.type=='DELETE'))`: []string{"gone", "a"},
		`operations.exists(op, op.type=='PUT' && op.content.id=='` + id + `')`:             []string{"a"},
		`operations.exists(op, op.content.id=='` + id + `' && op.type=='PUT')`:             []string{"a"},
		`operations.exists(op, op.content.id=='` + id + `')`:                               500,
		`operations.exists(op, op.wrong=='a')`:                                             400,
		`operations.exists(op, op.key=='a'`:                                                400,
		`operations.exists(op, op.key==a)`:                                                 400,
		`operations.exists(op, op.key)`:                                                    400,
		`operations.exists(op, op.key=='a') && true`:                                       400,
		`operations.exists(x, x.key=='a')`:                                                 400,
		`op.key=='a'`:                                                                      400,
		`operations.exists(op, op.key=='\x')`:                                              400,
		`§`:                                                                                400,
	} {
		status, answer := ask(t, n, http.MethodGet, "/trees/main/history?fetch=ALL&filter="+url.QueryEscape(filter), nil)
		if messages, ok := want.([]string); ok {
			require.Equal(t, http.StatusOK, status, filter)
			var got []string
			for _, e := range answer["logEntries"].([]any) {
				got = append(got, e.(map[string]any)["commitMeta"].(map[string]any)["message"].(string))
			}
			assert.Equal(t, messages, got, filter)
			continue
		}
		assert.Equal(t, want, status, filter)
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	n := New(Options{})
	for _, path := range []string{
		"/trees?fetch=ALL", "/trees?filter=x", "/trees/main/history?min-key=a", "/trees/main/entries?max-key=a", "/trees/main/contents/a?nope=1",
	} {
		status, answer := ask(t, n, http.MethodGet, path, nil)
		assert.Equal(t, http.StatusBadRequest, status, path)
		assert.Contains(t, answer["message"], "in-memory Nessie", path)
	}
}

func TestTheHeadOfALongHistoryCostsNoMore(t *testing.T) {
	n := New(Options{})
	hash, id := commitTo(t, n, NoAncestor, "0", putOp(icebergTable("0", ""), "t"))
	const commits = 10_000
	for i := range commits {
		hash, _ = commitTo(t, n, hash, "more", putOp(icebergTable(fmt.Sprint(i), id), "t"))
	}
	status, answer := ask(t, n, http.MethodGet, "/trees/main/contents/t", nil)
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, fmt.Sprint(commits-1), answer["content"].(map[string]any)["metadataLocation"])
	seen, token := 0, ""
	for more := true; more; {
		_, answer := ask(t, n, http.MethodGet, "/trees/main/history?fetch=ALL&page-token="+token, nil)
		seen += len(answer["logEntries"].([]any))
		more = answer["hasMore"].(bool)
		token, _ = answer["token"].(string)
	}
	assert.Equal(t, commits+1, seen)
}

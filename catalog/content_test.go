// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHeadIsOneRequest(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main/contents/demo.t": answerJSON(headOfT)})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	head, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"demo", "t"})
	require.NoError(t, err)
	assert.Equal(t, Head{
		Reference: Reference{Type: Branch, Name: "main", Hash: hashA},
		Content: Content{
			Type: ContentTypeIceberg, ID: "c1", MetadataLocation: `file:///a %41\b.json`, SnapshotID: 9007199254740993, SchemaID: 1, SpecID: 2, SortOrderID: 3,
		},
	}, head)
	assert.Equal(t, []string{"GET /trees/main/contents/demo.t"}, s.paths())
}

func TestSpecVersionIsAskedOnceAndOnlyForKeysThatNeedIt(t *testing.T) {
	for name, test := range map[string]struct{ config, path string }{
		"with escapes": {config2, "/trees/main/contents/.demo.a%2A%7Bb"},
		"before them":  {strings.Replace(config2, "2.2.0", "2.0.0", 1), "/trees/main/contents/demo.a%2Fb"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]http.HandlerFunc{"/config": answerJSON(test.config), test.path: answerJSON(headOfT)})
			c := newClient(t, ClientConfig{BaseURL: s.URL})
			for range 2 {
				_, err := c.Head(t.Context(), Ref{Name: "main"}, Key{"demo", "a/b"})
				require.NoError(t, err)
			}
			assert.Equal(t, []string{"GET /config", "GET " + test.path, "GET " + test.path}, s.paths())
		})
	}
}

func TestHeadOfATableWithoutSnapshot(t *testing.T) {
	for _, id := range []string{`,"snapshotId":-1`, `,"snapshotId":null`, ``} {
		s := newServer(t, map[string]http.HandlerFunc{"/trees/-/contents/t": answerJSON(
			`{"content":{"type":"ICEBERG_TABLE","id":"c"` + id + `},"effectiveReference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`)})
		head, err := newClient(t, ClientConfig{BaseURL: s.URL}).Head(t.Context(), Ref{}, Key{"t"})
		require.NoError(t, err)
		assert.Equal(t, NoSnapshot, head.Content.SnapshotID)
	}
}

func TestHeadOfSomethingElseNamesItsType(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main/contents/v": answerJSON(
		`{"content":{"type":"ICEBERG_VIEW","id":"c","versionId":1},"effectiveReference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`)})
	_, err := newClient(t, ClientConfig{BaseURL: s.URL}).Head(t.Context(), Ref{Name: "main"}, Key{"v"})
	var other *ContentTypeError
	require.ErrorAs(t, err, &other)
	assert.Equal(t, "ICEBERG_VIEW", other.Type)
	require.EqualError(t, err, "reading table v on main: v is of type ICEBERG_VIEW: only ICEBERG_TABLE can be read")
}

func TestEntriesAreOfOneCommitAndPaged(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{
		"/trees/main": answerJSON(`{"reference":{"type":"BRANCH","name":"main","hash":"` + hashA + `"}}`),
		"/trees/main@" + hashA + "/entries": func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			assert.Equal(t, "a", q.Get("prefix-key"))
			assert.Equal(t, "true", q.Get("content"))
			if q.Get("page-token") == "x" {
				answerJSON(`{"hasMore":false,"entries":[{"type":"ICEBERG_TABLE","name":{"elements":["a","t"]},`+
					`"content":{"type":"ICEBERG_TABLE","id":"c","snapshotId":7}}]}`)(w, r)
				return
			}
			answerJSON(`{"hasMore":true,"token":"x","entries":[{"type":"NAMESPACE","name":{"elements":["a"]},"content":{"type":"NAMESPACE","id":"n","elements":["a"]}},`+
				`{"type":"NAMESPACE","name":{"elements":["ab"]}}]}`)(w, r)
		},
	})
	var got []Entry
	for entry, err := range newClient(t, ClientConfig{BaseURL: s.URL}).Entries(t.Context(), Ref{Name: "main"}, EntriesQuery{Prefix: Key{"a"}, WithContent: true}) {
		require.NoError(t, err)
		got = append(got, entry)
	}
	assert.Equal(t, []Entry{
		{Key: Key{"a"}, Type: ContentTypeNamespace, Content: Content{Type: ContentTypeNamespace, ID: "n"}},
		{Key: Key{"a", "t"}, Type: ContentTypeIceberg, Content: Content{Type: ContentTypeIceberg, ID: "c", SnapshotID: 7}},
	}, got)
}

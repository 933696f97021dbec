// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseRef(t *testing.T) {
	for given, want := range map[string]Ref{
		"main":                             {Name: "main"},
		"v1.0":                             {Name: "v1.0"},
		"feature/x":                        {Name: "feature/x"},
		"a":                                {Name: "a"},
		"main@" + hashA:                    {Name: "main", Hash: hashA},
		"main@" + strings.ToUpper(hashA):   {Name: "main", Hash: hashA},
		"@" + hashA:                        {Hash: hashA},
		"release-2024_01.final/x@" + hashB: {Name: "release-2024_01.final/x", Hash: hashB},
	} {
		got, err := ParseRef(given)
		require.NoError(t, err, given)
		assert.Equal(t, want, got, given)
	}
}

func TestParseRefErrors(t *testing.T) {
	for given, want := range map[string]string{
		"":                     "it is empty",
		"@":                    "all 64 hex digits",
		"main@":                "all 64 hex digits",
		"main@abcdef":          "all 64 hex digits",
		"main@" + hashA + "~1": "all 64 hex digits",
		"main~1":               "a name starts with a letter",
		"1main":                "a name starts with a letter",
		"a..b":                 "a name starts with a letter",
		"a/":                   "a name starts with a letter",
		"a.":                   "a name starts with a letter",
		"..":                   "a name starts with a letter",
		"a b":                  "a name starts with a letter",
		"Ünï":                  "a name starts with a letter",
	} {
		_, err := ParseRef(given)
		require.ErrorContains(t, err, want, given)
	}
}

func TestRefReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := Ref{
			Name: rapid.StringMatching(`[A-Za-z]([A-Za-z0-9/_-][.]?[A-Za-z0-9_-]){0,5}`).Draw(t, "name"),
			Hash: rapid.StringMatching(`([0-9a-f]{64})?`).Draw(t, "hash"),
		}
		got, err := ParseRef(ref.String())
		require.NoError(t, err)
		assert.Equal(t, ref, got)
	})
}

func TestReferencePath(t *testing.T) {
	assert.Equal(t, "/trees/-", treePath(Ref{}))
	assert.Equal(t, "/trees/main", treePath(Ref{Name: "main"}))
	assert.Equal(t, "/trees/feature%2Fx@"+hashA, treePath(Ref{Name: "feature/x", Hash: hashA}))
	assert.Equal(t, "/trees/@"+hashA, treePath(Ref{Hash: hashA}))
}

func TestReferenceIsOneRequest(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{
		"/trees/feature%2Fx": answerJSON(`{"reference":{"type":"BRANCH","name":"feature/x","hash":"` + hashA + `"}}`),
	})
	got, err := newClient(t, ClientConfig{BaseURL: s.URL}).Reference(t.Context(), "feature/x")
	require.NoError(t, err)
	assert.Equal(t, Reference{Type: Branch, Name: "feature/x", Hash: hashA}, got)
	assert.Equal(t, Ref{Name: "feature/x", Hash: hashA}, got.Ref())
	assert.Len(t, s.paths(), 1)
}

func TestReferencesArePaged(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees": func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page-token") == "two" {
			answerJSON(`{"hasMore":false,"token":null,"references":[{"type":"TAG","name":"v1","hash":"`+hashB+`"}]}`)(w, r)
			return
		}
		answerJSON(`{"hasMore":true,"token":"two","references":[{"type":"BRANCH","name":"main","hash":"`+hashA+`"}]}`)(w, r)
	}})
	var got []Reference
	for ref, err := range newClient(t, ClientConfig{BaseURL: s.URL}).References(t.Context()) {
		require.NoError(t, err)
		got = append(got, ref)
	}
	assert.Equal(t, []Reference{{Branch, "main", hashA}, {Tag, "v1", hashB}}, got)
}

func TestPageThatLeadsNowhereEndsInAnError(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees": answerJSON(`{"hasMore":true,"token":"same","references":[]}`)})
	var failure error
	for _, err := range newClient(t, ClientConfig{BaseURL: s.URL}).References(t.Context()) {
		failure = err
	}
	require.ErrorIs(t, failure, ErrNotNessie)
	require.ErrorContains(t, failure, "no token that leads to them")
}

func TestReferencesAreWritten(t *testing.T) {
	answer := answerJSON(`{"reference":{"type":"TAG","name":"v1","hash":"` + hashB + `"}}`)
	s := newServer(t, map[string]http.HandlerFunc{"/trees": answer, "/trees/v1@" + hashA: answer})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	tag, err := c.CreateReference(t.Context(), Tag, "v1", Ref{Hash: hashB})
	require.NoError(t, err)
	assert.Equal(t, Reference{Tag, "v1", hashB}, tag)
	_, err = c.AssignReference(t.Context(), Reference{Tag, "v1", hashA}, Ref{Hash: hashB})
	require.NoError(t, err)
	require.NoError(t, c.DeleteReference(t.Context(), Reference{Tag, "v1", hashA}))

	assert.Equal(t, []string{"POST /trees", "PUT /trees/v1@" + hashA, "DELETE /trees/v1@" + hashA}, s.paths())
	assert.Equal(t, "name=v1&type=TAG", s.asked[0].URL.RawQuery)
	for _, body := range s.body[:2] {
		assert.JSONEq(t, `{"type":"DETACHED","hash":"`+hashB+`"}`, body)
	}
	_, err = c.AssignReference(t.Context(), Reference{Tag, "v1", hashA}, Ref{Name: "main"})
	require.ErrorIs(t, err, ErrBadRequest)
	assert.Len(t, s.paths(), 3)
}

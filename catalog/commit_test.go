// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommit(t *testing.T) {
	s := newServer(t, map[string]http.HandlerFunc{"/trees/main@" + hashA + "/history/commit": answerJSON(
		`{"targetBranch":{"type":"BRANCH","name":"main","hash":"` + hashB + `"},"addedContents":[]}`)})
	after, err := newClient(t, ClientConfig{BaseURL: s.URL}).Commit(t.Context(), Reference{Branch, "main", hashA}, "why", []Operation{
		{Put, Key{"a"}, Content{Type: ContentTypeNamespace}},
		{Put, Key{"a", "new"}, Content{Type: ContentTypeIceberg, MetadataLocation: "m1", SnapshotID: NoSnapshot}},
		{Put, Key{"a", "old"}, Content{Type: ContentTypeIceberg, ID: "c", MetadataLocation: "m2", SnapshotID: 9007199254740993, SchemaID: 1, SpecID: 2, SortOrderID: 3}},
		{Delete, Key{"a", "gone"}, Content{}},
	})
	require.NoError(t, err)
	assert.Equal(t, Reference{Branch, "main", hashB}, after)
	assert.JSONEq(t, `{"commitMeta":{"message":"why"},"operations":[
		{"type":"PUT","key":{"elements":["a"]},"content":{"type":"NAMESPACE","elements":["a"]}},
		{"type":"PUT","key":{"elements":["a","new"]},"content":{"type":"ICEBERG_TABLE","metadataLocation":"m1","snapshotId":-1,"schemaId":0,"specId":0,"sortOrderId":0}},
		{"type":"PUT","key":{"elements":["a","old"]},"content":{"type":"ICEBERG_TABLE","id":"c","metadataLocation":"m2","snapshotId":9007199254740993,"schemaId":1,"specId":2,"sortOrderId":3}},
		{"type":"DELETE","key":{"elements":["a","gone"]}}]}`, s.body[0])
	assert.Contains(t, s.body[0], "9007199254740993", "ids are larger than a float64 holds")
}

func TestCommitThatCanNotBeIsNotSent(t *testing.T) {
	s := newServer(t, nil)
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	_, err := c.Commit(t.Context(), Reference{Branch, "main", ""}, "m", nil)
	require.ErrorIs(t, err, ErrBadRequest)
	_, err = c.Commit(t.Context(), Reference{Branch, "main", hashA}, "m", []Operation{{Type: Delete}})
	require.ErrorIs(t, err, ErrBadRequest)
	assert.Empty(t, s.paths())
}

func TestMergeAndTransplant(t *testing.T) {
	answer := answerJSON(`{"wasApplied":true,"resultantTargetHash":"` + hashB + `"}`)
	s := newServer(t, map[string]http.HandlerFunc{
		"/trees/main@" + hashA + "/history/merge": answer, "/trees/main@" + hashA + "/history/transplant": answer,
	})
	c := newClient(t, ClientConfig{BaseURL: s.URL})
	main := Reference{Branch, "main", hashA}
	after, err := c.Merge(t.Context(), main, Ref{"feature/x", hashB}, "m", MergeForce)
	require.NoError(t, err)
	assert.Equal(t, Reference{Branch, "main", hashB}, after)
	after, err = c.Transplant(t.Context(), main, "feature/x", []string{hashB})
	require.NoError(t, err)
	assert.Equal(t, Reference{Branch, "main", hashB}, after)
	assert.JSONEq(t, `{"fromRefName":"feature/x","fromHash":"`+hashB+`","message":"m","defaultKeyMergeMode":"FORCE"}`, s.body[0])
	assert.JSONEq(t, `{"fromRefName":"feature/x","hashesToTransplant":["`+hashB+`"]}`, s.body[1])
}

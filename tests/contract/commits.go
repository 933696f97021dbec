// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func (s *suite) commits(t *testing.T) {
	t.Run("a content keeps its id from commit to commit", func(t *testing.T) {
		branch, content := s.newTable(t, s.branch(t), "t", catalog.NoSnapshot)
		assert.NotEmpty(t, content.ID)
		assert.Equal(t, at(content, catalog.NoSnapshot), content)
		branch = s.commit(t, branch, "two", put(at(content, 1<<62+1), namespace, "t"))
		head := s.head(t, catalog.Ref{Name: branch.Name}, namespace, "t")
		assert.Equal(t, catalog.Head{Reference: branch, Content: at(content, 1<<62+1)}, head)
	})
	t.Run("dropped and made again it has another id", func(t *testing.T) {
		branch, content := s.newTable(t, s.branch(t), "t", 1)
		branch = s.commit(t, branch, "drop", remove(namespace, "t"))
		_, err := s.client.Head(t.Context(), branch.Ref(), catalog.Key{namespace, "t"})
		require.ErrorIs(t, err, catalog.ErrUnknownContent)
		_, again := s.newTable(t, branch, "t", 1)
		assert.NotEqual(t, content.ID, again.ID)
	})
	t.Run("a rename is a Delete and a Put of one id", s.rename)
	t.Run("dropped and made again in one commit it shows as a Put alone", s.recreate)
	t.Run("namespaces come first and go last", s.namespaces)
	t.Run("what changed since the writer looked is a conflict", s.staleWrites)
	t.Run("what makes no sense is refused", s.refusedWrites)
}

func (s *suite) rename(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	branch = s.commit(t, branch, "rename", remove(namespace, "t"), put(content, namespace, "a"))
	assert.Equal(t, content, s.head(t, branch.Ref(), namespace, "a").Content)
	commits := s.log(t, catalog.LogQuery{From: branch.Ref(), Keys: []catalog.Key{{namespace, "t"}}})
	require.Equal(t, []string{"rename", "create t"}, messages(commits))
	assert.Equal(t, []catalog.Operation{remove(namespace, "t"), put(content, namespace, "a")}, commits[0].Operations, "deletes stand before puts")
}

func (s *suite) recreate(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	ops := []catalog.Operation{remove(namespace, "t"), put(table(2), namespace, "t")}
	if s.Old {
		_, err := s.client.Commit(t.Context(), branch, "recreate", ops)
		require.ErrorIs(t, err, catalog.ErrBadRequest)
		return
	}
	branch = s.commit(t, branch, "recreate", ops...)
	head := s.head(t, branch.Ref(), namespace, "t")
	assert.NotEqual(t, content.ID, head.Content.ID)
	commits := s.log(t, catalog.LogQuery{From: branch.Ref()})
	assert.Equal(t, []catalog.Operation{put(head.Content, namespace, "t")}, commits[0].Operations)
}

func (s *suite) namespaces(t *testing.T) {
	branch := s.branch(t)
	_, err := s.client.Commit(t.Context(), branch, "m", []catalog.Operation{put(table(1), "a", "b", "t")})
	require.ErrorIs(t, err, catalog.ErrConflict)
	made := catalog.Content{Type: catalog.ContentTypeNamespace}
	branch = s.commit(t, branch, "all at once", put(table(1), "a", "b", "t"), put(made, "a"), put(made, "a", "b"))
	_, err = s.client.Commit(t.Context(), branch, "m", []catalog.Operation{put(table(1), "a", "b", "t", "below")})
	require.ErrorIs(t, err, catalog.ErrConflict, "a table is no namespace")
	_, err = s.client.Commit(t.Context(), branch, "m", []catalog.Operation{remove("a")})
	require.ErrorIs(t, err, catalog.ErrConflict, "it is not empty")
	s.commit(t, branch, "m", remove("a", "b", "t"), remove("a", "b"), remove("a"))
}

func (s *suite) staleWrites(t *testing.T) {
	before := s.branch(t)
	seen, content := s.newTable(t, before, "t", 1)
	now := s.commit(t, seen, "two", put(at(content, 2), namespace, "t"))
	for name, stale := range map[string]func() error{
		"another content": func() error {
			_, err := s.client.Commit(t.Context(), seen, "m", []catalog.Operation{put(at(content, 3), namespace, "t")})
			return err
		},
		"a delete": func() error {
			_, err := s.client.Commit(t.Context(), seen, "m", []catalog.Operation{remove(namespace, "t")})
			return err
		},
		"a key that came": func() error {
			_, err := s.client.Commit(t.Context(), before, "m", []catalog.Operation{put(table(3), namespace, "t")})
			return err
		},
		"a delete of nothing": func() error {
			_, err := s.client.Commit(t.Context(), now, "m", []catalog.Operation{remove(namespace, "nothing")})
			return err
		},
	} {
		require.ErrorIs(t, stale(), catalog.ErrConflict, name)
	}
	merged := s.commit(t, seen, "another key", put(table(1), namespace, "u"))
	assert.Equal(t, at(content, 2), s.head(t, merged.Ref(), namespace, "t").Content, "other keys do not disturb each other")
	commits := s.log(t, catalog.LogQuery{From: merged.Ref()})
	assert.Equal(t, []string{"another key", "two", "create t", "namespace"}, messages(commits))
	assert.Equal(t, []string{now.Hash}, commits[0].Parents)
}

func (s *suite) refusedWrites(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	other := content
	other.ID = "11111111-2222-3333-4444-555555555555"
	for name, ops := range map[string][]catalog.Operation{
		"an update without an id":  {put(table(2), namespace, "t")},
		"another id":               {put(other, namespace, "t")},
		"a new content with an id": {put(other, namespace, "u")},
		"a key twice":              {put(at(content, 2), namespace, "t"), put(at(content, 3), namespace, "t")},
	} {
		_, err := s.client.Commit(t.Context(), branch, "m", ops)
		require.ErrorIs(t, err, catalog.ErrBadRequest, name)
	}
	_, err := s.client.Commit(t.Context(), catalog.Reference{Name: branch.Name, Hash: neverWas}, "m", []catalog.Operation{remove(namespace, "t")})
	require.ErrorIs(t, err, catalog.ErrUnknownReference)
	_, err = s.client.Commit(t.Context(), catalog.Reference{Name: "nowhere", Hash: branch.Hash}, "m", []catalog.Operation{remove(namespace, "t")})
	require.ErrorIs(t, err, catalog.ErrUnknownReference)

	elsewhere := s.branch(t)
	_, err = s.client.Commit(t.Context(), catalog.Reference{Name: branch.Name, Hash: elsewhere.Hash}, "m", []catalog.Operation{remove(namespace, "t")})
	require.ErrorIs(t, err, catalog.ErrUnknownReference, "a commit of another branch")

	tag, err := s.client.CreateReference(t.Context(), catalog.Tag, s.name(), branch.Ref())
	require.NoError(t, err)
	_, err = s.client.Commit(t.Context(), tag, "m", []catalog.Operation{remove(namespace, "t")})
	require.Error(t, err, "tags take no commits")

	status, answer := s.ask(t, http.MethodPost, tree(branch.Name, "/history/commit"), nil,
		object{"commitMeta": object{"message": "m"}, "operations": []any{object{"type": "DELETE", "key": object{"elements": []string{namespace, "t"}}}}})
	assert.Equal(t, http.StatusBadRequest, status, "without an expected hash")
	assert.Equal(t, "BAD_REQUEST", answer["errorCode"])
	assert.Equal(t, branch, s.head(t, catalog.Ref{Name: branch.Name}, namespace, "t").Reference, "nothing was committed")
}

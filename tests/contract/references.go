// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func (s *suite) config(t *testing.T) {
	config, err := s.client.Config(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "main", config.DefaultBranch)
	assert.LessOrEqual(t, config.MinAPIVersion, 2)
	assert.GreaterOrEqual(t, config.MaxAPIVersion, 2)
	assert.Equal(t, "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d", config.NoAncestorHash)
	if s.Old {
		assert.Equal(t, "2.0.0", config.SpecVersion)
	} else {
		assert.Equal(t, "2.2.0", config.SpecVersion)
	}
}

func (s *suite) references(t *testing.T) {
	t.Run("a branch and a tag can be made, looked up, moved and deleted", func(t *testing.T) {
		branch := s.branch(t)
		older := branch.Hash
		branch, _ = s.newTable(t, branch, "t", 1)
		for _, kind := range []catalog.ReferenceType{catalog.Branch, catalog.Tag} {
			name := "feature/" + s.name()
			made, err := s.client.CreateReference(t.Context(), kind, name, branch.Ref())
			require.NoError(t, err)
			assert.Equal(t, catalog.Reference{Type: kind, Name: name, Hash: branch.Hash}, made)
			found, err := s.client.Reference(t.Context(), name)
			require.NoError(t, err)
			assert.Equal(t, made, found)
			moved, err := s.client.AssignReference(t.Context(), made, catalog.Ref{Hash: older})
			require.NoError(t, err)
			assert.Equal(t, older, moved.Hash)
			_, err = s.client.AssignReference(t.Context(), made, catalog.Ref{Hash: older})
			require.ErrorIs(t, err, catalog.ErrConflict, "it is no longer where the caller saw it")
			require.ErrorIs(t, s.client.DeleteReference(t.Context(), made), catalog.ErrConflict)
			require.NoError(t, s.client.DeleteReference(t.Context(), moved))
			_, err = s.client.Reference(t.Context(), name)
			require.ErrorIs(t, err, catalog.ErrUnknownReference)
		}
	})
	t.Run("a name is taken once", func(t *testing.T) {
		branch := s.branch(t)
		_, err := s.client.CreateReference(t.Context(), catalog.Tag, branch.Name, branch.Ref())
		require.ErrorIs(t, err, catalog.ErrConflict)
		status, answer := s.ask(t, http.MethodPost, "/trees", url.Values{"name": {branch.Name}, "type": {"TAG"}},
			object{"type": "BRANCH", "name": branch.Name, "hash": branch.Hash})
		assert.Equal(t, http.StatusConflict, status)
		assert.Equal(t, "REFERENCE_ALREADY_EXISTS", answer["errorCode"])
	})
	t.Run("the minus sign is the default branch, which can't be deleted", func(t *testing.T) {
		main, err := s.client.Reference(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, "main", main.Name)
		require.ErrorIs(t, s.client.DeleteReference(t.Context(), main), catalog.ErrBadRequest)
	})
	t.Run("a commit that never was is an unknown reference", func(t *testing.T) {
		_, err := s.client.CreateReference(t.Context(), catalog.Branch, s.name(), catalog.Ref{Hash: neverWas})
		require.ErrorIs(t, err, catalog.ErrUnknownReference)
	})
	t.Run("a deleted branch leaves its commits readable", s.orphanedCommits)
	t.Run("listing goes page by page", s.referencePages)
	t.Run("relative parts walk back", s.relativeReferences)
}

const neverWas = "abababababababababababababababababababababababababababababababab"

func (s *suite) orphanedCommits(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	require.NoError(t, s.client.DeleteReference(t.Context(), branch))
	head := s.head(t, catalog.Ref{Hash: branch.Hash}, namespace, "t")
	assert.Equal(t, catalog.Head{Reference: catalog.Reference{Type: catalog.Detached, Hash: branch.Hash}, Content: content}, head)
	if s.Old {
		_, err := s.client.Head(t.Context(), catalog.Ref{Name: "main", Hash: branch.Hash}, catalog.Key{namespace, "t"})
		require.ErrorIs(t, err, catalog.ErrUnknownReference, "a hash must be on the branch that is named beside it")
	} else {
		head = s.head(t, catalog.Ref{Name: "main", Hash: branch.Hash}, namespace, "t")
		assert.Equal(t, catalog.Reference{Type: catalog.Branch, Name: "main", Hash: branch.Hash}, head.Reference, "a hash need not be on the branch")
	}
	assert.Equal(t, []string{"create t", "namespace"}, messages(s.log(t, catalog.LogQuery{From: catalog.Ref{Hash: branch.Hash}})))
	_, err := s.client.Head(t.Context(), branch.Ref(), catalog.Key{namespace, "t"})
	require.ErrorIs(t, err, catalog.ErrUnknownReference)
}

func (s *suite) referencePages(t *testing.T) {
	want := map[string]bool{"main": true}
	for range 3 {
		want[s.branch(t).Name] = true
	}
	seen := map[string]bool{}
	for token := ""; ; {
		query := url.Values{"max-records": {"2"}, "fetch": {"MINIMAL"}}
		if token != "" {
			query.Set("page-token", token)
		}
		page := s.get(t, "/trees", query)
		references := page["references"].([]any)
		assert.LessOrEqual(t, len(references), 2)
		for _, r := range references {
			name := field(t, r, "name").(string)
			assert.False(t, seen[name], "%s is there twice", name)
			seen[name] = true
		}
		if page["hasMore"] == false {
			assert.Nil(t, page["token"])
			break
		}
		token = page["token"].(string)
	}
	for name := range want {
		assert.True(t, seen[name], name)
	}
	for r, err := range s.client.References(t.Context()) {
		require.NoError(t, err)
		delete(want, r.Name)
	}
	assert.Empty(t, want)
}

func (s *suite) relativeReferences(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	first := branch
	branch = s.commit(t, branch, "two", put(at(content, 2), namespace, "t"))
	branch = s.commit(t, branch, "three", put(at(content, 3), namespace, "t"))
	if s.Old {
		status, _ := s.ask(t, http.MethodGet, tree(branch.Name+"~1", "/contents/ns.t"), nil, nil)
		assert.Equal(t, http.StatusBadRequest, status)
		return
	}
	// Of several relative parts the last alone counts.
	for _, ref := range []string{branch.Name + "~2", branch.Ref().String() + "~2", branch.Name + "~1~2", branch.Name + "^2~2"} {
		answer := s.get(t, tree(ref, "/contents/ns.t"), nil)
		assert.Equal(t, first.Hash, field(t, answer, "effectiveReference.hash"), ref)
		assert.Equal(t, branch.Name, field(t, answer, "effectiveReference.name"), ref)
	}
	answer := s.get(t, tree("@"+branch.Hash+"~2", "/contents/ns.t"), nil)
	assert.Equal(t, "DETACHED", field(t, answer, "effectiveReference.type"))
	answer = s.get(t, tree(branch.Name+"*4102444800000", "/contents/ns.t"), nil)
	assert.Equal(t, branch.Hash, field(t, answer, "effectiveReference.hash"))
	for ref, want := range map[string]int{
		branch.Name + "~100": http.StatusNotFound, branch.Name + "*1000": http.StatusNotFound, branch.Name + "^2": http.StatusNotFound,
		branch.Name + "~0": http.StatusBadRequest, branch.Name + "~x": http.StatusBadRequest, branch.Name + "~1@" + branch.Hash: http.StatusBadRequest,
	} {
		status, _ := s.ask(t, http.MethodGet, tree(ref, "/contents/ns.t"), nil, nil)
		assert.Equal(t, want, status, ref)
	}
}

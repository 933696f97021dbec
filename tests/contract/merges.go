// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func (s *suite) merges(t *testing.T) {
	t.Run("a merge is one commit with two parents, even where the target stood still", s.merge)
	t.Run("a key that changed on both sides is a conflict, or the source's with FORCE", s.mergeConflict)
	t.Run("transplanted commits are copies under new hashes", s.transplant)
}

func (s *suite) merge(t *testing.T) {
	base, content := s.newTable(t, s.branch(t), "t", 1)
	source := s.branchAt(t, base.Hash)
	source = s.commit(t, source, "two", put(at(content, 2), namespace, "t"))
	source = s.commit(t, source, "three", put(at(content, 3), namespace, "t"))

	merged, err := s.client.Merge(t.Context(), base, source.Ref(), "merged", catalog.MergeNormal)
	require.NoError(t, err)
	assert.NotEqual(t, source.Hash, merged.Hash)
	assert.Equal(t, at(content, 3), s.head(t, catalog.Ref{Name: base.Name}, namespace, "t").Content)
	commits := s.log(t, catalog.LogQuery{From: merged.Ref()})
	require.Equal(t, []string{"merged", "create t", "namespace"}, messages(commits), "the log follows first parents")
	assert.Equal(t, []string{base.Hash, source.Hash}, commits[0].Parents)
	assert.Equal(t, []catalog.Operation{put(at(content, 3), namespace, "t")}, commits[0].Operations)
	if !s.Old {
		answer := s.get(t, tree(merged.Name+"^2", "/contents/ns.t"), nil)
		assert.Equal(t, source.Hash, field(t, answer, "effectiveReference.hash"))
	}

	if s.Old {
		_, err = s.client.Merge(t.Context(), merged, source.Ref(), "again", catalog.MergeNormal)
		require.ErrorIs(t, err, catalog.ErrConflict, "merge parents do not count as ancestors there")
		return
	}
	again, err := s.client.Merge(t.Context(), merged, source.Ref(), "again", catalog.MergeNormal)
	require.NoError(t, err)
	assert.Equal(t, merged.Hash, again.Hash, "there is nothing left to merge")

	source = s.commit(t, source, "four", put(at(content, 4), namespace, "t"))
	merged, err = s.client.Merge(t.Context(), merged, source.Ref(), "more", catalog.MergeNormal)
	require.NoError(t, err, "the common ancestor is found along merge parents")
	assert.Equal(t, int64(4), s.head(t, merged.Ref(), namespace, "t").Content.SnapshotID)

	// The source had more commits than the target: what was merged is an ancestor of the merge all the same.
	target := s.commit(t, merged, "five", put(at(content, 5), namespace, "t"))
	source = s.commit(t, s.branchAt(t, target.Hash), "six", put(at(content, 6), namespace, "t"))
	merged, err = s.client.Merge(t.Context(), target, source.Ref(), "newer", catalog.MergeNormal)
	require.NoError(t, err, "the common ancestor is the newest one")
	assert.Equal(t, int64(6), s.head(t, merged.Ref(), namespace, "t").Content.SnapshotID)
}

func (s *suite) mergeConflict(t *testing.T) {
	base, content := s.newTable(t, s.branch(t), "t", 1)
	source := s.commit(t, s.branchAt(t, base.Hash), "theirs", put(at(content, 2), namespace, "t"), put(table(1), namespace, "u"))
	target := s.commit(t, base, "ours", put(at(content, 3), namespace, "t"))
	_, err := s.client.Merge(t.Context(), target, source.Ref(), "m", catalog.MergeNormal)
	require.ErrorIs(t, err, catalog.ErrConflict)
	_, err = s.client.Merge(t.Context(), target, catalog.Ref{Name: "nope", Hash: source.Hash}, "m", catalog.MergeNormal)
	require.ErrorIs(t, err, catalog.ErrUnknownReference)

	dropped, err := s.client.Merge(t.Context(), s.branchAt(t, target.Hash), source.Ref(), "m", catalog.MergeDrop)
	require.NoError(t, err)
	assert.Equal(t, int64(3), s.head(t, dropped.Ref(), namespace, "t").Content.SnapshotID)
	forced, err := s.client.Merge(t.Context(), target, source.Ref(), "m", catalog.MergeForce)
	require.NoError(t, err)
	assert.Equal(t, at(content, 2), s.head(t, forced.Ref(), namespace, "t").Content)
	assert.Equal(t, []string{target.Hash, source.Hash}, s.log(t, catalog.LogQuery{From: forced.Ref()})[0].Parents)
}

func (s *suite) transplant(t *testing.T) {
	base, content := s.newTable(t, s.branch(t), "t", 1)
	two := s.commit(t, s.branchAt(t, base.Hash), "two", put(at(content, 2), namespace, "t"))
	three := s.commit(t, two, "three", put(at(content, 3), namespace, "t"))
	target, _ := s.newTable(t, base, "u", 1)

	after, err := s.client.Transplant(t.Context(), target, three.Name, []string{two.Hash, three.Hash})
	require.NoError(t, err)
	commits := s.log(t, catalog.LogQuery{From: after.Ref()})
	require.Equal(t, []string{"three", "two", "create u", "create t", "namespace"}, messages(commits))
	assert.NotContains(t, []string{two.Hash, three.Hash}, commits[0].Hash)
	assert.Equal(t, []string{target.Hash}, commits[1].Parents, "there is no second parent")
	assert.Equal(t, []catalog.Operation{put(at(content, 2), namespace, "t")}, commits[1].Operations)

	_, err = s.client.Transplant(t.Context(), after, three.Name, []string{two.Hash, three.Hash})
	require.ErrorIs(t, err, catalog.ErrConflict)
	status, answer := s.ask(t, http.MethodPost, tree(after.Ref().String(), "/history/transplant"), nil,
		object{"fromRefName": three.Name, "hashesToTransplant": []string{three.Hash, two.Hash}})
	assert.Equal(t, http.StatusBadRequest, status, "out of order")
	assert.Equal(t, "BAD_REQUEST", answer["errorCode"])
}

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIsAncestorWalksEveryLine(t *testing.T) {
	fsys := &restFiles{opened: map[string]int{}}
	log := newFakeLog()
	log.add("root", nil)
	log.add("c1", []string{"root"}, put("t", "id", 1, restMetadata(1)))
	log.add("side1", []string{"root"})
	log.add("side2", []string{"side1"})
	log.add("elsewhere", []string{"c1"}, put("t", "id", 2, restMetadata(2)))
	log.add("merge", []string{"c1", "side2"})
	log.add("head", []string{"merge"}, put("t", "id", 3, restMetadata(3)))
	h, _ := historyAt(t, log, fsys, "t", "head")
	for commit, want := range map[string]bool{
		"head": true, "merge": true, "side2": true, "side1": true, "c1": true, "root": true, "elsewhere": false, "unknown": false,
	} {
		got, err := h.IsAncestor(t.Context(), commit)
		require.NoError(t, err, commit)
		assert.Equal(t, want, got, commit)
	}
	queries := log.queries
	_, err := h.IsAncestor(t.Context(), "elsewhere")
	require.NoError(t, err)
	assert.Equal(t, queries, log.queries, "an answer is remembered")
}

func TestIsAncestorLooksNoFartherThanTheCommitsTime(t *testing.T) {
	log := newFakeLog()
	var parents []string
	for i := range 1000 {
		parents = []string{log.add(fmt.Sprint("c", i), parents, put("t", "id", int64(i+1), restMetadata(int64(i+1))))}
	}
	log.add("other", []string{"c990"})
	h, _ := historyAt(t, log, &restFiles{opened: map[string]int{}}, "t", "c999")
	got, err := h.IsAncestor(t.Context(), "other")
	require.NoError(t, err)
	assert.False(t, got)
	assert.Less(t, log.yielded, 100)
}

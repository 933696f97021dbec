// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func (s *suite) contents(t *testing.T) {
	t.Run("a table reads the same through branch, tag and hash", func(t *testing.T) {
		branch, content := s.newTable(t, s.branch(t), "t", 1)
		tag, err := s.client.CreateReference(t.Context(), catalog.Tag, s.name(), branch.Ref())
		require.NoError(t, err)
		s.commit(t, branch, "two", put(at(content, 2), namespace, "t"))
		for _, ref := range []catalog.Ref{branch.Ref(), tag.Ref(), {Name: tag.Name}, {Hash: branch.Hash}} {
			assert.Equal(t, content, s.head(t, ref, namespace, "t").Content, ref)
		}
		assert.Equal(t, int64(2), s.head(t, catalog.Ref{Name: branch.Name}, namespace, "t").Content.SnapshotID)
	})
	t.Run("a metadata location is verbatim", func(t *testing.T) {
		content := table(9_007_199_254_740_993)
		content.MetadataLocation = `s3://bucket/a b/100%/%41/ü\x/+?#.json`
		branch := s.commit(t, s.branch(t), "m", put(content, namespace, "t"))
		got := s.head(t, branch.Ref(), namespace, "t").Content
		got.ID = ""
		assert.Equal(t, content, got)
	})
	t.Run("any name is a key", s.keys)
	t.Run("many contents come at once, without those that are not there", s.manyContents)
	t.Run("entries list what is there", s.entries)
	t.Run("the difference of two references", s.diff)
	t.Run("unknown things are told apart", func(t *testing.T) {
		branch, _ := s.newTable(t, s.branch(t), "t", 1)
		for _, key := range []catalog.Key{{namespace, "nope"}, {"nope", "t"}} {
			_, err := s.client.Head(t.Context(), branch.Ref(), key)
			require.ErrorIs(t, err, catalog.ErrUnknownContent)
		}
		for _, ref := range []catalog.Ref{{Name: "nope"}, {Name: branch.Name, Hash: neverWas}, {Hash: neverWas}} {
			_, err := s.client.Head(t.Context(), ref, catalog.Key{namespace, "t"})
			require.ErrorIs(t, err, catalog.ErrUnknownReference, ref)
		}
		_, err := s.client.Head(t.Context(), branch.Ref(), catalog.Key{namespace})
		var other *catalog.ContentTypeError
		require.ErrorAs(t, err, &other)
		assert.Equal(t, catalog.ContentTypeNamespace, other.Type)
	})
}

var oddNames = []string{
	"plain", "with.dot", "a/b", `back\slash`, "pct%41", "star*name", "two words", "Ünï", "quote'\"", "plus+", "hash#", "q?x=1", "{brace}", "*.", "a.b/c%d\\e",
}

func (s *suite) keys(t *testing.T) {
	branch := s.branch(t)
	var ops []catalog.Operation
	for i, name := range oddNames {
		ops = append(ops, put(table(int64(i)), namespace, name))
	}
	branch = s.commit(t, branch, "odd", ops...)
	for i, name := range oddNames {
		key := catalog.Key{namespace, name}
		head, err := s.client.Head(t.Context(), branch.Ref(), key)
		require.NoError(t, err, name)
		assert.Equal(t, int64(i), head.Content.SnapshotID, name)
		commits := s.log(t, catalog.LogQuery{From: branch.Ref(), Keys: []catalog.Key{key}})
		assert.Equal(t, []string{"odd"}, messages(commits), "the filter finds %s", name)
	}
	if s.Old {
		status, _ := s.ask(t, http.MethodGet, tree(branch.Name, "/contents/.ns.with*.dot"), nil, nil)
		assert.Equal(t, http.StatusBadRequest, status, "the escapes came later")
		return
	}
	for encoded, want := range map[string]string{
		"ns.with%1Ddot": "with.dot", ".ns.with*.dot": "with.dot", ".ns.a*%7Bb": "a/b", ".ns.back*%7Dslash": `back\slash`,
		".ns.pct*%5B41": "pct%41", ".ns.star**name": "star*name", ".ns.plain": "plain",
	} {
		answer := s.get(t, tree(branch.Name, "/contents/"+encoded), nil)
		number, err := field(t, answer, "content.snapshotId").(json.Number).Int64()
		require.NoError(t, err)
		assert.Equal(t, want, oddNames[number], encoded)
	}
}

func (s *suite) manyContents(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	key := func(names ...string) object { return object{"elements": names} }
	status, answer := s.ask(t, http.MethodPost, tree(branch.Name, "/contents"), nil,
		object{"requestedKeys": []any{key(namespace, "nope"), key(namespace, "t"), key("nope", "t")}})
	require.Equal(t, http.StatusOK, status)
	require.Len(t, answer["contents"], 1)
	assert.Equal(t, content.ID, field(t, answer, "contents.0.content.id"))
	assert.Equal(t, []any{namespace, "t"}, field(t, answer, "contents.0.key.elements"))
	assert.Equal(t, branch.Hash, field(t, answer, "effectiveReference.hash"))
}

func (s *suite) entries(t *testing.T) {
	branch := s.branch(t)
	made := catalog.Content{Type: catalog.ContentTypeNamespace}
	branch = s.commit(t, branch, "m", put(table(1), namespace, "t"), put(table(2), namespace, "a.b"), put(made, "nsx"), put(table(3), "nsx", "t"), put(table(4), "top"))
	list := func(q catalog.EntriesQuery) (keys []string, contents []catalog.Content) {
		for e, err := range s.client.Entries(t.Context(), branch.Ref(), q) {
			require.NoError(t, err)
			keys = append(keys, e.Key.String()+" "+e.Type)
			contents = append(contents, e.Content)
		}
		return keys, contents
	}
	keys, _ := list(catalog.EntriesQuery{})
	assert.Equal(t, []string{
		"ns NAMESPACE", `ns."a.b" ICEBERG_TABLE`, "ns.t ICEBERG_TABLE", "nsx NAMESPACE", "nsx.t ICEBERG_TABLE", "top ICEBERG_TABLE",
	}, keys)
	keys, contents := list(catalog.EntriesQuery{Prefix: catalog.Key{namespace}, WithContent: true})
	assert.Equal(t, []string{"ns NAMESPACE", `ns."a.b" ICEBERG_TABLE`, "ns.t ICEBERG_TABLE"}, keys)
	assert.Equal(t, int64(2), contents[1].SnapshotID)

	var paged []string
	for token := ""; ; {
		query := url.Values{"max-records": {"2"}}
		if token != "" {
			query.Set("page-token", token)
		}
		page := s.get(t, tree(branch.Ref().String(), "/entries"), query)
		for _, e := range page["entries"].([]any) {
			assert.Nil(t, field(t, e, "content"))
			assert.NotEmpty(t, field(t, e, "contentId"))
			paged = append(paged, field(t, e, "type").(string))
		}
		if page["hasMore"] == false {
			break
		}
		token = page["token"].(string)
	}
	assert.Len(t, paged, 6)

	filtered := s.get(t, tree(branch.Name, "/entries"), url.Values{"filter": {"entry.namespace=='ns' && entry.contentType=='ICEBERG_TABLE'"}})
	assert.Len(t, filtered["entries"], 2)
	filtered = s.get(t, tree(branch.Name, "/entries"), url.Values{"filter": {"entry.encodedKey.startsWith('nsx')"}})
	assert.Len(t, filtered["entries"], 2)
}

func (s *suite) diff(t *testing.T) {
	from, content := s.newTable(t, s.branch(t), "t", 1)
	to := s.commit(t, from, "m", put(at(content, 2), namespace, "t"), put(table(3), namespace, "new"))
	answer := s.get(t, tree(from.Ref().String(), "/diff/"+url.PathEscape(to.Ref().String())), nil)
	require.Len(t, answer["diffs"], 2)
	assert.Equal(t, []any{namespace, "new"}, field(t, answer, "diffs.0.key.elements"))
	assert.Nil(t, field(t, answer, "diffs.0.from"))
	assert.Equal(t, json.Number("1"), field(t, answer, "diffs.1.from.snapshotId"))
	assert.Equal(t, json.Number("2"), field(t, answer, "diffs.1.to.snapshotId"))
	assert.Equal(t, from.Hash, field(t, answer, "effectiveFromReference.hash"))
	assert.Equal(t, to.Hash, field(t, answer, "effectiveToReference.hash"))
	answer = s.get(t, tree(from.Ref().String(), "/diff/"+to.Name), url.Values{"key": {strings.Join([]string{namespace, "t"}, ".")}})
	assert.Len(t, answer["diffs"], 1)
	answer = s.get(t, tree(to.Name, "/diff/"+to.Name), nil)
	assert.Empty(t, answer["diffs"])
}

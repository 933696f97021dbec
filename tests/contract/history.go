// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func (s *suite) history(t *testing.T) {
	t.Run("the log goes from the newest commit to the root", s.wholeLog)
	t.Run("a log of more than a page", s.longLog)
	t.Run("operations come, and can be filtered by, with fetch=ALL alone", s.minimalLog)
	t.Run("limit-hash ends the log there, inclusively, if the filter lets it", s.limitedLog)
	t.Run("page tokens are commit hashes", s.logTokens)
	t.Run("filters find commits by their operations", s.logFilters)
}

func (s *suite) wholeLog(t *testing.T) {
	root := s.branch(t)
	one, content := s.newTable(t, root, "t", 1)
	two := s.commit(t, one, "two", put(at(content, 2), namespace, "t"), put(table(1), namespace, "a"))
	commits := s.log(t, catalog.LogQuery{From: catalog.Ref{Name: two.Name}})
	require.Equal(t, []string{"two", "create t", "namespace"}, messages(commits))
	assert.Equal(t, []string{two.Hash, one.Hash, root.Hash}, []string{commits[0].Hash, commits[1].Hash, commits[2].Hash})
	config, err := s.client.Config(t.Context())
	require.NoError(t, err)
	for i, parent := range []string{one.Hash, root.Hash, config.NoAncestorHash} {
		assert.Equal(t, []string{parent}, commits[i].Parents)
		assert.WithinDuration(t, time.Now(), commits[i].Time, time.Hour)
	}
	created := s.head(t, two.Ref(), namespace, "a").Content
	assert.Equal(t, []catalog.Operation{put(created, namespace, "a"), put(at(content, 2), namespace, "t")}, commits[0].Operations, "in key order")

	raw := s.get(t, tree(two.Name, "/history"), url.Values{"fetch": {"ALL"}})
	assert.Equal(t, one.Hash, field(t, raw, "logEntries.0.parentCommitHash"))
	assert.Equal(t, false, raw["hasMore"])
	assert.Nil(t, raw["token"])
	assert.Equal(t, []string{"create t", "namespace"}, messages(s.log(t, catalog.LogQuery{From: one.Ref()})))
}

func (s *suite) longLog(t *testing.T) {
	branch, content := s.newTable(t, s.branch(t), "t", 1)
	branch, other := s.newTable(t, branch, "u", 1)
	const commits = 260
	for i := range commits {
		changed := put(at(content, int64(i)), namespace, "t")
		if i%10 == 0 {
			changed = put(at(other, int64(i)), namespace, "u")
		}
		branch = s.commit(t, branch, fmt.Sprint(i), changed)
	}
	page := s.get(t, tree(branch.Name, "/history"), url.Values{"max-records": {"1000"}})
	assert.Len(t, page["logEntries"], 250, "a page holds no more")
	assert.Equal(t, true, page["hasMore"])
	page = s.get(t, tree(branch.Name, "/history"), nil)
	assert.Len(t, page["logEntries"], 250)

	assert.Len(t, s.log(t, catalog.LogQuery{From: branch.Ref()}), commits+3)
	assert.Len(t, s.log(t, catalog.LogQuery{From: branch.Ref(), PageSize: 7}), commits+3)
	assert.Len(t, s.log(t, catalog.LogQuery{From: branch.Ref(), Keys: []catalog.Key{{namespace, "u"}}}), commits/10+1)
	both := s.log(t, catalog.LogQuery{From: branch.Ref(), Keys: []catalog.Key{{namespace, "u"}, {namespace, "t"}}})
	assert.Len(t, both, commits+2)
}

func (s *suite) minimalLog(t *testing.T) {
	branch, _ := s.newTable(t, s.branch(t), "t", 1)
	filter := "operations.exists(op, op.encodedKey=='ns.t')"
	for _, fetch := range []url.Values{{}, {"fetch": {"MINIMAL"}}} {
		page := s.get(t, tree(branch.Name, "/history"), fetch)
		assert.Len(t, page["logEntries"], 2)
		assert.Nil(t, field(t, page, "logEntries.0.operations"))
		fetch.Set("filter", filter)
		assert.Empty(t, s.get(t, tree(branch.Name, "/history"), fetch)["logEntries"])
	}
	page := s.get(t, tree(branch.Name, "/history"), url.Values{"fetch": {"ALL"}, "filter": {filter}})
	assert.Equal(t, []string{"create t"}, logged(t, page))
}

func (s *suite) limitedLog(t *testing.T) {
	one, content := s.newTable(t, s.branch(t), "t", 1)
	two, _ := s.newTable(t, one, "u", 1)
	three := s.commit(t, two, "three", put(at(content, 3), namespace, "t"))
	limited := func(limit string, more url.Values) []string {
		query := url.Values{"fetch": {"ALL"}, "limit-hash": {limit}}
		maps.Copy(query, more)
		return logged(t, s.get(t, tree(three.Name, "/history"), query))
	}
	whole := []string{"three", "create u", "create t", "namespace"}
	assert.Equal(t, whole[:2], limited(two.Hash, nil))
	assert.Equal(t, whole, limited(neverWas, nil), "an unknown hash is no limit")
	assert.Equal(t, whole, limited(two.Hash[:16], nil), "a short hash is none either")
	onT := url.Values{"filter": {"operations.exists(op, op.encodedKey=='ns.t')"}}
	assert.Equal(t, []string{"three", "create t"}, limited(two.Hash, onT), "the filter drops the limit, which is not seen then")
	assert.Equal(t, []string{"three"}, limited(three.Hash, onT))
}

func (s *suite) logTokens(t *testing.T) {
	one, content := s.newTable(t, s.branch(t), "t", 1)
	two := s.commit(t, one, "two", put(at(content, 2), namespace, "t"))
	three := s.commit(t, two, "three", put(at(content, 3), namespace, "t"))
	first := s.get(t, tree(three.Name, "/history"), url.Values{"max-records": {"1"}})
	assert.Equal(t, two.Hash, first["token"])
	s.commit(t, three, "four", put(at(content, 4), namespace, "t"))
	next := url.Values{"max-records": {"1"}, "page-token": {two.Hash}}
	assert.Equal(t, []string{"two"}, logged(t, s.get(t, tree(three.Name, "/history"), next)), "the branch moved, the page did not")

	status, answer := s.ask(t, http.MethodGet, tree(three.Name, "/history"), url.Values{"page-token": {neverWas}}, nil)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "REFERENCE_NOT_FOUND", answer["errorCode"])
}

func (s *suite) logFilters(t *testing.T) {
	one, content := s.newTable(t, s.branch(t), "t", 1)
	two := s.commit(t, one, "two", put(at(content, 2), namespace, "t"), put(table(1), namespace, "d.o/t%"))
	branch := s.commit(t, two, "drop", remove(namespace, "t"))
	for filter, want := range map[string][]string{
		"operations.exists(op, op.key=='ns.t')":                                                {"drop", "two", "create t"},
		"operations.exists(op, op.encodedKey=='ns.t')":                                         {"drop", "two", "create t"},
		"operations.exists(op, op.keyElements==['ns','t'])":                                    {"drop", "two", "create t"},
		"operations.exists(op, op.keyElements==['ns','t'] || op.keyElements==['ns','d.o/t%'])": {"drop", "two", "create t"},
		"operations.exists(op, op.encodedKey=='ns.d\\u001do/t%')":                              {"two"},
		"operations.exists(op, op.key in ['ns.t', 'x'] && op.type=='PUT')":                     {"two", "create t"},
		"operations.exists(op, op.type=='DELETE')":                                             {"drop"},
		"operations.exists(op, op.name=='t' && op.namespace=='ns')":                            {"drop", "two", "create t"},
		"operations.exists(op, op.type=='PUT' && op.content.id=='" + content.ID + "')":         {"two", "create t"},
		"operations.exists(op, op.key=='nope')":                                                {},
	} {
		page := s.get(t, tree(branch.Name, "/history"), url.Values{"fetch": {"ALL"}, "filter": {filter}})
		assert.ElementsMatch(t, want, logged(t, page), filter)
	}
	for filter, want := range map[string]int{
		"operations.exists(op, op.content.id=='" + content.ID + "')": http.StatusInternalServerError, // the log holds a Delete
		"bad(":                                http.StatusBadRequest,
		"operations.exists(op, op.nope=='x')": http.StatusBadRequest,
	} {
		status, _ := s.ask(t, http.MethodGet, tree(branch.Name, "/history"), url.Values{"fetch": {"ALL"}, "filter": {filter}}, nil)
		assert.Equal(t, want, status, filter)
	}
}

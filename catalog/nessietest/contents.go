// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

func (n *Nessie) serveContent(a arguments) (any, error) {
	if err := a.only("for-write", "with-doc"); err != nil {
		return nil, err
	}
	p, err := n.readable(a.path[0])
	if err != nil {
		return nil, err
	}
	key, err := n.parseKey(a.path[1])
	if err != nil {
		return nil, err
	}
	found, ok := p.commit.content(key)
	if !ok {
		return nil, &apiError{
			http.StatusNotFound, "CONTENT_NOT_FOUND",
			fmt.Sprintf("Could not find content for key '%s' in reference '%s'.", display(key), p.name()),
		}
	}
	return map[string]any{"content": found.object, "effectiveReference": p.effective()}, nil
}

func (n *Nessie) serveContents(a arguments) (any, error) {
	if err := a.only("for-write", "with-doc"); err != nil {
		return nil, err
	}
	var body struct {
		RequestedKeys []keyJSON `json:"requestedKeys"`
	}
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if len(body.RequestedKeys) == 0 {
		return nil, badRequest("getMultipleContents.request.requestedKeys: size must be between 1 and 2147483647")
	}
	p, err := n.readable(a.path[0])
	if err != nil {
		return nil, err
	}
	contents := []map[string]any{}
	for _, key := range body.RequestedKeys {
		if found, ok := p.commit.content(key.Elements); ok {
			contents = append(contents, map[string]any{"key": key, "content": found.object})
		}
	}
	return map[string]any{"contents": contents, "effectiveReference": p.effective()}, nil
}

// selection is what entries and diff narrow their keys down to.
type selection struct {
	prefix []string
	keys   [][]string
	filter *expression
}

func (n *Nessie) selection(a arguments) (selection, error) {
	var s selection
	var err error
	if text := a.query.Get("prefix-key"); text != "" {
		if s.prefix, err = n.parseKey(text); err != nil {
			return s, err
		}
	}
	for _, text := range a.query["key"] {
		key, err := n.parseKey(text)
		if err != nil {
			return s, err
		}
		s.keys = append(s.keys, key)
	}
	if text := a.query.Get("filter"); text != "" {
		s.filter, err = parseFilter(text, "entry")
	}
	return s, err
}

func (s selection) takes(k keyed) (bool, error) {
	if !hasPrefix(k.key, s.prefix) {
		return false, nil
	}
	if len(s.keys) > 0 && !slices.ContainsFunc(s.keys, func(key []string) bool { return slices.Equal(key, k.key) }) {
		return false, nil
	}
	if s.filter == nil {
		return true, nil
	}
	return s.filter.eval(subject{key: k.key, kind: k.content.kind, contentID: k.content.id, hasContent: true})
}

func (s selection) of(all []keyed) ([]keyed, error) {
	var taken []keyed
	for _, k := range all {
		ok, err := s.takes(k)
		if err != nil {
			return nil, err
		}
		if ok {
			taken = append(taken, k)
		}
	}
	return taken, nil
}

func (n *Nessie) serveEntries(a arguments) (any, error) {
	if err := a.only("content", "filter", "prefix-key", "key", "max-records", "page-token"); err != nil {
		return nil, err
	}
	p, err := n.readable(a.path[0])
	if err != nil {
		return nil, err
	}
	chosen, err := n.selection(a)
	if err != nil {
		return nil, err
	}
	all, err := chosen.of(p.commit.sortedContents())
	if err != nil {
		return nil, err
	}
	page, token, err := pageOf(a, all, func(k keyed) string { return joined(k.key) })
	if err != nil {
		return nil, err
	}
	entries := make([]map[string]any, len(page))
	for i, k := range page {
		var content json.RawMessage
		if a.query.Get("content") == "true" {
			content = k.content.object
		}
		entries[i] = map[string]any{
			"type": k.content.kind, "name": keyJSON{k.key}, "contentId": k.content.id, "content": content,
		}
	}
	return map[string]any{"token": token, "hasMore": token != nil, "entries": entries, "effectiveReference": p.effective()}, nil
}

func (n *Nessie) serveDiff(a arguments) (any, error) {
	if err := a.only("prefix-key", "key", "max-records", "page-token"); err != nil {
		return nil, err
	}
	from, err := n.readable(a.path[0])
	if err != nil {
		return nil, err
	}
	to, err := n.readable(a.path[1])
	if err != nil {
		return nil, err
	}
	chosen, err := n.selection(a)
	if err != nil {
		return nil, err
	}
	changed, err := chosen.of(differing(from.commit, to.commit))
	if err != nil {
		return nil, err
	}
	page, token, err := pageOf(a, changed, func(k keyed) string { return joined(k.key) })
	if err != nil {
		return nil, err
	}
	diffs := make([]map[string]any, len(page))
	for i, k := range page {
		before, _ := from.commit.content(k.key)
		after, _ := to.commit.content(k.key)
		diffs[i] = map[string]any{"key": keyJSON{k.key}, "from": before.object, "to": after.object}
	}
	return map[string]any{
		"token": token, "hasMore": token != nil, "diffs": diffs,
		"effectiveFromReference": from.effective(), "effectiveToReference": to.effective(),
	}, nil
}

// differing lists the keys whose content is not the same at both commits, in key order, with either side's content.
func differing(from, to *storedCommit) []keyed {
	var changed []keyed
	for _, k := range to.sortedContents() {
		if before, ok := from.content(k.key); !ok || !before.equal(k.content) {
			changed = append(changed, k)
		}
	}
	for _, k := range from.sortedContents() {
		if _, ok := to.content(k.key); !ok {
			changed = append(changed, k)
		}
	}
	slices.SortFunc(changed, func(a, b keyed) int { return slices.Compare(a.key, b.key) })
	return changed
}

func (c storedContent) equal(other storedContent) bool {
	return string(c.object) == string(other.object)
}

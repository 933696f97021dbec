// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/json"
	"maps"
)

type logEntryJSON struct {
	CommitMeta       map[string]any  `json:"commitMeta"`
	ParentCommitHash string          `json:"parentCommitHash"`
	Operations       []operationJSON `json:"operations"` // null without fetch=ALL, and for a commit that changed nothing
}

type operationJSON struct {
	Type    string          `json:"type"`
	Key     keyJSON         `json:"key"`
	Content json.RawMessage `json:"content,omitempty"`
}

func (n *Nessie) serveHistory(a arguments) (any, error) {
	if err := a.only("fetch", "filter", "limit-hash", "max-records", "page-token"); err != nil {
		return nil, err
	}
	from, err := n.logStart(a)
	if err != nil {
		return nil, err
	}
	size, err := a.pageSize()
	if err != nil {
		return nil, err
	}
	whole := a.query.Get("fetch") == "ALL"
	takes := func(*storedCommit) (bool, error) { return true, nil }
	if text := a.query.Get("filter"); text != "" {
		filter, err := parseFilter(text, "op")
		if err != nil {
			return nil, err
		}
		takes = func(c *storedCommit) (bool, error) { return filter.anyOperation(c, whole) }
	}
	page, token, err := n.logPage(from, size, a.query.Get("limit-hash"), takes)
	if err != nil {
		return nil, err
	}
	entries := make([]logEntryJSON, len(page))
	for i, c := range page {
		entries[i] = c.logEntry(whole)
	}
	return map[string]any{"token": token, "hasMore": token != nil, "logEntries": entries}, nil
}

// logStart is the reference's commit, or the one that the page token names: tokens are commit hashes.
func (n *Nessie) logStart(a arguments) (*storedCommit, error) {
	p, err := n.readable(a.path[0])
	if err != nil {
		return nil, err
	}
	if token := a.query.Get("page-token"); token != "" {
		p, err = n.resolve("@" + token)
	}
	return p.commit, err
}

// logPage takes up to size commits that pass. The limit is looked for among those that passed, as a real server does:
// a limit that the filter drops is never seen.
func (n *Nessie) logPage(from *storedCommit, size int, limit string, takes func(*storedCommit) (bool, error)) (page []*storedCommit, token *string, err error) {
	ended := false
	n.log(from, func(c *storedCommit) bool {
		var ok bool
		if ok, err = takes(c); err != nil {
			return false
		}
		switch {
		case !ok:
		case ended:
			return false
		case len(page) == size:
			token = &c.hash
			return false
		default:
			page = append(page, c)
			ended = c.hash == limit
		}
		return !ended
	})
	return page, token, err
}

func (c *storedCommit) logEntry(whole bool) logEntryJSON {
	meta := map[string]any{"committer": "", "authors": []string{""}, "allSignedOffBy": []string{}, "authorTime": instantText(c.time)}
	maps.Copy(meta, c.meta)
	meta["hash"], meta["message"], meta["commitTime"] = c.hash, c.message, instantText(c.time)
	meta["parentCommitHashes"] = c.parents
	entry := logEntryJSON{CommitMeta: meta, ParentCommitHash: c.parent()}
	if whole {
		for _, op := range c.ops {
			entry.Operations = append(entry.Operations, operationJSON{op.kind, keyJSON{op.key}, op.content.object})
		}
	}
	return entry
}

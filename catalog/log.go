// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Pages of the log start small, as most readers stop after a few commits, and double up to what a server allows.
const (
	firstLogPage = 16
	largestPage  = 250
)

// A filter longer than this could make a URL that a proxy refuses; the client filters alone then.
const longestFilter = 4000

// LogQuery says which commits to read. From is where the log begins: pinned to a commit, else it is pinned to where
// the name is at the first page. Keys leave only commits that change one of them; none leaves all. PageSize bounds the
// commits asked for at once (0: as many as a server allows, 250).
type LogQuery struct {
	From     Ref
	Keys     []Key
	PageSize int
}

// Log goes through the commits from a commit back along first parents, newest first. Pages are asked for as they are
// consumed and begin small: whoever has seen enough breaks out. An error is yielded once and ends it.
//
// Each commit has all its operations, those on other keys too, so that a rename shows both its sides. Nessie's own
// limit-hash is not used: it is blind to commits that the filter drops, and walks to the root then.
func (c *Client) Log(ctx context.Context, q LogQuery) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		for _, key := range q.Keys {
			if err := key.Validate(); err != nil {
				yield(Commit{}, fmt.Errorf("reading the commit log of %s: %w: %w", q.From, ErrBadRequest, err))
				return
			}
		}
		from, err := c.pin(ctx, q.From)
		if err != nil {
			yield(Commit{}, fmt.Errorf("reading the commit log of %s: %w", q.From, err))
			return
		}
		query := url.Values{"fetch": {"ALL"}} // without it there are no operations, and filters on them match nothing
		if filter := keyFilter(q.Keys); filter != "" {
			query.Set("filter", filter)
		}
		req := request{call: "log", method: http.MethodGet, path: treePath(from) + "/history", query: query}
		for page, err := range pages[logPage](ctx, c, req, pageSizes(q.PageSize)) {
			if err != nil {
				yield(Commit{}, fmt.Errorf("reading the commit log of %s: %w", from, err))
				return
			}
			for _, entry := range page.LogEntries {
				commit := entry.commit()
				if commit.changes(q.Keys) && !yield(commit, nil) {
					return
				}
			}
		}
	}
}

func pageSizes(limit int) func(n int) int {
	if limit <= 0 || limit > largestPage {
		limit = largestPage
	}
	return func(n int) int { return min(limit, firstLogPage<<min(n, 8)) }
}

// keyFilter is the server's side of LogQuery.Keys, in CEL. It compares elements: the encoded key that CEL sees writes
// dots inside elements in the way of old servers.
func keyFilter(keys []Key) string {
	if len(keys) == 0 {
		return ""
	}
	matches := make([]string, len(keys))
	for i, key := range keys {
		elements := make([]string, len(key))
		for j, element := range key {
			elements[j] = celString(element)
		}
		matches[i] = "op.keyElements==[" + strings.Join(elements, ",") + "]"
	}
	filter := "operations.exists(op, " + strings.Join(matches, " || ") + ")"
	if len(filter) > longestFilter {
		return ""
	}
	return filter
}

var celEscape = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

func celString(s string) string { return "'" + celEscape.Replace(s) + "'" }

func (c Commit) changes(keys []Key) bool {
	return len(keys) == 0 || slices.ContainsFunc(c.Operations, func(op Operation) bool {
		return slices.ContainsFunc(keys, op.Key.Equal)
	})
}

type logPage struct {
	paging
	LogEntries []logEntry `json:"logEntries"`
}

func (p logPage) listed() bool { return p.LogEntries != nil }

type logEntry struct {
	CommitMeta struct {
		Hash               string    `json:"hash"`
		Message            string    `json:"message"`
		CommitTime         time.Time `json:"commitTime"`
		ParentCommitHashes []string  `json:"parentCommitHashes"`
	} `json:"commitMeta"`
	ParentCommitHash string `json:"parentCommitHash"`
	Operations       []struct {
		Type    OperationType `json:"type"`
		Key     keyJSON       `json:"key"`
		Content *contentJSON  `json:"content"`
	} `json:"operations"`
}

func (e logEntry) commit() Commit {
	commit := Commit{
		Hash: e.CommitMeta.Hash, Time: e.CommitMeta.CommitTime.UTC(), Message: e.CommitMeta.Message,
		Parents: e.CommitMeta.ParentCommitHashes,
	}
	if len(commit.Parents) == 0 && e.ParentCommitHash != "" {
		commit.Parents = []string{e.ParentCommitHash}
	}
	for _, op := range e.Operations {
		commit.Operations = append(commit.Operations, Operation{Type: op.Type, Key: op.Key.Elements, Content: op.Content.content()})
	}
	return commit
}

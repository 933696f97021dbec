// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	branch   = "BRANCH"
	tag      = "TAG"
	detached = "DETACHED"

	defaultBranch = "main"
)

type storedRef struct{ kind, name, hash string }

// storedContent is a content as it was committed, with its id put in. It is not changed once it is stored.
type storedContent struct {
	kind, id string
	object   json.RawMessage
}

// keyed is a content under its key. Maps of them are by elements joined with a zero byte, which no element holds.
type keyed struct {
	key     []string
	content storedContent
}

func joined(key []string) string { return strings.Join(key, "\x00") }

type storedOperation struct {
	kind    string // PUT, DELETE
	key     []string
	content storedContent // of a PUT
}

// storedCommit is one commit with the whole state after it. It is not changed once it is stored.
type storedCommit struct {
	hash     string
	parents  []string // the first is the one that the log follows
	message  string
	meta     map[string]any // what the committer said beside the message
	time     time.Time
	ops      []storedOperation // deletes, then puts, both in key order
	contents map[string]keyed
	depth    int // number of commits on the longest way to it, so that no commit is deeper than one that it leads to
}

func (c *storedCommit) parent() string {
	if len(c.parents) == 0 {
		return ""
	}
	return c.parents[0]
}

func (c *storedCommit) content(key []string) (storedContent, bool) {
	found, ok := c.contents[joined(key)]
	return found.content, ok
}

// sortedContents lists what a commit holds in the server's key order.
func (c *storedCommit) sortedContents() []keyed {
	return slices.SortedFunc(maps.Values(c.contents), func(a, b keyed) int { return slices.Compare(a.key, b.key) })
}

// add stores a commit on top of parent. It does not move a reference.
func (n *Nessie) add(parent *storedCommit, ops []storedOperation, message string, meta map[string]any, mergeParents ...string) *storedCommit {
	contents := maps.Clone(parent.contents)
	for _, op := range ops {
		if op.kind == opDelete {
			delete(contents, joined(op.key))
		}
	}
	for _, op := range ops {
		if op.kind == opPut {
			contents[joined(op.key)] = keyed{op.key, op.content}
		}
	}
	made := &storedCommit{
		parents: append([]string{parent.hash}, mergeParents...), message: message, meta: meta,
		time: n.opts.Clock().UTC(), ops: logOrder(ops), contents: contents,
	}
	for _, hash := range made.parents {
		made.depth = max(made.depth, n.commits[hash].depth+1)
	}
	hash := n.identity("commit", parent.hash, message, fmt.Sprint(made.ops))
	made.hash = hex.EncodeToString(hash[:])
	n.commits[made.hash] = made
	return made
}

// logOrder gives operations as the log shows them: deletes first, each kind by key, and of a Delete and a Put of one
// key only the Put.
func logOrder(ops []storedOperation) []storedOperation {
	put := map[string]bool{}
	for _, op := range ops {
		if op.kind == opPut {
			put[joined(op.key)] = true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(ops), func(op storedOperation) bool {
		return op.kind != opPut && put[joined(op.key)]
	})
	slices.SortStableFunc(kept, func(a, b storedOperation) int {
		if a.kind != b.kind {
			return strings.Compare(a.kind, b.kind) // DELETE before PUT
		}
		return slices.Compare(a.key, b.key)
	})
	return kept
}

// log walks along first parents, from a commit down to the first.
func (n *Nessie) log(from *storedCommit, visit func(*storedCommit) bool) {
	for c := from; c != nil && c.hash != NoAncestor; c = n.commits[c.parent()] {
		if !visit(c) {
			return
		}
	}
}

// onLog says whether hash is on the first-parent log of from, the beginning included.
func (n *Nessie) onLog(from *storedCommit, hash string) bool {
	found := hash == NoAncestor
	n.log(from, func(c *storedCommit) bool {
		found = found || c.hash == hash
		return !found
	})
	return found
}

// ancestors is every commit that leads to from, itself included, along all parents, or the first alone in an old server.
func (n *Nessie) ancestors(from *storedCommit) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{from.hash}; len(todo) > 0; {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c := n.commits[hash]; c != nil && !seen[hash] {
			seen[hash] = true
			if n.oldAPI && len(c.parents) > 1 {
				todo = append(todo, c.parent())
				continue
			}
			todo = append(todo, c.parents...)
		}
	}
	return seen
}

// commonAncestor is a commit that leads to both and to no other that does.
func (n *Nessie) commonAncestor(a, b *storedCommit) *storedCommit {
	left, right := n.ancestors(a), n.ancestors(b)
	best := n.commits[NoAncestor]
	for hash := range left {
		c := n.commits[hash]
		if right[hash] && (c.depth > best.depth || (c.depth == best.depth && c.hash > best.hash)) {
			best = c
		}
	}
	return best
}

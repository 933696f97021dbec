// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// mostAncestors bounds the search in the log of a whole branch.
	mostAncestors = 250_000
	// clockSkew is how much older than its parent a commit may claim to be: Nessie's servers stamp commits themselves.
	clockSkew = time.Hour
)

// IsAncestor reports whether the head's commit is this commit or came after it, merge parents included. Unlike the rest
// of a History it looks at every commit of the branch, back to the commit's time, so it is for doubtful cases only. A
// commit that the server does not have is no ancestor.
func (h *History) IsAncestor(ctx context.Context, commit string) (bool, error) {
	if commit == h.cfg.Head.Reference.Hash || h.log.seen[commit] {
		return true, nil
	}
	if answer, ok := h.ancestors[commit]; ok {
		return answer, nil
	}
	answer, err := h.walkTo(ctx, commit)
	if err != nil {
		return false, fmt.Errorf("looking for commit %s in the log of %s: %w", commit, h.cfg.Head.Reference.Name, err)
	}
	h.ancestors[commit] = answer
	return answer, nil
}

// walkTo walks the lines that lead to the head until one arrives at the commit or all are older than it.
func (h *History) walkTo(ctx context.Context, commit string) (bool, error) {
	made, err := h.timeOf(ctx, commit)
	if errors.Is(err, ErrUnknownReference) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	oldest := made.Add(-clockSkew)
	visited := map[string]bool{}
	for lines := []string{h.cfg.Head.Reference.Hash}; len(lines) > 0; {
		line := lines[len(lines)-1]
		lines = lines[:len(lines)-1]
		for c, err := range h.log.from(ctx, line, LogQuery{}) {
			if errors.Is(err, ErrUnknownReference) && line != h.cfg.Head.Reference.Hash {
				break
			}
			if err != nil {
				return false, err
			}
			if c.Hash == commit || slices.Contains(c.Parents, commit) {
				return true, nil
			}
			if visited[c.Hash] || c.Time.Before(oldest) {
				break
			}
			if visited[c.Hash] = true; len(visited) > mostAncestors {
				return false, fmt.Errorf("not met within %d commits", mostAncestors)
			}
			if len(c.Parents) > 1 {
				lines = append(lines, c.Parents[1:]...)
			}
		}
	}
	return false, nil
}

func (h *History) timeOf(ctx context.Context, commit string) (time.Time, error) {
	for c, err := range h.log.from(ctx, commit, LogQuery{PageSize: 1}) {
		return c.Time, err
	}
	return time.Time{}, ErrUnknownReference
}

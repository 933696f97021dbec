// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Line is a walk from a state back along its proved parents, for people to look at.
type Line struct {
	// Nodes are the states, newest first. It is never empty.
	Nodes []LineNode
	// Root is true where the oldest node has no parent, and that is proved.
	Root bool
	// Missing is the parent that was not found below the oldest node; NoSnapshot where none is named. Why says what stood
	// in the way. Both say nothing where the walk was stopped, or for a Root.
	Missing int64
	Why     string
	// Stopped is true where the walk ended because the caller had seen enough.
	Stopped bool
}

// LineNode is one state of a Line. FoundBy says how it was found and its parent proved, with the labels of Step.FoundBy; it
// is "" where the walk did not ask for the parent, or nothing names one.
type LineNode struct {
	State   catalog.State
	FoundBy string
}

// Trace walks from a state back until enough says so of a state, a root, or a hole. Errors are those of Resolve that a
// walk can have: *CycleError, *SequenceError, and what the History answers, wrapped.
func Trace(ctx context.Context, from catalog.State, h History, enough func(catalog.State) bool) (Line, error) {
	l := newLine(h, from)
	traced := Line{Missing: catalog.NoSnapshot}
	for !from.Empty() {
		if enough(l.oldest()) {
			traced.Stopped = true
			break
		}
		if more, err := l.descend(ctx); err != nil {
			return Line{}, err
		} else if !more {
			traced.Root = l.end == root
			traced.Missing, traced.Why = l.missing, l.why
			break
		}
	}
	traced.Root = traced.Root || from.Empty()
	for _, n := range l.nodes {
		node := LineNode{State: n.state}
		if n.proof != "" {
			node.FoundBy = n.foundBy()
		}
		traced.Nodes = append(traced.Nodes, node)
	}
	return traced, nil
}

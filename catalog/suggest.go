// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Unknown is which part of a table's address does not exist.
type Unknown string

// The parts, from the outside in.
const (
	UnknownBranch    Unknown = "branch or tag"
	UnknownCommit    Unknown = "commit"
	UnknownNamespace Unknown = "namespace"
	UnknownTable     Unknown = "table"
)

// UnknownError says what of reference, namespace and table does not exist, and which names that do are close: at most
// three, the closest first. It unwraps to the server's answer, so to ErrUnknownReference or ErrUnknownContent.
type UnknownError struct {
	What  Unknown
	Name  string
	In    string // where it was looked for: "" for references
	Close []string
	Err   error
}

// Error reads like: table "oders" does not exist in namespace "shop" on main; close names that do: orders.
func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q does not exist", e.What, e.Name)
	if e.In != "" {
		b.WriteString(" " + e.In)
	}
	if len(e.Close) > 0 {
		b.WriteString("; close names that do: " + strings.Join(e.Close, ", "))
	}
	return b.String()
}

// Unwrap is the server's answer.
func (e *UnknownError) Unwrap() error { return e.Err }

// Looking for close names stops here: an error must not cost minutes on a catalog with a million tables.
const mostNames = 10_000

// unknownReference finds the close names of a branch or tag. A failure on the way costs only the names.
func (c *Client) unknownReference(ctx context.Context, name string, cause error) error {
	var names []string
	for ref, err := range c.References(ctx) {
		if err != nil || len(names) == mostNames {
			break
		}
		names = append(names, ref.Name)
	}
	return &UnknownError{What: UnknownBranch, Name: Ref{Name: name}.String(), Close: closeNames(name, names), Err: cause}
}

// unknownCommit tells the two parts of name@hash apart.
func (c *Client) unknownCommit(ctx context.Context, ref Ref, cause error) error {
	if ref.Hash == "" {
		return c.unknownReference(ctx, ref.Name, cause)
	}
	if ref.Name != "" {
		if _, err := c.reference(ctx, ref.Name); errors.Is(err, ErrUnknownReference) {
			return c.unknownReference(ctx, ref.Name, cause)
		}
	}
	return &UnknownError{What: UnknownCommit, Name: ref.Hash, Err: cause}
}

// unknownContent tells an unknown namespace from an unknown table, which Nessie answers alike. When the contents can't
// be listed nothing is said about the namespace that is not known.
func (c *Client) unknownContent(ctx context.Context, ref Ref, key Key, cause error) error {
	namespace := key.Namespace()
	known := len(namespace) == 0
	var namespaces, tables, elsewhere []string
	seen := 0
	for entry, err := range c.entries(ctx, ref, EntriesQuery{}) {
		if err != nil || seen == mostNames {
			known = true
			break
		}
		seen++
		at := entry.Key
		if entry.Type != ContentTypeNamespace {
			at = at.Namespace()
			switch {
			case at.Equal(namespace):
				tables = append(tables, Key{entry.Key.Name()}.String())
			case entry.Key.Name() == key.Name():
				elsewhere = append(elsewhere, entry.Key.String())
			}
		}
		known = known || at.hasPrefix(namespace)
		if len(at) > 0 {
			namespaces = append(namespaces, at.String())
		}
	}
	if !known {
		return &UnknownError{
			What: UnknownNamespace, Name: namespace.String(), In: "on " + ref.String(), Close: closeNames(namespace.String(), namespaces), Err: cause,
		}
	}
	unknown := &UnknownError{What: UnknownTable, Name: key.Name(), In: "on " + ref.String(), Close: closeNames(key.Name(), tables), Err: cause}
	if len(namespace) > 0 {
		unknown.In = fmt.Sprintf("in namespace %q on %s", namespace, ref)
	}
	if len(unknown.Close) == 0 {
		unknown.Close = elsewhere[:min(len(elsewhere), mostClose)]
	}
	return unknown
}

const mostClose = 3

// closeNames picks what the name may have been meant to be: a slip for every four characters is allowed, and one more.
func closeNames(name string, names []string) []string {
	type candidate struct {
		name string
		far  int
	}
	wanted := []rune(strings.ToLower(name))
	allowed := 1 + len(wanted)/4
	var found []candidate
	for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
		have := []rune(strings.ToLower(n))
		if max(len(have)-len(wanted), len(wanted)-len(have)) > allowed {
			continue
		}
		if far := editDistance(wanted, have); far <= allowed && far < len(wanted) {
			found = append(found, candidate{n, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var closest []string
	for _, c := range found[:min(len(found), mostClose)] {
		closest = append(closest, c.name)
	}
	return closest
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
func editDistance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

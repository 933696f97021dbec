// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A query passes through these files: query_grammar.go parses the text and query_ast.go keeps what it can mean, or refuses
// it by name; query_bind.go ties that to a schema and turns every comparison into ranges of values (query_spans.go). The
// bound form answers two questions. Which rows of a batch pass (query_evaluate.go)? That alone decides. And which outcomes
// are possible at all where only bounds are known (query_facts.go)? That keeps manifests, files (query_files.go) and row
// groups (query_groups.go) closed.

// Query is a row filter: a SQL WHERE expression that was parsed and not yet tied to a schema. It is immutable.
type Query struct {
	text string
	root expression
}

const (
	maxQueryBytes   = 1 << 20
	maxQueryNesting = 100
)

// ParseQuery parses a SQL WHERE expression. Everything that a schema is not needed for is checked here. Errors are
// *QueryError.
func ParseQuery(text string) (*Query, error) {
	if len(text) > maxQueryBytes {
		return nil, fmt.Errorf("the query has %d bytes; the most is %d", len(text), maxQueryBytes)
	}
	root, err := parseExpression(text)
	if err != nil {
		return nil, err
	}
	return &Query{text: text, root: root}, nil
}

// String is the text as it was parsed.
func (q *Query) String() string { return q.text }

// QueryError is something in a query that is wrong, or that is refused. Its message shows the place in the text.
type QueryError struct {
	Text   string
	Offset int // in bytes
	Reason string
}

func (e *QueryError) Error() string {
	before := e.Text[:min(e.Offset, len(e.Text))]
	start := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(e.Text[start:], "\n")
	number := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[start:]) + 1
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before[start:])
	return fmt.Sprintf("query, line %d, column %d: %s\n    %s\n    %s^", number, column, e.Reason, strings.TrimRight(line, "\r"), indent)
}

// refusal is a QueryError before its text is known.
type refusal struct {
	at     int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuseAt(at int, format string, args ...any) error {
	return &refusal{at: at, reason: fmt.Sprintf(format, args...)}
}

// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// expression is a filter in the part of CEL that this server knows: comparisons of a subject's fields with strings and
// lists of strings (==, !=, in, startsWith), joined by && and || and parentheses.
type expression struct {
	operator string // && || == != in startsWith
	sides    []*expression
	field    string
	texts    []string
}

// subject is what a filter looks at: an operation, or an entry.
type subject struct {
	key        []string
	kind       string // PUT or DELETE of an operation, the content's type of an entry
	contentID  string
	hasContent bool
}

// parseFilter reads operations.exists(op, …) for a variable op, and the expression alone for a variable entry.
func parseFilter(text, variable string) (*expression, error) {
	p := &filterParser{variable: variable}
	if err := p.split(text); err != nil {
		return nil, err
	}
	if variable == "op" {
		for _, want := range []string{"operations", ".", "exists", "(", "op", ","} {
			if err := p.expect(want); err != nil {
				return nil, err
			}
		}
	}
	e, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if variable == "op" {
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if len(p.tokens) > 0 {
		return nil, p.refuse()
	}
	return e, nil
}

// anyOperation says whether the filter takes a commit. Without fetch=ALL a real server shows filters no operations.
func (e *expression) anyOperation(c *storedCommit, whole bool) (bool, error) {
	if !whole {
		return false, nil
	}
	var failed error
	for _, op := range c.ops {
		s := subject{key: op.key, kind: op.kind, contentID: op.content.id, hasContent: op.kind == opPut}
		ok, err := e.eval(s)
		if ok && err == nil {
			return true, nil // in CEL true wins over an error beside it
		}
		if err != nil {
			failed = err
		}
	}
	return false, failed
}

// eval follows CEL: && and || take an answer from one side even if the other fails.
func (e *expression) eval(s subject) (bool, error) {
	switch e.operator {
	case "&&", "||":
		decisive := e.operator == "||"
		var failed error
		for _, side := range e.sides {
			ok, err := side.eval(s)
			if err == nil && ok == decisive {
				return decisive, nil
			}
			if err != nil {
				failed = err
			}
		}
		return !decisive, failed
	case "!=":
		equal, err := e.compare(s, false)
		return !equal && err == nil, err
	}
	return e.compare(s, e.operator == "startsWith")
}

func (e *expression) compare(s subject, prefix bool) (bool, error) {
	if e.field == "keyElements" {
		return slices.Equal(s.key, e.texts), nil
	}
	if e.field == "content.id" && !s.hasContent {
		return false, &apiError{http.StatusInternalServerError, "UNKNOWN", "no such overload: null_type.ref-resolve(*)"}
	}
	value := s.field(e.field)
	return slices.ContainsFunc(e.texts, func(text string) bool {
		return value == text || (prefix && strings.HasPrefix(value, text))
	}), nil
}

func (s subject) field(name string) string {
	switch name {
	case "type", "contentType":
		return s.kind
	case "key":
		return display(s.key)
	case "encodedKey":
		return legacyKey(s.key)
	case "name":
		return s.key[len(s.key)-1]
	case "namespace":
		return legacyKey(s.key[:len(s.key)-1])
	case "content.id", "contentId":
		return s.contentID
	}
	panic(fmt.Sprintf("filter field %q was let through by the parser", name))
}

var fieldsOf = map[string][]string{
	"op":    {"type", "key", "encodedKey", "keyElements", "name", "namespace", "content.id"},
	"entry": {"contentType", "key", "encodedKey", "keyElements", "name", "namespace", "contentId"},
}

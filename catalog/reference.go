// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The rules of Nessie for names of branches and tags, but for "..", which is checked beside it.
var refName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9./_-]*[A-Za-z0-9_-])?$`)

var fullHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseRef reads "name", "name@hash" and "@hash". The hash needs all its 64 hex digits: the server accepts shorter
// ones and then does not find them.
func ParseRef(s string) (Ref, error) {
	name, hash, pinned := strings.Cut(s, "@")
	ref := Ref{Name: name, Hash: strings.ToLower(hash)}
	switch {
	case s == "":
		return Ref{}, errors.New("parsing reference: it is empty")
	case name != "" && (!refName.MatchString(name) || strings.Contains(name, "..")):
		return Ref{}, fmt.Errorf("parsing reference %q: a name starts with a letter, goes on with letters, digits and "+
			"any of . / _ -, holds no two dots in a row and does not end in a dot or a slash", s)
	case pinned && !fullHash.MatchString(ref.Hash):
		return Ref{}, fmt.Errorf("parsing reference %q: what follows the @ must be a commit hash with all 64 hex digits", s)
	}
	return ref, nil
}

// String is the reference as ParseRef reads it; the zero Ref, the default branch, is "-" as in Nessie's paths.
func (r Ref) String() string {
	switch {
	case r.Hash != "":
		return r.Name + "@" + r.Hash
	case r.Name == "":
		return "-"
	default:
		return r.Name
	}
}

// Ref is the reference pinned to the commit that it was at.
func (r Reference) Ref() Ref { return Ref{Name: r.Name, Hash: r.Hash} }

func treePath(ref Ref) string { return "/trees" + pathSegment(ref.String()) }

type referenceJSON struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Hash string `json:"hash"`
}

func (r *referenceJSON) reference() (Reference, error) {
	if r == nil || r.Hash == "" {
		return Reference{}, errors.New("the answer names no reference")
	}
	return Reference{Type: r.Type, Name: r.Name, Hash: r.Hash}, nil
}

type referenceAnswer struct {
	Reference *referenceJSON `json:"reference"`
}

// Reference looks a branch or tag up; an empty name is the server's default branch. One request; the unknown name is
// an *UnknownError with the close ones that exist.
func (c *Client) Reference(ctx context.Context, name string) (Reference, error) {
	ref, err := c.reference(ctx, name)
	if errors.Is(err, ErrUnknownReference) {
		err = c.unknownReference(ctx, name, err)
	}
	if err != nil {
		return Reference{}, fmt.Errorf("looking up reference %s: %w", Ref{Name: name}, err)
	}
	return ref, nil
}

func (c *Client) reference(ctx context.Context, name string) (Reference, error) {
	var answer referenceAnswer
	req := request{call: "reference", method: http.MethodGet, path: treePath(Ref{Name: name}), query: url.Values{"fetch": {"MINIMAL"}}}
	if err := c.do(ctx, req, &answer); err != nil {
		return Reference{}, err
	}
	return checked(c, req, answer.Reference.reference)
}

// References goes through all branches and tags, a page at a time, in the server's order. An error is yielded once and
// ends it.
func (c *Client) References(ctx context.Context) iter.Seq2[Reference, error] {
	return func(yield func(Reference, error) bool) {
		query := url.Values{"fetch": {"MINIMAL"}, "max-records": {"250"}}
		req := request{call: "references", method: http.MethodGet, path: "/trees", query: query}
		for answer, err := range pages[referencesPage](ctx, c, req, nil) {
			if err != nil {
				yield(Reference{}, fmt.Errorf("listing references: %w", err))
				return
			}
			for _, r := range answer.References {
				if !yield(Reference(r), nil) {
					return
				}
			}
		}
	}
}

type referencesPage struct {
	paging
	References []referenceJSON `json:"references"`
}

func (p referencesPage) listed() bool { return p.References != nil }

// CreateReference makes a branch or tag that points to a commit. ErrConflict if the name is taken.
func (c *Client) CreateReference(ctx context.Context, kind ReferenceType, name string, at Ref) (Reference, error) {
	req := request{
		call: "create_reference", method: http.MethodPost, path: "/trees", query: url.Values{"name": {name}, "type": {kind}},
		body: referenceJSON{Type: Detached, Hash: at.Hash},
	}
	return c.changeReference(ctx, req, "creating reference "+name, at.Hash)
}

// AssignReference moves a branch or tag, that must still be where ref says, to another commit. Nothing checks that the
// two are related.
func (c *Client) AssignReference(ctx context.Context, ref Reference, to Ref) (Reference, error) {
	req := request{
		call: "assign_reference", method: http.MethodPut, path: treePath(ref.Ref()), query: url.Values{"type": {ref.Type}},
		body: referenceJSON{Type: Detached, Hash: to.Hash},
	}
	return c.changeReference(ctx, req, "assigning reference "+ref.Name, ref.Hash, to.Hash)
}

// DeleteReference removes a branch or tag that must still be where ref says. Its commits stay readable by hash until
// the server collects them.
func (c *Client) DeleteReference(ctx context.Context, ref Reference) error {
	req := request{call: "delete_reference", method: http.MethodDelete, path: treePath(ref.Ref()), query: url.Values{"type": {ref.Type}}}
	_, err := c.changeReference(ctx, req, "deleting reference "+ref.Name, ref.Hash)
	return err
}

func (c *Client) changeReference(ctx context.Context, req request, doing string, hashes ...string) (Reference, error) {
	for _, hash := range hashes {
		if !fullHash.MatchString(hash) {
			return Reference{}, fmt.Errorf("%s: %w: a full commit hash is needed, not %q", doing, ErrBadRequest, hash)
		}
	}
	var answer referenceAnswer
	if err := c.do(ctx, req, &answer); err != nil {
		return Reference{}, fmt.Errorf("%s: %w", doing, err)
	}
	ref, err := checked(c, req, answer.Reference.reference)
	if err != nil {
		return Reference{}, fmt.Errorf("%s: %w", doing, err)
	}
	return ref, nil
}

// paging is what every listing of Nessie answers beside its entries.
type paging struct {
	HasMore bool   `json:"hasMore"`
	Token   string `json:"token"`
}

func (p paging) next() (string, bool) { return p.Token, p.HasMore }

// page is one answer of a listing. Nessie writes an empty list as one: without a list it is not Nessie's answer, and
// must not pass for the end.
type page interface {
	next() (token string, more bool)
	listed() bool
}

// pages asks for one page after the other, each only when the one before was consumed. grow, where given, says how
// many records the n-th page (from 0) asks for; else the query does.
func pages[P page](ctx context.Context, c *Client, req request, grow func(n int) int) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		for n, token := 0, ""; ; n++ {
			if grow != nil {
				req.query.Set("max-records", strconv.Itoa(grow(n)))
			}
			if token != "" {
				req.query.Set("page-token", token)
			}
			var answer P
			if err := c.do(ctx, req, &answer); err != nil {
				yield(answer, err)
				return
			}
			if !answer.listed() {
				yield(answer, c.notNessie(req, "the answer holds no list"))
				return
			}
			next, more := answer.next()
			if more && (next == "" || next == token) {
				yield(answer, c.notNessie(req, "the answer has more pages and no token that leads to them"))
				return
			}
			if !yield(answer, nil) || !more {
				return
			}
			token = next
		}
	}
}

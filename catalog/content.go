// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
)

// Head reads what a table is now at a reference, and at which commit, in one request. (A key with an element that
// holds one of . / \ % needs the server's spec version too, which is asked once in a Client's life.)
//
// An unknown reference, namespace or table is an *UnknownError, and only then are more requests made, for the names
// that are close. Another content than an Iceberg table is a *ContentTypeError.
func (c *Client) Head(ctx context.Context, ref Ref, key Key) (Head, error) {
	head, err := c.head(ctx, ref, key)
	switch {
	case errors.Is(err, ErrUnknownReference):
		err = c.unknownCommit(ctx, ref, err)
	case errors.Is(err, ErrUnknownContent):
		err = c.unknownContent(ctx, ref, key, err)
	}
	if err != nil {
		return Head{}, fmt.Errorf("reading table %s on %s: %w", key, ref, err)
	}
	return head, nil
}

func (c *Client) head(ctx context.Context, ref Ref, key Key) (Head, error) {
	encoded, err := c.encodeKey(ctx, key)
	if err != nil {
		return Head{}, err
	}
	var answer struct {
		Content            *contentJSON   `json:"content"`
		EffectiveReference *referenceJSON `json:"effectiveReference"`
	}
	req := request{call: "head", method: http.MethodGet, path: treePath(ref) + "/contents" + pathSegment(encoded)}
	if err := c.do(ctx, req, &answer); err != nil {
		return Head{}, err
	}
	if answer.Content == nil || answer.Content.Type == "" {
		return Head{}, c.notNessie(req, "the answer holds no content")
	}
	at, err := checked(c, req, answer.EffectiveReference.reference)
	if err != nil {
		return Head{}, err
	}
	if answer.Content.Type != ContentTypeIceberg {
		return Head{}, &ContentTypeError{Key: key, Type: answer.Content.Type}
	}
	return Head{Reference: at, Content: answer.Content.content()}, nil
}

// contentJSON is Nessie's Content of any type: what a type does not have is absent.
type contentJSON struct {
	Type             string   `json:"type"`
	ID               string   `json:"id,omitempty"`
	MetadataLocation string   `json:"metadataLocation,omitempty"`
	SnapshotID       *int64   `json:"snapshotId,omitempty"`
	SchemaID         *int     `json:"schemaId,omitempty"`
	SpecID           *int     `json:"specId,omitempty"`
	SortOrderID      *int     `json:"sortOrderId,omitempty"`
	Elements         []string `json:"elements,omitempty"`
}

func (j *contentJSON) content() Content {
	if j == nil {
		return Content{}
	}
	if j.Type != ContentTypeIceberg {
		return Content{Type: j.Type, ID: j.ID}
	}
	content := Content{
		Type: j.Type, ID: j.ID, MetadataLocation: j.MetadataLocation, SnapshotID: NoSnapshot,
		SchemaID: valueOr(j.SchemaID, 0), SpecID: valueOr(j.SpecID, 0), SortOrderID: valueOr(j.SortOrderID, 0),
	}
	if j.SnapshotID != nil {
		content.SnapshotID = *j.SnapshotID
	}
	return content
}

func valueOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

type keyJSON struct {
	Elements []string `json:"elements"`
}

// EntriesQuery narrows what Entries lists. The zero value lists everything, without contents.
type EntriesQuery struct {
	Prefix      Key  // only keys that begin with these elements
	WithContent bool // fill Entry.Content
}

// Entries goes through the contents that exist at a reference, namespaces included, a page at a time, in the server's
// order. All pages are of one commit. An error is yielded once and ends it.
func (c *Client) Entries(ctx context.Context, ref Ref, q EntriesQuery) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for entry, err := range c.entries(ctx, ref, q) {
			if err != nil {
				err = fmt.Errorf("listing contents of %s: %w", ref, err)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

type entriesPage struct {
	paging
	Entries []struct {
		Type      string       `json:"type"`
		Name      keyJSON      `json:"name"`
		ContentID string       `json:"contentId"`
		Content   *contentJSON `json:"content"`
	} `json:"entries"`
}

func (p entriesPage) listed() bool { return p.Entries != nil }

func (c *Client) entries(ctx context.Context, ref Ref, q EntriesQuery) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		req, err := c.entriesRequest(ctx, ref, q)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for page, err := range pages[entriesPage](ctx, c, req, nil) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page.Entries {
				entry := Entry{Key: e.Name.Elements, Type: e.Type, Content: e.Content.content()}
				if !entry.Key.hasPrefix(q.Prefix) {
					continue // older servers compare prefixes as text: "ab" is none of "a"
				}
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// entriesRequest pins the reference first, since a page token says where to go on but not at which commit.
func (c *Client) entriesRequest(ctx context.Context, ref Ref, q EntriesQuery) (request, error) {
	query := url.Values{"max-records": {"500"}}
	if q.WithContent {
		query.Set("content", "true")
	}
	if len(q.Prefix) > 0 {
		encoded, err := c.encodeKey(ctx, q.Prefix)
		if err != nil {
			return request{}, err
		}
		query.Set("prefix-key", encoded)
	}
	ref, err := c.pin(ctx, ref)
	return request{call: "entries", method: http.MethodGet, path: treePath(ref) + "/entries", query: query}, err
}

// pin fixes a reference that is given by name alone to the commit that it is at.
func (c *Client) pin(ctx context.Context, ref Ref) (Ref, error) {
	if ref.Hash != "" {
		return ref, nil
	}
	at, err := c.reference(ctx, ref.Name)
	return at.Ref(), err
}

func (k Key) hasPrefix(prefix Key) bool {
	return len(k) >= len(prefix) && k[:len(prefix)].Equal(prefix)
}

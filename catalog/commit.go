// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"net/http"
)

// Commit adds a commit to a branch and gives the branch as it is after it. The server refuses it with ErrConflict when
// one of the keys changed since branch.Hash; changes of other keys are merged. Namespaces must exist before what lies
// in them, and are made by a Put of ContentTypeNamespace.
//
// Like every write it is not sent a second time after an answer that got lost, as it may have happened: then the error
// is ErrUnavailable and the branch says what became of it.
func (c *Client) Commit(ctx context.Context, branch Reference, message string, ops []Operation) (Reference, error) {
	type operationJSON struct {
		Type    OperationType `json:"type"`
		Key     keyJSON       `json:"key"`
		Content *contentJSON  `json:"content,omitempty"`
	}
	var body struct {
		CommitMeta struct {
			Message string `json:"message"`
		} `json:"commitMeta"`
		Operations []operationJSON `json:"operations"`
	}
	body.CommitMeta.Message = message
	for _, op := range ops {
		if err := op.Key.Validate(); err != nil {
			return Reference{}, fmt.Errorf("committing to %s: %w: %w", branch.Name, ErrBadRequest, err)
		}
		sent := operationJSON{Type: op.Type, Key: keyJSON{Elements: op.Key}}
		if op.Type == Put {
			sent.Content = op.Content.wire(op.Key)
		}
		body.Operations = append(body.Operations, sent)
	}
	var answer struct {
		TargetBranch *referenceJSON `json:"targetBranch"`
	}
	req := request{call: "commit", method: http.MethodPost, path: treePath(branch.Ref()) + "/history/commit", body: body}
	if err := c.writeTo(ctx, branch, req, &answer); err != nil {
		return Reference{}, fmt.Errorf("committing to %s: %w", branch.Name, err)
	}
	after, err := checked(c, req, answer.TargetBranch.reference)
	if err != nil {
		return Reference{}, fmt.Errorf("committing to %s: %w", branch.Name, err)
	}
	return after, nil
}

func (c Content) wire(key Key) *contentJSON {
	if c.Type == ContentTypeNamespace {
		return &contentJSON{Type: c.Type, ID: c.ID, Elements: key}
	}
	return &contentJSON{
		Type: c.Type, ID: c.ID, MetadataLocation: c.MetadataLocation,
		SnapshotID: &c.SnapshotID, SchemaID: &c.SchemaID, SpecID: &c.SpecID, SortOrderID: &c.SortOrderID,
	}
}

// MergeMode says what happens to a key that changed on both sides.
type MergeMode string

// The modes of Nessie: a conflict, the source's content, the target's content.
const (
	MergeNormal MergeMode = "NORMAL"
	MergeForce  MergeMode = "FORCE"
	MergeDrop   MergeMode = "DROP"
)

type mergeJSON struct {
	FromRefName         string    `json:"fromRefName"`
	FromHash            string    `json:"fromHash,omitempty"`
	HashesToTransplant  []string  `json:"hashesToTransplant,omitempty"`
	Message             string    `json:"message,omitempty"`
	DefaultKeyMergeMode MergeMode `json:"defaultKeyMergeMode,omitempty"`
}

// Merge brings what source has into the branch, in one commit with two parents whose contents are copies, and gives
// the branch as it is after it. A key that changed on both sides is ErrConflict under MergeNormal.
func (c *Client) Merge(ctx context.Context, branch Reference, source Ref, message string, mode MergeMode) (Reference, error) {
	body := mergeJSON{FromRefName: source.Name, FromHash: source.Hash, Message: message, DefaultKeyMergeMode: mode}
	after, err := c.combine(ctx, branch, "merge", body)
	if err != nil {
		return Reference{}, fmt.Errorf("merging %s into %s: %w", source, branch.Name, err)
	}
	return after, nil
}

// Transplant repeats commits of the reference source on the branch, oldest first, under new hashes, and gives the
// branch as it is after them.
func (c *Client) Transplant(ctx context.Context, branch Reference, source string, hashes []string) (Reference, error) {
	after, err := c.combine(ctx, branch, "transplant", mergeJSON{FromRefName: source, HashesToTransplant: hashes})
	if err != nil {
		return Reference{}, fmt.Errorf("transplanting from %s to %s: %w", source, branch.Name, err)
	}
	return after, nil
}

func (c *Client) combine(ctx context.Context, branch Reference, how string, body mergeJSON) (Reference, error) {
	var answer struct {
		ResultantTargetHash string `json:"resultantTargetHash"`
	}
	req := request{call: how, method: http.MethodPost, path: treePath(branch.Ref()) + "/history/" + how, body: body}
	if err := c.writeTo(ctx, branch, req, &answer); err != nil {
		return Reference{}, err
	}
	after := referenceJSON{Type: Branch, Name: branch.Name, Hash: answer.ResultantTargetHash}
	return checked(c, req, after.reference)
}

// writeTo refuses a branch without its hash here, where the reason can be said.
func (c *Client) writeTo(ctx context.Context, branch Reference, req request, answer any) error {
	if !fullHash.MatchString(branch.Hash) {
		return fmt.Errorf("%w: the branch's full commit hash is needed, not %q", ErrBadRequest, branch.Hash)
	}
	return c.do(ctx, req, answer)
}

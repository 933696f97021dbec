// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/json"
	"fmt"
)

const (
	opPut       = "PUT"
	opDelete    = "DELETE"
	opUnchanged = "UNCHANGED"

	namespaceType = "NAMESPACE"
)

type commitJSON struct {
	CommitMeta *struct {
		Message string            `json:"message"`
		Authors []string          `json:"authors"`
		Author  string            `json:"author"`
		Props   map[string]string `json:"properties"`
	} `json:"commitMeta"`
	Operations []operationJSON `json:"operations"`
}

func (n *Nessie) serveCommit(a arguments) (any, error) {
	if err := a.only(); err != nil {
		return nil, err
	}
	var body commitJSON
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if body.CommitMeta == nil {
		return nil, badRequest("Cannot build Operations, some of required attributes are not set [commitMeta]")
	}
	if len(body.Operations) == 0 {
		return nil, badRequest("commitMultipleOperations.operations.operations: size must be between 1 and 2147483647")
	}
	ref, expected, err := n.writable(a.path[0])
	if err != nil {
		return nil, err
	}
	ops, added, err := n.operations(body.Operations, expected)
	if err != nil {
		return nil, err
	}
	head := n.commits[ref.hash]
	if err := fits(ops, expected, head); err != nil {
		return nil, err
	}
	made := n.add(head, ops, body.CommitMeta.Message, body.meta())
	ref.hash = made.hash
	return map[string]any{"targetBranch": ref.wire(), "addedContents": added}, nil
}

func (c commitJSON) meta() map[string]any {
	meta := map[string]any{}
	authors := c.CommitMeta.Authors
	if c.CommitMeta.Author != "" {
		authors = []string{c.CommitMeta.Author}
	}
	if len(authors) > 0 {
		meta["authors"] = authors
	}
	if len(c.CommitMeta.Props) > 0 {
		meta["properties"] = c.CommitMeta.Props
	}
	return meta
}

// writable looks up the branch of a write and the commit that the writer saw, which must be on the branch's log.
func (n *Nessie) writable(text string) (*storedRef, *storedCommit, error) {
	name, hash, _, err := n.splitRef(text)
	if err != nil {
		return nil, nil, err
	}
	ref := n.references[name]
	switch {
	case name == "", ref != nil && ref.kind != branch:
		return nil, nil, badRequest("Reference to commit into must be a branch.")
	case ref == nil:
		return nil, nil, unknownReference("Named reference '%s' not found", name)
	case hash == "":
		return nil, nil, badRequest("Expected hash must be provided.")
	}
	p, err := n.resolve(text)
	if err != nil || !n.onLog(n.commits[ref.hash], p.commit.hash) {
		return nil, nil, unknownReference("Could not find commit '%s' in reference '%s'.", hash, name)
	}
	return ref, p.commit, nil
}

type addedContent struct {
	Key       keyJSON `json:"key"`
	ContentID string  `json:"contentId"`
}

// operations checks what a commit wants against the state that its writer saw, and gives new contents their ids.
func (n *Nessie) operations(wanted []operationJSON, expected *storedCommit) (ops []storedOperation, added []addedContent, err error) {
	kinds, deleted := map[string]string{}, map[string]bool{} // by key; content ids that this commit frees
	for _, op := range wanted {
		if err := op.Key.validate(); err != nil {
			return nil, nil, err
		}
		key := joined(op.Key.Elements)
		if before, twice := kinds[key]; twice && (n.oldAPI || before != opDelete || op.Type != opPut) {
			return nil, nil, badRequest("Duplicate key in commit operations: %s", display(op.Key.Elements))
		}
		kinds[key] = op.Type
		if found, ok := expected.content(op.Key.Elements); op.Type == opDelete && ok {
			deleted[found.id] = true
		}
	}
	freed := map[string]bool{} // keys that a Delete before it makes new
	for _, op := range wanted {
		key := op.Key.Elements
		switch op.Type {
		case opDelete:
			freed[joined(key)] = true
			ops = append(ops, storedOperation{kind: opDelete, key: key})
		case opPut:
			before, exists := expected.content(key)
			made, isNew, err := n.newContent(op, before, exists && !freed[joined(key)], deleted)
			if err != nil {
				return nil, nil, err
			}
			if isNew {
				added = append(added, addedContent{op.Key, made.id})
			}
			ops = append(ops, storedOperation{kind: opPut, key: key, content: made})
		case opUnchanged:
		default:
			return nil, nil, badRequest("unknown operation type %q", op.Type)
		}
	}
	return ops, added, nil
}

func (n *Nessie) newContent(op operationJSON, before storedContent, exists bool, deleted map[string]bool) (made storedContent, isNew bool, err error) {
	object, kind, id, err := parseContent(op.Content)
	if err != nil {
		return storedContent{}, false, err
	}
	key := display(op.Key.Elements)
	switch {
	case exists && id == "":
		return storedContent{}, false, badRequest("New value to update existing key '%s' has no content ID", key)
	case exists && id != before.id:
		return storedContent{}, false, badRequest("Key '%s' already exists with content ID %s, which is different from the content ID %s in the operation", key, before.id, id)
	case exists && kind != before.kind:
		return storedContent{}, false, badRequest("Key '%s' holds a %s, not a %s", key, before.kind, kind)
	case !exists && id != "" && !deleted[id]:
		return storedContent{}, false, badRequest("New value for key '%s' must not have a content ID", key)
	case id == "":
		id, isNew = n.newContentID(), true
	}
	object["id"], _ = json.Marshal(id) // a string always can be
	text, err := json.Marshal(object)
	return storedContent{kind, id, text}, isNew, err
}

var contentAttributes = map[string][]string{
	"ICEBERG_TABLE": {"metadataLocation", "snapshotId", "schemaId", "specId", "sortOrderId"},
	"ICEBERG_VIEW":  {"metadataLocation", "versionId", "schemaId"},
	namespaceType:   {"elements"},
}

func parseContent(text json.RawMessage) (object map[string]json.RawMessage, kind, id string, err error) {
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, "", "", badRequest("reading a content: a Put needs one")
	}
	for name, into := range map[string]*string{"type": &kind, "id": &id} {
		if value, ok := object[name]; ok && string(value) != "null" {
			if err := json.Unmarshal(value, into); err != nil {
				return nil, "", "", badRequest("reading a content's %s: %v", name, err)
			}
		}
	}
	attributes, known := contentAttributes[kind]
	if !known {
		return nil, "", "", badRequest("No type registered for %q", kind)
	}
	for _, name := range attributes {
		if _, ok := object[name]; !ok {
			return nil, "", "", badRequest("some of required attributes are not set [%s]", name)
		}
	}
	return object, kind, id, nil
}

// fits compares every changed key's content at the head with the one that the writer saw, then namespaces.
func fits(ops []storedOperation, expected, head *storedCommit) error {
	for _, op := range ops {
		seen, saw := expected.content(op.key)
		now, exists := head.content(op.key)
		switch {
		case exists && !saw:
			return conflict("Key '%s' already exists.", display(op.key))
		case !exists && (saw || op.kind == opDelete):
			return conflict("Key '%s' does not exist.", display(op.key))
		case exists && !now.equal(seen):
			return conflict("Values of existing and expected content for key '%s' are different.", display(op.key))
		}
	}
	return namespacesHold(ops, head)
}

func namespacesHold(ops []storedOperation, head *storedCommit) error {
	after := map[string]*storedContent{} // what this commit changes; nil: deleted
	for _, op := range ops {
		if op.kind == opDelete {
			after[joined(op.key)] = nil
		}
	}
	for _, op := range ops {
		if op.kind == opPut {
			after[joined(op.key)] = &op.content
		}
	}
	for _, op := range ops {
		if err := namespaceHolds(op, after, head); err != nil {
			return err
		}
	}
	return nil
}

func namespaceHolds(op storedOperation, after map[string]*storedContent, head *storedCommit) error {
	if op.kind == opPut && len(op.key) > 1 {
		parent := op.key[:len(op.key)-1]
		content, exists := head.content(parent)
		if changed, ok := after[joined(parent)]; ok {
			if exists = changed != nil; exists {
				content = *changed
			}
		}
		if !exists {
			return conflict("Namespace '%s' must exist.", display(parent))
		}
		if content.kind != namespaceType {
			return conflict("Expecting the key '%s' to be a namespace, but is not a namespace (using a content object that is not a namespace as a namespace is forbidden).", display(parent))
		}
	}
	if before, ok := head.content(op.key); op.kind == opDelete && ok && before.kind == namespaceType && after[joined(op.key)] == nil {
		for _, k := range head.contents {
			_, changed := after[joined(k.key)]
			if len(k.key) > len(op.key) && hasPrefix(k.key, op.key) && !changed {
				return conflict("Namespace '%s' is not empty.", display(op.key))
			}
		}
	}
	return nil
}

// String makes an operation part of a commit's identity.
func (op storedOperation) String() string {
	return fmt.Sprintf("%s %q %s", op.kind, op.key, op.content.object)
}

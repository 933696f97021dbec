// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"fmt"
	"slices"
	"strings"
)

type mergeJSON struct {
	FromRefName         string   `json:"fromRefName"`
	FromHash            string   `json:"fromHash"`
	HashesToTransplant  []string `json:"hashesToTransplant"`
	Message             *string  `json:"message"`
	IsDryRun            bool     `json:"isDryRun"`
	DefaultKeyMergeMode string   `json:"defaultKeyMergeMode"`
	KeyMergeModes       []struct {
		Key           keyJSON `json:"key"`
		MergeBehavior string  `json:"mergeBehavior"`
	} `json:"keyMergeModes"`
}

const (
	mergeNormal = "NORMAL"
	mergeForce  = "FORCE"
	mergeDrop   = "DROP"
)

func (m mergeJSON) mode(key []string) string {
	for _, k := range m.KeyMergeModes {
		if slices.Equal(k.Key.Elements, key) {
			return k.MergeBehavior
		}
	}
	if m.DefaultKeyMergeMode == "" {
		return mergeNormal
	}
	return m.DefaultKeyMergeMode
}

func (m mergeJSON) validate() error {
	modes := []string{m.mode(nil)}
	for _, k := range m.KeyMergeModes {
		modes = append(modes, k.MergeBehavior)
	}
	for _, mode := range modes {
		if mode != mergeNormal && mode != mergeForce && mode != mergeDrop {
			return badRequest("not one of the values accepted for MergeBehavior: %q", mode)
		}
	}
	if m.FromRefName == "" {
		return badRequest("some of required attributes are not set [fromRefName]")
	}
	return nil
}

// mergeResult is the answer to a merge or a transplant.
type mergeResult struct {
	WasApplied          bool          `json:"wasApplied"`
	WasSuccessful       bool          `json:"wasSuccessful"`
	ResultantTargetHash *string       `json:"resultantTargetHash"`
	CommonAncestor      *string       `json:"commonAncestor"`
	TargetBranch        string        `json:"targetBranch"`
	EffectiveTargetHash string        `json:"effectiveTargetHash"`
	ExpectedHash        string        `json:"expectedHash"`
	Details             []mergeDetail `json:"details"`
}

type mergeDetail struct {
	Key           keyJSON `json:"key"`
	MergeBehavior string  `json:"mergeBehavior"`
}

// serveMerge makes one commit with two parents of what the source changed since the common ancestor, even where the
// target stood still since then.
func (n *Nessie) serveMerge(a arguments) (any, error) {
	wanted, ref, expected, err := n.mergeArguments(a)
	if err != nil {
		return nil, err
	}
	if wanted.FromHash == "" {
		return nil, badRequest("Source hash must be provided.")
	}
	source, err := n.resolve(sourceName(wanted.FromRefName) + "@" + wanted.FromHash)
	if err != nil {
		return nil, err
	}
	head := n.commits[ref.hash]
	ancestor := n.commonAncestor(head, source.commit)
	result := n.newResult(ref, expected)
	result.CommonAncestor = &ancestor.hash
	ops, err := wanted.changes(ancestor, source.commit, head, &result)
	if err != nil {
		return nil, err
	}
	if wanted.IsDryRun {
		return result, nil
	}
	result.ResultantTargetHash = &head.hash
	if len(result.Details) > 0 {
		message := fmt.Sprintf("Merged %s at %s into %s at %s", wanted.FromRefName, source.commit.hash, ref.name, head.hash)
		if wanted.Message != nil {
			message = *wanted.Message
		}
		made := n.add(head, ops, message, nil, source.commit.hash)
		ref.hash, result.ResultantTargetHash, result.WasApplied = made.hash, &made.hash, true
	}
	return result, nil
}

// serveTransplant copies commits one by one: contents verbatim, under new hashes.
func (n *Nessie) serveTransplant(a arguments) (any, error) {
	wanted, ref, expected, err := n.mergeArguments(a)
	if err != nil {
		return nil, err
	}
	sources, err := n.sequence(wanted.HashesToTransplant)
	if err != nil {
		return nil, err
	}
	result := n.newResult(ref, expected)
	at := n.commits[ref.hash]
	for _, source := range sources {
		ops, err := wanted.changes(n.commits[source.parent()], source, at, &result)
		if err != nil {
			return nil, err
		}
		at = n.add(at, ops, source.message, source.meta)
	}
	if wanted.IsDryRun {
		return result, nil
	}
	ref.hash, result.ResultantTargetHash, result.WasApplied = at.hash, &at.hash, true
	return result, nil
}

func (n *Nessie) mergeArguments(a arguments) (mergeJSON, *storedRef, *storedCommit, error) {
	var wanted mergeJSON
	if err := a.only(); err != nil {
		return wanted, nil, nil, err
	}
	if err := a.decode(&wanted); err != nil {
		return wanted, nil, nil, err
	}
	if err := wanted.validate(); err != nil {
		return wanted, nil, nil, err
	}
	ref, expected, err := n.writable(a.path[0])
	if err != nil {
		return wanted, nil, nil, err
	}
	if name := sourceName(wanted.FromRefName); name != "" && n.references[name] == nil {
		return wanted, nil, nil, unknownReference("Named reference '%s' not found", name)
	}
	return wanted, ref, expected, nil
}

func sourceName(name string) string {
	if name == detached {
		return ""
	}
	return name
}

func (n *Nessie) newResult(ref *storedRef, expected *storedCommit) mergeResult {
	return mergeResult{
		WasSuccessful: true, TargetBranch: ref.name, EffectiveTargetHash: ref.hash, ExpectedHash: expected.hash,
		Details: []mergeDetail{},
	}
}

// changes is what leads from one commit to another, made to fit on head. A key that head changed in another way is a
// conflict, unless its mode says which side wins.
func (m mergeJSON) changes(from, to, head *storedCommit, result *mergeResult) ([]storedOperation, error) {
	var ops []storedOperation
	var conflicts []string
	for _, k := range differing(from, to) {
		mode := m.mode(k.key)
		detail := mergeDetail{keyJSON{k.key}, mode}
		if !slices.ContainsFunc(result.Details, func(d mergeDetail) bool { return slices.Equal(d.Key.Elements, k.key) }) {
			result.Details = append(result.Details, detail)
		}
		base, based := from.content(k.key)
		now, exists := head.content(k.key)
		after, put := to.content(k.key)
		if mode == mergeNormal && (based != exists || !base.equal(now)) {
			conflicts = append(conflicts, "'"+display(k.key)+"'")
		}
		switch {
		case mode == mergeDrop:
		case put:
			ops = append(ops, storedOperation{opPut, k.key, after})
		case exists:
			ops = append(ops, storedOperation{kind: opDelete, key: k.key})
		}
	}
	if len(conflicts) > 0 {
		return nil, conflict("The following keys have been changed in conflict: %s", strings.Join(conflicts, ", "))
	}
	return ops, namespacesHold(ops, head)
}

func (n *Nessie) sequence(hashes []string) ([]*storedCommit, error) {
	if len(hashes) == 0 {
		return nil, badRequest("transplantCommitsIntoBranch.transplant.hashesToTransplant: size must be between 1 and 2147483647")
	}
	var all []*storedCommit
	for i, hash := range hashes {
		c := n.commits[hash]
		if c == nil || c.hash == NoAncestor {
			return nil, unknownReference("Commit '%s' not found", hash)
		}
		if i > 0 && c.parent() != hashes[i-1] {
			return nil, badRequest("Sequence of hashes is not contiguous.")
		}
		all = append(all, c)
	}
	return all, nil
}

// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type referenceJSON struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Hash string `json:"hash"`
}

func (r *storedRef) wire() referenceJSON { return referenceJSON{r.kind, r.name, r.hash} }

var (
	refName  = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9./_-]*[A-Za-z0-9_-])?$`)
	hashText = regexp.MustCompile(`^[0-9a-fA-F]{8,64}$`)
)

const (
	nameRule = "Reference name must start with a letter, followed by letters, digits, one of the ./_- characters, not end with a slash or dot, not contain '..'"
	hashRule = "Hash with optional relative part must consist of either a valid commit hash (which in turn must consist of the hex representation of 4-32 bytes), or a valid relative part"
)

func validName(name string) bool { return refName.MatchString(name) && !strings.Contains(name, "..") }

// place is a reference of a request's path, looked up: where to read, or what to change from where.
type place struct {
	ref    *storedRef // nil: detached
	commit *storedCommit
	pinned bool // a hash was named
}

// effective is the reference as answers name it, at the commit that was read.
func (p place) effective() referenceJSON {
	if p.ref == nil {
		return referenceJSON{Type: detached, Hash: p.commit.hash}
	}
	return referenceJSON{p.ref.kind, p.ref.name, p.commit.hash}
}

func (p place) name() string {
	if p.ref == nil {
		return detached
	}
	return p.ref.name
}

// resolve looks up name, name@hash and @hash with relative parts behind: ~N and ^N and *time.
func (n *Nessie) resolve(text string) (place, error) {
	name, hash, steps, err := n.splitRef(text)
	if err != nil {
		return place{}, err
	}
	var p place
	if name != "" {
		if p.ref = n.references[name]; p.ref == nil {
			return place{}, unknownReference("Named reference '%s' not found", name)
		}
		p.commit = n.commits[p.ref.hash]
	}
	if hash != "" {
		if p.commit = n.commits[strings.ToLower(hash)]; p.commit == nil {
			return place{}, unknownReference("Commit '%s' not found", hash)
		}
	}
	p.pinned = hash != "" || steps != ""
	p.commit, err = n.walk(p.commit, steps)
	return p, err
}

// readable is resolve for what is only read. An old server wants the hash on the log of the branch beside it.
func (n *Nessie) readable(text string) (place, error) {
	p, err := n.resolve(text)
	if err == nil && n.oldAPI && p.ref != nil && !n.onLog(n.commits[p.ref.hash], p.commit.hash) {
		return place{}, unknownReference("Could not find commit '%s' in reference '%s'.", p.commit.hash, p.ref.name)
	}
	return p, err
}

// splitRef takes a reference apart; the name "-" is the default branch.
func (n *Nessie) splitRef(text string) (name, hash, steps string, err error) {
	rest := text
	if i := strings.IndexAny(text, "~^*"); i >= 0 {
		rest, steps = text[:i], text[i:]
	}
	name, hash, _ = strings.Cut(rest, "@")
	if name == "-" {
		name = defaultBranch
	}
	switch {
	case name != "" && !validName(name), name == "" && hash == "", hash != "" && !hashText.MatchString(hash):
		return "", "", "", badRequest("%s, optionally followed by @ and a hash with optional relative part. %s", nameRule, hashRule)
	case steps != "" && (n.oldAPI || !stepsText.MatchString(steps)):
		return "", "", "", badRequest("%s, optionally followed by @ and a hash with optional relative part. %s", nameRule, hashRule)
	}
	return name, hash, steps, nil
}

var stepsText = regexp.MustCompile(`^([~^]\d+|\*(\d+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z))+$`)

// walk follows the last relative part; a real server reads the ones before it and ignores them. A walk past the first commit
// ends before it, where nothing exists.
func (n *Nessie) walk(from *storedCommit, steps string) (*storedCommit, error) {
	if steps == "" {
		return from, nil
	}
	step := steps[strings.LastIndexAny(steps, "~^*"):]
	if step[0] == '*' {
		return n.newestAt(from, instant(step[1:])), nil
	}
	count, err := strconv.Atoi(step[1:])
	if err != nil || count == 0 {
		return nil, badRequest("Illegal value %s for spec type %s", step[1:], stepName(step[0]))
	}
	beginning := n.commits[NoAncestor]
	if step[0] == '^' {
		if len(from.parents) < count {
			return beginning, nil
		}
		return n.commits[from.parents[count-1]], nil
	}
	at := from
	for range count {
		if at == beginning {
			break
		}
		at = n.commits[at.parent()]
	}
	return at, nil
}

func stepName(sign byte) string {
	if sign == '^' {
		return "N_TH_PARENT (^)"
	}
	return "N_TH_PREDECESSOR (~)"
}

func instant(text string) time.Time {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	at, _ := time.Parse(time.RFC3339Nano, text) // the pattern let it through
	return at
}

func (n *Nessie) newestAt(from *storedCommit, at time.Time) *storedCommit {
	found := n.commits[NoAncestor]
	n.log(from, func(c *storedCommit) bool {
		if c.time.After(at) {
			return true
		}
		found = c
		return false
	})
	return found
}

func (n *Nessie) serveConfig(arguments) (any, error) {
	return map[string]any{
		"defaultBranch": defaultBranch, "minSupportedApiVersion": 1, "maxSupportedApiVersion": 2, "actualApiVersion": 2,
		"specVersion": n.opts.SpecVersion, "noAncestorHash": NoAncestor,
		"repositoryCreationTimestamp": instantText(n.begun), "oldestPossibleCommitTimestamp": instantText(n.begun),
	}, nil
}

func instantText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (n *Nessie) serveReferences(a arguments) (any, error) {
	if err := a.only("max-records", "page-token", "fetch"); err != nil {
		return nil, err
	}
	if a.query.Get("fetch") == "ALL" {
		return nil, badRequest("the in-memory Nessie keeps no metadata of references")
	}
	all := slices.SortedFunc(maps.Values(n.references), func(a, b *storedRef) int { return strings.Compare(a.path(), b.path()) })
	page, token, err := pageOf(a, all, (*storedRef).path)
	if err != nil {
		return nil, err
	}
	references := make([]referenceJSON, len(page))
	for i, r := range page {
		references[i] = r.wire()
	}
	return map[string]any{"token": token, "hasMore": token != nil, "references": references}, nil
}

// path is the name that references are ordered by: branches, then tags.
func (r *storedRef) path() string {
	if r.kind == tag {
		return "refs/tags/" + r.name
	}
	return "refs/heads/" + r.name
}

// pageOf cuts the page that was asked for out of a sorted list. A token is the hex text of the next page's first name.
func pageOf[T any](a arguments, all []T, name func(T) string) (page []T, token *string, err error) {
	size, err := a.pageSize()
	if err != nil {
		return nil, nil, err
	}
	if text := a.query.Get("page-token"); text != "" {
		from, err := hex.DecodeString(text)
		if err != nil {
			return nil, nil, badRequest("Illegal hex character in the page token %q", text)
		}
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return name(v) < string(from) })
	}
	if len(all) > size {
		next := hex.EncodeToString([]byte(name(all[size])))
		return all[:size], &next, nil
	}
	return all, nil, nil
}

func (n *Nessie) serveReference(a arguments) (any, error) {
	if err := a.only("fetch"); err != nil {
		return nil, err
	}
	name, hash, steps, err := n.splitRef(a.path[0])
	if err != nil {
		return nil, err
	}
	if name == "" || hash != "" || steps != "" {
		return nil, badRequest("Hashes are not allowed when fetching a reference by name")
	}
	p, err := n.resolve(name)
	if err != nil {
		return nil, err
	}
	return answerReference(p.ref), nil
}

func answerReference(r *storedRef) any { return map[string]any{"reference": r.wire()} }

func (n *Nessie) serveCreate(a arguments) (any, error) {
	if err := a.only("name", "type"); err != nil {
		return nil, err
	}
	name, kind := a.query.Get("name"), a.query.Get("type")
	if !validName(name) {
		return nil, badRequest("createReference.name: %s", nameRule)
	}
	if kind != branch && kind != tag {
		return nil, badRequest("createReference.type: must be %s or %s", branch, tag)
	}
	target, err := n.target(a)
	if err != nil {
		return nil, err
	}
	if n.references[name] != nil {
		return nil, &apiError{409, "REFERENCE_ALREADY_EXISTS", fmt.Sprintf("Named reference '%s' already exists.", name)}
	}
	n.references[name] = &storedRef{kind, name, target.hash}
	return answerReference(n.references[name]), nil
}

// target is the commit that a body's reference names.
func (n *Nessie) target(a arguments) (*storedCommit, error) {
	var body referenceJSON
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if body.Hash == "" {
		return nil, badRequest("Target hash must be provided.")
	}
	if body.Type == detached {
		body.Name = ""
	}
	p, err := n.resolve(body.Name + "@" + body.Hash)
	return p.commit, err
}

// changeable looks up the reference that a request wants to change and makes sure that it is where the request says.
func (n *Nessie) changeable(a arguments) (*storedRef, error) {
	p, err := n.resolve(a.path[0])
	if err != nil {
		return nil, err
	}
	switch kind := a.query.Get("type"); {
	case p.ref == nil:
		return nil, badRequest("A branch or tag must be named.")
	case !p.pinned:
		return nil, badRequest("Expected hash must be provided.")
	case kind != "" && kind != p.ref.kind:
		return nil, badRequest("Expected reference type %s does not match existing reference %s", kind, p.ref.name)
	case p.commit.hash != p.ref.hash:
		return nil, conflict("Named-reference '%s' is not at expected hash '%s', but at '%s'.", p.ref.name, p.commit.hash, p.ref.hash)
	}
	return p.ref, nil
}

func (n *Nessie) serveAssign(a arguments) (any, error) {
	if err := a.only("type"); err != nil {
		return nil, err
	}
	ref, err := n.changeable(a)
	if err != nil {
		return nil, err
	}
	target, err := n.target(a)
	if err != nil {
		return nil, err
	}
	ref.hash = target.hash
	return answerReference(ref), nil
}

func (n *Nessie) serveDelete(a arguments) (any, error) {
	if err := a.only("type"); err != nil {
		return nil, err
	}
	if name, _, _, err := n.splitRef(a.path[0]); err == nil && name == defaultBranch {
		return nil, badRequest("Default branch '%s' cannot be deleted.", name)
	}
	ref, err := n.changeable(a)
	if err != nil {
		return nil, err
	}
	delete(n.references, ref.name)
	return answerReference(ref), nil
}

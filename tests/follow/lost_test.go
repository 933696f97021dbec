// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// upset is something that happens to a branch between two looks at it. The checkpoint stands at the snapshot from of the
// first story; afterwards the branch holds the snapshot to of the second.
type upset struct {
	before, after string // expected files
	from, to      int64  // sequence numbers; -1: no snapshot
	kind          catalog.ReferenceType
	change        func(r *ref, before, after corpusCommit)
	// unlisted: neither the new head's metadata nor its log names the snapshot, which the checkpoint's five old fields
	// alone can't do without.
	unlisted bool
	replaced bool
	// sameFiles: the other content has the same metadata, and only a content id tells the two apart.
	sameFiles bool
}

var upsets = map[string]upset{
	"assigned back":                   {before: "events", after: "events", from: 5, to: 3, change: assign, unlisted: true},
	"assigned back to the first":      {before: "tagged", after: "tagged", from: 5, to: 1, change: assign, unlisted: true},
	"assigned to another line":        {before: "reset_before", after: "reset", from: 5, to: 5, change: assign, unlisted: true},
	"assigned to a longer line":       {before: "reset_before", after: "reset", from: 3, to: 5, change: assign, unlisted: true},
	"deleted and made elsewhere":      {before: "reset", after: "reset_before", from: 4, to: 5, change: remake, unlisted: true},
	"deleted and made at the same":    {before: "reset", after: "reset", from: 4, to: 4, change: remake},
	"deleted and made further on":     {before: "reset", after: "reset", from: 2, to: 5, change: remake},
	"a tag that moved on":             {before: "tagged", after: "tagged", from: 2, to: 4, kind: catalog.Tag, change: assign},
	"a tag that moved back":           {before: "tagged", after: "tagged", from: 4, to: 2, kind: catalog.Tag, change: assign, unlisted: true},
	"dropped and created again":       {before: "recreated", after: "recreated", from: 2, to: latest + 2, change: assign, replaced: true},
	"recreated in one commit":         {before: "recreated_one", after: "recreated_one", from: 2, to: latest + 3, change: assign, replaced: true},
	"dropped and registered again":    {before: "events", after: "events", from: 3, to: 5, change: register, replaced: true, sameFiles: true},
	"replaced by a query":             {before: "replaced", after: "replaced", from: 2, to: 3, change: assign},
	"replaced by a query, and more":   {before: "replaced", after: "replaced", from: 1, to: 4, change: assign},
	"replaced without rows":           {before: "replaced", after: "replaced", from: 4, to: -1, change: assign},
	"replaced without rows, and more": {before: "replaced", after: "replaced", from: 4, to: 5, change: assign},
	"renamed":                         {before: "renamed", after: "renamed", from: 2, to: 4, change: assign},
	"renamed by hand":                 {before: "events", after: "events", from: 2, to: 4, change: rename},
	"merged":                          {before: "branches", after: "branches", from: 2, to: 6, change: assign},
	"merged with hidden snapshots":    {before: "rest_branch", after: "rest_branch", from: 1, to: 5, change: assign},
	"merged with FORCE":               {before: "branches_both", after: "branches_both", from: 4, to: latest + 4, change: assign},
	"merged with FORCE, and more":     {before: "branches_both", after: "branches_both", from: 3, to: 5, change: assign},
	"merged with FORCE just now":      {before: "reset_before", after: "reset", from: 5, to: 4, change: force},
	"transplanted":                    {before: "transplanted", after: "transplanted", from: 1, to: 4, change: assign},
	"transplanted just now":           {before: "tagged", after: "tagged", from: 2, to: 4, change: transplant},
	"rolled back":                     {before: "rolled_back", after: "rolled_back", from: 4, to: 2, change: rollBack},
	"rolled back, and more":           {before: "rolled_back", after: "rolled_back", from: 4, to: 6, change: assign},
	// Beside the head's metadata lies a list with the snapshot's name, which no sequence number forbids to be its past.
	"a v1 table assigned back": {before: "v1", after: "v1", from: inChain + 3, to: inChain + 2, change: assign},
	"a v1 table that goes on":  {before: "v1", after: "v1", from: inChain + 1, to: inChain + 3, change: assign},
}

const (
	latest  = 1000 // plus a sequence number that is there more than once: the last of them
	inChain = 2000 // plus a place in the chain from 1, for v1 tables, whose sequence numbers are all 0
)

// numbered finds the commit that brought a sequence number in the story.
func (s *story) numbered(t *testing.T, n int64) corpusCommit {
	t.Helper()
	if n > inChain {
		return s.commitOf(t, s.chain(s.Head().SnapshotID)[n-inChain-1])
	}
	puts := s.puts()
	if n > latest {
		n -= latest
		slices.Reverse(puts)
		for i, c := range puts {
			if s.sequence(c) == n && (i+1 == len(puts) || puts[i+1].SnapshotID != c.SnapshotID) {
				return c
			}
		}
	}
	for i, c := range puts {
		if s.sequence(c) == n && (n >= 0 || i > 0) {
			return c
		}
	}
	require.Fail(t, "no commit", "%s has no sequence number %d", s.Name, n)
	return corpusCommit{}
}

func (s *story) sequence(c corpusCommit) int64 {
	if c.SnapshotID == catalog.NoSnapshot {
		return -1
	}
	return s.k.snaps[c.SnapshotID].Sequence
}

func assign(r *ref, _, after corpusCommit) { r.move(after.Hash) }
func remake(r *ref, _, after corpusCommit) { r.remake(after.Hash) }

// rollBack moves to the commit after the last one that has the abandoned snapshot's table at the older snapshot again.
func rollBack(r *ref, before, after corpusCommit) {
	s := r.s.known.named(r.t, "rolled_back")
	puts := s.puts()
	at := slices.IndexFunc(puts, func(c corpusCommit) bool { return c.Hash == before.Hash })
	require.Equal(r.t, after.SnapshotID, puts[at+1].SnapshotID)
	r.move(puts[at+1].Hash)
}

func (r *ref) put(c corpusCommit, contentID string, key []string) catalog.Operation {
	return catalog.Operation{Type: catalog.Put, Key: key, Content: catalog.Content{
		Type: catalog.ContentTypeIceberg, ID: contentID, MetadataLocation: c.MetadataLocation, SnapshotID: c.SnapshotID, SchemaID: c.SchemaID,
	}}
}

func register(r *ref, before, after corpusCommit) {
	r.commit("drop", catalog.Operation{Type: catalog.Delete, Key: before.Key})
	r.commit("register", r.put(after, "", after.Key))
}

func rename(r *ref, before, after corpusCommit) {
	to := append(slices.Clone(before.Key[:len(before.Key)-1]), "events_renamed")
	r.key = to
	r.commit("rename", catalog.Operation{Type: catalog.Delete, Key: before.Key}, r.put(before, before.ContentID, to))
	for _, c := range r.s.known.named(r.t, "events").puts() {
		if c.LastSequenceNumber > before.LastSequenceNumber && c.LastSequenceNumber <= after.LastSequenceNumber {
			r.commit(c.Message, r.put(c, c.ContentID, to))
		}
	}
}

func force(r *ref, _, after corpusCommit) {
	other := r.s.branch(r.t, after.Hash)
	to, err := r.s.client.Merge(r.t.Context(), r.at, other.at.Ref(), "merge", catalog.MergeForce)
	require.NoError(r.t, err)
	r.at = to
}

func transplant(r *ref, before, after corpusCommit) {
	var hashes []string
	for _, c := range r.s.known.named(r.t, "tagged").puts() {
		if c.LastSequenceNumber > before.LastSequenceNumber && c.LastSequenceNumber <= after.LastSequenceNumber {
			hashes = append(hashes, c.Hash)
		}
	}
	r.commit("something else", catalog.Operation{
		Type: catalog.Put, Key: catalog.Key{"elsewhere"}, Content: catalog.Content{Type: catalog.ContentTypeNamespace},
	})
	to, err := r.s.client.Transplant(r.t.Context(), r.at, "main", hashes)
	require.NoError(r.t, err)
	r.at = to
}

// case of an upset: where it left the branch, and what the corpus says of both sides.
type upsetCase struct {
	upset
	t             *testing.T
	s             *story // of the branch now
	r             *rig
	from, to      int64
	old           *story
	head          string
	common        int64 // newest snapshot that both sides descend from
	commits       map[int64]string
	place, legacy []byte
}

func TestWhatHappensToBranches(t *testing.T) {
	site := open(t)
	for name, u := range upsets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := site.upset(t, u)
			for _, form := range []struct {
				name   string
				value  []byte
				legacy bool
			}{{"whole checkpoint", c.place, false}, {"five fields", c.legacy, true}} {
				unknown := form.legacy && u.unlisted
				told := !form.legacy || !u.sameFiles
				switch {
				case u.replaced && told:
					c.replacedTable(form.name, form.value)
				case c.common == c.from && !unknown:
					c.goesOn(form.name, form.value)
				default:
					c.lostLineage(form.name, form.value, unknown)
				}
			}
		})
	}
}

func (s *site) upset(t *testing.T, u upset) *upsetCase {
	t.Helper()
	old, now := s.known.named(t, u.before), s.known.named(t, u.after)
	before, after := old.numbered(t, u.from), now.numbered(t, u.to)
	kind := u.kind
	if kind == "" {
		kind = catalog.Branch
	}
	reference := s.ref(t, kind, newName(), before.Hash)
	r := s.rig(t, reference.at.Name, before.Key, fields{"start_from": "latest"})
	require.Empty(t, r.deliver())
	r.requireAt(before.SnapshotID)
	u.change(reference, before, after)

	r.key, r.common = after.Key, nil
	if reference.key != nil {
		r.key = reference.key
	}
	c := &upsetCase{
		upset: u, t: t, s: now, old: old, r: r, from: before.SnapshotID, to: after.SnapshotID, head: reference.at.Hash,
		common: catalog.NoSnapshot, commits: map[int64]string{}, place: r.checkpoint(),
	}
	line := now.chain(c.to)
	for _, id := range old.chain(c.from) {
		if slices.Contains(line, id) {
			c.common = id
		}
	}
	c.attribute(s)
	var err error
	c.legacy, err = json.Marshal(map[string]any{
		"lastAckedSnapshotID": fmt.Sprint(c.from), "lastAckedSnapshotSequence": s.known.snaps[c.from].Sequence,
		"branch": r.branch, "namespace": "demo", "table": r.key[len(r.key)-1],
	})
	require.NoError(t, err)
	return c
}

// attribute reads from the server which commits the test itself made, as they are in no expected file.
func (c *upsetCase) attribute(s *site) {
	c.t.Helper()
	own := map[string]bool{}
	for _, known := range c.s.Commits {
		own[known.Hash] = true
	}
	for commit, err := range s.client.Log(c.t.Context(), catalog.LogQuery{From: catalog.Ref{Hash: c.head}, Keys: []catalog.Key{c.r.key}}) {
		require.NoError(c.t, err)
		if own[commit.Hash] {
			return
		}
		for _, op := range commit.Operations {
			if op.Type == catalog.Put && op.Content.SnapshotID != catalog.NoSnapshot && op.Key.Equal(c.r.key) {
				c.commits[op.Content.SnapshotID] = commit.Hash
			}
		}
	}
}

// due is what the snapshots behind another one bring, under the commits of this branch.
func (c *upsetCase) due(from int64) []due {
	c.t.Helper()
	if c.to == catalog.NoSnapshot {
		return nil
	}
	dues := c.s.after(c.t, from, c.to)
	chain := c.s.chain(c.to)
	for i := range dues {
		for _, id := range chain[slices.Index(chain, dues[i].id):] {
			if hash, ok := c.commits[id]; ok && !c.logged(dues[i].commit) {
				dues[i].commit = hash
				break
			}
		}
	}
	return dues
}

// logged tells whether the branch has a commit of the corpus, which it does not when the test repeated or merged it.
func (c *upsetCase) logged(hash string) bool {
	if len(c.commits) == 0 {
		return true
	}
	if c.replaced {
		return false
	}
	old := c.old.puts()
	at := slices.IndexFunc(old, func(k corpusCommit) bool { return k.SnapshotID == c.from })
	return slices.ContainsFunc(old[:at+1], func(k corpusCommit) bool { return k.Hash == hash })
}

func (c *upsetCase) scan() []due {
	c.t.Helper()
	if c.to == catalog.NoSnapshot {
		return nil
	}
	return []due{c.s.whole(c.t, c.to, c.head)}
}

// try runs with a checkpoint and policies.
func (c *upsetCase) try(value []byte, more fields) outcome {
	c.t.Helper()
	c.r.restore(value)
	return c.r.run(more)
}

func (c *upsetCase) delivers(want []due, out outcome, at ...any) {
	c.t.Helper()
	require.Empty(c.t, out.failures, "%v", at)
	requireRows(c.t, c.s, c.r, want, out.rows, at...)
	c.r.requireAt(c.to)
	require.Empty(c.t, c.r.deliver(), "%v: nothing is left", at)
}

func (c *upsetCase) refuses(out outcome, at string, says ...string) {
	c.t.Helper()
	require.Len(c.t, out.failures, 1, at)
	for _, text := range says {
		require.ErrorContains(c.t, out.failures[0], text, at)
	}
	require.Empty(c.t, out.rows, at)
	require.Equal(c.t, fmt.Sprint(c.from), *c.r.place().Last, at)
}

var policies = []string{"start", "ancestor", "bridge", "table_scan", "fail"}

// goesOn: the branch still descends from the checkpoint, so that no policy has a say.
func (c *upsetCase) goesOn(form string, value []byte) {
	for i, policy := range policies {
		out := c.try(value, fields{"on_lost_lineage": policy, "on_table_replaced": []string{"fail", "restart"}[i%2]})
		require.Empty(c.t, out.warnings, "%s %s", form, policy)
		c.delivers(c.due(c.from), out, form, policy)
	}
}

func (c *upsetCase) replacedTable(form string, value []byte) {
	for _, policy := range policies {
		c.refuses(c.try(value, fields{"on_lost_lineage": policy}), form, "the table was replaced: the checkpoint's snapshot "+fmt.Sprint(c.from),
			"the head's snapshot "+fmt.Sprint(c.to), "set on_table_replaced: restart to read the new table as on a first run")
	}
	restart := fields{"on_table_replaced": "restart", "on_lost_lineage": "fail"}
	c.delivers(c.scan(), c.try(value, restart), form, "restart")
	restart["start_from"] = "latest"
	c.delivers(nil, c.try(value, restart), form, "restart at the head")
	restart["start_from"] = "earliest"
	c.delivers(c.due(catalog.NoSnapshot), c.try(value, restart), form, "restart at the beginning")
}

// lostLineage tries each policy. unknown: nothing on the branch knows the checkpoint's snapshot, which has no more than
// the old fields.
func (c *upsetCase) lostLineage(form string, value []byte, unknown bool) {
	base, reason := c.common, fmt.Sprint(c.from)
	skipped, abandoned := c.behind(c.s, c.to), c.behind(c.old, c.from)
	if base == catalog.NoSnapshot {
		abandoned = "unknown" // nobody walks the old line when the new one has ended
	}
	if unknown {
		base, reason = catalog.NoSnapshot, "is neither in the metadata of the head's snapshot"
		skipped, abandoned = "unknown", "unknown"
	}
	warned := func(out outcome, policy, skipped string) {
		require.Len(c.t, out.warnings, 1, "%s %s: %v", form, policy, out.warnings)
		require.Contains(c.t, out.warnings[0], reason)
		require.Contains(c.t, out.warnings[0], fmt.Sprintf("on_lost_lineage: %s goes on; snapshots skipped: %s, abandoned: ", policy, skipped))
		if c.to != catalog.NoSnapshot {
			require.Contains(c.t, out.warnings[0], "abandoned: "+abandoned)
		}
	}
	with := func(policy string) fields { return fields{"on_lost_lineage": policy, "on_table_replaced": "restart"} }

	out := c.try(value, with("start"))
	warned(out, "start", skipped)
	c.delivers(nil, out, form, "start")

	out = c.try(value, with("ancestor"))
	warned(out, "ancestor", "0")
	c.delivers(c.due(base), out, form, "ancestor")

	out = c.try(value, with("table_scan"))
	warned(out, "table_scan", "0")
	c.delivers(c.scan(), out, form, "table_scan")

	if unknown {
		c.refuses(c.try(value, with("bridge")), form, "lost lineage: ", reason, "on_lost_lineage: bridge is impossible: ",
			fmt.Sprintf("the manifest list of snapshot %d is gone or unknown", c.from), "set on_lost_lineage to get past it: start (")
	} else {
		c.refuses(c.try(value, with("bridge")), form, "removes rows (", "or changes: changelog to be told of every change")
		added := with("bridge")
		added["on_overwrite"], added["on_delete"] = "added_rows", "skip"
		out = c.try(value, added)
		require.Contains(c.t, out.warnings[0], "on_lost_lineage: bridge goes on; snapshots skipped: 0")
		c.delivers(c.difference(), out, form, "bridge of added rows")
	}
	c.refuses(c.try(value, with("fail")), form, "lost lineage: ", reason, "set on_lost_lineage to get past it: start (")
}

// difference is what the branch holds now and the checkpoint's state did not.
func (c *upsetCase) difference() []due {
	c.t.Helper()
	dues := c.due(c.common)
	if len(dues) == 0 {
		return nil
	}
	d := dues[len(dues)-1]
	d.id, d.from, d.rows = c.to, c.from, c.s.whole(c.t, c.to, c.head).rows
	for _, row := range c.old.whole(c.t, c.from, "").rows {
		if i := slices.Index(d.rows, row); i >= 0 {
			d.rows = slices.Delete(slices.Clone(d.rows), i, i+1)
		}
	}
	return []due{d}
}

// behind counts the snapshots of a line above the common one.
func (c *upsetCase) behind(s *story, id int64) string {
	chain := s.chain(id)
	return fmt.Sprint(len(chain) - 1 - slices.Index(chain, c.common))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// placer finds the state that a checkpoint is to stand at, and what going there means.
type placer struct {
	t    *target
	look *nessie.Look
	id   int64

	state  catalog.State
	commit catalog.TableCommit
	// reachable: the state is on the head's line. Then ahead is how many snapshots will be delivered from there.
	reachable bool
	ahead     int
	why       string
	// from is where the checkpoint is on the line: how many snapshots are ahead of it; -1 where it is not on it.
	from int
	// again is true where the way leads back.
	again bool
}

// find follows the head's line until both the state and the present checkpoint are met.
func (p *placer) find(ctx context.Context, before *cache.Checkpoint) error {
	present := catalog.NoSnapshot
	p.from = -1
	if before != nil && before.Started() && before.Stage == cache.StageComplete {
		id, err := cache.ParseSnapshotID(before.Last.SnapshotID)
		if err != nil {
			return err
		}
		present = id
	}
	var metID, metPresent bool
	line, err := lineage.Trace(ctx, p.look.State, p.look.History, func(s catalog.State) bool {
		metID = metID || s.SnapshotID == p.id
		metPresent = metPresent || s.SnapshotID == present
		return metID && metPresent
	})
	if err != nil {
		return err
	}
	index := func(id int64) int {
		return slices.IndexFunc(line.Nodes, func(n lineage.LineNode) bool { return n.State.SnapshotID == id })
	}
	if before != nil && before.Started() && before.Stage == cache.StageComplete {
		p.from = index(present)
		if present == catalog.NoSnapshot && line.Root {
			p.from = len(line.Nodes)
		}
	}
	switch i := index(p.id); {
	case i >= 0:
		p.reachable, p.ahead, p.state = true, i, line.Nodes[i].State
	case p.id == catalog.NoSnapshot:
		p.reachable, p.ahead = line.Root, len(line.Nodes)
		p.state = catalog.State{
			SnapshotID: catalog.NoSnapshot, TableUUID: p.look.State.TableUUID, ContentID: p.look.State.ContentID,
			SchemaID: p.look.State.SchemaID, MetadataLocation: p.look.State.MetadataLocation, FormatVersion: p.look.State.FormatVersion,
		}
		p.why = "the head's line can't be followed to a first snapshot: " + line.Why
	default:
		if p.state, err = p.t.find(ctx, p.look, p.id); err != nil {
			return err // there is nothing to write
		}
		p.why = fmt.Sprintf("snapshot %d is not on the line of the head's snapshot %d", p.id, p.look.State.SnapshotID)
	}
	p.again = p.reachable && p.from >= 0 && p.ahead >= p.from
	return p.findCommit(ctx)
}

// findCommit names the newest commit of the branch that has the state. Without one, holes above it can't be closed.
func (p *placer) findCommit(ctx context.Context) error {
	has := func(c catalog.TableCommit) bool { return c.Op == catalog.Put && c.Content.SnapshotID == p.id }
	commits, err := p.look.History.Commits(ctx, has)
	if err != nil {
		return err
	}
	if n := len(commits); n > 0 && has(commits[n-1]) {
		p.commit = commits[n-1]
	}
	return nil
}

// judge says what the move means, and refuses one to a place that the head does not descend from.
func (p *placer) judge(m *move) {
	warn := func(format string, args ...any) { m.warnings = append(m.warnings, fmt.Sprintf(format, args...)) }
	if m.before != nil && m.before.Position != nil {
		warn("The step under way is given up: %s.", summary(m.before))
	}
	switch {
	case !p.reachable:
		if m.refused == "" {
			m.refused = p.why
		}
		warn("From there on_lost_lineage decides.")
	case p.again && p.ahead > p.from:
		warn("Delivered a second time: %s.", plural(int64(p.ahead-p.from), "snapshot"))
	case p.from > p.ahead:
		warn("Never delivered, as the new place lies behind them: %s.", plural(int64(p.from-p.ahead), "snapshot"))
	}
	if p.reachable {
		warn("Ahead of it then: %s.", plural(int64(p.ahead), "snapshot"))
	}
}

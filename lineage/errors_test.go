// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func TestErrorTexts(t *testing.T) {
	resolve := func(m *model, place, head int64, p Policy) (Resolution, error) {
		return Resolve(t.Context(), m.place(place), m.state(head), m, p)
	}
	text := func(m *model, place, head int64, p Policy) string {
		_, err := resolve(m, place, head, p)
		require.Error(t, err)
		return err.Error()
	}
	start := func(m *model, head int64, p Policy) string {
		_, err := Start(t.Context(), m.state(head), m, p)
		require.Error(t, err)
		return err.Error()
	}
	forgotten := chain(1, 2, 3)
	forgotten.forgotten[2] = true
	foreign := lossy(3)
	delete(foreign.ancestors, "k2")
	replaced := chain(1, 2)
	replaced.edit(2, func(s *catalog.State) { s.TableUUID, s.ContentID = "u2", "c2" })
	cycle := chain(1, 2)
	cycle.parent[1] = 2
	cycle.add(7, none)
	disorder := chain(1, 2, 3)
	disorder.edit(2, func(s *catalog.State) { s.Sequence = 9 })
	noCatchUp := lossy(3)
	noCatchUp.expired[2] = true
	noCatchUp.edit(2, func(s *catalog.State) { s.Records = -1 })
	disjoint := chain(1, 2)
	disjoint.add(3, none)

	warning, err := resolve(reset(), 4, 15, Policy{OnLost: LostStart})
	require.NoError(t, err)
	closed, err := resolve(lossy(3), 2, 6, Policy{})
	require.NoError(t, err)

	for file, got := range map[string]string{
		"lost_diverged":       text(reset(), 4, 15, Policy{OnLost: LostFail}),
		"lost_went_back":      text(chain(1, 2, 3), 3, 2, Policy{OnLost: LostFail}),
		"lost_new_root":       text(disjoint, 2, 3, Policy{OnLost: LostFail}),
		"lost_empty_head":     text(chain(1, 2), 2, none, Policy{OnLost: LostFail}),
		"lost_changelog":      text(reset(), 4, 15, Policy{OnLost: LostFail, Changelog: true}),
		"lost_bridge_gone":    text(reset(), 4, 15, Policy{OnLost: LostBridge, Gone: map[int64]string{4: "snap-4.avro is gone"}}),
		"lost_fail_no_bridge": text(reset(), 4, 15, Policy{OnLost: LostFail, Gone: map[int64]string{4: "snap-4.avro is gone"}}),
		"lost_hole_commit":    text(foreign, 2, 6, Policy{OnLost: LostFail}),
		"lost_hole_refused":   text(lossy(3), 2, 6, Policy{OnLost: LostFail, Refused: map[Edge]string{{2, 4}: "it removes 3 data files"}}),
		"lost_hole_catch_up":  text(noCatchUp, 2, 6, Policy{OnLost: LostFail}),
		"lost_hole_ancestor":  text(foreign, 2, 6, Policy{OnLost: LostAncestor}),
		"lost_hole_head":      text(chain(1, 2), 1, 2, Policy{OnLost: LostFail, Gone: map[int64]string{2: "snap-2.avro is gone"}}),
		"warning_start":       warning.Lost.String(),
		"reason_bridged":      closed.Reason,
		"replaced":            text(replaced, 1, 2, Policy{}),
		"start_not_reachable": start(chain(1, 2), 2, Policy{StartSnapshotID: new(int64(9))}),
		"start_below_hole":    start(forgotten, 3, Policy{StartSnapshotID: new(int64(1))}),
		"start_nothing_read":  start(chain(1), 1, Policy{StartFrom: StartEarliest, Gone: map[int64]string{1: "x"}}),
		"cycle":               text(cycle, 7, 2, Policy{}),
		"sequence":            text(disorder, 1, 3, Policy{}),
		"endless":             (&CycleError{Child: 5, Parent: 4, Length: chainLimit}).Error(),
	} {
		t.Run(file, func(t *testing.T) { golden(t, file, got) })
	}
}

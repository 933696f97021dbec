// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// Each start says where it stands, so that a run that delivers nothing can be
// told from one that stands elsewhere.
func TestAStartSaysWhereTheCheckpointStands(t *testing.T) {
	s := newShop(t)
	first := s.add(1, 2)
	r := newRig(t)
	fields := s.increments("start_from: earliest")
	r.run(fields)
	assert.Equal(t, []string{"Starting at snapshot " + snapshotOf(first)}, ownInfos(r))

	last := s.add(3)
	r.logs = &logBook{}
	r.run(append(fields, "end_snapshot_id: "+`"`+snapshotOf(last)+`"`))
	assert.Equal(t, []string{
		"Going on behind snapshot " + snapshotOf(first) + `, as the checkpoint under key "place" says`,
		"end_snapshot_id " + snapshotOf(last) + " is reached: all up to it is read, and the input ends",
	}, ownInfos(r))
	assert.Equal(t, orders(1, 2, 3), r.out.bodies())

	r.logs = &logBook{}
	r.run(fields)
	assert.Equal(t, []string{"Going on behind snapshot " + snapshotOf(last) + `, as the checkpoint under key "place" says`}, ownInfos(r))
}

func TestAStartInTheMiddleOfAStepSaysSo(t *testing.T) {
	state := func(id int64) *catalog.State { return &catalog.State{SnapshotID: id} }
	for name, tc := range map[string]struct {
		at   place
		says string
	}{
		"behind a snapshot": {place{Place: lineage.Place{State: *state(4)}}, "behind snapshot 4"},
		"an empty table":    {place{Place: lineage.Place{State: *state(catalog.NoSnapshot)}}, "behind the empty table"},
		"in a snapshot": {
			place{Place: lineage.Place{State: *state(4)}, Step: &step{Step: lineage.Step{Before: state(4), After: *state(5)}, Row: 7}},
			"behind snapshot 4, in snapshot 5, from row ordinal 7 on",
		},
		"in a table scan": {
			place{Place: lineage.Place{State: *state(catalog.NoSnapshot)}, Step: &step{Step: lineage.Step{Kind: lineage.TableScan, After: *state(5)}}},
			"in the whole table as of snapshot 5, from row ordinal 0 on",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.says, describeResume(tc.at)) })
	}
}

// A start time in the future delivers nothing of what is there, and all that
// comes, which is said once.
func TestAStartTimeInTheFutureIsWarnedOf(t *testing.T) {
	s := newShop(t)
	head := s.add(1)
	r := newRig(t)
	toCome := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	fields := s.increments("start_from: " + toCome)
	r.run(fields)
	assert.Empty(t, r.out.bodies())
	assert.Equal(t, []string{
		"start_from: " + toCome + " lies in the future, and no snapshot is that new: following from snapshot " + snapshotOf(head) + " on, and delivering every later snapshot, whatever its time",
	}, r.logs.at(slog.LevelWarn))
	s.add(2)
	r.run(fields)
	assert.Equal(t, orders(2), r.out.bodies())
	assert.Len(t, r.logs.at(slog.LevelWarn), 1)

	t.Run("not of one that has passed", func(t *testing.T) {
		r := newRig(t)
		r.run(s.increments("start_from: " + time.Now().UTC().Format("2006-01-02")))
		assert.Empty(t, r.logs.at(slog.LevelWarn))
		assert.Equal(t, orders(1, 2), r.out.bodies())
	})
}

// One scan is not told as a habit.
func TestAFullScanThatEndsIsNotWarnedOf(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	r.run(s.fields())
	assert.Equal(t, orders(1), r.out.bodies())
	assert.Empty(t, r.logs.at(slog.LevelWarn))
}

// ownInfos are the input's lines at INFO, without those of Benthos.
func ownInfos(r *rig) []string {
	var own []string
	for _, line := range r.logs.at(slog.LevelInfo) {
		switch line {
		case "Input type nessie is now active", "Output type outlet is now active":
		default:
			own = append(own, line)
		}
	}
	return own
}

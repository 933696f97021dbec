// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An end that can't be met is told once: it may come yet, so it is no error.
func TestAnEndThatCannotBeMetIsToldOnce(t *testing.T) {
	s := newShop(t)
	base := s.add(1)
	abandoned := s.add(2)
	s.reset(base.Commit)
	last := s.add(3)
	end := func(id string) string { return fmt.Sprintf("end_snapshot_id: %q", id) }

	tests := map[string]struct{ end, says string }{
		"never was": {"42", "end_snapshot_id 42 is not in the table's history up to the head's snapshot " + snapshotOf(last)},
		// The head's metadata was written without it.
		"abandoned": {snapshotOf(abandoned), "end_snapshot_id " + snapshotOf(abandoned) + " is not in the table's history"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			l := r.start(s.increments("poll_interval: 10ms", "start_from: earliest", end(tc.end)))
			r.delivered(2)
			r.eventually(func() bool { return r.cache.at(snapshotOf(last)) }, "the head's checkpoint")
			asked := r.numbers.of("nessie_catalog_requests")
			r.eventually(func() bool { return r.numbers.of("nessie_catalog_requests") > asked+5 }, "further polls")
			l.stop()
			warnings := r.logs.at(slog.LevelWarn)
			require.Len(t, warnings, 1, r.logs)
			assert.Contains(t, warnings[0], tc.says)
			assert.Empty(t, l.reported())
		})
	}
	t.Run("in a run that ends", func(t *testing.T) {
		r := newRig(t)
		for _, rows := range []int{2, 2} { // the second has nothing to deliver
			r.run(s.increments("start_from: earliest", end("42")))
			assert.Len(t, r.out.bodies(), rows)
		}
		warnings := r.logs.at(slog.LevelWarn)
		require.Len(t, warnings, 2, r.logs)
		for _, w := range warnings {
			assert.Contains(t, w, "end_snapshot_id 42 is not in the table's history up to the head's snapshot "+snapshotOf(last)+": the input ends at the head, without it")
		}
	})
	t.Run("behind the checkpoint", func(t *testing.T) {
		r := newRig(t)
		r.run(s.increments("start_from: earliest"))
		assert.Empty(t, r.logs.at(slog.LevelWarn))
		r.start(s.increments("poll_interval: 10ms", end(snapshotOf(base)))).await()
		warnings := r.logs.at(slog.LevelWarn)
		require.Len(t, warnings, 1, r.logs)
		assert.Contains(t, warnings[0], "end_snapshot_id "+snapshotOf(base)+" lies behind the checkpoint's snapshot "+snapshotOf(last)+": nothing is delivered any more")
		assert.Len(t, r.out.bodies(), 2)
	})
	t.Run("met", func(t *testing.T) {
		r := newRig(t)
		for range 2 {
			r.start(s.increments("poll_interval: 10ms", "start_from: earliest", end(snapshotOf(last)))).await()
		}
		assert.Empty(t, r.logs.at(slog.LevelWarn))
		assert.Len(t, r.out.bodies(), 2)
	})
}

// A scheduled run that can't store its place would deliver the same again each time.
func TestARunWhoseLastCheckpointIsNotStoredDidNotEndWell(t *testing.T) {
	for name, tc := range map[string]struct {
		poll  string
		fails bool
	}{"that ends": {"0s", true}, "that goes on": {"10ms", false}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.add(1, 2)
			r := newRig(t)
			writes := 0
			r.cache.fail(nil, func() error {
				if writes++; writes > 2 { // the claim and the start
					return errors.New("no space left")
				}
				return nil
			})
			l := r.start(s.increments("start_from: earliest", "checkpoint_write_timeout: 50ms", "poll_interval: "+tc.poll))
			r.delivered(2)
			if tc.fails {
				l.await()
				require.Len(t, l.reported(), 1)
				assert.ErrorContains(t, l.reported()[0], "no space left")
			} else {
				l.stop()
				assert.Empty(t, l.reported())
			}
			errs := onlyOurs(r.logs.at(slog.LevelError))
			require.Len(t, errs, 1, r.logs)
			assert.Contains(t, errs[0], "What was acknowledged since the last checkpoint that is stored comes again: ")
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nessie

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/cache"
)

// fillDisk lets no file of this process grow beyond a part of a checkpoint, as on a full disk. The returned function, and
// the end of the test, make room again.
func fillDisk(t *testing.T) (makeRoom func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	makeRoom = func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	t.Cleanup(func() {
		makeRoom()
		signal.Reset(syscall.SIGXFSZ)
	})
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 300, Max: before.Max}))
	return makeRoom
}

// On a full disk rows go on and the checkpoint stays as it was, whole. Once there is room it goes on too; without room a
// restart delivers again what it does not cover, and nothing else.
func TestAFullDiskStopsTheCheckpointAndNoRow(t *testing.T) {
	if !alone(t) {
		return
	}
	for name, roomAgain := range map[string]bool{"there is room again": true, "the input ends before there is room": false} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			first, second := s.add(1, 2), s.add(3, 4)
			folder := filepath.Join(t.TempDir(), "progress")
			stored := func() *cache.Checkpoint {
				value, err := os.ReadFile(filepath.Join(folder, "place"))
				require.NoError(t, err)
				c, err := cache.Decode("place", value)
				require.NoError(t, err, "a torn checkpoint")
				return c
			}
			yaml := replaceOnce(pipeline(s.increments("start_from: earliest", "poll_interval: 1ms", "checkpoint_limit: 2")), "keeper: {}", "nessie_durable_file: { directory: "+folder+" }")
			r := newRig(t)
			held, release := r.holdAfter(2)
			l := r.startYAML(yaml)
			<-held
			r.eventually(func() bool { return stored().Step == 1 }, "the checkpoint behind the first snapshot")
			makeRoom := fillDisk(t)
			close(release)
			r.delivered(4)
			r.eventually(func() bool { return r.numbers.of("nessie_checkpoint_writes", "result=failed") >= 2 }, "failed writes")
			assert.True(t, r.logs.has("file too large"), r.logs)
			assert.Equal(t, snapshotOf(first), stored().Last.SnapshotID)
			if roomAgain {
				makeRoom()
				r.eventually(func() bool { return stored().Last.SnapshotID == snapshotOf(second) }, "the checkpoint at the head")
				l.stop()
				assert.Equal(t, orders(1, 2, 3, 4), r.out.bodies())
				return
			}
			l.stop()
			assert.Equal(t, snapshotOf(first), stored().Last.SnapshotID)
			makeRoom()
			l = r.startYAML(yaml)
			r.eventually(func() bool { return stored().Last.SnapshotID == snapshotOf(second) }, "the checkpoint at the head")
			l.stop()
			assert.Equal(t, orders(1, 2, 3, 4, 3, 4), r.out.bodies())
		})
	}
}

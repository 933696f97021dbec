// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// dataFiles are the data files of the shop's table.
func (s *shop) dataFiles() map[string]bool {
	s.t.Helper()
	found := map[string]bool{}
	require.NoError(s.t, filepath.WalkDir(s.Warehouse, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".parquet") {
			found[path] = true
		}
		return err
	}))
	return found
}

// A step of a changelog is in the checkpoint before any of its messages leaves: what a killed process delivered of it is
// never forgotten, so that a branch that was reset meanwhile has it taken back.
func TestAChangelogStoresWhatIsUnderWayBeforeItLeaves(t *testing.T) {
	s, r := newShop(t), newRig(t)
	fields := s.increments("changes: changelog", "identifier_fields: [ id ]")
	first := s.add(1)
	r.run(fields)
	known := s.dataFiles()
	second := s.add(2)

	arrived := make(chan storedPlace, 1)
	r.out.decide(func(ctx context.Context, _ service.MessageBatch) error {
		arrived <- r.cache.place()
		<-ctx.Done()
		return ctx.Err()
	})
	l := r.start(append(fields, "poll_interval: 10ms"))
	at := <-arrived
	assert.Equal(t, snapshotOf(first), *at.Snapshot)
	require.NotNil(t, at.Position)
	assert.Equal(t, snapshotOf(second), at.Position.To.Snapshot)
	assert.Zero(t, at.Position.Row)
	l.kill()
	r.out.decide(nil)
	r.out.forget()

	// As the reader may have the step, only its own files can complete it.
	for path := range s.dataFiles() {
		if !known[path] {
			require.NoError(t, os.Rename(path, path+".away"))
		}
	}
	s.reset(first.Commit)
	r.start(append(fields, "poll_interval: 10ms"))
	r.eventually(func() bool {
		return r.logs.has("Changes of snapshot " + snapshotOf(second) + " may have been delivered already")
	}, "the error")
	assert.Zero(t, r.out.count())
	for path := range s.dataFiles() {
		assert.True(t, known[path])
	}
	require.NoError(t, filepath.WalkDir(s.Warehouse, func(path string, _ fs.DirEntry, err error) error {
		if back, away := strings.CutSuffix(path, ".away"); away {
			err = errors.Join(err, os.Rename(path, back))
		}
		return err
	}))
	r.delivered(2)
	r.eventually(func() bool { return r.cache.at(snapshotOf(first)) }, "the branch's head")
	var said []string
	for _, row := range r.out.all() {
		said = append(said, row.meta[metaOperation].(string)+" "+row.body)
	}
	assert.Equal(t, []string{"insert " + tables.Order(2), "delete " + tables.Order(2)}, said)
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nessie

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// No room in the temporary folder stops a changelog in front of the snapshot, with an error that names the folder and what
// helps. It goes on by itself once there is room.
func TestAFullTemporaryFolderStopsAChangelogUntilThereIsRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	s := newShop(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	rows := orders(span(1, 20_000)...)
	r := newRig(t)
	fields := s.increments("start_from: latest", "changes: changelog", "identifier_fields: [ id ]", "read_memory: 1MiB")
	before := snapshotOf(s.commit(nessietest.Append(rows...)))
	r.run(fields)
	require.True(t, r.cache.at(before))
	// The same rows in another order, one of them changed: they don't meet in memory.
	slices.Reverse(rows)
	rows[77] = `{"id":19923,"item":"another"}`
	after := snapshotOf(s.commit(nessietest.Overwrite(nil, rows...)))

	lift := limitFiles(t, 16<<10)
	r.start(append(fields, "poll_interval: 10ms"))
	const helps = "Make room there, let TMPDIR name another folder, or raise read_memory"
	r.eventually(func() bool { return r.logs.has(helps) }, "the error")
	assert.True(t, r.logs.has("keeping rows that do not fit into memory in "+temporary), r.logs.String())
	assert.True(t, r.cache.at(before), "it keeps its place")
	assert.Zero(t, r.out.count())

	lift()
	r.delivered(2)
	r.eventually(func() bool { return r.cache.at(after) }, "it goes on")
	assert.Equal(t, []string{tables.Order(19923), `{"id":19923,"item":"another"}`}, r.out.bodies())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// alone runs the test once more in a process of its own, where it reports true: a bound on files holds for the whole
// process, and the test binary writes files too.
func alone(t *testing.T) bool {
	t.Helper()
	const inside = "RPK_NESSIE_TEST_ALONE"
	if os.Getenv(inside) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "PASS")
	return false
}

// limitFiles bounds the size of every file that the process writes, as a full disk does in the end, until lift is called.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	signal.Ignore(syscall.SIGXFSZ)
	limit := before
	limit.Cur = size
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	lift = func() { assert.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	t.Cleanup(lift)
	return lift
}

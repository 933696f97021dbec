// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

func TestDemoShowsEveryRowOnceAndCleansUp(t *testing.T) {
	cmd := command(t, "demo")
	got := finish(t, cmd, cmd.Run())
	require.Equal(t, 0, got.code, got.all())

	rows := regexp.MustCompile(`row         snapshot (\d+) insert \{"id":(\d+),`).FindAllStringSubmatch(got.stdout, -1)
	commits := regexp.MustCompile(`commit      snapshot (\d+), sequence \d+, \d+ rows`).FindAllStringSubmatch(got.stdout, -1)
	assert.Len(t, commits, 5)
	assert.Len(t, rows, 14)
	_, resumed, found := strings.Cut(got.stdout, "Run the same pipeline again")
	require.True(t, found)
	assert.Equal(t, 3, strings.Count(resumed, "row         snapshot "+commits[4][1]), "only new rows after the restart")
	assert.Equal(t, 3, strings.Count(resumed, "row         "))
	assert.Contains(t, resumed, "lastAckedSnapshotID "+commits[4][1])
	assert.Contains(t, resumed, "All 14 rows came once, in order.")
	assert.NotContains(t, got.stdout, "\x1b[", "no colours into a pipe")
	assert.Empty(t, leftIn(t, cmd.Dir))
}

func TestDemoKeepsItsFolder(t *testing.T) {
	cmd := command(t, "demo", "--keep")
	got := finish(t, cmd, cmd.Run())
	require.Equal(t, 0, got.code, got.all())
	left := leftIn(t, cmd.Dir)
	require.Len(t, left, 1)
	assert.Contains(t, got.stdout, "Kept "+left[0])
	assert.DirExists(t, filepath.Join(left[0], "warehouse"))
	assert.DirExists(t, filepath.Join(left[0], "checkpoints"))
}

func TestDemoLeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Setenv("TMPDIR", t.TempDir())
	var told bytes.Buffer
	require.NoError(t, runDemo(t.Context(), &narrator{out: &told}, demoPlace{}, false))
	assert.Contains(t, told.String(), "came once, in order")
	goleak.VerifyNone(t, before)
}

// interruptDemo stops a demo as its pipeline starts.
func interruptDemo(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "Run this pipeline") {
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	got := finish(t, cmd, cmd.Wait())
	assert.Equal(t, exitInterrupted, got.code, got.stderr)
	return got
}

func TestDemoInterruptedCleansUp(t *testing.T) {
	cmd := command(t, "demo")
	got := interruptDemo(t, cmd)
	assert.Contains(t, got.stderr, "interrupted")
	assert.Empty(t, leftIn(t, cmd.Dir))
}

func TestDemoNamesTheSettingsOfAStoreThatItCannotReach(t *testing.T) {
	server, err := nessietest.Start(nessietest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	cmd := command(t, "demo", "--nessie", server.URL, "--warehouse", "s3://bucket/tmp", "--s3-endpoint", closedPort(t))
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s", "AWS_MAX_ATTEMPTS=1")
	got := finish(t, cmd, cmd.Run())
	assert.Equal(t, 1, got.code, got.all())
	for _, says := range []string{"--s3-endpoint", "--s3-path-style", "AWS_ACCESS_KEY_ID", "writing below s3://bucket/tmp/"} {
		assert.Contains(t, got.stderr, says)
	}
}

// What could be removed is not told as left behind.
func TestDemoNamesWhatItCouldNotRemove(t *testing.T) {
	server, err := nessietest.Start(nessietest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodDelete
	})
	warehouse := "file://" + filepath.Join(t.TempDir(), "w")
	got := execute(t, "demo", "--nessie", server.URL, "--warehouse", warehouse)
	assert.Equal(t, 1, got.code, got.all())
	assert.Contains(t, got.stdout, "Removed "+warehouse+"/rpk-nessie-demo-")
	assert.NotContains(t, got.stdout, "Removed branch")
	assert.Regexp(t, `(?m)Left behind: branch rpk-nessie-demo-\w+$`, got.stdout)
}

func TestDifferenceNamesWhatIsWrong(t *testing.T) {
	a, b, c := delivery{"1", "a"}, delivery{"1", "b"}, delivery{"2", "c"}
	tests := map[string]struct {
		want, got []delivery
		says      []string
	}{
		"equal":      {[]delivery{a, b}, []delivery{a, b}, nil},
		"missing":    {[]delivery{a, b}, []delivery{a}, []string{"missing:     snapshot 1 b"}},
		"twice":      {[]delivery{a}, []delivery{a, a}, []string{"not written: snapshot 1 a (1 times too often)"}},
		"wrong":      {[]delivery{a}, []delivery{c}, []string{"missing:     snapshot 1 a", "not written: snapshot 2 c"}},
		"misordered": {[]delivery{a, b}, []delivery{b, a}, []string{"out of order at row 1: snapshot 1 b came instead of snapshot 1 a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			diff := difference(tc.want, tc.got)
			if tc.says == nil {
				assert.Empty(t, diff)
			}
			for _, line := range tc.says {
				assert.Contains(t, diff, line)
			}
		})
	}
}

// leftIn lists what the binary left in its temporary folder.
func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tmp"))
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, filepath.Join(dir, "tmp", entry.Name()))
	}
	return left
}

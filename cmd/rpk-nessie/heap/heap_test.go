// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

// lifeOfAProcess makes this program the process that a test looks at.
const lifeOfAProcess = "RPK_NESSIE_HEAP_LIFE"

func TestMain(m *testing.M) {
	if os.Getenv(lifeOfAProcess) != "" {
		live()
		return
	}
	os.Exit(m.Run())
}

func TestAHeapGrowsToItsLeastSizeOrDoubles(t *testing.T) {
	for name, c := range map[string]struct {
		size
		percent int
		goal    uint64
	}{
		"not collected yet":                {size{}, 1600, 64 * mib},
		"too little for Go's own minimum":  {size{live: 1 * mib}, 1575, 64 * mib},
		"a few megabytes":                  {size{live: 8 * mib}, 700, 64 * mib},
		"stacks and globals count":         {size{live: 8 * mib, beside: 8 * mib}, 350, 64 * mib},
		"just below half":                  {size{live: 31 * mib}, 106, 64 * mib},
		"half":                             {size{live: 32 * mib}, 100, 64 * mib},
		"above half":                       {size{live: 33 * mib}, 100, 66 * mib},
		"the least size":                   {size{live: 64 * mib}, 100, 128 * mib},
		"much more":                        {size{live: 5000 * mib}, 100, 10000 * mib},
		"much more, and stacks":            {size{live: 100 * mib, beside: 10 * mib}, 100, 210 * mib},
		"little, with more stacks than it": {size{live: 4 * mib, beside: 60 * mib}, 100, 68 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			percent := c.size.percent(Least)
			assert.Equal(t, c.percent, percent)
			// As Go's gcControllerState.commit computes the goal.
			goal := max(c.live+(c.live+c.beside)*uint64(percent)/100, 4*mib*uint64(percent)/100)
			assert.InDelta(t, c.goal, goal, mib)
		})
	}
}

func TestAHeapThatGrowsAtOnceIsBounded(t *testing.T) {
	small := size{live: 5 * mib, mapped: 30 * mib}
	assert.EqualValues(t, (30+128)*mib, small.limit(small.percent(Least), Least))
	shrunk := size{live: 5 * mib, mapped: 600 * mib}
	assert.EqualValues(t, (600+128)*mib, shrunk.limit(shrunk.percent(Least), Least), "what is held already is no reason to collect")
	large := size{live: 500 * mib, mapped: 900 * mib}
	assert.EqualValues(t, unset, large.limit(large.percent(Least), Least))
}

// life is what a process saw: its goals in bytes and the settings.
type life struct {
	Small, Large, SmallAgain uint64
	Percent                  int
	Limit                    int64
}

// live holds little, 100 MiB, and little again.
func live() {
	Keep(Least)
	l := life{Small: settledGoal()}
	held := make([]byte, 100*mib)
	l.Large = settledGoal()
	runtime.KeepAlive(held)
	l.SmallAgain = settledGoal()
	l.Percent, l.Limit = debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	_ = json.NewEncoder(os.Stdout).Encode(l)
}

// settledGoal collects so often that what runs after a collection has run.
func settledGoal() uint64 {
	for range 50 {
		runtime.GC()
	}
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	return goal[0].Value.Uint64()
}

func lifeWith(t *testing.T, env ...string) (l life) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOGC=") && !strings.HasPrefix(v, "GOMEMLIMIT=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, lifeOfAProcess+"=1"), env...)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &l), string(out))
	return l
}

func TestAProcessKeepsItsLeastHeap(t *testing.T) {
	l := lifeWith(t)
	assert.InDelta(t, Least, l.Small, mib)
	assert.InDelta(t, 202*mib, l.Large, 4*mib, "twice what it holds, as without Keep")
	assert.InDelta(t, Least, l.SmallAgain, mib)
	assert.Greater(t, l.Percent, 100)
	assert.Less(t, l.Limit, int64(1024*mib), "a jump is bounded")
}

func TestWhoeverSetsTheCollectorIsLeftAlone(t *testing.T) {
	l := lifeWith(t, "GOGC=50")
	assert.Equal(t, 50, l.Percent)
	assert.EqualValues(t, unset, l.Limit)
	assert.Less(t, l.Small, uint64(16*mib))
	assert.InDelta(t, 151*mib, l.Large, 4*mib)

	const limit = 500 * mib
	l = lifeWith(t, fmt.Sprintf("GOMEMLIMIT=%d", limit))
	assert.Equal(t, 100, l.Percent)
	assert.EqualValues(t, limit, l.Limit)
	assert.Less(t, l.Small, uint64(16*mib))
}

// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// Lanes run beside each other, each with histories of its own: what waits for a pause in one lane leaves the processor to
// another.
type Lanes struct {
	number *int
	all    *int // how many histories, a flag

	seed    uint64     // of the first lane
	seeding sync.Mutex // guards rapid's flag, which the checks of all lanes read as they begin
}

// NewLanes takes flags that say how many lanes there are, and how many histories they drive together.
func NewLanes(number, all *int) *Lanes { return &Lanes{number: number, all: all} }

// Run is the TestMain of a package of histories.
func (l *Lanes) Run(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(l.each()),
		"rapid.shrinktime": "10s",
		"rapid.nofailfile": "true", // a history is a folder of files too; the seed makes it again
		"test.parallel":    strconv.Itoa(*l.number),
	} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	l.seed, _ = strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	if l.seed == 0 {
		l.seed = 1 // a change is judged by the histories of the one before; the soak draws others
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		panic(err)
	}
	os.Exit(code)
}

// Seed is that of the first lane.
func (l *Lanes) Seed() uint64 { return l.seed }

func (l *Lanes) each() int { return (*l.all + *l.number - 1) / *l.number }

// Drive drives the histories of all lanes.
func (l *Lanes) Drive(t *testing.T, drive func(context.Context, *rapid.T)) {
	t.Run("lanes", func(t *testing.T) {
		for lane := range *l.number {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				l.check(t, lane, drive)
			})
		}
	})
}

// check draws from a seed of the lane's own, so that the lanes of a run with -rapid.seed differ, and a seed alone makes
// them all again.
func (l *Lanes) check(t *testing.T, lane int, drive func(context.Context, *rapid.T)) {
	l.seeding.Lock()
	Check(t, flag.Set("rapid.seed", strconv.FormatUint(l.seed+uint64(lane)<<32, 10)))
	var begun sync.Once
	driven, due := 0, l.each()
	if testing.Short() {
		due /= 5 // as rapid does
	}
	rapid.Check(t, func(rt *rapid.T) {
		begun.Do(l.seeding.Unlock)
		driven++
		drive(t.Context(), rt)
	})
	assert.GreaterOrEqual(t, driven, due, "the time ran out")
}

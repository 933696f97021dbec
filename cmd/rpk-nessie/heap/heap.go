// SPDX-License-Identifier: Apache-2.0

// Package heap gives a process's heap a least size below which Go's garbage collector does not collect it. The collector
// starts anew whenever the heap has doubled, which a process that holds a few megabytes and reads many small files does
// dozens of times a second. What it holds most stays as it is: a heap that is larger than half of the least size is
// collected when it has doubled, as ever.
//
// That is a setting of the whole process, for its main function to make.
package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Least is the least size, in bytes.
const Least = 64 << 20

// defaultPercent is GOGC where nobody sets it.
const defaultPercent = 100

// unset is what Go has for GOMEMLIMIT where nobody sets it.
const unset = math.MaxInt64

// Keep lets the heap grow to least bytes before it is collected, as long as the process lives. It does nothing where the
// environment has GOGC or GOMEMLIMIT: whoever sets one of them has decided how memory is used.
func Keep(least uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	adjust(least)
}

// adjust is called again after each collection, by a sentinel that nothing holds.
func adjust(least uint64) {
	now := sizeNow()
	percent := now.percent(least)
	debug.SetGCPercent(percent)
	// Until adjust is called again, a percentage for a small heap would let one that has grown meanwhile grow many times over.
	debug.SetMemoryLimit(now.limit(percent, least))
	runtime.AddCleanup(&sentinel{}, adjust, least)
}

// sentinel is an object of its own: tiny ones without pointers live as long as their neighbours.
type sentinel struct{ _ *byte }

// size is what Go knows of a heap after a collection, in bytes.
type size struct {
	live   uint64 // objects that were reachable
	beside uint64 // stacks and globals, which GOGC counts too
	mapped uint64 // memory of the system that Go holds, of whatever use
}

// percent is the GOGC that makes Go collect when the heap has doubled, and not before it has least bytes.
func (s size) percent(least uint64) int {
	if s.live >= least {
		return defaultPercent
	}
	// GOGC is a percentage of this; of no heap does Go take less than 4 MiB.
	base := max(s.live+s.beside, 4<<20)
	return max(int((least-s.live)*100/base), defaultPercent)
}

// limit is the GOMEMLIMIT that goes with a percentage: room for twice least beside what is held already.
func (s size) limit(percent int, least uint64) int64 {
	if percent == defaultPercent {
		return unset
	}
	return int64(s.mapped + 2*least)
}

func sizeNow() size {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	of := func(i int) uint64 { return samples[i].Value.Uint64() }
	return size{live: of(0), beside: of(1) + of(2), mapped: of(3) - of(4)}
}

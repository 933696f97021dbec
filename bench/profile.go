// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

// profile writes a CPU profile to $BENCH_CPUPROFILE and the allocations to $BENCH_MEMPROFILE, where they are set.
func profile() (stop func(), err error) {
	stop = func() {}
	if path := os.Getenv("BENCH_CPUPROFILE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		stop = func() {
			pprof.StopCPUProfile()
			_ = f.Close()
		}
	}
	path := os.Getenv("BENCH_MEMPROFILE")
	if path == "" {
		return stop, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	cpu := stop
	return func() {
		cpu()
		runtime.GC()
		_ = pprof.Lookup("allocs").WriteTo(f, 0)
		_ = f.Close()
	}, nil
}

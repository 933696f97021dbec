// SPDX-License-Identifier: Apache-2.0

// Package model drives the real input through random histories of a table and
// holds it to what must never happen: a row lost, a row doubled without a
// reason, an order broken, a checkpoint ahead of the output. Nessie is in
// memory, the table's files are real.
//
// A failure prints the seed of its history:
//
//	go test ./tests/model -run TestHistories/lanes/0 -histories=1 -rapid.seed=…
package model

import (
	"flag"
	"os"
	"strconv"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"go.uber.org/goleak"

	_ "github.com/rpk-nessie/rpk-nessie"
)

// Lanes run beside each other, each with histories of its own: what waits for
// a pause in one lane leaves the processor to another.
const lanes = 8

var (
	histories = flag.Int("histories", 500, "how many random histories to drive")
	seed      uint64 // of the first lane
)

// perLane is how many histories each lane drives.
func perLane() int { return (*histories + lanes - 1) / lanes }

func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(perLane()),
		"rapid.nofailfile": "true", // a history is a folder of files too; the seed makes it again
		"test.parallel":    strconv.Itoa(lanes),
	} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	seed, _ = strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	if seed == 0 {
		seed = 1 // a change is judged by the histories of the one before; the soak draws others
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		panic(err)
	}
	os.Exit(code)
}

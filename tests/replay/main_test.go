// SPDX-License-Identifier: Apache-2.0

// Package replay holds a changelog to its promise: whoever applies its messages
// has the table, at every step, however often the input is killed or its
// batches are refused. The input is the real one, Nessie is in memory, the
// table's files are written by iceberg-go, which also says what the table is.
//
// A failure prints the seed of its history:
//
//	go test ./tests/replay -run TestAReplayIsTheTable/lanes/0 -replays 1 -rapid.seed=…
package replay

import (
	"flag"
	"os"
	"strconv"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"go.uber.org/goleak"

	_ "github.com/rpk-nessie/rpk-nessie"
)

// Lanes run beside each other: what waits in one lane leaves the processor to
// another.
const lanes = 6

var (
	replays = flag.Int("replays", 360, "how many random histories to replay")
	seed    uint64 // of the first lane
)

// perLane is how many histories each lane drives.
func perLane() int { return (*replays + lanes - 1) / lanes }

func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(perLane()),
		"rapid.shrinktime": "10s",
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

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
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

var lanes = histories.NewLanes(flag.Int("lanes", 6, "how many lanes of histories run beside each other"), flag.Int("replays", 360, "how many random histories to replay"))

func TestMain(m *testing.M) { lanes.Run(m) }

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
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

var lanes = histories.NewLanes(flag.Int("lanes", 8, "how many lanes of histories run beside each other"), flag.Int("histories", 500, "how many random histories to drive"))

func TestMain(m *testing.M) { lanes.Run(m) }

// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package kafka follows a table into a real Kafka broker that crashes meanwhile.
package kafka

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	_ "github.com/rpk-nessie/rpk-nessie"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rowsVariable is how many rows go through; `make soak` sets it to a million.
const rowsVariable = "RPK_NESSIE_KAFKA_ROWS"

const rowsByDefault = 50_000

func rowsToSend(t *testing.T) int {
	t.Helper()
	text := os.Getenv(rowsVariable)
	if text == "" {
		return rowsByDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("%s=%q is no number of rows from 1000 on", rowsVariable, text)
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package connectors tests the binary's connectors on real servers: PostgreSQL, Redis, and emulators of object stores.
package connectors

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"go.uber.org/goleak"

	_ "github.com/rpk-nessie/rpk-nessie"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/caches"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/sql"
)

// patience is for what can only fail to happen. After some errors in a row the input waits a minute before it connects again.
const patience = 3 * time.Minute

// A change is judged by the broken connections of the one before; the soak draws others.
var seed = flag.Uint64("seed", 1, "of the bytes at which connections break")

// pipelineVariable makes the test binary run the pipeline of that file instead of tests: a process that can be killed.
const pipelineVariable = "CONNECTORS_TEST_PIPELINE"

func TestMain(m *testing.M) {
	if file := os.Getenv(pipelineVariable); file != "" {
		os.Args = []string{"pipeline", "run", file}
		code, err := service.RunCLIToCode(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

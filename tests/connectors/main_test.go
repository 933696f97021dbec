// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package connectors tests the binary's connectors on real servers: PostgreSQL, Redis, and emulators of object stores.
package connectors

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	_ "github.com/rpk-nessie/rpk-nessie"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/caches"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/sql"
)

const patience = time.Minute

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

// SPDX-License-Identifier: Apache-2.0

// Command rpk-nessie is a Benthos distribution that holds the `nessie` input and the `nessie_durable_file` cache beside
// Benthos's own pure and io components.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func main() {
	os.Exit(run(context.Background()))
}

// run executes the command line and returns the exit code: 0, 1 for what Benthos or a subcommand refuses, or 3 where
// a bounded input could not read all that is there, or a signal stopped it before.
func run(ctx context.Context) int {
	failed := newInputFailure()
	code, err := service.RunCLIToCode(ctx, cliOptions(failed)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return failed.exitCode(code)
}

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

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/heap"
)

func main() {
	heap.Keep(heap.Least)
	os.Exit(run(context.Background()))
}

// run executes the command line and returns the exit code: 0, 1 for what Benthos or a subcommand refuses, or 3 where
// a bounded input could not read all that is there, or a signal stopped it before. Codes of single commands (4, 5 and
// 130) leave the process from within.
func run(ctx context.Context) int {
	failed, types := newInputFailure(), new(typeLint)
	code, err := service.RunCLIToCode(ctx, cliOptions(failed, types)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return failed.exitCode(types.exitCode(code))
}

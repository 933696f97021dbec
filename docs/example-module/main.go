// SPDX-License-Identifier: Apache-2.0

// Command stream is a Benthos build of one's own that holds the nessie input.
package main

import (
	"context"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"

	_ "github.com/rpk-nessie/rpk-nessie" // registers nessie and nessie_durable_file, nothing else
)

func main() {
	service.RunCLI(context.Background())
}

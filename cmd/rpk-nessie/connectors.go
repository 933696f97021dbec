// SPDX-License-Identifier: Apache-2.0

package main

// Components that this binary registers beside the plugin's own.
import (
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/caches"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/kafka"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/sql"
	_ "github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/telemetry"
)

// SPDX-License-Identifier: Apache-2.0

// Package chaos kills the built binary at random moments, while a writer keeps committing and the network between all of
// them fails, and counts what comes out.
package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

var (
	kills = flag.Int("kills", 30, "how often to kill the binary")
	// A change is judged by the moments of the one before; the soak draws others.
	seed = flag.Uint64("seed", 1, "of all that is drawn; what the machine's load decides comes on top")
)

// binary is the built program.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	code := buildAndTest(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndTest(m *testing.M) int {
	return servers.WithProgram(func(built string) int {
		binary = built
		return m.Run()
	})
}

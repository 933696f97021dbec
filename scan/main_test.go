// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// A change is judged by the random cases of the one before; the soak draws others.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

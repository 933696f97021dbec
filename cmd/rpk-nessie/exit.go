// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync/atomic"

	"github.com/redpanda-data/benthos/v4/public/service"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// exitInputFailed says that a bounded input ended at an error that repeating does not mend.
const exitInputFailed = 3

// inputFailure remembers that an input of this process failed for good.
type inputFailure struct{ reported atomic.Bool }

func (f *inputFailure) report(error) { f.reported.Store(true) }

// install puts the report function where inputs find it.
func (f *inputFailure) install(conf *service.ParsedConfig) error {
	conf.Resources().SetGeneric(nessie.FailureKey{}, f.report)
	return nil
}

// exitCode turns the code of a run that ended well into exitInputFailed if an input failed meanwhile.
func (f *inputFailure) exitCode(code int) int {
	if code == 0 && f.reported.Load() {
		return exitInputFailed
	}
	return code
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/redpanda-data/benthos/v4/public/service"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// exitInputFailed says that a bounded input did not come to its end: at an error that repeating does not mend, or because of
// a signal.
const exitInputFailed = 3

// inputFailure remembers which inputs of this process failed for good, and which are at work.
type inputFailure struct {
	reported atomic.Bool
	open     atomic.Int64
	// signals holds the first that asked the process to stop. Benthos gets it too.
	signals chan os.Signal
}

func newInputFailure() *inputFailure { return &inputFailure{signals: make(chan os.Signal, 1)} }

func (f *inputFailure) report(error) { f.reported.Store(true) }

// begin counts a bounded input until it is at its end.
func (f *inputFailure) begin() (finished func()) {
	f.open.Add(1)
	return func() { f.open.Add(-1) }
}

// install puts the functions where inputs find them.
func (f *inputFailure) install(conf *service.ParsedConfig) error {
	conf.Resources().SetGeneric(nessie.FailureKey{}, f.report)
	conf.Resources().SetGeneric(nessie.RunKey{}, f.begin)
	return nil
}

// watch looks out for signals from right before Benthos does: until then they end the process, as ever.
func (f *inputFailure) watch(*service.RunningStreamSummary) error {
	signal.Notify(f.signals, os.Interrupt, syscall.SIGTERM)
	return nil
}

// exitCode turns the code of a run that ended well into exitInputFailed if an input failed meanwhile, or was at work when a
// signal came. Without a signal an open input is one that what is around it closed, such as read_until.
func (f *inputFailure) exitCode(code int) int {
	stopped := len(f.signals) > 0 && f.open.Load() > 0
	if code == 0 && (f.reported.Load() || stopped) {
		return exitInputFailed
	}
	return code
}

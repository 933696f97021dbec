// SPDX-License-Identifier: Apache-2.0

// Package histories drives the real input through random histories of a table: lanes of histories that a seed makes
// again, lives of the input that are read, acknowledged, refused and killed, the checkpoint cache that outlives them, and
// a vault from which files come back. What a history does, and what must hold in it, is its test's own.
package histories

import (
	"time"

	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// Patience is for what can only fail to happen. After some errors in a row the input waits a minute before it connects
// again.
const Patience = 3 * time.Minute

// Failer ends a test, or one history.
type Failer interface {
	Fatalf(format string, args ...any)
}

// TB is a test, or one history, in which tables can be opened.
type TB interface {
	tables.TB
	Failer
}

// Check ends a test whose own part fails.
func Check(t Failer, err error) {
	if err != nil {
		t.Fatalf("the test itself: %v", err)
	}
}

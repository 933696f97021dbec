// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// retryLog warns of reads of files that are tried again, so that a store which
// stalls is not silent. It does so once a second at most: many files are read at
// once, and what stands in the way is mostly the same.
type retryLog struct {
	log *service.Logger

	mu    sync.Mutex
	last  time.Time
	quiet int // since the last line
}

func newRetryLog(log *service.Logger) *retryLog { return &retryLog{log: log} }

// retried hears of each. The location is empty where it is not known.
func (l *retryLog) retried(location string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last) < time.Second {
		l.quiet++
		return
	}
	if location == "" {
		location = "files"
	}
	l.log.Warnf("Reading %s is tried again (%d more of the kind since the last such line): %v", location, l.quiet, err)
	l.last, l.quiet = now, 0
}

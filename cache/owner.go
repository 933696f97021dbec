// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
)

// Owner is the token of the input that claimed a key.
type Owner struct {
	ID      string `json:"id"` // random
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	StartMs int64  `json:"startMs"` // when the input was made, milliseconds since 1970
	// Term orders claims: the time of the claim in milliseconds since 1970, or
	// one more than the term that was stored, whichever is later. So a write
	// of an earlier owner that arrives late is told from a newer claim.
	Term int64 `json:"term"`
}

// NewOwner returns the token of an input of this process, without a term.
func NewOwner() Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Owner{ID: rand.Text(), Host: host, PID: os.Getpid(), StartMs: time.Now().UnixMilli()}
}

// String tells a user where the owner runs. Of a value that can't be read only
// Host is known.
func (o Owner) String() string {
	if o.ID == "" {
		return "host " + o.Host
	}
	return fmt.Sprintf("host %s, pid %d, started %s", o.Host, o.PID, time.UnixMilli(o.StartMs).UTC().Format(time.RFC3339))
}

// TakenError says that another input claimed the key later. Whoever gets it
// must neither read nor write any more.
type TakenError struct {
	Key   string
	Owner Owner // the other one
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("the checkpoint under key %q was taken over by another input (%s): "+
		"this one stops; run one input per key, or configure another checkpoint_cache_key", e.Key, e.Owner)
}

// succeed returns o with the term of a claim that comes after that of stored.
func (o Owner) succeed(stored *Owner) Owner {
	o.Term = time.Now().UnixMilli()
	if stored != nil {
		o.Term = max(o.Term, stored.Term+1)
	}
	return o
}

// yieldsTo tells whether the stored token is that of a newer owner. With equal
// terms two inputs claimed at once, and whose token is stored was the last.
func (o Owner) yieldsTo(stored *Owner) bool {
	return stored != nil && stored.ID != o.ID && stored.Term >= o.Term
}

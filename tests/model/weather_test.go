// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/http"
	"sync/atomic"
)

// sky is how the catalog treats the input. The writer is never troubled.
type sky string

const (
	fair        sky = "fair"
	unavailable sky = "unavailable"
	throttled   sky = "throttled"
	denied      sky = "denied"
	cut         sky = "cutting connections"
	flickering  sky = "failing every third time"
)

var statuses = map[sky]int{
	unavailable: http.StatusServiceUnavailable, throttled: http.StatusTooManyRequests, denied: http.StatusUnauthorized,
	flickering: http.StatusInternalServerError,
}

// weather sets how the catalog treats the input from here on.
func (w *world) weather(s sky) {
	w.sky = s
	w.stormy = w.stormy || s != fair
	if s == fair {
		w.Server.Intercept(nil)
		return
	}
	var calls atomic.Int64
	w.Server.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Header.Get(readerHeader) == "", s == flickering && calls.Add(1)%3 != 0:
			return false
		case s == cut:
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(statuses[s])
		return true
	})
}

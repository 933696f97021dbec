// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

const (
	retryWaitMin = 250 * time.Millisecond
	retryWaitMax = 10 * time.Second
	// A server that asks for a longer pause than this has a wrong clock or a wrong header.
	longestRetryAfter = time.Hour
)

type callKey struct{}

type call struct {
	name   string
	writes bool
}

func withCall(ctx context.Context, req request) context.Context {
	return context.WithValue(ctx, callKey{}, call{name: req.call, writes: req.method != http.MethodGet})
}

func callOf(ctx context.Context) call {
	made, _ := ctx.Value(callKey{}).(call)
	return made
}

// shouldRetry tries again on 429, 5xx and errors of the network. A write is only sent again when it surely did not
// happen: the server said that it is too busy, or there was no connection.
func shouldRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	writes := callOf(ctx).writes
	if err != nil {
		var held *heldError
		if errors.As(err, &held) || errors.Is(err, ErrUnauthorized) || errors.Is(err, errAnswerTooLarge) {
			return false, nil
		}
		if writes {
			var op *net.OpError
			return errors.As(err, &op) && op.Op == "dial", nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, nil, err) // what is lasting: certificates, schemes, redirects in circles
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true, nil
	default:
		return resp.StatusCode >= 500 && !writes, nil
	}
}

// retryWait doubles from shortest to longest, takes a random half of it off so that readers that failed together do
// not come back together, and never comes back before the server wants to be asked again.
func retryWait(shortest, longest time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if pause, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			return pause + rand.N(shortest)
		}
	}
	wait := min(shortest<<min(attempt, 20), longest)
	return wait - rand.N(wait/2+1)
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(longestRetryAfter/time.Second))) * time.Second, true
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), longestRetryAfter), true
}

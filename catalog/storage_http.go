// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// storeTransport keeps as many connections as readers may want at once, and gives up on one that delivers nothing for the
// given time.
func storeTransport(timeout time.Duration) *http.Transport {
	t := NewTransport(nil)
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &impatientConn{Conn: conn, timeout: timeout}, nil
	}
	return t
}

// impatientConn bounds each of its reads.
type impatientConn struct {
	net.Conn
	timeout time.Duration
}

func (c *impatientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// retrying makes requests again as the client of the catalog does: on 429, 5xx and errors of the network. Bodies are left
// to the caller.
func retrying(transport http.RoundTripper, attempts int, retried func(err error)) *http.Client {
	c := &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport},
		RetryWaitMin: retryWaitMin,
		RetryWaitMax: retryWaitMax,
		RetryMax:     max(attempts-1, 0),
		Backoff:      retryWait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		CheckRetry: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			again, lasting := shouldRetry(ctx, resp, err)
			if again {
				if err == nil {
					err = errors.New(resp.Status)
				}
				retried(err)
			}
			return again, lasting
		},
	}
	return c.StandardClient()
}

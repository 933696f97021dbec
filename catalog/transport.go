// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport is a transport of its own, like net/http's, with the given TLS settings; nil are the usual ones. Programs may
// have put something else in the place of http.DefaultTransport: then that is left alone, and net/http's settings are
// taken.
func NewTransport(settings *tls.Config) *http.Transport {
	var t *http.Transport
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t = standard.Clone()
	} else {
		t = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
		}
	}
	if settings != nil {
		t.TLSClientConfig = settings
	}
	return t
}

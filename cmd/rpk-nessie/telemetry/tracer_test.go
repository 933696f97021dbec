// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// grpcCollector hands on what it is sent.
type grpcCollector struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
}

func (c *grpcCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.requests <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

// collect starts collectors of both kinds, and says where they are.
func collect(t *testing.T) (httpAddress, grpcAddress string, requests chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	requests = make(chan *collector.ExportTraceServiceRequest, 10)
	overHTTP := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		requests <- request
	}))
	t.Cleanup(overHTTP.Close)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &grpcCollector{requests: requests})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when the test stops it
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return strings.TrimPrefix(overHTTP.URL, "http://"), listener.Addr().String(), requests
}

func TestSpansReachCollectors(t *testing.T) {
	overHTTP, overGRPC, requests := collect(t)
	for name, yaml := range map[string]string{
		"http": "http: [ { address: '" + overHTTP + "' } ]",
		"grpc": "grpc: [ { address: '" + overGRPC + "' } ]",
	} {
		t.Run(name, func(t *testing.T) {
			provider, err := newTracer(parse(t, tracerSpec(), yaml+"\nservice: orders\ntags: { team: data }"))
			require.NoError(t, err)
			_, span := provider.Tracer("x").Start(t.Context(), "one")
			span.End()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, provider.Shutdown(ctx))
			spans := (<-requests).ResourceSpans[0]
			about := map[string]string{}
			for _, a := range spans.Resource.Attributes {
				about[a.Key] = a.Value.GetStringValue()
			}
			assert.Equal(t, map[string]string{"service.name": "orders", "team": "data"}, about)
			assert.Equal(t, "one", spans.ScopeSpans[0].Spans[0].Name)
		})
	}
}

func TestSampling(t *testing.T) {
	for yaml, want := range map[string]bool{
		"":                                       true,
		"sampling: { enabled: true, ratio: 0 }":  false,
		"sampling: { enabled: true, ratio: 1 }":  true,
		"sampling: { enabled: false, ratio: 0 }": true,
	} {
		provider, err := newTracer(parse(t, tracerSpec(), "http: [ { address: '127.0.0.1:1' } ]\n"+yaml))
		require.NoError(t, err)
		_, span := provider.Tracer("x").Start(t.Context(), "one")
		assert.Equal(t, want, span.SpanContext().IsSampled(), yaml)
		// Not ended, it is not sent: nobody is there.
		require.NoError(t, provider.Shutdown(t.Context()))
	}
}

func TestWrongTracerSettingsAreRefused(t *testing.T) {
	for yaml, says := range map[string]string{
		"{}": "an http or grpc collector is needed",
		"http: [ { address: a } ]\nsampling: { enabled: true }":           "sampling needs a ratio",
		"http: [ { address: a } ]\nsampling: { enabled: true, ratio: 7 }": "ratio 7 is not between 0 and 1",
	} {
		_, err := newTracer(parse(t, tracerSpec(), yaml))
		require.ErrorContains(t, err, says)
	}
}

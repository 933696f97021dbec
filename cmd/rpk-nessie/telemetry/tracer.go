// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/service"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	otFieldService  = "service"
	otFieldHTTP     = "http"
	otFieldGRPC     = "grpc"
	otFieldAddress  = "address"
	otFieldSecure   = "secure"
	otFieldTags     = "tags"
	otFieldSampling = "sampling"
	otFieldEnabled  = "enabled"
	otFieldRatio    = "ratio"
)

func init() {
	service.MustRegisterOtelTracerProvider("open_telemetry_collector", tracerSpec(), func(conf *service.ParsedConfig) (trace.TracerProvider, error) {
		return newTracer(conf)
	})
}

func tracerSpec() *service.ConfigSpec {
	collectors := func(name, what, example string) *service.ConfigField {
		return service.NewObjectListField(name,
			service.NewStringField(otFieldAddress).
				Description("Host and port of the collector.").
				Example(example),
			service.NewBoolField(otFieldSecure).
				Description("Connect with TLS.").
				Default(false),
		).Description("Collectors that are sent to over " + what + ".").Default([]any{})
	}
	return service.NewConfigSpec().
		Beta().
		Summary("Sends traces to collectors of OpenTelemetry.").
		Fields(
			service.NewStringField(otFieldService).
				Description("The name of the service in traces.").
				Default("rpk-nessie"),
			collectors(otFieldHTTP, "HTTP", "localhost:4318"),
			collectors(otFieldGRPC, "gRPC", "localhost:4317"),
			service.NewStringMapField(otFieldTags).
				Description("Attributes that all traces get.").
				Default(map[string]any{}).
				Advanced(),
			service.NewObjectField(otFieldSampling,
				service.NewBoolField(otFieldEnabled).
					Description("Send a part of the traces only.").
					Default(false),
				service.NewFloatField(otFieldRatio).
					Description("The part, from 0 to 1. What comes with a trace that is sampled already stays in it.").
					Optional().
					Example(0.05),
			).Description("Which traces are sent."),
		).
		LintRule(`root = [
  if this.http.or([]).length() + this.grpc.or([]).length() == 0 { "an http or grpc collector is needed" },
  if this.sampling.enabled.or(false) && this.sampling.ratio.or(null) == null { "sampling needs a ratio" }
]`).
		Example("A collector beside the pipeline", "A twentieth of the traces.", `
tracer:
  open_telemetry_collector:
    grpc: [ { address: "localhost:4317" } ]
    sampling: { enabled: true, ratio: 0.05 }
`)
}

func newTracer(conf *service.ParsedConfig) (*sdktrace.TracerProvider, error) {
	about, err := traceResource(conf)
	if err != nil {
		return nil, err
	}
	sampler, err := traceSampler(conf)
	if err != nil {
		return nil, err
	}
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithSampler(sampler)}
	count := 0
	for name, exporter := range map[string]func(address string, secure bool) (sdktrace.SpanExporter, error){
		otFieldHTTP: httpExporter, otFieldGRPC: grpcExporter,
	} {
		items, err := conf.FieldObjectList(name)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			address, err := item.FieldString(otFieldAddress)
			if err != nil {
				return nil, err
			}
			secure, err := item.FieldBool(otFieldSecure)
			if err != nil {
				return nil, err
			}
			to, err := exporter(address, secure)
			if err != nil {
				return nil, fmt.Errorf("collector %s over %s: %w", address, name, err)
			}
			opts = append(opts, sdktrace.WithBatcher(to))
			count++
		}
	}
	if count == 0 {
		return nil, errors.New("an http or grpc collector is needed")
	}
	return sdktrace.NewTracerProvider(opts...), nil
}

// httpExporter does no I/O.
func httpExporter(address string, secure bool) (sdktrace.SpanExporter, error) {
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpoint(address)}
	if !secure {
		opts = append(opts, otlptracehttp.WithInsecure())
	}
	return otlptracehttp.New(context.Background(), opts...)
}

// grpcExporter connects in the background.
func grpcExporter(address string, secure bool) (sdktrace.SpanExporter, error) {
	opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(address)}
	if !secure {
		opts = append(opts, otlptracegrpc.WithInsecure())
	}
	return otlptracegrpc.New(context.Background(), opts...)
}

// traceResource is what all spans say about the process. A service.name among the tags wins.
func traceResource(conf *service.ParsedConfig) (*resource.Resource, error) {
	name, err := conf.FieldString(otFieldService)
	if err != nil {
		return nil, err
	}
	tags, err := conf.FieldStringMap(otFieldTags)
	if err != nil {
		return nil, err
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", name)}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		attributes = append(attributes, attribute.String(key, tags[key]))
	}
	return resource.NewSchemaless(attributes...), nil
}

func traceSampler(conf *service.ParsedConfig) (sdktrace.Sampler, error) {
	enabled, err := conf.FieldBool(otFieldSampling, otFieldEnabled)
	if err != nil {
		return nil, err
	}
	if !enabled {
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	}
	if !conf.Contains(otFieldSampling, otFieldRatio) {
		return nil, errors.New("sampling needs a ratio")
	}
	ratio, err := conf.FieldFloat(otFieldSampling, otFieldRatio)
	if err != nil {
		return nil, err
	}
	if ratio < 0 || ratio > 1 {
		return nil, fmt.Errorf("sampling: ratio %v is not between 0 and 1", ratio)
	}
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)), nil
}

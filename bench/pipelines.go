// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/rpk-nessie/rpk-nessie"
)

// batchRows is the number of rows in a batch of every pipeline here, the default of the nessie input.
const batchRows = 4096

var measurements = []measurement{
	{"json-drop", "nessie input, json, to drop", nessieTo("json", dropOutput)},
	{"ceiling", "Benthos with ready-made messages of the same size, to drop", ceiling},
	{"record-to-json-drop", "iceberg-go and RecordToJSON in an input, to drop", recordToJSON},
	{"ndjson-drop", "nessie input, ndjson, to drop", nessieTo("ndjson", dropOutput)},
	{"arrow-drop", "nessie input, arrow, to drop", nessieTo("arrow", dropOutput)},
	{"json-file", "nessie input, json, to file", nessieTo("json", fileOutput)},
	{"ndjson-file", "nessie input, ndjson, to file", nessieTo("ndjson", fileOutput)},
	{"read-json", "scan.Plan.Read alone, json", read("json")},
	{"read-ndjson", "scan.Plan.Read alone, ndjson", read("ndjson")},
	{"decode", "iceberg-go decoding alone, Arrow batches", decodeOnly},
	{"encode", "encoding decoded batches alone, one core", encodeOnly},
}

func dropOutput(string) string { return "output: {drop: {}}\n" }

func outFile(cache string) string { return filepath.Join(cache, "out.json") }

func fileOutput(cache string) string {
	return fmt.Sprintf("output: {file: {path: %q, codec: lines}}\n", outFile(cache))
}

// nessieTo is the pipeline that a user runs.
func nessieTo(format string, output func(cache string) string) func(context.Context, tableFiles, string) (measured, error) {
	return func(ctx context.Context, t tableFiles, cache string) (measured, error) {
		server, err := t.register(ctx)
		if err != nil {
			return measured{}, err
		}
		defer os.Remove(outFile(cache))
		defer server.Close()
		config := fmt.Sprintf(`
input:
  nessie:
    base_url: %s
    namespace: ns
    table: t
    poll_interval: 0s
    format: %s
    storage: {local_root: %q}
`, server.URL, format, t.root())
		return timed(func() (measured, error) {
			return measured{Rows: t.Rows}, stream(ctx, config+output(cache), service.GlobalEnvironment())
		})
	}
}

// stream runs a pipeline to its end.
func stream(ctx context.Context, config string, env *service.Environment) error {
	b := env.NewStreamBuilder()
	if err := b.SetYAML(config + "logger: {level: error}\n"); err != nil {
		return fmt.Errorf("building the pipeline: %w", err)
	}
	s, err := b.Build()
	if err != nil {
		return fmt.Errorf("building the pipeline: %w", err)
	}
	return s.Run(ctx)
}

// streamFrom runs a pipeline from an input made here to drop. It has the retry wrapper that the nessie input has too.
func streamFrom(ctx context.Context, in service.BatchInput) error {
	env := service.GlobalEnvironment().Clone()
	err := env.RegisterBatchInput("bench", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			return service.AutoRetryNacksBatched(in), nil
		})
	if err != nil {
		return err
	}
	return stream(ctx, "input: {bench: {}}\n"+dropOutput(""), env)
}

// batchFunc is an input of the batches that a function makes.
type batchFunc func() (service.MessageBatch, error)

func (f batchFunc) Connect(context.Context) error { return nil }
func (f batchFunc) Close(context.Context) error   { return nil }

func (f batchFunc) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	batch, err := f()
	return batch, func(context.Context, error) error { return nil }, err
}

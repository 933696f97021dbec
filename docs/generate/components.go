// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// component is one component of an environment.
type component struct{ kind, name, summary string }

func (c component) id() string { return c.kind + " " + c.name }

func (c component) file() string { return strings.ReplaceAll(c.kind, " ", "_") + "_" + c.name + ".md" }

// components walks an environment, kind by kind in the order in which a pipeline has them.
func components(env *service.Environment) iter.Seq2[component, *service.ConfigView] {
	return func(yield func(component, *service.ConfigView) bool) {
		stopped := false
		for _, k := range []struct {
			kind string
			walk func(func(string, *service.ConfigView))
		}{
			{"input", env.WalkInputs},
			{"scanner", env.WalkScanners},
			{"buffer", env.WalkBuffers},
			{"processor", env.WalkProcessors},
			{"output", env.WalkOutputs},
			{"cache", env.WalkCaches},
			{"rate limit", env.WalkRateLimits},
			{"metrics exporter", env.WalkMetrics},
			{"tracer", env.WalkTracers},
		} {
			k.walk(func(name string, view *service.ConfigView) {
				stopped = stopped || !yield(component{kind: k.kind, name: name}, view)
			})
			if stopped {
				return
			}
		}
	}
}

// registerGlobally makes a schema's metrics exporters and tracers known to this process: of these two kinds Benthos walks
// the process's own, whatever the environment.
func registerGlobally(schema []byte) error {
	var kinds struct {
		Metrics []json.RawMessage `json:"metrics"`
		Tracers []json.RawMessage `json:"tracers"`
	}
	if err := json.Unmarshal(schema, &kinds); err != nil {
		return err
	}
	global := service.GlobalEnvironment()
	here := namesIn(global)
	add := func(kind string, specs []json.RawMessage, register func(string, *service.ConfigSpec) error) error {
		for _, text := range specs {
			var named struct {
				Name string `json:"name"`
			}
			spec := service.NewConfigSpec()
			if err := errors.Join(json.Unmarshal(text, &named), spec.EncodeJSON(text)); err != nil {
				return err
			}
			if here[component{kind: kind, name: named.Name}.id()] {
				continue
			}
			if err := register(named.Name, spec); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(
		add("metrics exporter", kinds.Metrics, func(name string, spec *service.ConfigSpec) error {
			return global.RegisterMetricsExporter(name, spec, nil)
		}),
		add("tracer", kinds.Tracers, func(name string, spec *service.ConfigSpec) error {
			return global.RegisterOtelTracerProvider(name, spec, nil)
		}),
	)
}

// namesIn lists what an environment holds by id.
func namesIn(env *service.Environment) map[string]bool {
	names := map[string]bool{}
	for c := range components(env) {
		names[c.id()] = true
	}
	return names
}

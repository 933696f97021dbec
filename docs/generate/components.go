// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// namesIn lists what an environment holds by id.
func namesIn(env *service.Environment) map[string]bool {
	names := map[string]bool{}
	for c := range components(env) {
		names[c.id()] = true
	}
	return names
}

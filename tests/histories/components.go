// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// parts are what the components of a life find by its number: Benthos makes them from configuration alone.
var parts sync.Map

func part(conf *service.ParsedConfig) (*Life, error) {
	id, err := conf.FieldInt("life")
	if err != nil {
		return nil, err
	}
	found, ok := parts.Load(id)
	if !ok {
		return nil, fmt.Errorf("there is no life %d", id)
	}
	return found.(*Life), nil
}

func init() {
	spec := service.NewConfigSpec().Field(service.NewIntField("life"))
	err := service.RegisterCache("histories_keeper", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		l, err := part(conf)
		if err != nil {
			return nil, err
		}
		return l.hold, nil
	})
	if err != nil {
		panic(err)
	}
	err = service.RegisterMetricsExporter("histories_pulse", spec, func(conf *service.ParsedConfig, _ *service.Logger) (service.MetricsExporter, error) {
		l, err := part(conf)
		if err != nil {
			return nil, err
		}
		return pulse{l}, nil
	})
	if err != nil {
		panic(err)
	}
}

// pulse is a metrics exporter that tells a life of its input's polls and rows.
type pulse struct{ l *Life }

type beat func(n int64)

func (b beat) Incr(n int64) { b(n) }
func (b beat) Set(int64)    {}
func (b beat) Timing(int64) {}

func (p pulse) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	at := slices.Index(labels, "result")
	return func(values ...string) service.MetricsExporterCounter {
		switch {
		case name == "nessie_polls" && values[at] == "unchanged":
			return beat(func(int64) { p.l.count(&p.l.polls, 1) })
		case name == "nessie_rows_read":
			return beat(func(n int64) { p.l.count(&p.l.under, n) })
		case name == "nessie_rows_acked":
			return beat(func(n int64) { p.l.count(&p.l.under, -n) })
		}
		return beat(func(int64) {})
	}
}

func (p pulse) NewGaugeCtor(string, ...string) service.MetricsExporterGaugeCtor {
	return func(...string) service.MetricsExporterGauge { return beat(func(int64) {}) }
}

func (p pulse) NewTimerCtor(string, ...string) service.MetricsExporterTimerCtor {
	return func(...string) service.MetricsExporterTimer { return beat(func(int64) {}) }
}

func (p pulse) Close(context.Context) error { return nil }

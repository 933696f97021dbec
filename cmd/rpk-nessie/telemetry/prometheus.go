// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/redpanda-data/benthos/v4/public/service"
)

// pushTimeout bounds one push, also that at the end.
const pushTimeout = 10 * time.Second

// exporter collects what components report. It may be used concurrently.
type exporter struct {
	registry *prometheus.Registry
	timers   timers
	file     string
	log      *service.Logger

	pusher *push.Pusher // nil: nothing is pushed
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// HandlerFunc is what the HTTP server answers with under /metrics and /stats.
func (e *exporter) HandlerFunc() http.HandlerFunc {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}).ServeHTTP
}

func (e *exporter) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	name, labels = clean(name), cleaned(labels)
	counters, err := registered(e.registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Benthos counter metric"}, labels))
	if err != nil {
		e.refuse(name, err)
		return func(...string) service.MetricsExporterCounter { return nothing{} }
	}
	return func(values ...string) service.MetricsExporterCounter {
		c, err := counters.GetMetricWithLabelValues(values...)
		if err != nil {
			e.refuse(name, err)
			return nothing{}
		}
		return counter{c}
	}
}

func (e *exporter) NewGaugeCtor(name string, labels ...string) service.MetricsExporterGaugeCtor {
	name, labels = clean(name), cleaned(labels)
	gauges, err := registered(e.registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Benthos gauge metric"}, labels))
	if err != nil {
		e.refuse(name, err)
		return func(...string) service.MetricsExporterGauge { return nothing{} }
	}
	return func(values ...string) service.MetricsExporterGauge {
		g, err := gauges.GetMetricWithLabelValues(values...)
		if err != nil {
			e.refuse(name, err)
			return nothing{}
		}
		return gauge{g}
	}
}

func (e *exporter) NewTimerCtor(name string, labels ...string) service.MetricsExporterTimerCtor {
	name, labels = clean(name), cleaned(labels)
	var vec interface {
		GetMetricWithLabelValues(...string) (prometheus.Observer, error)
	}
	var err error
	unit := 1.0
	if e.timers.histogram {
		unit = float64(time.Second)
		vec, err = registered(e.registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: "Benthos timing metric, in seconds", Buckets: e.timers.buckets,
		}, labels))
	} else {
		vec, err = registered(e.registry, prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: name, Help: "Benthos timing metric, in nanoseconds", Objectives: e.timers.objectives,
		}, labels))
	}
	if err != nil {
		e.refuse(name, err)
		return func(...string) service.MetricsExporterTimer { return nothing{} }
	}
	return func(values ...string) service.MetricsExporterTimer {
		o, err := vec.GetMetricWithLabelValues(values...)
		if err != nil {
			e.refuse(name, err)
			return nothing{}
		}
		return timer{o, unit}
	}
}

// registered is the collector, or the equal one that is registered already.
func registered[C prometheus.Collector](registry *prometheus.Registry, c C) (C, error) {
	err := registry.Register(c)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		if existing, same := already.ExistingCollector.(C); same {
			return existing, nil
		}
		return c, fmt.Errorf("it is also a metric of another kind")
	}
	return c, err
}

// refuse logs a metric that can't be shown: another one has its name, with other labels or of another kind.
func (e *exporter) refuse(name string, err error) {
	e.log.Errorf("metric %s is not exported: %v", name, err)
}

// clean replaces what Prometheus does not allow in names.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

func cleaned(names []string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = clean(name)
	}
	return names
}

func (e *exporter) startPushing(pusher *push.Pusher, interval time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	e.pusher, e.stop = pusher, stop
	if pusher == nil || interval == 0 {
		return
	}
	e.work.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := e.push(ctx); err != nil && ctx.Err() == nil {
					e.log.Errorf("%v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

func (e *exporter) push(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	if err := e.pusher.PushContext(ctx); err != nil {
		return fmt.Errorf("pushing metrics: %w", err)
	}
	return nil
}

// Close pushes and writes what is known at the end. Benthos drops what it returns, so failures are logged.
func (e *exporter) Close(ctx context.Context) error {
	e.stop()
	e.work.Wait()
	var pushing, writing error
	if e.pusher != nil {
		pushing = e.push(ctx)
	}
	if e.file != "" {
		if writing = prometheus.WriteToTextfile(e.file, e.registry); writing != nil {
			writing = fmt.Errorf("writing metrics to %s: %w", e.file, writing)
		}
	}
	err := errors.Join(pushing, writing)
	if err != nil {
		e.log.Errorf("%v", err)
	}
	return err
}

type counter struct{ prometheus.Counter }

func (c counter) Incr(count int64)          { c.Add(float64(count)) }
func (c counter) IncrFloat64(count float64) { c.Add(count) }

type gauge struct{ to prometheus.Gauge }

func (g gauge) Set(value int64)          { g.to.Set(float64(value)) }
func (g gauge) SetFloat64(value float64) { g.to.Set(value) }

type timer struct {
	to   prometheus.Observer
	unit float64 // nanoseconds in what is shown
}

func (t timer) Timing(delta int64) { t.to.Observe(float64(delta) / t.unit) }

// nothing stands for a metric that can't be shown.
type nothing struct{}

func (nothing) Incr(int64)   {}
func (nothing) Set(int64)    {}
func (nothing) Timing(int64) {}

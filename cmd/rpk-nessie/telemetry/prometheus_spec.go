// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	pmFieldHistogram    = "use_histogram_timing"
	pmFieldBuckets      = "histogram_buckets"
	pmFieldObjectives   = "summary_quantiles_objectives"
	pmFieldQuantile     = "quantile"
	pmFieldError        = "error"
	pmFieldProcess      = "add_process_metrics"
	pmFieldGo           = "add_go_metrics"
	pmFieldPushURL      = "push_url"
	pmFieldPushInterval = "push_interval"
	pmFieldPushJob      = "push_job_name"
	pmFieldPushAuth     = "push_basic_auth"
	pmFieldUsername     = "username"
	pmFieldPassword     = "password"
	pmFieldFile         = "file_output_path"
)

func init() {
	service.MustRegisterMetricsExporter("prometheus", prometheusSpec(), func(conf *service.ParsedConfig, log *service.Logger) (service.MetricsExporter, error) {
		return newExporter(conf, log)
	})
}

func prometheusSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Summary("Offers metrics to Prometheus under `/metrics` and `/stats` of the HTTP server, or pushes them to a gateway.").
		Description("Counters and gauges keep their names. Timers are summaries in nanoseconds, or with `"+pmFieldHistogram+"` histograms in seconds. Characters that Prometheus does not allow in names become `_`.").
		Fields(
			service.NewBoolField(pmFieldHistogram).
				Description("Make timers histograms, in seconds. Otherwise they are summaries, in nanoseconds.").
				Default(false).
				Advanced(),
			service.NewFloatListField(pmFieldBuckets).
				Description("The upper bounds of the histograms' buckets in seconds. Empty: Prometheus's own, from 5 ms to 10 s.").
				Default([]any{}).
				Advanced(),
			service.NewObjectListField(pmFieldObjectives,
				service.NewFloatField(pmFieldQuantile).Description("The quantile, from 0 to 1.").Default(0.0),
				service.NewFloatField(pmFieldError).Description("How far off it may be.").Default(0.0),
			).
				Description("The quantiles of summaries.").
				Default([]any{
					map[string]any{pmFieldQuantile: 0.5, pmFieldError: 0.05},
					map[string]any{pmFieldQuantile: 0.9, pmFieldError: 0.01},
					map[string]any{pmFieldQuantile: 0.99, pmFieldError: 0.001},
				}).
				Advanced(),
			service.NewBoolField(pmFieldProcess).
				Description("Add metrics of the process: processor time, memory, open files.").
				Default(false).
				Advanced(),
			service.NewBoolField(pmFieldGo).
				Description("Add metrics of the Go runtime: garbage collection, goroutines.").
				Default(false).
				Advanced(),
			service.NewURLField(pmFieldPushURL).
				Description("A push gateway. Metrics are pushed to it at the end, so that those of a short run are kept too, and every `"+pmFieldPushInterval+"`.").
				Optional().
				Advanced(),
			service.NewDurationField(pmFieldPushInterval).
				LintRule(forms.PositiveDuration).
				Description("How often metrics are pushed. Without this field it is done at the end only.").
				Optional().
				Advanced(),
			service.NewStringField(pmFieldPushJob).
				Description("The job's name at the push gateway.").
				Default("benthos_push").
				Advanced(),
			service.NewObjectField(pmFieldPushAuth,
				service.NewStringField(pmFieldUsername).Description("The user name.").Default(""),
				service.NewStringField(pmFieldPassword).Description("The password.").Default("").Secret(),
			).
				Description("Basic authentication at the push gateway.").
				Advanced(),
			service.NewStringField(pmFieldFile).
				Description("A file that all metrics are written to at the end. Empty: none.").
				Default("").
				Advanced(),
		).
		LintRule(`root = if this.push_interval.or("") != "" && this.push_url.or("") == "" { "push_interval needs a push_url" }`)
}

// newExporter starts pushing if the configuration says so.
func newExporter(conf *service.ParsedConfig, log *service.Logger) (*exporter, error) {
	e := &exporter{registry: prometheus.NewRegistry(), log: log}
	for name, add := range map[string]func() prometheus.Collector{
		pmFieldProcess: func() prometheus.Collector {
			return collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
		},
		pmFieldGo: func() prometheus.Collector { return collectors.NewGoCollector() },
	} {
		wanted, err := conf.FieldBool(name)
		if err != nil {
			return nil, err
		}
		if wanted {
			if err := e.registry.Register(add()); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	var err error
	if e.timers, err = parseTimers(conf); err != nil {
		return nil, err
	}
	if e.file, err = conf.FieldString(pmFieldFile); err != nil {
		return nil, err
	}
	pusher, interval, err := parsePush(conf, e.registry)
	if err != nil {
		return nil, err
	}
	e.startPushing(pusher, interval)
	return e, nil
}

// timers is how timers are shown.
type timers struct {
	histogram  bool
	buckets    []float64
	objectives map[float64]float64
}

func parseTimers(conf *service.ParsedConfig) (t timers, err error) {
	if t.histogram, err = conf.FieldBool(pmFieldHistogram); err != nil {
		return t, err
	}
	if t.buckets, err = conf.FieldFloatList(pmFieldBuckets); err != nil {
		return t, err
	}
	for i := 1; i < len(t.buckets); i++ {
		if t.buckets[i] <= t.buckets[i-1] {
			return t, fmt.Errorf("%s must rise: %v does not", pmFieldBuckets, t.buckets)
		}
	}
	if len(t.buckets) == 0 {
		t.buckets = prometheus.DefBuckets
	}
	items, err := conf.FieldObjectList(pmFieldObjectives)
	if err != nil {
		return t, err
	}
	t.objectives = map[float64]float64{}
	for _, item := range items {
		quantile, err := item.FieldFloat(pmFieldQuantile)
		if err != nil {
			return t, err
		}
		if quantile < 0 || quantile > 1 {
			return t, fmt.Errorf("%s: %v is no quantile", pmFieldObjectives, quantile)
		}
		if t.objectives[quantile], err = item.FieldFloat(pmFieldError); err != nil {
			return t, err
		}
	}
	return t, nil
}

// parsePush returns nil where nothing is to be pushed. The interval is 0 where it is to be done at the end only.
func parsePush(conf *service.ParsedConfig, registry *prometheus.Registry) (*push.Pusher, time.Duration, error) {
	var interval time.Duration
	var err error
	if conf.Contains(pmFieldPushInterval) {
		if interval, err = conf.FieldDuration(pmFieldPushInterval); err != nil {
			return nil, 0, err
		}
		if interval <= 0 {
			return nil, 0, fmt.Errorf("%s must be more than 0", pmFieldPushInterval)
		}
	}
	address := ""
	if conf.Contains(pmFieldPushURL) {
		if address, err = conf.FieldString(pmFieldPushURL); err != nil {
			return nil, 0, err
		}
	}
	if address == "" {
		if interval > 0 {
			return nil, 0, errors.New("push_interval needs a push_url")
		}
		return nil, 0, nil
	}
	job, err := conf.FieldString(pmFieldPushJob)
	if err != nil {
		return nil, 0, err
	}
	username, err := conf.FieldString(pmFieldPushAuth, pmFieldUsername)
	if err != nil {
		return nil, 0, err
	}
	password, err := conf.FieldString(pmFieldPushAuth, pmFieldPassword)
	if err != nil {
		return nil, 0, err
	}
	pusher := push.New(address, job).Gatherer(registry)
	if username != "" {
		pusher = pusher.BasicAuth(username, password)
	}
	return pusher, interval, nil
}

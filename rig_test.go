// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	patience = time.Minute
	glance   = 5 * time.Millisecond
)

// rig is what outlives the restarts of a pipeline: its checkpoint cache, what
// the output accepted, logs and metrics.
type rig struct {
	t       *testing.T
	env     *service.Environment
	cache   *keeper
	out     *outlet
	logs    *logBook
	numbers *numbers
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, env: service.GlobalEnvironment().Clone(),
		out: newOutlet(), logs: &logBook{}, numbers: newNumbers(),
	}
	r.cache = &keeper{values: map[string][]byte{}, out: r.out}
	empty := service.NewConfigSpec()
	require.NoError(t, r.env.RegisterCache("keeper", empty, func(*service.ParsedConfig, *service.Resources) (service.Cache, error) {
		return r.cache, nil // the one there is by then: rigs can share one
	}))
	inFlight := service.NewConfigSpec().Field(service.NewIntField("max_in_flight").Default(1))
	require.NoError(t, r.env.RegisterBatchOutput("outlet", inFlight, func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		n, err := conf.FieldInt("max_in_flight")
		return r.out, service.BatchPolicy{}, n, err
	}))
	require.NoError(t, r.env.RegisterMetricsExporter("numbers", empty, func(*service.ParsedConfig, *service.Logger) (service.MetricsExporter, error) {
		return r.numbers, nil
	}))
	return r
}

// life is one run of the pipeline.
type life struct {
	t      *testing.T
	stream *service.Stream
	mux    *http.ServeMux
	ended  chan struct{}
	err    error
	once   sync.Once

	mu       sync.Mutex
	failures []error // what the input reported as exit 3
}

// pipeline is the YAML of a pipeline with a nessie input of these fields.
func pipeline(fields []string) string {
	return "input:\n  label: orders\n  nessie:\n    " + strings.Join(fields, "\n    ") + `
output:
  outlet: {}
cache_resources:
  - label: progress
    keeper: {}
metrics:
  numbers: {}
`
}

// start runs a pipeline until it ends, or the test does.
func (r *rig) start(fields []string) *life { return r.startYAML(pipeline(fields)) }

func (r *rig) startYAML(yaml string) *life {
	r.t.Helper()
	l, err := r.tryYAML(yaml)
	require.NoError(r.t, err)
	return l
}

func (r *rig) tryYAML(yaml string) (*life, error) {
	l := &life{t: r.t, mux: http.NewServeMux(), ended: make(chan struct{})}
	b := r.env.NewStreamBuilder()
	b.SetLogger(slog.New(r.logs))
	b.SetHTTPMux(l.mux)
	if err := b.SetYAML(yaml); err != nil {
		return nil, err
	}
	var err error
	if l.stream, err = b.Build(); err != nil {
		return nil, err
	}
	l.stream.Resources().SetGeneric(FailureKey{}, func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failures = append(l.failures, err)
	})
	go func() {
		defer close(l.ended)
		l.err = l.stream.Run(context.Background())
	}()
	r.t.Cleanup(l.stop)
	return l, nil
}

// stop ends the pipeline as SIGTERM does.
func (l *life) stop() {
	l.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		select {
		case <-l.ended:
		default:
			assert.Eventually(l.t, func() bool {
				err := l.stream.Stop(ctx)
				return err == nil || err.Error() != "stream has not been run yet"
			}, patience, glance)
		}
		<-l.ended
	})
}

// kill abandons what is in flight, as far as that can be done inside a process.
func (l *life) kill() {
	l.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		assert.Error(l.t, l.stream.Stop(ctx))
		<-l.ended
	})
}

// await waits until the pipeline has ended by itself.
func (l *life) await() {
	l.t.Helper()
	select {
	case <-l.ended:
		require.NoError(l.t, l.err)
	case <-time.After(patience):
		require.Fail(l.t, "the pipeline did not end")
	}
}

func (l *life) reported() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.failures...)
}

// ready is the status and body of /ready.
func (l *life) ready() (int, string) {
	w := httptest.NewRecorder()
	l.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
	return w.Code, w.Body.String()
}

// run runs a bounded pipeline to its end.
func (r *rig) run(fields []string) *life {
	r.t.Helper()
	l := r.start(append(append([]string(nil), fields...), "poll_interval: 0s"))
	l.await()
	return l
}

// eventually waits for a condition that only others can bring about.
func (r *rig) eventually(condition func() bool, what string, args ...any) {
	r.t.Helper()
	if !assert.Eventually(r.t, condition, patience, glance, append([]any{what}, args...)...) {
		r.t.Logf("output: %v\nlogs:\n%s", r.out.bodies(), strings.Join(slices.Concat(r.logs.at(slog.LevelInfo), r.logs.at(slog.LevelWarn), r.logs.at(slog.LevelError)), "\n"))
		r.t.FailNow()
	}
}

// delivered waits until the output accepted n rows.
func (r *rig) delivered(n int) {
	r.t.Helper()
	r.eventually(func() bool { return r.out.count() >= n }, "%d rows", n)
}

// logBook keeps what was logged.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logBook) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *logBook) WithGroup(string) slog.Handler            { return b }

func (b *logBook) Handle(_ context.Context, rec slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf("%s %s", rec.Level, strings.TrimSpace(rec.Message)))
	return nil
}

// at lists the lines of a level.
func (b *logBook) at(level slog.Level) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for _, line := range b.lines {
		if text, ok := strings.CutPrefix(line, level.String()+" "); ok {
			found = append(found, text)
		}
	}
	return found
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

func (b *logBook) has(text string) bool { return strings.Contains(b.String(), text) }

func replaceOnce(text, before, after string) string { return strings.Replace(text, before, after, 1) }

// onlyOurs leaves out what the retry wrapper and outputs log of refusals.
func onlyOurs(lines []string) []string {
	var ours []string
	for _, line := range lines {
		if !strings.Contains(line, errRefused.Error()) {
			ours = append(ours, line)
		}
	}
	return ours
}

// withoutOwner is a stored checkpoint without who wrote it.
func withoutOwner(t *testing.T, stored []byte) string {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(stored, &fields))
	delete(fields, "owner")
	delete(fields, "checksum")
	rest, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(rest)
}

// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

type (
	corpusRow    = json.RawMessage
	corpusCommit = corpus.Commit
)

const patience = time.Minute

// fields are those of the nessie input that a test sets.
type fields map[string]any

// rig is a pipeline in this process, run by run: what outlives a run is the checkpoint.
type rig struct {
	t      *testing.T
	s      *site
	env    *service.Environment
	branch string
	key    []string
	common fields

	mu    sync.Mutex
	value []byte // of the cache
	rows  []received
}

type received struct {
	body []byte
	meta map[string]any
}

func (r received) snapshot(t *testing.T) int64 {
	t.Helper()
	id, err := strconv.ParseInt(fmt.Sprint(r.meta["snapshot_id"]), 10, 64)
	require.NoError(t, err)
	return id
}

// outcome is what one run did.
type outcome struct {
	rows     []received
	failures []error // what makes the binary exit with 3
	warnings []string
}

// rig follows a table on a reference. The fields hold for every run.
func (s *site) rig(t *testing.T, branch string, key []string, common fields) *rig {
	t.Helper()
	r := &rig{t: t, s: s, env: service.GlobalEnvironment().Clone(), branch: branch, key: key, common: common}
	empty := service.NewConfigSpec()
	require.NoError(t, r.env.RegisterCache("follow", empty, func(*service.ParsedConfig, *service.Resources) (service.Cache, error) {
		return (*keeper)(r), nil
	}))
	require.NoError(t, r.env.RegisterBatchOutput("follow", empty, func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		return (*outlet)(r), service.BatchPolicy{}, 1, nil
	}))
	return r
}

// input is the configuration of the nessie input.
func (s *site) input(branch string, key []string, more ...fields) fields {
	in := fields{
		"base_url": s.URL, "branch": branch, "namespace": strings.Join(key[:len(key)-1], "."), "table": key[len(key)-1],
		"poll_interval": "0s", "incremental_by_snapshot": true, "checkpoint_cache": "place", "checkpoint_cache_key": "place",
		"storage": fields{"aws_s3": fields{
			"endpoint": s.S3.Endpoint, "region": "us-east-1", "force_path_style_urls": true,
			"credentials": fields{"id": "key", "secret": "secret"},
		}},
	}
	for _, m := range more {
		maps.Copy(in, m)
	}
	return in
}

// run runs the pipeline until it has read all that is there, or fails.
func (r *rig) run(more ...fields) outcome {
	r.t.Helper()
	yaml, err := json.Marshal(fields{
		"input":           fields{"nessie": r.s.input(r.branch, r.key, append([]fields{r.common}, more...)...)},
		"output":          fields{"follow": fields{}},
		"cache_resources": []fields{{"label": "place", "follow": fields{}}},
		"metrics":         fields{"none": fields{}},
	})
	require.NoError(r.t, err)
	b := r.env.NewStreamBuilder()
	logs := &logBook{}
	b.SetLogger(slog.New(logs))
	b.SetHTTPMux(http.NewServeMux())
	require.NoError(r.t, b.SetYAML(string(yaml)))
	stream, err := b.Build()
	require.NoError(r.t, err)
	var out outcome
	var mu sync.Mutex
	stream.Resources().SetGeneric(nessie.FailureKey{}, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		out.failures = append(out.failures, err)
	})
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	require.NoError(r.t, stream.Run(ctx))
	mu.Lock()
	defer mu.Unlock()
	out.warnings, out.rows = logs.warnings(), r.take()
	require.Equal(r.t, len(out.failures), logs.errors(), "each failure is one ERROR line")
	return out
}

// deliver is run without any failure.
func (r *rig) deliver(more ...fields) []received {
	r.t.Helper()
	out := r.run(more...)
	require.Empty(r.t, out.failures, "%s at %s", r.key, r.branch)
	return out.rows
}

// refuse is run with a failure that says all of these.
func (r *rig) refuse(says []string, more ...fields) outcome {
	r.t.Helper()
	before := r.place()
	out := r.run(more...)
	require.Len(r.t, out.failures, 1, "%s at %s", r.key, r.branch)
	for _, text := range says {
		require.ErrorContains(r.t, out.failures[0], text)
	}
	if len(out.rows) == 0 && before.Last != nil {
		require.Equal(r.t, before.Last, r.place().Last, "the place is kept")
	}
	return out
}

func (r *rig) take() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := r.rows
	r.rows = nil
	return rows
}

// stored is what tests look at in a checkpoint.
type stored struct {
	Last     *string `json:"lastAckedSnapshotID"`
	Position *struct {
		Row int64 `json:"row"`
		To  struct {
			SnapshotID string `json:"snapshotID"`
		} `json:"to"`
	} `json:"position"`
}

func (r *rig) place() stored {
	r.mu.Lock()
	defer r.mu.Unlock()
	return parsePlace(r.t, r.value)
}

func parsePlace(t *testing.T, value []byte) stored {
	t.Helper()
	var p stored
	if len(value) > 0 {
		require.NoError(t, json.Unmarshal(value, &p))
	}
	return p
}

// requireAt asserts that the checkpoint stands behind a whole snapshot.
func (r *rig) requireAt(snapshot int64) {
	r.t.Helper()
	p := r.place()
	require.NotNil(r.t, p.Last)
	want := strconv.FormatInt(snapshot, 10)
	if snapshot < 0 {
		want = ""
	}
	require.Equal(r.t, want, *p.Last)
	require.Nil(r.t, p.Position)
}

func (r *rig) checkpoint() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.value)
}

func (r *rig) restore(value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value = slices.Clone(value)
}

type outlet rig

func (o *outlet) Connect(context.Context) error { return nil }
func (o *outlet) Close(context.Context) error   { return nil }

func (o *outlet) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range batch {
		body, err := m.AsBytes()
		if err != nil {
			return err
		}
		row := received{body: slices.Clone(body), meta: map[string]any{}}
		if err := m.MetaWalkMut(func(key string, value any) error {
			row.meta[key] = value
			return nil
		}); err != nil {
			return err
		}
		o.rows = append(o.rows, row)
	}
	return nil
}

type keeper rig

func (k *keeper) Get(context.Context, string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value == nil {
		return nil, service.ErrKeyNotFound
	}
	return slices.Clone(k.value), nil
}

func (k *keeper) Set(_ context.Context, _ string, value []byte, _ *time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value = slices.Clone(value)
	return nil
}

func (k *keeper) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("nobody adds")
}
func (k *keeper) Delete(context.Context, string) error { return errors.New("nobody deletes") }
func (k *keeper) Close(context.Context) error          { return nil }

// logBook keeps warnings and counts errors.
type logBook struct {
	mu     sync.Mutex
	warned []string
	failed int
}

func (b *logBook) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (b *logBook) WithAttrs([]slog.Attr) slog.Handler           { return b }
func (b *logBook) WithGroup(string) slog.Handler                { return b }

func (b *logBook) Handle(_ context.Context, rec slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rec.Level >= slog.LevelError {
		b.failed++
	} else {
		b.warned = append(b.warned, strings.TrimSpace(rec.Message))
	}
	return nil
}

func (b *logBook) warnings() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.warned)
}

func (b *logBook) errors() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// SPDX-License-Identifier: Apache-2.0

// Package nessie provides the `nessie` input for Benthos and Redpanda Connect,
// which follows an Apache Iceberg table on a branch of Project Nessie snapshot
// by snapshot, and the `nessie_durable_file` cache. Importing the package
// registers both and nothing else.
package nessie

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func init() {
	registerLintMethod()
	service.MustRegisterBatchInput("nessie", inputSpec(), newInputFromConfig)
}

// FailureKey is the key of a func(error) among the generic resources. Where a
// program has put one, an input that was to read what is there and end reports
// through it that it ended early, so that the program can exit with a code of
// its own. It may be called several times and from several goroutines.
type FailureKey struct{}

const maxReconnectWait = time.Minute

// input is the glue between a follower, which reads, and Benthos, which asks
// for batches and acknowledges them.
type input struct {
	conf    *Config
	res     *service.Resources
	log     *service.Logger
	metrics *metrics
	client  *catalog.Client
	storage *catalog.Storage
	// transport is the client's where TLS is configured, nil otherwise.
	transport *http.Transport

	follower *follower
	progress *progress
	release  func() // gives the checkpoint key back

	// Only Connect, ReadBatch and Close touch the rest, of which Benthos runs
	// Close beside the others.
	mu      sync.Mutex
	run     *followerRun
	waiting time.Duration
	closed  bool

	bounded  *bounded      // nil unless the input ends by itself
	stopping chan struct{} // closed by Close
	announce sync.Once     // of the end of a bounded run
}

// followerRun is one life of the follower, between two errors.
type followerRun struct {
	cancel context.CancelFunc
	done   chan struct{} // closed after err is set
	err    error
}

func newInputFromConfig(parsed *service.ParsedConfig, res *service.Resources) (service.BatchInput, error) {
	conf, err := parseConfig(parsed)
	if err != nil {
		return nil, err
	}
	in, err := newInput(conf, res)
	if err != nil {
		return nil, err
	}
	again, err := parsed.FieldBool(service.AutoRetryNacksToggleFieldName)
	if err != nil {
		in.release()
		return nil, err
	}
	if !again {
		in.progress.dropNacked = true
		return in, nil
	}
	return newReplaying(in), nil
}

func newInput(conf *Config, res *service.Resources) (*input, error) {
	if conf.RateLimit != "" && !res.HasRateLimit(conf.RateLimit) {
		return nil, fmt.Errorf("field %s: there is no rate limit resource %q", niFieldRateLimit, conf.RateLimit)
	}
	if err := tryBatching(conf, res); err != nil {
		return nil, err
	}
	in := &input{
		conf: conf, res: res, log: res.Logger(),
		metrics:  newMetrics(res.Metrics(), conf.Key.String()),
		stopping: make(chan struct{}),
	}
	if conf.Bounded() {
		in.bounded = &bounded{res: res}
	}
	if conf.TLS != nil {
		in.transport = catalog.NewTransport(conf.TLS)
	}
	var err error
	if in.client, err = newClient(conf, res, in.metrics, in.transport); err != nil {
		return nil, err
	}
	storage := conf.Storage
	storage.OnRetry = newRetryLog(in.log).retried
	storage.OnBytes = func(n int64) { in.metrics.bytesRead.Incr(n, in.metrics.table) }
	if in.storage, err = catalog.NewStorage(storage); err != nil {
		return nil, err
	}
	in.progress, in.release, err = newProgress(conf, res, in.metrics)
	if err != nil {
		return nil, err
	}
	in.follower = &follower{
		conf: conf, client: in.client, storage: in.storage, log: in.log, metrics: in.metrics, res: res,
		out:        make(chan item, 2),
		storeStart: in.progress.storeStart,
		settled:    in.progress.settled,
		lag:        in.progress.headIs,
	}
	if !conf.Incremental && !conf.Bounded() {
		in.log.Warnf("%s is false: the whole table is delivered again at each poll", niFieldIncremental)
	}
	if in.bounded != nil {
		in.bounded.begin()
	}
	return in, nil
}

func newClient(conf *Config, res *service.Resources, m *metrics, transport *http.Transport) (*catalog.Client, error) {
	c := catalog.ClientConfig{
		BaseURL: conf.BaseURL, Headers: conf.Headers, Timeout: conf.RequestTimeout, MaxRetries: conf.MaxRetries,
		OnAttempt: m.request,
	}
	if transport != nil {
		c.Transport = transport
	}
	if conf.OAuth2 != nil {
		tokens, err := catalog.NewTokens(*conf.OAuth2)
		if err != nil {
			return nil, fmt.Errorf("field %s.%s.%w", niFieldAuth, niFieldAuthOAuth2, err)
		}
		c.Token, c.TokenRefused = tokens.Token, tokens.Forget
	}
	if conf.Bearer != "" {
		c.Token = func(context.Context) (string, error) { return conf.Bearer, nil }
	}
	if conf.RateLimit != "" {
		c.BeforeAttempt = func(ctx context.Context) error { return awaitRateLimit(ctx, res, conf.RateLimit) }
	}
	return catalog.NewClient(c)
}

func awaitRateLimit(ctx context.Context, res *service.Resources, name string) error {
	for {
		var (
			pause time.Duration
			err   error
		)
		if accessErr := res.AccessRateLimit(ctx, name, func(r service.RateLimit) { pause, err = r.Access(ctx) }); accessErr != nil {
			err = accessErr
		}
		if err != nil {
			return fmt.Errorf("asking rate limit %q: %w", name, err)
		}
		if pause <= 0 {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// Connect tries what reading stopped at: it returns nil once the follower has
// something to hand out or has found nothing new.
func (in *input) Connect(ctx context.Context) error {
	err := in.connect(ctx)
	if err == nil {
		in.waiting = 0
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, service.ErrEndOfInput) {
		return err
	}
	if in.conf.Bounded() {
		in.fail(err)
		return service.ErrEndOfInput
	}
	in.waiting = min(max(2*in.waiting, in.conf.PollInterval, time.Second), maxReconnectWait)
	return service.NewErrBackOff(err, in.waiting)
}

func (in *input) connect(ctx context.Context) error {
	if err := in.progress.taken(); err != nil {
		return err
	}
	if !in.progress.loaded {
		at, err := in.load(ctx)
		if err != nil {
			return err
		}
		in.follower.place = at
	}
	run, moved := in.startFollower()
	if run == nil {
		return service.ErrEndOfInput
	}
	select {
	case <-moved:
		return nil
	case <-run.done:
		select {
		case <-moved:
			return nil // what was sent comes before the error
		default:
			return run.err // nil: bounded, and nothing to read
		}
	case <-ctx.Done():
		run.cancel()
		return ctx.Err()
	}
}

// load reads the checkpoint, once in the life of the input.
func (in *input) load(ctx context.Context) (place, error) {
	if !in.conf.Incremental {
		in.progress.loaded = true
		return place{}, nil
	}
	head, err := in.client.Head(ctx, in.conf.Ref, in.conf.Key)
	if err != nil {
		return place{}, err
	}
	return in.progress.load(ctx, head)
}

// startFollower begins a new life of the follower. The channel is closed with
// its first progress. It returns nil after Close.
func (in *input) startFollower() (*followerRun, <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &followerRun{cancel: cancel, done: make(chan struct{})}
	moved := make(chan struct{})
	var once sync.Once
	in.run = run
	go func() {
		defer close(run.done)
		run.err = in.follower.run(ctx, func() { once.Do(func() { close(moved) }) })
	}()
	return run, moved
}

// ReadBatch blocks until there is a batch, the end, or a cancelled context. It
// never returns an empty batch.
func (in *input) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	it, ack, err := in.read(ctx)
	return it.batch, ack, err
}

// read is ReadBatch with the whole item.
func (in *input) read(ctx context.Context) (item, service.AckFunc, error) {
	in.mu.Lock()
	run := in.run
	in.mu.Unlock()
	if run == nil {
		return item{}, nil, service.ErrNotConnected
	}
	if in.bounded != nil {
		in.bounded.begin()
	}
	for {
		it, err := in.next(ctx, run)
		if err != nil {
			return item{}, nil, err
		}
		if it.tracked != nil {
			close(it.tracked)
			continue
		}
		ack, err := in.progress.track(ctx, it)
		if err != nil {
			return item{}, nil, err
		}
		if len(it.batch) == 0 {
			if err := ack(ctx, nil); err != nil {
				return item{}, nil, err
			}
			continue
		}
		return it, ack, nil
	}
}

// next takes the next item. What was sent before the follower ended comes
// before its end.
func (in *input) next(ctx context.Context, run *followerRun) (item, error) {
	select {
	case it := <-in.follower.out:
		return it, nil
	default:
	}
	select {
	case it := <-in.follower.out:
		return it, nil
	case <-in.progress.lost():
		run.cancel()
		return item{}, in.stopped(ctx, in.progress.taken())
	case <-run.done:
		select {
		case it := <-in.follower.out:
			return it, nil
		default:
			return item{}, in.stopped(ctx, run.err)
		}
	case <-ctx.Done():
		return item{}, ctx.Err()
	}
}

// stopped turns the follower's end into what Benthos is told. While Connect
// fails, Benthos asks for no retries of refused batches, so all that was
// delivered must be acknowledged first.
func (in *input) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case err == nil:
		if in.bounded != nil {
			in.bounded.atEnd.Store(true)
		}
		in.announce.Do(in.reportWaiting)
		return service.ErrEndOfInput
	case in.conf.Bounded():
		in.fail(err)
		in.announce.Do(in.reportWaiting)
	default:
		in.log.Warnf("Reading stopped and keeps its place: %v", err)
	}
	if err := in.progress.settled(ctx); err != nil {
		return err
	}
	if in.conf.Bounded() {
		return service.ErrEndOfInput
	}
	return service.ErrNotConnected
}

// ends tells whether this input comes to an end by itself.
func (in *input) ends() bool { return in.conf.Bounded() || in.conf.Lineage.EndSnapshotID != nil }

const waitingReportPeriod = 10 * time.Second

// reportWaiting logs from time to time what the end of a bounded run still
// waits for, such as a batching policy without a period.
func (in *input) reportWaiting() {
	go func() {
		t := time.NewTicker(waitingReportPeriod)
		defer t.Stop()
		for {
			select {
			case <-in.stopping:
				return
			case <-t.C:
				if rows := in.progress.inFlight(); rows > 0 {
					in.log.Infof("All is read; waiting for the output to acknowledge %d rows. A batching policy needs a period to let the last ones go", rows)
				}
			}
		}
	}()
}

// fail reports an error that ends a bounded run early.
func (in *input) fail(err error) {
	in.log.Errorf("Ending early: %v", err)
	in.report(err)
}

// report tells the program of an error, where it wants to know.
func (in *input) report(err error) {
	if report, ok := in.res.GetGeneric(FailureKey{}); ok {
		if report, ok := report.(func(error)); ok {
			report(err)
		}
	}
}

// Close stops reading and writes the checkpoint a last time. It has a bound of
// its own, since Benthos gives none.
func (in *input) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, in.conf.WriteTimeout)
	defer cancel()
	in.mu.Lock()
	run := in.run
	first := !in.closed
	in.closed = true
	in.mu.Unlock()
	if !first {
		return nil
	}
	close(in.stopping)
	defer in.release()
	if run != nil {
		run.cancel()
		select {
		case <-run.done:
		case <-ctx.Done():
		}
	}
	if dropped := in.progress.droppedRows(); dropped > 0 && in.ends() {
		in.fail(fmt.Errorf("%d rows were dropped, because the output refused them and auto_replay_nacks is false", dropped))
	}
	if in.bounded != nil {
		in.bounded.close(in.progress.inFlight())
	}
	in.client.Close()
	if in.transport != nil {
		in.transport.CloseIdleConnections()
	}
	unstored := in.progress.close(ctx)
	if unstored != nil {
		in.log.Errorf("What was acknowledged since the last checkpoint that is stored comes again: %v", unstored)
		if in.ends() {
			in.report(unstored)
		}
	}
	return errors.Join(unstored, in.storage.Close())
}

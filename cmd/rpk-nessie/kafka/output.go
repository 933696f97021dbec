// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func init() {
	service.MustRegisterBatchOutput("kafka_franz", outputSpec(), func(conf *service.ParsedConfig, res *service.Resources) (
		out service.BatchOutput, policy service.BatchPolicy, maxInFlight int, err error,
	) {
		if maxInFlight, err = conf.FieldInt(kfoFieldMaxInFlight); err != nil {
			return nil, policy, 0, err
		}
		if policy, err = conf.FieldBatchPolicy(kfoFieldBatching); err != nil {
			return nil, policy, 0, err
		}
		out, err = newWriter(conf, res.Logger())
		return out, policy, maxInFlight, err
	})
}

// writer is the output. WriteBatch may be called concurrently, also beside Connect and Close.
type writer struct {
	opts    []kgo.Opt
	records recordMaker

	mu     sync.Mutex
	client *kgo.Client // nil while not connected
}

func newWriter(conf *service.ParsedConfig, log *service.Logger) (*writer, error) {
	opts, err := connectionOptions(conf, log)
	if err != nil {
		return nil, err
	}
	producer, err := producerOptions(conf)
	if err != nil {
		return nil, err
	}
	// What the client holds back is bounded by the batches in flight, which the pipeline bounds: a limit here too would
	// only make one batch wait in the middle of another.
	opts = append(opts, append(producer, kgo.MaxBufferedRecords(1<<30), kgo.ProducerLinger(0))...)
	w := &writer{}
	if w.opts, err = validated(opts); err != nil {
		return nil, err
	}
	return w, w.records.configure(conf)
}

func (w *writer) Connect(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client != nil {
		return nil
	}
	client, err := connect(ctx, w.opts)
	if err != nil {
		return err
	}
	w.client = client
	return nil
}

func (w *writer) connected() *kgo.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.client
}

// WriteBatch returns when each record is stored or refused. If ctx ends before, it returns at once: what is on its way
// may still be stored.
func (w *writer) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	client := w.connected()
	if client == nil {
		return service.ErrNotConnected
	}
	records, err := w.records.of(batch)
	if err != nil {
		return err
	}
	results := make([]error, len(records))
	var open sync.WaitGroup
	open.Add(len(records))
	for i, record := range records {
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			results[i] = err
			open.Done()
		})
	}
	all := make(chan struct{})
	go func() {
		open.Wait()
		close(all)
	}()
	select {
	case <-all:
		return refusals(batch, records, results)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusals is nil if all records were stored, and else says which were not, and why.
func refusals(batch service.MessageBatch, records []*kgo.Record, results []error) error {
	var failed *service.BatchError
	for i, err := range results {
		switch {
		case err == nil:
			continue
		case errors.Is(err, kgo.ErrClientClosed):
			return service.ErrNotConnected
		}
		err = explain(records[i], err)
		if failed == nil {
			failed = service.NewBatchError(batch, err)
		}
		_ = failed.Failed(i, err)
	}
	if failed == nil {
		return nil
	}
	return failed
}

// explain adds to a refusal what was refused and what can be done.
func explain(record *kgo.Record, err error) error {
	advice := ""
	switch {
	case errors.Is(err, kerr.MessageTooLarge):
		advice = fmt.Sprintf(": raise %s and the topic's max.message.bytes", kfoFieldMaxMessageBytes)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		advice = ": create the topic, or let the brokers create topics (auto.create.topics.enable)"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		advice = ": the user in sasl needs the permission to write"
	}
	return fmt.Errorf("writing a record of %d bytes to topic %q: %w%s", len(record.Key)+len(record.Value), record.Topic, err, advice)
}

func (w *writer) Close(context.Context) error {
	w.mu.Lock()
	client := w.client
	w.client = nil
	w.mu.Unlock()
	if client != nil {
		client.Close()
	}
	return nil
}

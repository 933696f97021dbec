// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

func init() {
	service.MustRegisterBatchInput("kafka_franz", inputSpec(), func(conf *service.ParsedConfig, res *service.Resources) (service.BatchInput, error) {
		r, err := newReader(conf, res)
		if err != nil {
			return nil, err
		}
		return service.AutoRetryNacksBatchedToggled(conf, r)
	})
}

// lastCommitTimeout bounds the commit of a partition that is given away, and that at the end.
const lastCommitTimeout = 10 * time.Second

// reader is the input: a consumption from Connect to Close, and the settings to begin it.
type reader struct {
	opts   []kgo.Opt
	group  bool
	policy service.BatchPolicy
	limit  int
	multi  bool
	res    *service.Resources

	mu      sync.Mutex
	current *consumption // nil while not connected
}

func newReader(conf *service.ParsedConfig, res *service.Resources) (*reader, error) {
	r := &reader{res: res}
	var err error
	if r.opts, err = connectionOptions(conf, res.Logger()); err != nil {
		return nil, err
	}
	consumer, err := consumerOptions(conf)
	if err != nil {
		return nil, err
	}
	subscribed, err := r.subscribe(conf)
	if err != nil {
		return nil, err
	}
	if r.opts, err = validated(append(r.opts, append(consumer, subscribed...)...)); err != nil {
		return nil, err
	}
	if r.multi, err = conf.FieldBool(kfiFieldMultiHeader); err != nil {
		return nil, err
	}
	if r.limit, err = conf.FieldInt(kfiFieldCheckpointLimit); err != nil {
		return nil, err
	}
	if r.limit < 1 {
		return nil, fmt.Errorf("%s must be at least 1", kfiFieldCheckpointLimit)
	}
	if r.policy, err = conf.FieldBatchPolicy(kfiFieldBatching); err != nil {
		return nil, err
	}
	if r.policy.IsNoop() {
		r.policy.Count = 1
	}
	return r, nil
}

// subscribe are the options that say which topics are consumed, and in which group.
func (r *reader) subscribe(conf *service.ParsedConfig) ([]kgo.Opt, error) {
	s, err := subscriptionOf(conf)
	if err != nil {
		return nil, err
	}
	opts := s.options()
	group := ""
	if conf.Contains(kfiFieldConsumerGroup) {
		if group, err = conf.FieldString(kfiFieldConsumerGroup); err != nil {
			return nil, err
		}
	}
	if group == "" {
		return opts, nil
	}
	if len(s.partitions) > 0 {
		return nil, errors.New("topics with partitions can't be consumed in a consumer_group: leave out the partitions or the group")
	}
	r.group = true
	member, err := groupOptions(conf, group)
	return append(opts, member...), err
}

func (r *reader) Connect(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		return nil
	}
	c := newConsumption(r)
	opts := r.opts
	if r.group {
		opts = append(slices.Clip(opts), kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost))
	}
	client, err := connect(ctx, opts)
	if err != nil {
		return err
	}
	c.begin(client)
	r.current = c
	return nil
}

// ReadBatch returns the next batch of any partition.
func (r *reader) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	r.mu.Lock()
	c := r.current
	r.mu.Unlock()
	if c == nil {
		return nil, nil, service.ErrNotConnected
	}
	select {
	case d := <-c.deliveries:
		return d.batch, d.ack, nil
	case <-c.ctx.Done():
		return nil, nil, service.ErrNotConnected
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Close commits what is acknowledged and leaves the group.
func (r *reader) Close(ctx context.Context) error {
	r.mu.Lock()
	c := r.current
	r.current = nil
	r.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.end(ctx)
}

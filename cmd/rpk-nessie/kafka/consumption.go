// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

// delivery is a batch of one partition and what to do when it is acknowledged.
type delivery struct {
	batch service.MessageBatch
	ack   service.AckFunc
}

type topicPartition struct {
	topic     string
	partition int32
}

// consumption is a client that consumes, and a lane for each partition that records came from. One goroutine polls and
// never waits for a lane: a full lane's partition is paused instead.
type consumption struct {
	reader     *reader
	client     *kgo.Client
	log        *service.Logger
	deliveries chan delivery

	ctx    context.Context // until end
	cancel context.CancelFunc
	work   sync.WaitGroup // the poll and all lanes

	mu    sync.Mutex
	lanes map[topicPartition]*lane
}

func newConsumption(r *reader) *consumption {
	c := &consumption{reader: r, log: r.res.Logger(), deliveries: make(chan delivery), lanes: map[topicPartition]*lane{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *consumption) begin(client *kgo.Client) {
	c.client = client
	c.work.Go(c.poll)
}

func (c *consumption) poll() {
	for {
		fetches := c.client.PollFetches(c.ctx)
		if c.ctx.Err() != nil || fetches.IsClientClosed() {
			c.client.AllowRebalance()
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if !errors.Is(err, context.Canceled) {
				c.log.Errorf("consuming topic %q, partition %d: %v", topic, partition, err)
			}
		})
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			if err := c.take(p); err != nil {
				c.log.Errorf("consuming topic %q, partition %d: %v", p.Topic, p.Partition, err)
			}
		})
		c.client.AllowRebalance()
	}
}

// take hands records to their partition's lane.
func (c *consumption) take(p kgo.FetchTopicPartition) error {
	key := topicPartition{p.Topic, p.Partition}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[key]
	if l == nil {
		batcher, err := c.reader.policy.NewBatcher(c.reader.res)
		if err != nil {
			return fmt.Errorf("making a batcher: %w", err)
		}
		l = newLane(c, key, batcher)
		c.lanes[key] = l
		c.work.Go(l.run)
	}
	l.add(p.Records, p.HighWatermark)
	return nil
}

// pause and resume stop and continue the fetching of a lane's partition.
func (c *consumption) pause(key topicPartition) {
	c.client.PauseFetchPartitions(map[string][]int32{key.topic: {key.partition}})
}

func (c *consumption) resume(key topicPartition) {
	c.client.ResumeFetchPartitions(map[string][]int32{key.topic: {key.partition}})
}

// revoked commits what is acknowledged of partitions that another member gets, and forgets the rest.
func (c *consumption) revoked(ctx context.Context, client *kgo.Client, gone map[string][]int32) {
	c.drop(client, gone)
	ctx, cancel := context.WithTimeout(ctx, lastCommitTimeout)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		c.log.Warnf("committing offsets of partitions that are given away: %v: records may come twice", err)
	}
}

// lost forgets partitions that another member has already.
func (c *consumption) lost(_ context.Context, client *kgo.Client, gone map[string][]int32) {
	c.drop(client, gone)
}

func (c *consumption) drop(client *kgo.Client, gone map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, partitions := range gone {
		for _, p := range partitions {
			if l := c.lanes[topicPartition{topic, p}]; l != nil {
				l.cancel()
				delete(c.lanes, l.key)
			}
		}
	}
	client.ResumeFetchPartitions(gone)
}

// end stops all lanes, commits what is acknowledged and leaves the group.
func (c *consumption) end(ctx context.Context) error {
	c.cancel()
	c.work.Wait()
	var err error
	if c.reader.group {
		ctx, cancel := context.WithTimeout(ctx, lastCommitTimeout)
		defer cancel()
		if err = c.client.CommitMarkedOffsets(ctx); err != nil {
			err = fmt.Errorf("committing the last offsets: %w", err)
		}
	}
	c.client.CloseAllowingRebalance()
	return err
}

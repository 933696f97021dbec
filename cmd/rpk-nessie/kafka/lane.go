// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/Jeffail/checkpoint"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lane takes the records of one partition to the pipeline: in order, batched, at most the reader's limit unacknowledged.
type lane struct {
	c       *consumption
	key     topicPartition
	batcher *service.Batcher
	tracker *checkpoint.Capped[*kgo.Record] // its highest is the last record before which all are acknowledged
	ctx     context.Context                 // until the partition is given away
	cancel  context.CancelFunc

	arrived chan struct{} // has room for one signal that the queue is not empty

	mu     sync.Mutex
	queue  []fetched
	paused bool
}

// fetched is a record and how many were behind it in the partition.
type fetched struct {
	record *kgo.Record
	lag    int64
}

func newLane(c *consumption, key topicPartition, batcher *service.Batcher) *lane {
	l := &lane{
		c: c, key: key, batcher: batcher, arrived: make(chan struct{}, 1),
		tracker: checkpoint.NewCapped[*kgo.Record](int64(c.reader.limit)),
	}
	l.ctx, l.cancel = context.WithCancel(c.ctx)
	return l
}

// add never waits. Where more waits than may be in flight the partition is paused.
func (l *lane) add(records []*kgo.Record, highWatermark int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.queue = append(l.queue, fetched{r, max(0, highWatermark-r.Offset-1)})
	}
	if !l.paused && len(l.queue) > l.c.reader.limit {
		l.paused = true
		l.c.pause(l.key)
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// next takes the oldest waiting record.
func (l *lane) next() (fetched, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return fetched{}, false
	}
	f := l.queue[0]
	l.queue[0] = fetched{} // its memory is the pipeline's now
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	if l.paused && len(l.queue) <= l.c.reader.limit/2 && l.ctx.Err() == nil {
		l.paused = false
		l.c.resume(l.key)
	}
	return f, true
}

func (l *lane) run() {
	defer l.cancel()
	defer func() {
		if err := l.batcher.Close(context.WithoutCancel(l.ctx)); err != nil {
			l.c.log.Errorf("closing the batcher of topic %q, partition %d: %v", l.key.topic, l.key.partition, err)
		}
	}()
	var open pending
	for {
		due, stop := l.due()
		select {
		case <-l.arrived:
			stop()
			for f, ok := l.next(); ok; f, ok = l.next() {
				if open.add(f.record); l.batcher.Add(messageOf(f.record, f.lag, l.c.reader.multi)) && !l.flush(&open) {
					return
				}
			}
		case <-due:
			if !l.flush(&open) {
				return
			}
		case <-l.ctx.Done():
			stop()
			return
		}
	}
}

// due fires when the batching policy's period ends.
func (l *lane) due() (<-chan time.Time, func()) {
	wait, ok := l.batcher.UntilNext()
	if !ok {
		return nil, func() {}
	}
	timer := time.NewTimer(wait)
	return timer.C, func() { timer.Stop() }
}

// pending are the records in the batcher.
type pending struct {
	last  *kgo.Record
	count int64
}

func (p *pending) add(r *kgo.Record) {
	p.last = r
	p.count++
}

// flush hands over what is in the batcher. It is false if the lane ends.
func (l *lane) flush(open *pending) bool {
	batch, err := l.batcher.Flush(l.ctx)
	if err != nil || l.ctx.Err() != nil { // what the policy's processors then return is no decision of theirs
		return false
	}
	if open.count == 0 {
		return true
	}
	resolve, err := l.tracker.Track(l.ctx, open.last, open.count)
	if err != nil {
		return false
	}
	*open = pending{}
	acknowledged := func(context.Context, error) error {
		if highest := resolve(); highest != nil {
			l.c.client.MarkCommitRecords(*highest)
		}
		return nil
	}
	if len(batch) == 0 { // the policy's processors dropped all
		return acknowledged(l.ctx, nil) == nil
	}
	select {
	case l.c.deliveries <- delivery{batch, acknowledged}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"fmt"
	"iter"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// madeBatch is one batch ready to send. next is the ordinal in the step of the
// row behind it.
type madeBatch struct {
	messages service.MessageBatch
	again    func() service.MessageBatch // makes them anew
	rows     int
	bytes    int64
	next     int64
	last     bool
	err      error
}

// batches turns what scan yields into what the output gets: the same batches,
// or those of the user's batching policy. A step's last batch ends both.
type batches struct {
	messages *stepMessage
	policy   *service.Batcher // nil: batches as they come
	pending  madeBatch
	first    int64 // ordinal of the first pending row
}

// tryBatching finds what is wrong with a batching policy before anything is
// read.
func tryBatching(conf *Config, res *service.Resources) error {
	b, err := newBatches(conf, res, nil)
	if err != nil {
		return fmt.Errorf("field %s: %w", niFieldBatching, err)
	}
	b.close(context.Background())
	return nil
}

func newBatches(conf *Config, res *service.Resources, messages *stepMessage) (*batches, error) {
	b := &batches{messages: messages}
	if conf.Batching.IsNoop() {
		return b, nil
	}
	var err error
	if b.policy, err = conf.Batching.NewBatcher(res); err != nil {
		return nil, fmt.Errorf("making the batching policy: %w", err)
	}
	return b, nil
}

func (b *batches) close(ctx context.Context) {
	if b.policy != nil {
		_ = b.policy.Close(ctx)
	}
}

// add yields the batches that are complete with in.
func (b *batches) add(ctx context.Context, in scan.Batch) iter.Seq[madeBatch] {
	return func(yield func(madeBatch) bool) {
		made := madeBatch{messages: b.messages.batch(in), rows: in.Rows, next: in.First + int64(in.Rows), last: in.Last}
		for _, m := range in.Messages {
			made.bytes += int64(len(m))
		}
		if b.policy == nil {
			made.again = func() service.MessageBatch { return b.messages.batch(in) }
			yield(made)
			return
		}
		b.regroup(ctx, in, made.messages, yield)
	}
}

// regroup hands the messages to the policy one by one. It is asked again after
// each input batch, so that a period also ends a batch while files are slow.
func (b *batches) regroup(ctx context.Context, in scan.Batch, messages service.MessageBatch, yield func(madeBatch) bool) {
	for i, m := range messages {
		if b.pending.rows == 0 {
			b.first = in.First + int64(i)
		}
		b.pending.rows++
		b.pending.bytes += int64(len(in.Messages[i]))
		b.pending.next = in.First + int64(i) + 1
		last := in.Last && i == len(messages)-1
		full := b.policy.Add(m)
		if d, timed := b.policy.UntilNext(); timed && d <= 0 {
			full = true
		}
		if !full && !last {
			continue
		}
		if !yield(b.flush(ctx, last)) {
			return
		}
	}
}

func (b *batches) flush(ctx context.Context, last bool) madeBatch {
	made := b.pending
	b.pending = madeBatch{}
	made.last = last
	if made.messages, made.err = b.policy.Flush(ctx); made.err != nil {
		made.err = fmt.Errorf("applying the batching policy: %w", made.err)
	}
	for _, m := range made.messages {
		m.MetaSetMut(metaFirstRow, b.first)
		m.MetaSetMut(metaSnapshotLast, last)
	}
	kept := made.messages.Copy()
	made.again = func() service.MessageBatch { return marked(kept.Copy()) }
	made.messages = marked(made.messages)
	return made
}

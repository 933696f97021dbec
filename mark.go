// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// mark is the context of a message that says which one of which batch it is. It
// stays through copies and processors, as Benthos's own index of a batch does,
// which costs seven allocations a message and a copy of the batch.
type mark struct {
	context.Context // what the message had before
	batch           *markedBatch
	row             int
}

// markedBatch is what the marks of one batch have in common. Marks of other
// batches may lie below and above them in a message's context.
type markedBatch struct{ messages int }

type markKey struct{}

func (m *mark) Value(key any) any {
	if key == (markKey{}) {
		return m
	}
	return m.Context.Value(key)
}

// newMarks makes the marks of a batch's messages, by index. Their contexts are
// the caller's to set.
func newMarks(messages int) []mark {
	marks := make([]mark, messages)
	batch := &markedBatch{messages}
	for i := range marks {
		marks[i].batch, marks[i].row = batch, i
	}
	return marks
}

// marked gives each message of a batch its mark, in place.
func marked(batch service.MessageBatch) service.MessageBatch {
	marks := newMarks(len(batch))
	for i, m := range batch {
		marks[i].Context = m.Context()
		batch[i] = m.WithContext(&marks[i])
	}
	return batch
}

// markOf is the newest mark in a context, or nil.
func markOf(ctx context.Context) *mark {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m
}

// batchOf is the batch that a message was marked in last, or nil.
func batchOf(msg *service.Message) *markedBatch {
	if m := markOf(msg.Context()); m != nil {
		return m.batch
	}
	return nil
}

// row is the index of a message in the batch, -1 for a message that does not
// come from it.
func (b *markedBatch) row(msg *service.Message) int {
	for m := markOf(msg.Context()); m != nil; m = markOf(m.Context) {
		if m.batch == b {
			return m.row
		}
	}
	return -1
}

// refused tells which messages of the batch an error names, by index; nil where
// it does not tell them apart, and for no batch.
func (b *markedBatch) refused(refusal error) []bool {
	some, ok := errors.AsType[*service.BatchError](refusal)
	if b == nil || !ok || some.IndexedErrors() == 0 {
		return nil
	}
	named := make([]bool, b.messages)
	//nolint:staticcheck // deprecated because of its indexes, which are not looked at here
	some.WalkMessages(func(_ int, msg *service.Message, err error) bool {
		if row := b.row(msg); row >= 0 && err != nil {
			named[row] = true
		}
		return true
	})
	return named
}

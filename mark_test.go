// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// numbered are messages of the bodies 0 to n-1, marked as a step's are.
func numbered(n int) service.MessageBatch {
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = strconv.AppendInt(nil, int64(i), 10)
	}
	m := &stepMessage{base: service.NewMessage(nil), perRow: true}
	return m.batch(scan.Batch{Rows: n, Messages: bodies, Operation: scan.OperationInsert})
}

// twice is a batch whose messages are marked, and indexed by Benthos too.
type twice struct {
	marked  *markedBatch
	indexer *service.Indexer
}

func markTwice(batch service.MessageBatch) twice {
	return twice{batchOf(batch[0]), batch.Index()}
}

// indexed tells by Benthos's index what a refusal names.
func (b twice) indexed(refusal *service.BatchError) []bool {
	named := make([]bool, b.marked.messages)
	refusal.WalkMessagesIndexedBy(b.indexer, func(i int, _ *service.Message, err error) bool {
		named[i] = named[i] || err != nil
		return true
	})
	return named
}

type nothingKey struct{}

// Benthos's own index of a batch says what a mark has to say, whatever became of the messages, for each of the batches
// that they went through.
func TestMarksNameWhatAnIndexNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		under := numbered(rapid.IntRange(1, 8).Draw(t, "messages"))
		batches := []twice{markTwice(under)}
		other := numbered(3)
		batches = append(batches, markTwice(other))
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			i := rapid.IntRange(0, len(under)-1).Draw(t, "at")
			switch rapid.SampledFrom([]string{"copy", "deep copy", "context", "lose", "duplicate", "filter", "swap", "join", "batch", "index"}).Draw(t, "change") {
			case "copy":
				under[i] = under[i].Copy()
			case "deep copy":
				under[i] = under[i].DeepCopy()
			case "context":
				under[i] = under[i].WithContext(context.WithValue(under[i].Context(), nothingKey{}, i))
			case "lose":
				under[i] = under[i].WithContext(context.Background())
			case "duplicate":
				under = append(under, under[i].Copy())
			case "filter":
				if len(under) > 1 {
					under = slices.Delete(under, i, i+1)
				}
			case "swap":
				under[0], under[i] = under[i], under[0]
			case "join":
				under = append(under, other[i%len(other)])
			case "batch":
				under = marked(under)
				batches = append(batches, markTwice(under))
			case "index":
				under.Index()
			}
		}
		refusal := service.NewBatchError(under, errRefused)
		for i := range under {
			if rapid.Bool().Draw(t, "refused") {
				refusal = refusal.Failed(i, errRefused)
			}
		}
		for i, b := range batches {
			if refusal.IndexedErrors() == 0 {
				require.Nil(t, b.marked.refused(refusal))
				continue
			}
			require.Equal(t, b.indexed(refusal), b.marked.refused(refusal), "batch %d", i)
		}
	})
}

func TestMarksStayThroughProcessors(t *testing.T) {
	tests := map[string]struct {
		processors string
		bodies     []string // that come out
		rows       []int    // which they come from
	}{
		"changed":        {`- mapping: 'root = this + 10'`, []string{"10", "11", "12", "13"}, []int{0, 1, 2, 3}},
		"left out":       {`- mapping: 'root = if this % 2 == 0 { deleted() }'`, []string{"1", "3"}, []int{1, 3}},
		"parted":         {`- split: { size: 3 }`, []string{"0", "1", "2", "3"}, []int{0, 1, 2, 3}},
		"in other order": {`- group_by_value: { value: '${! json() % 2 }' }`, []string{"0", "2", "1", "3"}, []int{0, 2, 1, 3}},
		"doubled": {
			"- mapping: 'root = [ this, this ]'\n- unarchive: { format: json_array }",
			[]string{"0", "0", "1", "1", "2", "2", "3", "3"},
			[]int{0, 0, 1, 1, 2, 2, 3, 3},
		},
		"joined":              {`- archive: { format: json_array }`, []string{"[0,1,2,3]"}, []int{0}},
		"in a branch":         {"- branch: { processors: [ { mapping: 'root = this * 2' } ], result_map: 'root = this' }", []string{"0", "2", "4", "6"}, []int{0, 1, 2, 3}},
		"in a switch":         {"- switch: [ { check: 'this > 1', processors: [ { mapping: 'root = this + 1' } ] } ]", []string{"0", "1", "3", "4"}, []int{0, 1, 2, 3}},
		"one after the other": {"- for_each: [ { mapping: 'root = this' } ]", []string{"0", "1", "2", "3"}, []int{0, 1, 2, 3}},
	}
	spec := service.NewConfigSpec().Field(service.NewProcessorListField("processors"))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			conf, err := spec.ParseYAML("processors:\n"+tc.processors, nil)
			require.NoError(t, err)
			processors, err := conf.FieldProcessorList("processors")
			require.NoError(t, err)
			sent := numbered(4)
			from := batchOf(sent[0])
			out, err := service.ExecuteProcessors(t.Context(), processors, sent)
			require.NoError(t, err)
			var (
				bodies []string
				rows   []int
			)
			for _, m := range slices.Concat(out...) {
				body, err := m.AsBytes()
				require.NoError(t, err)
				bodies = append(bodies, string(body))
				rows = append(rows, from.row(m))
			}
			assert.Equal(t, tc.bodies, bodies)
			assert.Equal(t, tc.rows, rows)
			for _, p := range processors {
				require.NoError(t, p.Close(t.Context()))
			}
		})
	}
}

func TestAnErrorNamesMessagesOfItsBatchOnly(t *testing.T) {
	sent, other := numbered(3), numbered(3)
	batch := batchOf(sent[0])
	require.NotSame(t, batch, batchOf(other[0]))
	tests := map[string]struct {
		refusal error
		named   []bool
	}{
		"no error of a batch":   {errRefused, nil},
		"the batch as a whole":  {service.NewBatchError(sent, errRefused), nil},
		"one of the messages":   {service.NewBatchError(sent, errRefused).Failed(1, errRefused), []bool{false, true, false}},
		"wrapped":               {fmt.Errorf("writing: %w", service.NewBatchError(sent, errRefused).Failed(2, errRefused)), []bool{false, false, true}},
		"another batch's":       {service.NewBatchError(other, errRefused).Failed(1, errRefused), []bool{false, false, false}},
		"messages without mark": {service.NewBatchError(service.MessageBatch{service.NewMessage(nil)}, errRefused).Failed(0, errRefused), []bool{false, false, false}},
		"refused by one of two": {
			service.NewBatchError(service.MessageBatch{sent[0].Copy(), sent[0], other[1], sent[2]}, errRefused).Failed(0, errRefused).Failed(2, errRefused),
			[]bool{true, false, false},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.named, batch.refused(tc.refusal))
		})
	}
}

func TestAMarkKeepsTheContextBelowIt(t *testing.T) {
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), nothingKey{}, "below"))
	batch := marked(service.MessageBatch{service.NewMessage(nil).WithContext(ctx), service.NewMessage(nil)})
	above := context.WithoutCancel(batch[0].Context())
	cancel(cause)
	assert.Equal(t, "below", batch[0].Context().Value(nothingKey{}))
	assert.Equal(t, "below", above.Value(nothingKey{}))
	assert.Nil(t, batch[1].Context().Value(nothingKey{}))
	assert.Equal(t, cause, context.Cause(batch[0].Context()))
	assert.NoError(t, batch[1].Context().Err())
	assert.Equal(t, 0, markOf(above).row)
	assert.Equal(t, 1, markOf(batch[1].Context()).row)
}

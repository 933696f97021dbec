// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// sieve is an output that refuses some messages of a batch and takes the others, whose rows it keeps: one a line.
type sieve struct {
	mu    sync.Mutex
	rng   *rand.Rand
	rows  map[string]int
	parts []int // sizes of the batches
	left  int   // how many messages it refuses until it takes all
}

func (s *sieve) write(_ context.Context, batch service.MessageBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, len(batch))
	refusal := service.NewBatchError(batch, errRefused)
	for i, m := range batch {
		if s.left > 0 && s.rng.IntN(5) == 0 {
			s.left--
			refusal = refusal.Failed(i, errRefused)
			continue
		}
		body, err := m.AsBytes()
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(body)) {
			s.rows[strings.TrimSpace(line)]++
		}
	}
	if refusal.IndexedErrors() > 0 {
		return refusal
	}
	return nil
}

func TestRowsThatAreRefusedInPartAreNotLost(t *testing.T) {
	const rows = 300
	const throwing = `mapping: 'root = if this.id % 3 == 0 && random_int(max: 9) > 8 { throw("no") } else { this }'`
	tests := map[string]struct{ batching, processors, output string }{
		"as they come":            {},
		"parted and joined again": {processors: "split: { size: 7 } }, { archive: { format: lines }"},
		"parted":                  {processors: "split: { size: 13 }"},
		"joined":                  {processors: "archive: { format: lines }"},
		"in groups":               {processors: "group_by_value: { value: '${! json(\"id\") % 4 }' }"},
		"left out in part":        {processors: throwing, output: "reject_errored: { outlet: {} }"},
		"batched by a policy":     {batching: "count: 70"},
		"joined by a policy":      {batching: "count: 70, processors: [ { split: { size: 5 } }, { archive: { format: lines } } ]"},
		"batched by the output":   {output: "broker: { pattern: fan_out_fail_fast, outputs: [ { outlet: {} }, { drop: {} } ], batching: { count: 30, period: 1ms } }"},
		"to either of two":        {output: "switch: { cases: [ { check: 'this.id % 3 == 0', output: { outlet: {} } }, { output: { outlet: {} } } ] }"},
		"to both of two":          {output: "broker: { pattern: fan_out_fail_fast, outputs: [ { outlet: {} }, { outlet: {} } ] }"},
		"to one after another":    {output: "fallback: [ { outlet: {} }, { outlet: {} } ]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.add(span(1, rows)...)
			r := newRig(t)
			out := &sieve{rng: rand.New(rand.NewPCG(1, 2)), rows: map[string]int{}, left: rows}
			r.out.decide(out.write)
			fields := s.increments("poll_interval: 0s", "batch_rows: 50")
			if tc.batching != "" {
				fields = append(fields, "batching: { "+tc.batching+" }")
			}
			yaml := pipeline(fields)
			if tc.processors != "" {
				yaml += "pipeline: { threads: 2, processors: [ { " + tc.processors + " } ] }\n"
			}
			if tc.output != "" {
				yaml = replaceOnce(yaml, "outlet: {}", tc.output)
			}
			l := r.startYAML(yaml)
			l.await()
			for id := 1; id <= rows; id++ {
				require.NotZero(t, out.rows[tables.Order(id)], "row %d", id)
			}
			assert.Len(t, out.rows, rows)
			assert.EqualValues(t, rows, r.numbers.of("nessie_rows_acked", "shop.orders"))
			assert.Positive(t, r.numbers.of("nessie_rows_redelivered", "shop.orders"))
			assert.Empty(t, l.reported())
		})
	}
}

func TestARowThatNothingTakesSoonStandsAlone(t *testing.T) {
	for name, batches := range map[string][]string{
		"as read":     {"batch_rows: 500"},
		"by a policy": {"batch_rows: 60", "batching: { count: 500 }"},
	} {
		t.Run(name, func(t *testing.T) { rowThatNothingTakes(t, batches) })
	}
}

func rowThatNothingTakes(t *testing.T, batches []string) {
	s := newShop(t)
	s.add(span(1, 500)...)
	r := newRig(t)
	var (
		mu    sync.Mutex
		alone int
		taken = map[string]int{}
	)
	r.out.decide(func(_ context.Context, batch service.MessageBatch) error {
		mu.Lock()
		defer mu.Unlock()
		refusal := service.NewBatchError(batch, errRefused)
		for i, m := range batch {
			body, _ := m.AsBytes()
			if string(body) == tables.Order(77) {
				refusal = refusal.Failed(i, errRefused)
				if len(batch) == 1 {
					alone++
				}
				continue
			}
			taken[string(body)]++
		}
		if refusal.IndexedErrors() > 0 && alone < 5 {
			return refusal
		}
		return nil
	})
	r.run(s.increments(batches...))
	assert.Equal(t, 5, alone)
	assert.Len(t, taken, 499)
	for row, n := range taken {
		assert.LessOrEqual(t, n, 2, row)
	}
}

func TestWhatMustStayTogetherComesAgainAsItWas(t *testing.T) {
	for _, fields := range [][]string{{"changes: changelog"}, {"checkpoint_limit: 1"}} {
		s := newShop(t)
		s.add(span(1, 40)...)
		r := newRig(t)
		out := &sieve{rng: rand.New(rand.NewPCG(3, 4)), rows: map[string]int{}, left: 1000}
		refusals := 0
		r.out.decide(func(ctx context.Context, batch service.MessageBatch) error {
			if err := out.write(ctx, batch); err != nil && refusals < 3 {
				refusals++
				return err
			}
			return nil
		})
		r.run(s.increments(append(fields, "batch_rows: 20")...))
		assert.Positive(t, refusals)
		for _, size := range out.parts {
			assert.Equal(t, 20, size, fmt.Sprint(fields))
		}
	}
}

func TestADeliveryComesApartByWhatIsNamed(t *testing.T) {
	named := func(rows ...int) []bool {
		all := make([]bool, 20)
		for _, row := range rows {
			all[row] = true
		}
		return all
	}
	tests := map[string]struct {
		rows  []int // nil: all 20
		named []bool
		parts [][]int
	}{
		"one of all":           {nil, named(3), [][]int{{0, 1, 2}, {4, 5, 6}, {7, 8, 9}, {10, 11}, {12, 13}, {14, 15}, {16, 17}, {18, 19}, {3}}},
		"some of a part":       {[]int{5, 6, 7, 8}, named(6, 8), [][]int{{5}, {7}, {6, 8}}},
		"all of a part":        {[]int{5, 6, 7}, named(5, 6, 7), [][]int{{5}, {6}, {7}}},
		"none of a part":       {[]int{5, 7, 9}, named(), [][]int{{5}, {7}, {9}}},
		"rows that are not in": {[]int{5, 7}, named(6, 7), [][]int{{5}, {7}}},
		"no names":             {[]int{5, 7}, nil, [][]int{{5, 7}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			taken := 0
			d := &delivery{rows: tc.rows, refusals: 2, taken: func(context.Context) error { taken++; return nil }}
			n := len(tc.rows)
			if tc.rows == nil {
				n = len(tc.named)
			}
			var parts [][]int
			for _, part := range d.parts(n, tc.named) {
				require.Zero(t, taken)
				require.NoError(t, part.taken(t.Context()))
				parts = append(parts, part.rows)
				assert.Equal(t, 2, part.refusals)
			}
			assert.Equal(t, tc.parts, parts)
			assert.Equal(t, 1, taken, "with the last of the parts")
		})
	}
}

func TestPausesGrow(t *testing.T) {
	assert.Zero(t, pauseAfter(2))
	assert.Equal(t, time.Millisecond, pauseAfter(3))
	assert.Equal(t, 8*time.Millisecond, pauseAfter(6))
	assert.Equal(t, time.Second, pauseAfter(100))
}

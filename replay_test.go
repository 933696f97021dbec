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
}

func (s *sieve) write(_ context.Context, batch service.MessageBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, len(batch))
	refusal := service.NewBatchError(batch, errRefused)
	for i, m := range batch {
		if s.rng.IntN(5) == 0 {
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
	for name, processors := range map[string]string{
		"as they come":            "",
		"parted and joined again": "pipeline: { processors: [ { split: { size: 7 } }, { archive: { format: lines } } ] }\n",
		"parted":                  "pipeline: { threads: 2, processors: [ { split: { size: 13 } } ] }\n",
		"joined":                  "pipeline: { processors: [ { archive: { format: lines } } ] }\n",
		"left out in part":        "pipeline: { processors: [ { mapping: 'root = if this.id % 3 == 0 && random_int(max: 9) > 8 { throw(\"no\") } else { this }' } ] }\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.add(span(1, rows)...)
			r := newRig(t)
			out := &sieve{rng: rand.New(rand.NewPCG(1, 2)), rows: map[string]int{}}
			r.out.decide(out.write)
			yaml := pipeline(s.increments("poll_interval: 0s", "batch_rows: 50")) + processors
			if name == "left out in part" {
				yaml = strings.Replace(yaml, "output:\n  outlet: {}", "output:\n  reject_errored:\n    outlet: {}", 1)
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
	r.start(s.increments("poll_interval: 0s", "batch_rows: 500")).await()
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
		out := &sieve{rng: rand.New(rand.NewPCG(3, 4)), rows: map[string]int{}}
		refusals := 0
		r.out.decide(func(ctx context.Context, batch service.MessageBatch) error {
			if err := out.write(ctx, batch); err != nil && refusals < 3 {
				refusals++
				return err
			}
			return nil
		})
		r.start(s.increments(append(fields, "poll_interval: 0s", "batch_rows: 20")...)).await()
		assert.Positive(t, refusals)
		for _, size := range out.parts {
			assert.Equal(t, 20, size, fmt.Sprint(fields))
		}
	}
}

func TestPausesGrow(t *testing.T) {
	assert.Zero(t, pauseAfter(2))
	assert.Equal(t, time.Millisecond, pauseAfter(3))
	assert.Equal(t, 8*time.Millisecond, pauseAfter(6))
	assert.Equal(t, time.Second, pauseAfter(100))
}

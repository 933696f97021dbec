// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func track(t *testing.T, tracker *Tracker[int], rows int, bytes int64, place int) func() {
	t.Helper()
	resolve, err := tracker.Track(t.Context(), rows, bytes, place)
	require.NoError(t, err)
	return resolve
}

func TestThePrefixPassesOnlyWhatIsContiguouslyAcknowledged(t *testing.T) {
	var places []int
	tracker := NewTracker(Limits{Rows: 100}, func(p int) { places = append(places, p) })
	one, two, three := track(t, tracker, 10, 0, 1), track(t, tracker, 10, 0, 2), track(t, tracker, 10, 0, 3)
	two()
	assert.Empty(t, places)
	one()
	assert.Equal(t, []int{2}, places)
	one()
	two()
	three()
	assert.Equal(t, []int{2, 3}, places)
}

func TestRowsCountUntilThePrefixPassesThemAndBytesUntilTheirOwnAck(t *testing.T) {
	tracker := NewTracker(Limits{Rows: 100}, func(int) {})
	one, two := track(t, tracker, 10, 1000, 1), track(t, tracker, 20, 500, 2)
	two()
	rows, bytes := tracker.InFlight()
	assert.Equal(t, []int64{30, 1000}, []int64{rows, bytes})
	one()
	rows, bytes = tracker.InFlight()
	assert.Equal(t, []int64{0, 0}, []int64{rows, bytes})
}

func TestMarksAreReachedWithWhatIsBeforeThem(t *testing.T) {
	var places []int
	tracker := NewTracker(Limits{Rows: 1}, func(p int) { places = append(places, p) })
	tracker.Mark(1)
	assert.Equal(t, []int{1}, places, "nothing is before it")
	resolve := track(t, tracker, 10, 0, 2)
	for place := range 10_000 {
		tracker.Mark(3 + place)
	}
	assert.Len(t, tracker.entries, 2, "marks in a row take the memory of one")
	assert.Equal(t, []int{1}, places)
	resolve()
	assert.Equal(t, []int{1, 10_002}, places)
}

// blocks runs call in the bubble and tells whether it waits.
func blocks(call func()) (waits func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	return func() bool {
		synctest.Wait()
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
}

func TestTrackWaitsForRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		limits Limits
		first  [2]int64 // rows, bytes
		next   [2]int64
		waits  bool
	}{
		"rows fit":                  {Limits{Rows: 10}, [2]int64{5, 0}, [2]int64{5, 0}, false},
		"rows do not fit":           {Limits{Rows: 10}, [2]int64{5, 0}, [2]int64{6, 0}, true},
		"one batch at a time":       {Limits{Rows: 1}, [2]int64{1, 0}, [2]int64{1, 0}, true},
		"a large batch goes alone":  {Limits{Rows: 10}, [2]int64{1, 0}, [2]int64{50, 0}, true},
		"after a large batch":       {Limits{Rows: 10}, [2]int64{50, 0}, [2]int64{1, 0}, true},
		"bytes fit":                 {Limits{Rows: 10, Bytes: 100}, [2]int64{1, 50}, [2]int64{1, 50}, false},
		"bytes do not fit":          {Limits{Rows: 10, Bytes: 100}, [2]int64{1, 50}, [2]int64{1, 51}, true},
		"bytes without bound":       {Limits{Rows: 10}, [2]int64{1, 1 << 60}, [2]int64{1, 1 << 60}, false},
		"large in bytes goes alone": {Limits{Rows: 10, Bytes: 100}, [2]int64{1, 500}, [2]int64{1, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker := NewTracker(tc.limits, func(int) {})
				resolve := track(t, tracker, int(tc.first[0]), tc.first[1], 1)
				waits := blocks(func() { track(t, tracker, int(tc.next[0]), tc.next[1], 2) })
				assert.Equal(t, tc.waits, waits())
				resolve()
				assert.False(t, waits())
			})
		})
	}
}

func TestBytesOfAnAcknowledgedBatchMakeRoomBeforeThePrefixPassesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := NewTracker(Limits{Rows: 10, Bytes: 100}, func(int) {})
		first, second := track(t, tracker, 1, 40, 1), track(t, tracker, 1, 40, 2)
		waits := blocks(func() { track(t, tracker, 1, 40, 3) })
		assert.True(t, waits())
		second()
		assert.False(t, waits())
		first()
	})
}

func TestTrackEndsWithItsContextAndTracksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var places []int
		tracker := NewTracker(Limits{Rows: 1}, func(p int) { places = append(places, p) })
		resolve := track(t, tracker, 1, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := tracker.Track(ctx, 1, 0, 2)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		resolve()
		assert.Equal(t, []int{1}, places)
		rows, _ := tracker.InFlight()
		assert.Zero(t, rows)
	})
}

func TestWaitReturnsWhenAllThatWasTrackedBeforeIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := 0
		tracker := NewTracker(Limits{Rows: 10}, func(p int) { reached = p })
		require.NoError(t, tracker.Wait(t.Context()), "nothing was tracked")
		first, second := track(t, tracker, 1, 0, 1), track(t, tracker, 1, 0, 2)
		waits := blocks(func() {
			assert.NoError(t, tracker.Wait(t.Context()))
			assert.Equal(t, 2, reached, "advance comes first")
		})
		assert.True(t, waits())
		later := track(t, tracker, 1, 0, 3)
		second()
		assert.True(t, waits())
		first()
		assert.False(t, waits())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, tracker.Wait(ctx), context.DeadlineExceeded)
		later()
	})
}

// modelBatch is what the model of the tracker knows of a batch or mark.
type modelBatch struct {
	rows, bytes int64
	resolved    bool
	resolve     func()
}

// trackerModel holds everything that was ever tracked, and finds what a
// Tracker should say by going through all of it.
type trackerModel struct {
	limits  Limits
	batches []*modelBatch
}

func (m *trackerModel) prefix() int {
	n := 0
	for n < len(m.batches) && m.batches[n].resolved {
		n++
	}
	return n
}

func (m *trackerModel) inFlight() (rows, bytes int64) {
	for _, b := range m.batches[m.prefix():] {
		rows += b.rows
		if !b.resolved {
			bytes += b.bytes
		}
	}
	return rows, bytes
}

func TestTrackerDoesWhatItsModelDoes(t *testing.T) {
	synctest.Test(t, func(outer *testing.T) {
		// A bubble's *testing.T has no deadline, for which rapid would ask.
		rapid.Check(struct{ testing.TB }{outer}, func(t *rapid.T) {
			m := &trackerModel{limits: Limits{
				Rows:  rapid.Int64Range(1, 20).Draw(t, "limit"),
				Bytes: rapid.Int64Range(0, 50).Draw(t, "byteLimit"),
			}}
			reached := 0 // place i is the number of batches up to and with it
			tracker := NewTracker(m.limits, func(p int) {
				require.Greater(t, p, reached, "places only grow")
				reached = p
			})
			t.Repeat(map[string]func(*rapid.T){
				"track": func(t *rapid.T) { trackOne(t, tracker, m) },
				"mark": func(*rapid.T) {
					m.batches = append(m.batches, &modelBatch{resolved: true, resolve: func() {}})
					tracker.Mark(len(m.batches))
				},
				"resolve": func(t *rapid.T) {
					if len(m.batches) == 0 {
						t.Skip("nothing to resolve")
					}
					b := rapid.SampledFrom(m.batches).Draw(t, "batch")
					b.resolved = true
					b.resolve()
				},
				"": func(t *rapid.T) {
					require.Equal(t, m.prefix(), reached)
					wantRows, wantBytes := m.inFlight()
					rows, bytes := tracker.InFlight()
					require.Equal(t, wantRows, rows)
					require.Equal(t, wantBytes, bytes)
				},
			})
		})
	})
}

func trackOne(t *rapid.T, tracker *Tracker[int], m *trackerModel) {
	b := &modelBatch{rows: rapid.Int64Range(1, 30).Draw(t, "rows"), bytes: rapid.Int64Range(0, 60).Draw(t, "bytes")}
	rows, bytes := m.inFlight()
	fits := (rows == 0 || rows+b.rows <= m.limits.Rows) &&
		(bytes == 0 || m.limits.Bytes == 0 || bytes+b.bytes <= m.limits.Bytes)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	resolve, err := tracker.Track(ctx, int(b.rows), b.bytes, len(m.batches)+1)
	if !fits {
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return
	}
	require.NoError(t, err)
	b.resolve = resolve
	m.batches = append(m.batches, b)
}

func TestConcurrentAcksNeitherLoseNorReorderPlaces(t *testing.T) {
	const batches = 5000
	var mu sync.Mutex
	acked := map[int]bool{}
	reached := 0
	tracker := NewTracker(Limits{Rows: 64, Bytes: 4096}, func(p int) {
		mu.Lock()
		defer mu.Unlock()
		assert.Greater(t, p, reached)
		for i := reached + 1; i <= p; i++ {
			assert.True(t, acked[i], "place %d was passed before it was acknowledged", i)
		}
		reached = p
	})
	queue := make(chan func(), 256)
	var outputs sync.WaitGroup
	for range 8 {
		outputs.Go(func() {
			for ack := range queue {
				held := append(more(queue, 3), ack)
				rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
				for _, ack := range held {
					ack()
					ack()
				}
			}
		})
	}
	for i := 1; i <= batches; i++ {
		if i%7 == 0 {
			mu.Lock()
			acked[i] = true
			mu.Unlock()
			tracker.Mark(i)
			continue
		}
		resolve, err := tracker.Track(t.Context(), 1+i%9, int64(i%500), i)
		require.NoError(t, err)
		rows, bytes := tracker.InFlight()
		require.LessOrEqual(t, rows, int64(64))
		require.LessOrEqual(t, bytes, int64(4096))
		queue <- func() {
			mu.Lock()
			acked[i] = true
			mu.Unlock()
			resolve()
		}
	}
	close(queue)
	require.NoError(t, tracker.Wait(t.Context()))
	outputs.Wait()
	assert.Equal(t, batches, reached)
	rows, bytes := tracker.InFlight()
	assert.Zero(t, rows)
	assert.Zero(t, bytes)
}

// more returns up to n acks that are there without waiting.
func more(queue <-chan func(), n int) (acks []func()) {
	for range n {
		select {
		case ack, ok := <-queue:
			if ok {
				acks = append(acks, ack)
			}
		default:
			return acks
		}
	}
	return acks
}

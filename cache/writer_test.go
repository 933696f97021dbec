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
)

// fire runs a writer on a cache in a bubble, and checks at every store of the
// cache that the value is whole, was put, and is not older than the one before.
type fire struct {
	*fakeKV
	t      *testing.T
	writer *Writer

	checks  sync.Mutex
	put     Order // the newest that was put
	last    Order // the newest that was stored
	results map[string]int
	errors  []error
	taken   []*TakenError
}

const writeTimeout = 10 * time.Second

func underFire(t *testing.T, during func(t *testing.T, f *fire)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fire{fakeKV: newFakeKV(), t: t, results: map[string]int{}, put: Order{Step: -1}, last: Order{Step: -1}}
		s := NewStore(f, testKey, owner("a"))
		claimed, err := s.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
		require.NoError(t, err)
		f.writer = NewWriter(s, claimed, WriterConfig{
			Timeout: writeTimeout,
			OnWrite: func(result string) { f.note(func() { f.results[result]++ }) },
			OnError: func(err error) { f.note(func() { f.errors = append(f.errors, err) }) },
			OnTaken: func(err *TakenError) { f.note(func() { f.taken = append(f.taken, err) }) },
		})
		during(t, f)
	})
}

func (f *fire) note(change func()) {
	f.checks.Lock()
	defer f.checks.Unlock()
	change()
}

func (f *fire) Put(c *Checkpoint) {
	f.note(func() { f.put = c.Order() })
	f.writer.Put(c)
}

func (f *fire) Set(ctx context.Context, key string, value []byte) error {
	c, err := Decode(key, value)
	if assert.NoError(f.t, err) {
		f.note(func() {
			assert.LessOrEqual(f.t, c.Order().Compare(f.put), 0, "ahead of what was put")
			assert.GreaterOrEqual(f.t, c.Order().Compare(f.last), 0, "backwards")
			f.last = c.Order()
		})
	}
	return f.fakeKV.Set(ctx, key, value)
}

// slow makes every Set take d, or until its context ends.
func (f *fire) slow(d time.Duration) {
	f.behave(nil, func(ctx context.Context, store func([]byte), value []byte) error {
		select {
		case <-time.After(d):
			store(value)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// elapsed measures fake time.
func elapsed(call func()) time.Duration {
	start := time.Now()
	call()
	return time.Since(start)
}

func TestPutsAreStored(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.Put(at(0, 0))
		require.NoError(t, f.writer.Flush(t.Context()))
		assert.Equal(t, at(0, 0).Order(), f.stored(t).Order())
		f.Put(at(0, 7))
		require.NoError(t, f.writer.Close(t.Context()))
		assert.Equal(t, at(0, 7).Order(), f.stored(t).Order())
		assert.Equal(t, map[string]int{ResultWritten: 2}, f.results)
		assert.Equal(t, 3, f.count(), "the claim and two writes: nothing is written twice")
	})
}

func TestPutsNeverWaitAndAreCoalesced(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.slow(3 * time.Second)
		assert.Zero(t, elapsed(func() {
			for row := range int64(10_000) {
				f.Put(at(0, row))
				if row == 0 {
					synctest.Wait() // its write has begun
				}
			}
		}))
		assert.Equal(t, 6*time.Second, elapsed(func() { require.NoError(t, f.writer.Flush(t.Context())) }))
		assert.Equal(t, at(0, 9999).Order(), f.stored(t).Order())
		assert.Equal(t, map[string]int{ResultWritten: 2}, f.results)
		require.NoError(t, f.writer.Close(t.Context()))
	})
}

func TestACacheThatFailsHalfOfTheTimeLosesNothing(t *testing.T) {
	for name, fail := range map[string]func(store func([]byte), value []byte) error{
		"before storing": func(func([]byte), []byte) error { return errCache },
		"after storing": func(store func([]byte), value []byte) error {
			store(value)
			return errCache
		},
		"with a torn value": func(store func([]byte), value []byte) error {
			store(value[:rand.N(len(value))])
			return errCache
		},
	} {
		t.Run(name, func(t *testing.T) {
			underFire(t, func(t *testing.T, f *fire) {
				f.behave(func(context.Context) error {
					if rand.N(4) == 0 {
						return errCache
					}
					return nil
				}, func(_ context.Context, store func([]byte), value []byte) error {
					if rand.N(2) == 0 {
						return fail(store, value)
					}
					store(value)
					return nil
				})
				for step := range int64(50) {
					for row := range int64(20) {
						f.Put(at(step, row))
						time.Sleep(rand.N(50 * time.Millisecond))
					}
				}
				require.NoError(t, f.writer.Flush(t.Context()))
				f.note(func() { assert.Equal(t, at(49, 19).Order(), f.last) })
				f.behave(nil, nil)
				assert.Equal(t, at(49, 19).Order(), f.stored(t).Order())
				f.checks.Lock()
				assert.Positive(t, f.results[ResultFailed])
				assert.Len(t, f.errors, f.results[ResultFailed], "each failure is reported")
				f.checks.Unlock()
				require.NoError(t, f.writer.Close(t.Context()))
			})
		})
	}
}

func TestRetriesSlowDown(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.behave(nil, func(context.Context, func([]byte), []byte) error { return errCache })
		f.Put(at(0, 0))
		time.Sleep(time.Hour)
		f.checks.Lock()
		failed := f.results[ResultFailed]
		f.checks.Unlock()
		assert.Less(t, failed, 800, "no busy loop")
		assert.Greater(t, failed, 200, "for ever")
		err := f.writer.Close(t.Context())
		require.ErrorIs(t, err, errCache)
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestCloseTriesTheLastValueOnceMoreAtOnce(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.behave(nil, func(context.Context, func([]byte), []byte) error { return errCache })
		f.Put(at(2, 3))
		time.Sleep(time.Minute)
		synctest.Wait() // in a pause of seconds
		f.behave(nil, nil)
		assert.Zero(t, elapsed(func() { require.NoError(t, f.writer.Close(t.Context())) }))
		assert.Equal(t, at(2, 3).Order(), f.stored(t).Order())
		f.writer.Put(at(9, 9))
		require.ErrorIs(t, f.writer.PutSync(t.Context(), at(9, 9)), ErrClosed)
		require.NoError(t, f.writer.Close(t.Context()), "again")
		assert.Equal(t, at(2, 3).Order(), f.stored(t).Order())
	})
}

func TestCloseIsBoundedWhenTheCacheHangs(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.slow(time.Hour)
		f.Put(at(0, 1))
		time.Sleep(5 * time.Second)
		took := elapsed(func() { require.ErrorIs(t, f.writer.Close(t.Context()), ErrClosed) })
		assert.LessOrEqual(t, took, writeTimeout)
	})
}

func TestCloseReturnsEarlierWithItsContext(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.slow(time.Hour)
		f.Put(at(0, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, time.Second, elapsed(func() { require.ErrorIs(t, f.writer.Close(ctx), context.DeadlineExceeded) }))
	})
}

func TestACacheThatIgnoresItsContextIsReportedAndNeverOvertaken(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		release := make(chan struct{})
		f.behave(nil, func(_ context.Context, store func([]byte), value []byte) error {
			<-release
			store(value)
			return nil
		})
		f.Put(at(0, 1))
		synctest.Wait()
		f.Put(at(0, 2))
		time.Sleep(time.Minute)
		f.checks.Lock()
		require.Len(t, f.errors, 1)
		require.EqualError(t, f.errors[0], `the cache does not return from the checkpoint under key "some-key"`)
		f.checks.Unlock()
		assert.Equal(t, writeTimeout, elapsed(func() { require.ErrorIs(t, f.writer.Close(t.Context()), ErrClosed) }))
		close(release)
		synctest.Wait()
		assert.Equal(t, at(0, 1).Order(), f.stored(t).Order(), "the call that was under way, and nothing after Close")
	})
}

func TestACacheThatReturnsFromGetAfterCloseIsNotWritten(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		release := make(chan struct{})
		f.behave(func(context.Context) error {
			<-release
			return nil
		}, nil)
		f.Put(at(0, 1))
		require.ErrorIs(t, f.writer.Close(t.Context()), ErrClosed)
		close(release)
		synctest.Wait()
		assert.Equal(t, 1, f.count(), "the claim")
	})
}

func TestPutSyncReturnsOnceStored(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.slow(3 * time.Second)
		f.note(func() { f.put = at(0, 0).Order() })
		assert.Equal(t, 3*time.Second, elapsed(func() { require.NoError(t, f.writer.PutSync(t.Context(), at(0, 0))) }))
		assert.Equal(t, at(0, 0).Order(), f.stored(t).Order())

		f.note(func() { f.put = at(1, 0).Order() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, f.writer.PutSync(ctx, at(1, 0)), context.DeadlineExceeded)
		require.NoError(t, f.writer.Flush(t.Context()))
		assert.Equal(t, at(1, 0).Order(), f.stored(t).Order(), "stored later")
		require.NoError(t, f.writer.Close(t.Context()))
	})
}

func TestWhatGoesBackwardsIsDroppedAndReported(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.Put(at(2, 5))
		f.writer.Put(at(2, 4))
		require.ErrorContains(t, f.writer.PutSync(t.Context(), at(1, 9)), "comes before")
		f.checks.Lock()
		require.Len(t, f.errors, 1)
		require.EqualError(t, f.errors[0], "checkpoint {Step:2 Attempt:0 Row:4} comes before {Step:2 Attempt:0 Row:5}: it was dropped")
		f.checks.Unlock()
		require.NoError(t, f.writer.Close(t.Context()))
		assert.Equal(t, at(2, 5).Order(), f.stored(t).Order())
	})
}

func TestTheOwnerBeforeStopsForGood(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.Put(at(1, 0))
		require.NoError(t, f.writer.Flush(t.Context()))

		other := NewStore(f.fakeKV, testKey, owner("b"))
		loaded, err := other.Load(t.Context())
		require.NoError(t, err)
		_, err = other.Claim(t.Context(), loaded)
		require.NoError(t, err)
		sets := f.count()

		f.Put(at(2, 0))
		var taken *TakenError
		require.ErrorAs(t, f.writer.Flush(t.Context()), &taken)
		require.ErrorAs(t, f.writer.PutSync(t.Context(), at(3, 0)), &taken)
		f.writer.Put(at(4, 0))
		require.ErrorAs(t, f.writer.Close(t.Context()), &taken)
		assert.Equal(t, "b", taken.Owner.ID)
		assert.Equal(t, map[string]int{ResultWritten: 1, ResultTaken: 1}, f.results)
		require.Len(t, f.taken, 1)
		assert.Equal(t, sets, f.count())
		assert.Equal(t, "b", f.stored(t).Owner.ID)
	})
}

func TestDeliveryGoesOnUntilTheLimitWhileTheCacheHangs(t *testing.T) {
	underFire(t, func(t *testing.T, f *fire) {
		f.slow(time.Hour)
		tracker := NewTracker(Limits{Rows: 10}, f.Put)
		assert.Zero(t, elapsed(func() {
			for row := range int64(1000) {
				resolve, err := tracker.Track(t.Context(), 10, 0, at(0, row+1))
				require.NoError(t, err)
				resolve()
			}
		}), "what is acknowledged makes room, whether it is stored or not")
		f.behave(nil, nil)
		require.NoError(t, f.writer.Flush(t.Context()))
		assert.Equal(t, at(0, 1000).Order(), f.stored(t).Order())
		require.NoError(t, f.writer.Close(t.Context()))
	})
}

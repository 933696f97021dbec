// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFlow runs a test in a bubble with a flow of three tasks and 100 bytes.
func inFlow(t *testing.T, test func(t *testing.T, f *flow, cancel context.CancelCauseFunc)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		f, unhook := newFlow(ctx, 100, 0, 3)
		defer func() {
			cancel(nil)
			synctest.Wait()
			unhook()
		}()
		test(t, f, cancel)
	})
}

// putting hands over a piece in the background; the channel gives the outcome.
func putting(f *flow, task int, size int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f.put(task, piece{rows: 1, held: size}) }()
	synctest.Wait()
	return done
}

func waits(t *testing.T, done <-chan error) {
	t.Helper()
	synctest.Wait()
	assert.Empty(t, done, "it should wait")
}

func TestPiecesComeInTheOrderOfTheirTasks(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, 2, 3))
		f.finish(2, nil)
		require.NoError(t, <-putting(f, 1, 2))
		f.finish(1, nil)
		require.NoError(t, <-putting(f, 0, 1))
		f.finish(0, nil)
		for _, want := range []int64{1, 2, 3} {
			p, ok, err := f.next()
			require.NoError(t, err)
			assert.True(t, ok)
			assert.Equal(t, want, p.held)
		}
		_, ok, err := f.next()
		require.NoError(t, err)
		assert.False(t, ok)
	})
}

func TestBytesAheadAreBounded(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, 1, 60))
		second := putting(f, 1, 60)
		waits(t, second)
		f.release(60) // as if the consumer had taken the first
		require.NoError(t, <-second)
	})
}

func TestTheFileInFrontMayAlwaysGoOn(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, 1, 100)) // everything is used by a later file
		require.NoError(t, <-putting(f, 0, 500), "the consumer has nothing else to wait for")
		second := putting(f, 0, 500)
		waits(t, second) // one piece at a time
		_, _, err := f.next()
		require.NoError(t, err)
		require.NoError(t, <-second)
	})
}

func TestAFileThatComesToTheFrontIsLetThrough(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, 2, 100))
		waiting := putting(f, 1, 50)
		waits(t, waiting)
		f.finish(0, nil)
		p, ok, err := f.next()
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, int64(50), p.held)
		require.NoError(t, <-waiting)
	})
}

func TestAnErrorComesAfterThePiecesBeforeIt(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, _ context.CancelCauseFunc) {
		broken := errors.New("broken")
		require.NoError(t, <-putting(f, 0, 1))
		f.finish(0, broken)
		_, ok, err := f.next()
		require.NoError(t, err)
		assert.True(t, ok)
		_, _, err = f.next()
		require.ErrorIs(t, err, broken)
	})
}

func TestCancellingEndsEveryWait(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, cancel context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, 1, 100))
		waiting := putting(f, 1, 100)
		taking := make(chan error, 1)
		go func() { _, _, err := f.next(); taking <- err }()
		waits(t, waiting)
		waits(t, taking)
		cause := errors.New("enough")
		cancel(cause)
		require.ErrorIs(t, <-waiting, cause)
		require.ErrorIs(t, <-taking, cause)
	})
}

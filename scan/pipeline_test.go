// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFlow runs a test in a bubble with a flow of three tasks and 100 bytes, of which three workers have taken one each.
func inFlow(t *testing.T, test func(t *testing.T, f *flow, lanes []*lane, cancel context.CancelCauseFunc)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		f, unhook := newFlow(ctx, 100, 0, 3)
		defer func() {
			cancel(nil)
			synctest.Wait()
			unhook()
		}()
		test(t, f, []*lane{f.take(), f.take(), f.take()}, cancel)
	})
}

// putting hands over a piece in the background; the channel gives the outcome.
func putting(f *flow, l *lane, size int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f.put(l, piece{rows: 1, held: size}) }()
	synctest.Wait()
	return done
}

func waits(t *testing.T, done <-chan error) {
	t.Helper()
	synctest.Wait()
	assert.Empty(t, done, "it should wait")
}

func TestPiecesComeInTheOrderOfTheirTasks(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, lanes[2], 3))
		f.finish(lanes[2], nil)
		require.NoError(t, <-putting(f, lanes[1], 2))
		f.finish(lanes[1], nil)
		require.NoError(t, <-putting(f, lanes[0], 1))
		f.finish(lanes[0], nil)
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
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, lanes[1], 60))
		second := putting(f, lanes[1], 60)
		waits(t, second)
		f.release(60) // as if the consumer had taken the first
		require.NoError(t, <-second)
	})
}

func TestTheFileInFrontMayAlwaysGoOn(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, lanes[1], 100)) // everything is used by a later file
		require.NoError(t, <-putting(f, lanes[0], 500), "the consumer has nothing else to wait for")
		second := putting(f, lanes[0], 500)
		waits(t, second) // one piece at a time
		_, _, err := f.next()
		require.NoError(t, err)
		require.NoError(t, <-second)
	})
}

func TestAFileThatComesToTheFrontIsLetThrough(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, _ context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, lanes[2], 100))
		waiting := putting(f, lanes[1], 50)
		waits(t, waiting)
		f.finish(lanes[0], nil)
		p, ok, err := f.next()
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, int64(50), p.held)
		require.NoError(t, <-waiting)
	})
}

func TestAnErrorComesAfterThePiecesBeforeIt(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, _ context.CancelCauseFunc) {
		broken := errors.New("broken")
		require.NoError(t, <-putting(f, lanes[0], 1))
		f.finish(lanes[0], broken)
		_, ok, err := f.next()
		require.NoError(t, err)
		assert.True(t, ok)
		_, _, err = f.next()
		require.ErrorIs(t, err, broken)
	})
}

// taking takes a lane in the background.
func taking(f *flow) <-chan *lane {
	taken := make(chan *lane, 1)
	go func() { taken <- f.take() }()
	synctest.Wait()
	return taken
}

func TestStretchesAreTakenBeforeLaterTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, unhook := newFlow(t.Context(), 100, 0, 3)
		defer unhook()
		f.skip = 7
		first := f.take()
		assert.Equal(t, int64(7), first.skip)
		second := f.take()
		assert.Equal(t, 1, second.task, "while nobody knows whether the first can be cut")
		assert.Zero(t, second.skip)
		file := &directFile{}
		cuts := []*stretch{{file: file, to: 1}, {file: file, from: 1, to: 2}, {file: file, from: 2, to: 3}}
		f.cut(first, cuts)
		assert.Same(t, cuts[0], first.stretch)
		assert.Same(t, cuts[1], f.take().stretch)
		third := f.take()
		assert.Same(t, cuts[2], third.stretch)
		fourth := f.take()
		assert.Equal(t, 2, fourth.task)
		f.finish(second, nil)
		f.finish(fourth, nil)
		assert.Nil(t, f.take(), "nothing can be cut any more")

		// They come in the order of their rows all the same.
		require.NoError(t, f.put(third, piece{held: 2}))
		f.finish(third, nil)
		require.NoError(t, f.put(first, piece{held: 1}))
		f.finish(first, nil)
		p, _, err := f.next()
		require.NoError(t, err)
		assert.Equal(t, int64(1), p.held)
		f.finish(f.lanes[1], nil)
		p, _, err = f.next()
		require.NoError(t, err)
		assert.Equal(t, int64(2), p.held)
		_, ok, err := f.next()
		require.NoError(t, err)
		assert.False(t, ok)
	})
}

func TestAWorkerWaitsForWhatMayBeCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, unhook := newFlow(t.Context(), 100, 0, 1)
		defer unhook()
		first := f.take()
		waiting := taking(f)
		assert.Empty(t, waiting)
		cuts := []*stretch{{}, {from: 1}}
		f.cut(first, cuts)
		assert.Same(t, cuts[1], (<-waiting).stretch)

		g, unhook := newFlow(t.Context(), 100, 0, 1)
		defer unhook()
		whole := g.take()
		waiting = taking(g)
		assert.Empty(t, waiting)
		g.finish(whole, nil)
		assert.Nil(t, <-waiting)
	})
}

func TestStretchesThatNobodyHasTakenAreJoined(t *testing.T) {
	f, unhook := newFlow(t.Context(), 100, 0, 2)
	defer unhook()
	file, other := &directFile{}, &directFile{}
	file.users.Store(4)
	first, second := f.take(), f.take()
	f.cut(second, []*stretch{{file: other}, {file: other, from: 7}})
	f.cut(first, []*stretch{
		{file: file, to: 1, live: 9},
		{file: file, from: 1, to: 2, live: 5, skip: 5, before: 9},
		{file: file, from: 2, to: 3, live: 6, skip: 6, weight: 8, before: 14, first: 20},
		{file: file, from: 3, to: 5, live: 7, skip: 2, weight: 9, before: 20, first: 30},
	})
	assert.Equal(t, int64(9), f.take().stretch.before)
	f.join(file)
	joined := f.take().stretch
	assert.Equal(t, &stretch{file: file, from: 2, to: 5, live: 13, skip: 8, weight: 9, before: 14, first: 20}, joined)
	assert.Equal(t, int64(3), file.users.Load())
	assert.Equal(t, 7, f.take().stretch.from)
	f.join(file)
}

// bodyOf is a piece, and what tells whether its body is reachable still.
func bodyOf(size int) (piece, weak.Pointer[byte]) {
	body := make([]byte, size)
	return piece{rows: 1, held: int64(size), body: body}, weak.Make(&body[0])
}

func TestWhatTheConsumerHasTakenIsKeptNowhere(t *testing.T) {
	f, unhook := newFlow(t.Context(), 1<<20, 0, 2)
	defer unhook()
	first, second := f.take(), f.take()
	var bodies []weak.Pointer[byte]
	for _, l := range []*lane{first, first, second, second} {
		p, body := bodyOf(1000)
		require.NoError(t, f.put(l, p))
		bodies = append(bodies, body)
	}
	f.finish(first, nil)
	a := assembler{opts: ReadOptions{Format: FormatNDJSON, BatchRows: 1, BatchBytes: 1 << 20}}
	for range 3 {
		p, ok, err := f.next()
		require.NoError(t, err)
		require.True(t, ok)
		_, _, err = a.add(p, false)
		require.NoError(t, err)
	}
	runtime.GC()
	for i, body := range bodies {
		assert.Equal(t, i >= 2, body.Value() != nil, "piece %d: the third is held back, the fourth waits", i)
	}
	runtime.KeepAlive(f)
	runtime.KeepAlive(&a)
	runtime.KeepAlive(first)
}

func TestCancellingEndsEveryWait(t *testing.T) {
	inFlow(t, func(t *testing.T, f *flow, lanes []*lane, cancel context.CancelCauseFunc) {
		require.NoError(t, <-putting(f, lanes[1], 100))
		waiting := putting(f, lanes[1], 100)
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

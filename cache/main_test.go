// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(roles[role]())
	}
	goleak.VerifyTestMain(m)
}

// A test runs itself in a subprocess with this variable set to one of roles.
const roleVariable = "CACHE_TEST_ROLE"

var roles = map[string]func() int{}

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

const testKey = "some-key"

var errCache = errors.New("cache is broken")

// fakeKV is a cache in memory whose calls a test can change.
type fakeKV struct {
	mu     sync.Mutex
	values map[string][]byte
	sets   int
	get    onGet
	set    onSet
}

// onGet and onSet decide what a call does; without one it works.
type (
	onGet func(ctx context.Context) error
	onSet func(ctx context.Context, store func([]byte), value []byte) error
)

func newFakeKV() *fakeKV { return &fakeKV{values: map[string][]byte{}} }

// behave changes what calls do from now on.
func (f *fakeKV) behave(get onGet, set onSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get, f.set = get, set
}

func (f *fakeKV) behaviour() (onGet, onSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.get, f.set
}

func (f *fakeKV) Get(ctx context.Context, key string) ([]byte, error) {
	if get, _ := f.behaviour(); get != nil {
		if err := get(ctx); err != nil {
			return nil, err
		}
	}
	if value, ok := f.value(key); ok {
		return value, nil
	}
	return nil, service.ErrKeyNotFound
}

func (f *fakeKV) Set(ctx context.Context, key string, value []byte) error {
	store := func(v []byte) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.values[key] = v
		f.sets++
	}
	if _, set := f.behaviour(); set != nil {
		return set(ctx, store, value)
	}
	store(value)
	return nil
}

// count returns how many values were stored.
func (f *fakeKV) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

func (f *fakeKV) value(key string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	value, ok := f.values[key]
	return value, ok
}

func (f *fakeKV) stored(t *testing.T) *Checkpoint {
	t.Helper()
	value, ok := f.value(testKey)
	require.True(t, ok, "nothing is stored")
	c, err := Decode(testKey, value)
	require.NoError(t, err)
	return c
}

// at returns a checkpoint of one table whose step is complete up to step, with
// row messages of the next one acknowledged.
func at(step, row int64) *Checkpoint {
	c := Unclaimed("main", "sales.eu", "orders")
	c.Stage, c.Step = StageComplete, step
	c.Last = StateRef{SnapshotID: FormatSnapshotID(1000 + step), Sequence: step, TableUUID: "uuid-1", ContentID: "content-1"}
	if row > 0 {
		from := c.Last
		to := StateRef{SnapshotID: FormatSnapshotID(1001 + step), Sequence: step + 1, TableUUID: "uuid-1", ContentID: "content-1"}
		c.Position = &Position{From: &from, To: to, Kind: "snapshot", PlanDigest: "digest", Row: row}
	}
	return c
}

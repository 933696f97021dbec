// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func owner(id string) Owner { return Owner{ID: id, Host: "host-" + id, PID: 1, StartMs: 1} }

func store(kv KV, id string) *Store { return NewStore(kv, testKey, owner(id)) }

func TestLoadOfAnAbsentKeyIsNothing(t *testing.T) {
	c, err := store(newFakeKV(), "a").Load(t.Context())
	require.NoError(t, err)
	assert.Nil(t, c)
}

func TestWhatCannotBeReadIsAnErrorAndIsNeverOverwritten(t *testing.T) {
	kv := newFakeKV()
	for _, value := range []string{"", "{}", "torn{", `{"version":9}`} {
		kv.values[testKey] = []byte(value)
		_, err := store(kv, "a").Load(t.Context())
		var refused *ValueError
		require.ErrorAs(t, err, &refused)
		_, err = store(kv, "a").Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, value, string(kv.values[testKey]))
	}
	kv.behave(func(context.Context) error { return errCache }, nil)
	_, err := store(kv, "a").Load(t.Context())
	require.ErrorIs(t, err, errCache)
	require.EqualError(t, err, `reading the checkpoint under key "some-key": cache is broken`)
	_, err = store(kv, "a").Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.ErrorIs(t, err, errCache)
	assert.Zero(t, kv.count())
}

func TestClaimOfAnAbsentKeyStoresThatNothingIsStored(t *testing.T) {
	kv := newFakeKV()
	claimed, err := store(kv, "a").Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	assert.False(t, claimed.Started())
	loaded, err := store(kv, "b").Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, claimed, loaded)
	assert.Equal(t, "a", loaded.Owner.ID)
}

func TestClaimKeepsThePlaceAndComesAfterEarlierClaims(t *testing.T) {
	kv := newFakeKV()
	future := at(3, 5)
	future.Owner = &Owner{ID: "z", Term: 1 << 60} // its clock is far ahead
	encoded, err := Encode(future)
	require.NoError(t, err)
	kv.values[testKey] = encoded

	s := store(kv, "a")
	loaded, err := s.Load(t.Context())
	require.NoError(t, err)
	claimed, err := s.Claim(t.Context(), loaded)
	require.NoError(t, err)
	assert.Equal(t, future.Order(), claimed.Order())
	assert.Equal(t, future.Last, claimed.Last)
	assert.Equal(t, Owner{ID: "a", Host: "host-a", PID: 1, StartMs: 1, Term: 1<<60 + 1}, *claimed.Owner)
}

func TestClaimGoesOnFromWhatTheOwnerBeforeWroteMeanwhile(t *testing.T) {
	kv := newFakeKV()
	before := store(kv, "a")
	require.NoError(t, before.write(t.Context(), at(3, 5)))
	next := store(kv, "b")
	validated, err := next.Load(t.Context())
	require.NoError(t, err)
	require.NoError(t, before.write(t.Context(), at(4, 1)))
	claimed, err := next.Claim(t.Context(), validated)
	require.NoError(t, err)
	assert.Equal(t, at(4, 1).Order(), claimed.Order())

	other := at(9, 0)
	other.Last.TableUUID = "uuid-2"
	require.NoError(t, next.write(t.Context(), other))
	third := store(kv, "c")
	_, err = third.Claim(t.Context(), validated)
	require.ErrorIs(t, err, ErrChanged)
	_, err = third.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.ErrorIs(t, err, ErrChanged)
	assert.Equal(t, "uuid-2", kv.stored(t).Last.TableUUID)
}

func TestClaimFindsACacheThatKeepsNothing(t *testing.T) {
	kv := newFakeKV()
	kv.behave(nil, func(context.Context, func([]byte), []byte) error { return nil })
	_, err := store(kv, "a").Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.ErrorContains(t, err, "does not keep what it is given")
}

func TestClaimFindsACacheThatCannotBeWritten(t *testing.T) {
	kv := newFakeKV()
	kv.behave(nil, func(context.Context, func([]byte), []byte) error { return errCache })
	_, err := store(kv, "a").Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.ErrorIs(t, err, errCache)
	require.ErrorContains(t, err, testKey)
}

func TestTheNewestClaimWins(t *testing.T) {
	kv := newFakeKV()
	a, b := store(kv, "a"), store(kv, "b")
	_, err := a.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	require.NoError(t, a.write(t.Context(), at(0, 0)))
	loaded, err := b.Load(t.Context())
	require.NoError(t, err)
	_, err = b.Claim(t.Context(), loaded)
	require.NoError(t, err)

	var taken *TakenError
	require.ErrorAs(t, a.write(t.Context(), at(1, 0)), &taken)
	assert.Equal(t, "b", taken.Owner.ID)
	require.EqualError(t, taken, `the checkpoint under key "some-key" was taken over by another input (host host-b, pid 1, `+
		`started 1970-01-01T00:00:00Z): this one stops; run one input per key, or configure another checkpoint_cache_key`)
	require.NoError(t, b.write(t.Context(), at(1, 0)))
}

func TestALateWriteOfAnEarlierOwnerDoesNotStopTheNewest(t *testing.T) {
	kv := newFakeKV()
	a, b := store(kv, "a"), store(kv, "b")
	_, err := a.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	_, err = b.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	require.NoError(t, a.set(t.Context(), a.owned(at(1, 0)))) // compared before b claimed
	require.NoError(t, b.write(t.Context(), at(2, 0)))
	assert.Equal(t, "b", kv.stored(t).Owner.ID)
	var taken *TakenError
	require.ErrorAs(t, a.write(t.Context(), at(1, 5)), &taken)
}

func TestARunningInputRestoresWhatWasDamaged(t *testing.T) {
	kv := newFakeKV()
	s := store(kv, "a")
	_, err := s.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	for name, damage := range map[string]func(){
		"deleted":         func() { delete(kv.values, testKey) },
		"empty":           func() { kv.values[testKey] = nil },
		"torn":            func() { kv.values[testKey] = kv.values[testKey][:20] },
		"without owner":   func() { kv.values[testKey] = []byte(legacyValue) },
		"as it should be": func() {},
	} {
		t.Run(name, func(t *testing.T) {
			damage()
			require.NoError(t, s.write(t.Context(), at(1, 0)))
			assert.Equal(t, at(1, 0).Last, kv.stored(t).Last)
		})
	}
}

func TestARunningInputYieldsToANewerRelease(t *testing.T) {
	kv := newFakeKV()
	s := store(kv, "a")
	kv.values[testKey] = []byte(`{"version":2,"owner":"something else"}`)
	var taken *TakenError
	require.ErrorAs(t, s.write(t.Context(), at(1, 0)), &taken)
	require.ErrorContains(t, taken, "(host unknown, a newer release)")
	assert.Zero(t, kv.count())
}

func TestOwnersDiffer(t *testing.T) {
	a, b := NewOwner(), NewOwner()
	assert.NotEqual(t, a.ID, b.ID)
	assert.NotEmpty(t, a.Host)
	assert.NotZero(t, a.PID)
}

// brokenCache is a cache resource whose calls all fail.
type brokenCache struct{ service.Cache }

func (brokenCache) Get(context.Context, string) ([]byte, error) { return nil, errCache }
func (brokenCache) Close(context.Context) error                 { return nil }

func init() {
	service.MustRegisterCache("cache_test_broken", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.Cache, error) { return brokenCache{}, nil })
}

func TestBothErrorsOfACacheResourceAreSeen(t *testing.T) {
	builder := service.NewResourceBuilder()
	require.NoError(t, builder.AddCacheYAML("label: broken\ncache_test_broken: {}\n"))
	resources, stop, err := builder.Build()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop(context.Background())) }()

	_, err = NewStore(Resource(resources, "broken"), testKey, NewOwner()).Load(t.Context())
	require.ErrorIs(t, err, errCache)
	require.EqualError(t, err, `reading the checkpoint under key "some-key": cache resource "broken": cache is broken`)
	_, err = NewStore(Resource(resources, "unknown"), testKey, NewOwner()).Load(t.Context())
	require.ErrorContains(t, err, `accessing cache resource "unknown": `)
	require.ErrorContains(t, Resource(resources, "unknown").Set(t.Context(), "k", nil), `accessing cache resource "unknown": `)
}

func TestAStoreWorksOnACacheResource(t *testing.T) {
	kv := Resource(service.MockResources(service.MockResourcesOptAddCache("mem")), "mem")
	s := NewStore(kv, testKey, NewOwner())
	loaded, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Nil(t, loaded)
	claimed, err := s.Claim(t.Context(), Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	loaded, err = s.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, claimed, loaded)
}

// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// KV is what a Store needs of a cache. Get returns service.ErrKeyNotFound for
// a key that is absent.
type KV interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Set(ctx context.Context, key string, value []byte) error
}

// Resource returns the KV of a cache resource.
func Resource(resources *service.Resources, name string) KV {
	return &resource{resources: resources, name: name}
}

type resource struct {
	resources *service.Resources
	name      string
}

func (r *resource) Get(ctx context.Context, key string) (value []byte, err error) {
	err = r.access(ctx, func(c service.Cache) error {
		value, err = c.Get(ctx, key)
		return err
	})
	return value, err
}

func (r *resource) Set(ctx context.Context, key string, value []byte) error {
	return r.access(ctx, func(c service.Cache) error {
		// Without a lifetime of ours: a checkpoint must not expire.
		return c.Set(ctx, key, value, nil)
	})
}

// access keeps both errors apart that AccessCache can end with: that the cache
// could not be reached, and that it failed.
func (r *resource) access(ctx context.Context, use func(service.Cache) error) error {
	var failed error
	if err := r.resources.AccessCache(ctx, r.name, func(c service.Cache) { failed = use(c) }); err != nil {
		return fmt.Errorf("accessing cache resource %q: %w", r.name, err)
	}
	if failed != nil {
		return fmt.Errorf("cache resource %q: %w", r.name, failed)
	}
	return nil
}

// ErrChanged says that the stored value is no longer that which was validated.
// Loading and validating it again is all there is to do.
var ErrChanged = errors.New("the checkpoint was changed by another input while it was validated")

// Store reads, claims and writes the checkpoint of one key for one input. Load
// and Claim come first, one after another; then a Writer owns the Store.
type Store struct {
	kv    KV
	key   string
	owner Owner
}

// NewStore does no I/O.
func NewStore(kv KV, key string, owner Owner) *Store {
	return &Store{kv: kv, key: key, owner: owner}
}

// Key returns the cache key.
func (s *Store) Key() string { return s.key }

// Load returns what is stored, or nil if the key is absent. What can't be used
// is a *ValueError. Load never writes.
func (s *Store) Load(ctx context.Context) (*Checkpoint, error) {
	stored, err := s.kv.Get(ctx, s.key)
	switch {
	case errors.Is(err, service.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the checkpoint under key %q: %w", s.key, err)
	}
	return Decode(s.key, stored)
}

// Claim makes this input the owner of the key. validated is what Load returned
// and the caller approved, or Unclaimed where there was nothing. What is stored
// meanwhile is kept: a place of the same table, which the owner before wrote, is
// claimed in place of validated; anything else is ErrChanged. The value is read
// back, so a cache that keeps nothing fails here and not at the first restart.
// The checkpoint that was stored is returned: go on from that one.
func (s *Store) Claim(ctx context.Context, validated *Checkpoint) (*Checkpoint, error) {
	stored, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		stored = validated
	}
	if !sameTable(stored, validated) {
		return nil, fmt.Errorf("claiming the checkpoint under key %q: %w", s.key, ErrChanged)
	}
	s.owner = s.owner.succeed(stored.Owner)
	claimed := s.owned(stored)
	if err := s.set(ctx, claimed); err != nil {
		return nil, err
	}
	if err := s.confirm(ctx); err != nil {
		return nil, err
	}
	return claimed, nil
}

// sameTable tells whether whoever approved b would approve a.
func sameTable(a, b *Checkpoint) bool {
	aUUID, aContent := a.Identity()
	bUUID, bContent := b.Identity()
	return a.Started() == b.Started() && aUUID == bUUID && aContent == bContent &&
		a.Matches(b.Branch, b.Namespace, b.Table) == nil
}

// confirm reads a claim back. An older token is accepted: the cache may read
// stale values for a moment, and the writer overrules that owner.
func (s *Store) confirm(ctx context.Context) error {
	stored, err := s.Load(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("reading back the claim: %w", err)
	case stored == nil:
		return fmt.Errorf("the cache stored the checkpoint under key %q and does not find it: it does not keep what it is given", s.key)
	case s.owner.yieldsTo(stored.Owner):
		return &TakenError{Key: s.key, Owner: *stored.Owner}
	default:
		return nil
	}
}

// write stores c unless a newer owner claimed the key: then it returns a
// *TakenError. A value that is absent, damaged or without an owner is written
// over, because the place of a running input is better than any of these.
func (s *Store) write(ctx context.Context, c *Checkpoint) error {
	stored, err := s.Load(ctx)
	switch damaged := new(ValueError); {
	case errors.Is(err, ErrNewerVersion):
		return &TakenError{Key: s.key, Owner: Owner{Host: "unknown, a newer release"}}
	case err != nil && !errors.As(err, &damaged):
		return err
	case stored != nil && s.owner.yieldsTo(stored.Owner):
		return &TakenError{Key: s.key, Owner: *stored.Owner}
	}
	// The cache may have returned late, not knowing that nobody waits for it.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("writing the checkpoint under key %q: %w", s.key, err)
	}
	return s.set(ctx, s.owned(c))
}

// owned returns a copy of c with the token of this input.
func (s *Store) owned(c *Checkpoint) *Checkpoint {
	owner, owned := s.owner, *c
	owned.Owner = &owner
	return &owned
}

func (s *Store) set(ctx context.Context, c *Checkpoint) error {
	encoded, err := Encode(c)
	if err != nil {
		return err
	}
	if err := s.kv.Set(ctx, s.key, encoded); err != nil {
		return fmt.Errorf("writing the checkpoint under key %q: %w", s.key, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldBucket      = "bucket"
	fieldContentType = "content_type"

	objectDescription = "An item is an object, its key the object's name. What is stored is durable when the write returns, and readers find the old object or the new one. Adding an item writes on the condition that there is none, so of several writers one wins.\n\nItems never expire: a TTL is ignored; the store's own rules of retention apply."
)

var (
	errNoObject     = errors.New("there is no such object")
	errObjectExists = errors.New("the object exists")
)

// store is a bucket of an object store. It may be used concurrently.
type store interface {
	get(ctx context.Context, name string) ([]byte, error)                    // errNoObject
	put(ctx context.Context, name string, value []byte, ifAbsent bool) error // errObjectExists
	remove(ctx context.Context, name string) error                           // nil or errNoObject where there is none
	close() error
}

// register makes a store known as a cache.
func register[S store](name string, spec *service.ConfigSpec, open func(*service.ParsedConfig) (S, error)) {
	service.MustRegisterCache(name, spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		s, err := open(conf)
		if err != nil {
			return nil, err
		}
		return objects{s}, nil
	})
}

// objects is the cache on a store.
type objects struct{ store store }

func (o objects) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := o.store.get(ctx, key)
	switch {
	case errors.Is(err, errNoObject):
		return nil, service.ErrKeyNotFound
	case err != nil:
		return nil, fmt.Errorf("reading object %q: %w", key, err)
	}
	return value, nil
}

func (o objects) Set(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	if err := o.store.put(ctx, key, value, false); err != nil {
		return fmt.Errorf("writing object %q: %w", key, err)
	}
	return nil
}

func (o objects) Add(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	err := o.store.put(ctx, key, value, true)
	switch {
	case errors.Is(err, errObjectExists):
		return service.ErrKeyAlreadyExists
	case err != nil:
		return fmt.Errorf("adding object %q: %w", key, err)
	}
	return nil
}

func (o objects) Delete(ctx context.Context, key string) error {
	if err := o.store.remove(ctx, key); err != nil && !errors.Is(err, errNoObject) {
		return fmt.Errorf("deleting object %q: %w", key, err)
	}
	return nil
}

func (o objects) Close(context.Context) error { return o.store.close() }

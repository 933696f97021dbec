// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	rFieldURL        = "url"
	rFieldKind       = "kind"
	rFieldMaster     = "master"
	rFieldTLS        = "tls"
	rFieldPrefix     = "prefix"
	rFieldDefaultTTL = "default_ttl"
	fieldRetries     = "retries"

	kindSimple   = "simple"
	kindCluster  = "cluster"
	kindFailover = "failover"
)

func init() {
	// The client would write to standard error, in a form of its own, what it also returns.
	redis.SetLogger(silence{})
	service.MustRegisterCache("redis", redisSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		return newRedis(conf)
	})
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func redisSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Integration").
		Summary("Keeps each item under a key of a Redis server.").
		Description("How durable an item is depends on the server: for checkpoints it needs `appendonly yes` (with `appendfsync always` no acknowledged write is lost in a crash of the machine, with the default `everysec` up to a second of them is) and an eviction policy that leaves keys without a lifetime alone (`noeviction` or one of `volatile-*`). A checkpoint that was lost a little is no lost row: rows come again.\n\nItems expire only if `"+rFieldDefaultTTL+"` says so, or the pipeline for a single item.").
		Fields(
			service.NewStringField(rFieldURL).
				Description("The server. The path is the number of the database. Of a cluster, or with sentinels, several may be given, separated by commas.").
				Example("redis://localhost:6379").
				Example("redis://follower:${REDIS_PASSWORD}@redis:6379/2").
				Example("rediss://redis:6380").
				Example("redis://one:6379,redis://two:6379").
				Secret(),
			service.NewStringAnnotatedEnumField(rFieldKind, map[string]string{
				kindSimple:   "One server.",
				kindCluster:  "A Redis cluster.",
				kindFailover: "Servers that sentinels watch; `url` names the sentinels.",
			}).
				Description("What is behind the URL.").
				Default(kindSimple).
				Advanced(),
			service.NewStringField(rFieldMaster).
				Description("The master's name, for `"+kindFailover+"`.").
				Default("").
				Advanced().
				Example("mymaster"),
			service.NewTLSToggledField(rFieldTLS),
			service.NewStringField(rFieldPrefix).
				Description("Text in front of all keys.").
				Optional().
				Example("rpk-nessie:"),
			service.NewDurationField(rFieldDefaultTTL).
				LintRule(forms.Duration).
				Description("The lifetime of items that are stored without one. Without this field they last; leave it away for checkpoints, which must last.").
				Optional().
				Advanced(),
			retriesField(500*time.Millisecond, time.Second, 5*time.Second),
		).
		LintRule(`root = if this.kind.or("") == "failover" && this.master.or("") == "" { "kind failover needs the name of its master" }`).
		Example("Checkpoints", "The place of an input in Redis.", `
cache_resources:
  - label: progress
    redis:
      url: redis://localhost:6379
      prefix: "rpk-nessie:"
`)
}

// retriesField says how long a call that failed is tried again.
func retriesField(first, longest, all time.Duration) *service.ConfigField {
	return service.NewBackOffField(fieldRetries, false, &backoff.ExponentialBackOff{
		InitialInterval: first, MaxInterval: longest, MaxElapsedTime: all,
	}).Advanced()
}

// retries are the settings of retriesField; each call takes a fresh copy.
type retries struct{ backoff.ExponentialBackOff }

func parseRetries(conf *service.ParsedConfig) (retries, error) {
	b, err := conf.FieldBackOff(fieldRetries)
	if err != nil {
		return retries{}, err
	}
	return retries{*b}, nil
}

// do calls until it succeeds, ctx ends, the time is over, or lasting says that the error will not go away.
func (r retries) do(ctx context.Context, lasting func(error) bool, call func() error) error {
	b := r.ExponentialBackOff
	b.Reset()
	return backoff.Retry(func() error {
		err := call()
		if err != nil && lasting(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(&b, ctx))
}

// redisCache may be used concurrently.
type redisCache struct {
	client  redis.UniversalClient
	prefix  string
	ttl     time.Duration // 0 is for ever
	retries retries
}

func newRedis(conf *service.ParsedConfig) (*redisCache, error) {
	c := &redisCache{}
	var err error
	if conf.Contains(rFieldPrefix) {
		if c.prefix, err = conf.FieldString(rFieldPrefix); err != nil {
			return nil, err
		}
	}
	if conf.Contains(rFieldDefaultTTL) {
		if c.ttl, err = conf.FieldDuration(rFieldDefaultTTL); err != nil {
			return nil, err
		}
		if c.ttl < 0 {
			return nil, fmt.Errorf("%s must not be negative", rFieldDefaultTTL)
		}
	}
	if c.retries, err = parseRetries(conf); err != nil {
		return nil, err
	}
	c.client, err = redisClient(conf)
	return c, err
}

// redisClient does no I/O.
func redisClient(conf *service.ParsedConfig) (redis.UniversalClient, error) {
	urls, err := conf.FieldString(rFieldURL)
	if err != nil {
		return nil, err
	}
	opts, err := redisOptions(urls)
	if err != nil {
		return nil, err
	}
	tls, enabled, err := conf.FieldTLSToggled(rFieldTLS)
	if err != nil {
		return nil, err
	}
	if enabled {
		opts.TLSConfig = tls
	}
	kind, err := conf.FieldString(rFieldKind)
	if err != nil {
		return nil, err
	}
	if opts.MasterName, err = conf.FieldString(rFieldMaster); err != nil {
		return nil, err
	}
	switch kind {
	case kindSimple:
		if len(opts.Addrs) > 1 {
			return nil, fmt.Errorf("%s %s takes one %s", rFieldKind, kindSimple, rFieldURL)
		}
		return redis.NewClient(opts.Simple()), nil
	case kindCluster:
		return redis.NewClusterClient(opts.Cluster()), nil
	case kindFailover:
		if opts.MasterName == "" {
			return nil, fmt.Errorf("%s %s needs the name of its %s", rFieldKind, kindFailover, rFieldMaster)
		}
		return redis.NewFailoverClient(opts.Failover()), nil
	default:
		return nil, fmt.Errorf("unknown %s %q", rFieldKind, kind)
	}
}

// redisOptions reads one URL or several. What is not an address is taken from the first.
func redisOptions(urls string) (*redis.UniversalOptions, error) {
	var opts *redis.UniversalOptions
	for text := range strings.SplitSeq(urls, ",") {
		one, err := redis.ParseURL(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rFieldURL, withoutUser(err))
		}
		if opts == nil {
			opts = &redis.UniversalOptions{
				DB: one.DB, Username: one.Username, Password: one.Password, TLSConfig: cloneTLS(one.TLSConfig),
				MaxRetries: -1, DialerRetries: 1, // retries are ours
			}
		}
		if !slices.Contains(opts.Addrs, one.Addr) {
			opts.Addrs = append(opts.Addrs, one.Addr)
		}
	}
	return opts, nil
}

func cloneTLS(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.ServerName = "" // it is that of the address which is dialled
	return c
}

// withoutUser leaves the URL out of an error: it may hold a password.
func withoutUser(err error) error {
	if parse := (&url.Error{}); errors.As(err, &parse) {
		return parse.Err
	}
	return err
}

// absent tells apart that a key is absent, which repeating does not change.
func absent(err error) bool { return errors.Is(err, redis.Nil) }

func (c *redisCache) Get(ctx context.Context, key string) (value []byte, err error) {
	err = c.retries.do(ctx, absent, func() error {
		value, err = c.client.Get(ctx, c.prefix+key).Bytes()
		return err
	})
	if absent(err) {
		return nil, service.ErrKeyNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading key %q: %w", key, err)
	}
	return value, nil
}

func (c *redisCache) Set(ctx context.Context, key string, value []byte, ttl *time.Duration) error {
	err := c.retries.do(ctx, absent, func() error {
		return c.client.Set(ctx, c.prefix+key, value, c.lifetime(ttl)).Err()
	})
	if err != nil {
		return fmt.Errorf("writing key %q: %w", key, err)
	}
	return nil
}

// Add is not repeated: the call before may have succeeded unseen, and would then look like another's.
func (c *redisCache) Add(ctx context.Context, key string, value []byte, ttl *time.Duration) error {
	err := c.client.SetArgs(ctx, c.prefix+key, value, redis.SetArgs{Mode: "NX", TTL: c.lifetime(ttl)}).Err()
	switch {
	case absent(err):
		return service.ErrKeyAlreadyExists
	case err != nil:
		return fmt.Errorf("adding key %q: %w", key, err)
	}
	return nil
}

func (c *redisCache) Delete(ctx context.Context, key string) error {
	err := c.retries.do(ctx, absent, func() error { return c.client.Del(ctx, c.prefix+key).Err() })
	if err != nil {
		return fmt.Errorf("deleting key %q: %w", key, err)
	}
	return nil
}

func (c *redisCache) lifetime(ttl *time.Duration) time.Duration {
	if ttl != nil {
		return *ttl
	}
	return c.ttl
}

func (c *redisCache) Close(context.Context) error { return c.client.Close() }

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// ParseInput reads and checks the settings of one `nessie` input, without what
// surrounds them: `base_url: …`. Environment variables must be replaced
// already. Nothing is started.
func ParseInput(yaml string) (*Config, error) {
	parsed, err := inputSpec().ParseYAML(yaml, nil)
	if err != nil {
		return nil, err
	}
	return parseConfig(parsed)
}

// Inspector looks at a table, and at the checkpoint of the input that would
// follow it, with that input's settings and eyes. It delivers nothing and
// claims no checkpoint key. Its methods may run at the same time.
type Inspector struct {
	Config  *Config
	Client  *catalog.Client
	Storage *catalog.Storage

	res       *service.Resources
	metrics   *metrics
	transport *http.Transport
}

// ErrNoCheckpoints says that the input keeps no checkpoint.
var ErrNoCheckpoints = errors.New("this input keeps no checkpoint: that needs incremental_by_snapshot: true and a checkpoint_cache")

// NewInspector does no I/O. The resources must hold the cache and the rate
// limit that the settings name, where what needs them is asked for.
func NewInspector(conf *Config, res *service.Resources) (*Inspector, error) {
	if conf.RateLimit != "" && !res.HasRateLimit(conf.RateLimit) {
		return nil, fmt.Errorf("field %s: there is no rate limit resource %q", niFieldRateLimit, conf.RateLimit)
	}
	i := &Inspector{Config: conf, res: res, metrics: newMetrics(res.Metrics(), conf.Key.String())}
	if conf.TLS != nil {
		i.transport = catalog.NewTransport(conf.TLS)
	}
	var err error
	if i.Client, err = newClient(conf, res, i.metrics, i.transport); err != nil {
		return nil, err
	}
	if i.Storage, err = catalog.NewStorage(conf.Storage); err != nil {
		return nil, err
	}
	return i, nil
}

// Close gives connections back.
func (i *Inspector) Close() error {
	i.Client.Close()
	if i.transport != nil {
		i.transport.CloseIdleConnections()
	}
	return i.Storage.Close()
}

// Look is a table as of one commit, and the history that leads back from it.
// It serves one goroutine at a time.
type Look struct {
	Head    catalog.Head
	Table   *catalog.Table
	State   catalog.State
	History *catalog.History
}

// Look reads what the table is at a reference, which need not be the input's.
func (i *Inspector) Look(ctx context.Context, ref catalog.Ref) (*Look, error) {
	head, err := i.Client.Head(ctx, ref, i.Config.Key)
	if err != nil {
		return nil, err
	}
	l, err := i.follower().open(ctx, head)
	if err != nil {
		return nil, err
	}
	return &Look{Head: l.head, Table: l.table, State: l.state, History: l.history}, nil
}

// CheckColumns holds the settings that name columns (columns, query,
// identifier_fields) against the table, as every poll does before it reads. It
// reads no file.
func (i *Inspector) CheckColumns(ctx context.Context, l *Look) error {
	nothing := catalog.State{SnapshotID: catalog.NoSnapshot, TableUUID: l.State.TableUUID, ContentID: l.State.ContentID}
	what := scan.Step{Way: scan.WayTableScan, After: nothing, Columns: i.Config.Columns, Schema: l.Table.Meta.CurrentSchema()}
	if !i.Config.Incremental {
		what.Query = i.Config.Query
	} else if schema := l.Table.Schema(l.State.SchemaID); schema != nil && !l.State.Empty() {
		what.Schema = schema // that of the snapshot
	}
	source := scan.Source{FS: i.Storage.Within(ctx), Meta: l.Table.Meta}
	var err error
	if i.Config.Changelog() {
		_, err = scan.PlanChanges(ctx, source, what, scan.ChangeOptions{IdentifierFields: i.Config.IdentifierFields})
	} else {
		_, err = scan.PlanStep(ctx, source, what)
	}
	return err
}

// follower is one that reads nothing to its end: its place is where the input
// would begin without a checkpoint.
func (i *Inspector) follower() *follower {
	return &follower{
		conf: i.Config, client: i.Client, storage: i.Storage, log: i.res.Logger(), metrics: i.metrics, res: i.res,
		storeStart: func(context.Context, place) error { return nil },
		settled:    func(context.Context) error { return nil },
		lag:        func(int64, int64) {},
	}
}

// CheckpointKey is the key of the input's checkpoint, ErrNoCheckpoints where
// it keeps none.
func (i *Inspector) CheckpointKey() (string, error) {
	if !i.Config.Incremental || !i.Config.Checkpoints {
		return "", ErrNoCheckpoints
	}
	if i.Config.CheckpointKey != "" {
		return i.Config.CheckpointKey, nil
	}
	return cache.DeriveKey(i.Config.BaseURL, i.Config.Ref.String(), i.Config.Key.Namespace(), i.Config.Key.Name())
}

// Cache is the cache that holds the checkpoint.
func (i *Inspector) Cache() (cache.KV, error) {
	if !i.Config.Incremental || !i.Config.Checkpoints {
		return nil, ErrNoCheckpoints
	}
	if !i.res.HasCache(i.Config.CheckpointCache) {
		return nil, fmt.Errorf("field %s: there is no cache resource %q", niFieldCache, i.Config.CheckpointCache)
	}
	return cache.Resource(i.res, i.Config.CheckpointCache), nil
}

// DeleteCheckpoint deletes the stored value, whatever it is.
func (i *Inspector) DeleteCheckpoint(ctx context.Context, key string) error {
	var failed error
	if err := i.res.AccessCache(ctx, i.Config.CheckpointCache, func(c service.Cache) { failed = c.Delete(ctx, key) }); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("deleting key %q of cache %q: %w", key, i.Config.CheckpointCache, failed)
	}
	return nil
}

// Checkpoint reads the stored checkpoint; nil where there is none. A value that
// can't be used is a *cache.ValueError.
func (i *Inspector) Checkpoint(ctx context.Context) (*cache.Checkpoint, error) {
	store, err := i.CheckpointStore()
	if err != nil {
		return nil, err
	}
	return store.Load(ctx)
}

// CheckCheckpoint holds a stored checkpoint against the table at the reference,
// as a starting input does.
func (i *Inspector) CheckCheckpoint(stored *cache.Checkpoint, head catalog.Head) error {
	if err := (&progress{conf: i.Config}).validate(stored, head); err != nil {
		return fmt.Errorf("the stored checkpoint can't be used: %w", err)
	}
	return nil
}

// CheckpointStore gives access to the stored value as one more owner of its
// key: whoever claims it stops an input that still runs.
func (i *Inspector) CheckpointStore() (*cache.Store, error) {
	key, err := i.CheckpointKey()
	if err != nil {
		return nil, err
	}
	kv, err := i.Cache()
	if err != nil {
		return nil, err
	}
	return cache.NewStore(kv, key, cache.NewOwner()), nil
}

// PlaceOf is the place that a checkpoint holds, and the step under way there;
// nil where it is between steps.
func PlaceOf(c *cache.Checkpoint) (lineage.Place, *lineage.Step, error) {
	at, err := fromCheckpoint(c)
	if err != nil || at.Step == nil {
		return at.Place, nil, err
	}
	return at.Place, &at.Step.Step, nil
}

// CheckpointAt is the checkpoint of an input that has delivered everything up
// to a state. ordinal must be above that of every checkpoint that was stored
// before, so that it counts as the newest.
func (i *Inspector) CheckpointAt(s catalog.State, commit catalog.TableCommit, ordinal int64) *cache.Checkpoint {
	return toCheckpoint(i.Config, place{
		Started:      true,
		Place:        lineage.Place{State: s, Commit: commit.Hash},
		CommitTimeMs: commit.TimeMs,
		Ordinal:      ordinal,
	})
}

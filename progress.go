// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// progress follows what the output acknowledges and keeps it in the checkpoint
// cache, where there is one.
type progress struct {
	conf    *Config
	log     *service.Logger
	metrics *metrics
	tracker *cache.Tracker[place]

	store  *cache.Store  // nil without checkpoints
	writer *cache.Writer // nil until the key is claimed
	loaded bool

	// dropNacked: a refused batch is dropped, by the user's wish.
	dropNacked  bool
	dropMu      sync.Mutex
	dropped     int64
	dropWarned  time.Time
	takenOnce   sync.Once
	takenSignal chan struct{}
	takenErr    error

	lagMu    sync.Mutex
	target   int64
	commitMs int64
	acked    place
}

// newProgress makes the keeper of an input's progress. The returned function
// gives the checkpoint key back.
func newProgress(conf *Config, res *service.Resources, m *metrics) (*progress, func(), error) {
	p := &progress{conf: conf, log: res.Logger(), metrics: m, takenSignal: make(chan struct{})}
	p.tracker = cache.NewTracker(cache.Limits{Rows: int64(conf.CheckpointLimit), Bytes: conf.Memory}, p.advance)
	if !conf.Incremental || !conf.Checkpoints {
		return p, func() {}, nil
	}
	if !res.HasCache(conf.CheckpointCache) {
		return nil, nil, fmt.Errorf("field %s: there is no cache resource %q", niFieldCache, conf.CheckpointCache)
	}
	// Benthos makes cache resources at their first use: a wrong configuration of
	// the cache shows here, and not once rows are acknowledged.
	if err := res.AccessCache(context.Background(), conf.CheckpointCache, func(service.Cache) {}); err != nil {
		return nil, nil, fmt.Errorf("field %s: opening cache %q: %w", niFieldCache, conf.CheckpointCache, err)
	}
	key := conf.CheckpointKey
	if key == "" {
		var err error
		namespace := conf.Key[:len(conf.Key)-1]
		if key, err = cache.DeriveKey(conf.BaseURL, conf.Ref.String(), namespace, conf.Key[len(conf.Key)-1]); err != nil {
			return nil, nil, err
		}
	}
	release, err := holdKey(res, conf.CheckpointCache, key)
	if err != nil {
		return nil, nil, err
	}
	p.store = cache.NewStore(cache.Resource(res, conf.CheckpointCache), key, cache.NewOwner())
	return p, release, nil
}

// load reads and validates the checkpoint, then claims its key. It is done
// once: later the place in memory counts.
func (p *progress) load(ctx context.Context, head catalog.Head) (place, error) {
	if p.store == nil {
		p.loaded = true
		return place{}, nil
	}
	stored, err := p.store.Load(ctx)
	if err != nil {
		return place{}, err
	}
	if stored == nil {
		stored = cache.Unclaimed(p.conf.Ref.String(), p.conf.Namespace, p.conf.Key[len(p.conf.Key)-1])
	}
	if err := p.validate(stored, head); err != nil {
		return place{}, &cache.ValueError{Key: p.store.Key(), Reason: err.Error()}
	}
	p.reportNames(stored)
	claimed, err := p.store.Claim(ctx, stored)
	if err != nil {
		return place{}, err
	}
	at := place{}
	if claimed.Started() {
		if at, err = fromCheckpoint(claimed); err != nil {
			return place{}, err
		}
		p.log.Infof("Going on %s, as the checkpoint under key %q says", describeResume(at), p.store.Key())
	}
	p.writer = cache.NewWriter(p.store, claimed, cache.WriterConfig{
		Timeout: p.conf.WriteTimeout,
		OnWrite: func(result string) { p.metrics.checkpointWrites.Incr(1, p.metrics.table, result) },
		OnError: func(err error) { p.log.Warnf("Writing the checkpoint failed, trying again: %v", err) },
		OnTaken: func(err *cache.TakenError) { p.setTaken(err) },
	})
	p.loaded = true
	p.acked = at
	return at, nil
}

// validate refuses a value of another table. Ids decide where they are known;
// a table that was replaced under its name is the lineage policy's matter.
func (p *progress) validate(stored *cache.Checkpoint, head catalog.Head) error {
	if !stored.Started() {
		return nil
	}
	_, contentID := stored.Identity()
	if !stored.Legacy() && contentID == head.Content.ID {
		return nil
	}
	return stored.Matches(p.conf.Ref.String(), p.conf.Namespace, p.conf.Key[len(p.conf.Key)-1])
}

// reportNames tells of a checkpoint that was written under other names. Its ids
// are the table's, so it is followed: a branch was renamed, or made of another.
func (p *progress) reportNames(stored *cache.Checkpoint) {
	if !stored.Started() {
		return
	}
	if stored.Matches(p.conf.Ref.String(), p.conf.Namespace, p.conf.Key[len(p.conf.Key)-1]) == nil {
		return
	}
	tell := p.log.Infof
	if stored.Branch != p.conf.Ref.String() {
		tell = p.log.Warnf // another branch may well have another history
	}
	tell("The checkpoint under key %q was written for branch %q, namespace %q, table %q. Branch %q, namespace %q, table %q holds the same table (content id %s), so reading goes on from there",
		p.store.Key(), stored.Branch, stored.Namespace, stored.Table, p.conf.Ref, p.conf.Namespace, p.conf.Key[len(p.conf.Key)-1], stored.Last.ContentID)
}

// storeStart writes a place that was chosen, or a step that is under way,
// before anything of it is delivered. A cache that does not take it is an
// error, so that readiness shows it.
func (p *progress) storeStart(ctx context.Context, at place) error {
	if p.writer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.conf.WriteTimeout)
	defer cancel()
	return p.writer.PutSync(ctx, toCheckpoint(p.conf, at))
}

// track counts an item as in flight until its acknowledgement is called. It
// blocks while the limits are reached.
func (p *progress) track(ctx context.Context, it item) (service.AckFunc, error) {
	if it.rows == 0 {
		p.tracker.Mark(it.place)
		return func(context.Context, error) error { return nil }, nil
	}
	resolve, err := p.tracker.Track(ctx, it.rows, it.bytes, it.place)
	if err != nil {
		return nil, err
	}
	p.showInFlight()
	return func(_ context.Context, refused error) error {
		if refused != nil && !p.dropNacked {
			return nil // what sends batches again calls with success only
		}
		if refused != nil {
			p.drop(it.rows, refused)
		} else {
			p.metrics.rowsAcked.Incr(int64(it.rows), p.metrics.table)
		}
		if it.completes {
			p.metrics.snapshotsAcked.Incr(1, p.metrics.table)
		}
		resolve()
		p.showInFlight()
		return nil
	}, nil
}

func (p *progress) showInFlight() { p.metrics.rowsInFlight.Set(p.inFlight(), p.metrics.table) }

func (p *progress) inFlight() int64 {
	rows, _ := p.tracker.InFlight()
	return rows
}

// drop counts rows that the output refused and nobody sends again. It warns at
// most once a second.
func (p *progress) drop(rows int, refused error) {
	p.metrics.rowsDropped.Incr(int64(rows), p.metrics.table)
	p.dropMu.Lock()
	defer p.dropMu.Unlock()
	p.dropped += int64(rows)
	if now := time.Now(); now.Sub(p.dropWarned) >= time.Second {
		p.dropWarned = now
		p.log.Warnf("The output refused rows, which are dropped because of auto_replay_nacks: false; %d until now, the last because of: %v", p.dropped, refused)
	}
}

func (p *progress) droppedRows() int64 {
	p.dropMu.Lock()
	defer p.dropMu.Unlock()
	return p.dropped
}

// advance is called by the tracker with each new end of the acknowledged
// prefix.
func (p *progress) advance(at place) {
	if p.writer != nil {
		p.writer.Put(toCheckpoint(p.conf, at))
	}
	p.metrics.ackedSequence.Set(at.State.Sequence, p.metrics.table)
	p.lagMu.Lock()
	defer p.lagMu.Unlock()
	p.acked = at
	p.showLag()
}

// headIs notes how many steps are known and when the newest commit was made.
func (p *progress) headIs(target, commitMs int64) {
	p.lagMu.Lock()
	defer p.lagMu.Unlock()
	p.target, p.commitMs = target, commitMs
	p.showLag()
}

func (p *progress) showLag() {
	steps := max(p.target-p.acked.Ordinal, 0)
	p.metrics.lagSnapshots.Set(steps, p.metrics.table)
	seconds := int64(0)
	if steps > 0 && p.acked.CommitTimeMs > 0 {
		seconds = max(p.commitMs-p.acked.CommitTimeMs, 0) / 1000
	}
	p.metrics.lagSeconds.Set(seconds, p.metrics.table)
}

// settled waits until everything that was handed out is acknowledged.
func (p *progress) settled(ctx context.Context) error { return p.tracker.Wait(ctx) }

func (p *progress) setTaken(err *cache.TakenError) {
	p.takenOnce.Do(func() {
		p.takenErr = err
		close(p.takenSignal)
	})
}

// lost is closed when another input took the checkpoint key over.
func (p *progress) lost() <-chan struct{} { return p.takenSignal }

// taken is the error of a lost key, or nil.
func (p *progress) taken() error {
	select {
	case <-p.takenSignal:
		return p.takenErr
	default:
		return nil
	}
}

// close writes what is not written yet.
func (p *progress) close(ctx context.Context) error {
	if p.writer == nil {
		return nil
	}
	err := p.writer.Close(ctx)
	if taken := new(cache.TakenError); errors.As(err, &taken) {
		return nil // reported when it happened
	}
	return err
}

// heldKeys are the checkpoint keys that the inputs of one process use. It
// stands among the generic resources, which all of them share.
type heldKeys struct {
	mu     sync.Mutex
	labels map[heldKey]string
}

type heldKey struct{ cache, key string }

type heldKeysKey struct{}

// holdKey refuses a second input on one cache and key.
func holdKey(res *service.Resources, cacheName, key string) (release func(), err error) {
	shared, _ := res.GetOrSetGeneric(heldKeysKey{}, &heldKeys{labels: map[heldKey]string{}})
	held := shared.(*heldKeys)
	held.mu.Lock()
	defer held.mu.Unlock()
	k := heldKey{cacheName, key}
	if other, taken := held.labels[k]; taken {
		return nil, fmt.Errorf("inputs %s and %s share key %q of cache %q: give one of them another %s. If the first is left over from a pipeline that failed to start, restart the process: Benthos does not close such inputs", other, quoteLabel(res.Label()), key, cacheName, niFieldCacheKey)
	}
	held.labels[k] = quoteLabel(res.Label())
	var once sync.Once
	return func() {
		once.Do(func() {
			held.mu.Lock()
			defer held.mu.Unlock()
			delete(held.labels, k)
		})
	}, nil
}

func quoteLabel(label string) string {
	if label == "" {
		return "(without a label)"
	}
	return fmt.Sprintf("%q", label)
}

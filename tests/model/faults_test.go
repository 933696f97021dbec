// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/apache/iceberg-go/io/gocloud/s3" // the writer's file IO for s3://
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
)

// scene is a table in an S3 store, and one life of an input on it that has
// caught up.
type scene struct {
	t      *testing.T
	w      *world
	s3     *corpus.S3
	keeper *histories.Keeper
	ledger *ledger
	pol    policies
	life   *histories.Life
}

func openScene(t *testing.T, limit int) *scene {
	t.Helper()
	s3, err := corpus.StartS3()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s3.Close()) })
	w := openWorld(t.Context(), t, nessietest.WriterConfig{
		Warehouse: "s3://" + corpus.Bucket + "/warehouse",
		Storage: map[string]string{
			"s3.endpoint": s3.Endpoint, "s3.region": "us-east-1", "s3.access-key-id": "id", "s3.secret-access-key": "secret",
		},
	})
	w.storage = fmt.Sprintf("{ aws_s3: { endpoint: %q, region: us-east-1, force_path_style_urls: true, credentials: { id: id, secret: topsecret } } }", s3.Endpoint)
	histories.Check(t, w.create())
	w.observe()
	s := &scene{t: t, w: w, s3: s3, ledger: newLedger(w), pol: policies{
		start: "earliest", lost: "fail", replaced: "fail", overwrite: "fail", del: "fail", limit: limit, batch: 1,
	}}
	s.keeper = histories.NewKeeper(s.ledger.stored)
	s.ledger.newLife(nil, s.pol)
	s.life = s.ledger.begin(s.keeper, s.pol)
	t.Cleanup(func() { s.ledger.kill(s.life) })
	s.takes(2)
	return s
}

// takes acknowledges what comes until a number of rows have come since the
// beginning.
func (s *scene) takes(rows int) {
	s.t.Helper()
	late := time.NewTimer(histories.Patience)
	defer late.Stop()
	for s.rows() < rows {
		select {
		case d := <-s.life.Got:
			s.ledger.accept(s.ledger.deliver(d))
		case <-late.C:
			_, _, refused := s.life.Seen()
			require.Fail(s.t, "rows do not come", "%d of %d; refusals: %v", s.rows(), rows, refused)
		}
	}
	require.Empty(s.t, s.ledger.verify())
}

func (s *scene) rows() int {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	n := 0
	for _, r := range s.ledger.rows {
		n += r.delivered
	}
	return n
}

// refusal waits until the input says why it stands still. Nothing may come.
func (s *scene) refusal() string {
	s.t.Helper()
	_, _, before := s.life.Seen()
	late := time.NewTimer(histories.Patience)
	defer late.Stop()
	for {
		select {
		case d := <-s.life.Got:
			s.ledger.deliver(d)
			require.Fail(s.t, "rows came instead of a refusal")
		case <-s.life.Stir:
			if _, _, now := s.life.Seen(); len(now) > len(before) {
				return now[len(now)-1]
			}
		case <-late.C:
			require.Fail(s.t, "no refusal came")
		}
	}
}

// at waits until the stored checkpoint stands at the head.
func (s *scene) at(h head) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		c := s.stored()
		return c.Position == nil && c.Last.SnapshotID == fmt.Sprint(h.snapshot)
	}, histories.Patience, time.Millisecond)
}

func (s *scene) stored() *cache.Checkpoint {
	s.t.Helper()
	c, err := cache.Decode("place", s.keeper.Stored())
	require.NoError(s.t, err)
	return c
}

// unseen commits rows while the input's looks at the branch are held, and lets
// something be done before the input sees the commit. It gets the keys that the
// commit wrote.
func (s *scene) unseen(rows int, do func(keys []string)) {
	s.t.Helper()
	look := make(chan struct{})
	s.w.Server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get(readerHeader) != "" {
			select {
			case <-look:
			case <-r.Context().Done():
			}
		}
		return false
	})
	s.s3.Requests()
	s.append(rows)
	var keys []string
	for _, r := range s.s3.Requests() {
		if r.Method == http.MethodPut {
			keys = append(keys, r.Key)
		}
	}
	do(keys)
	close(look)
}

func (s *scene) append(n int) {
	s.t.Helper()
	ids, rows := s.w.fresh(n)
	histories.Check(s.t, s.w.commit(nessietest.Change{Steps: []nessietest.Step{nessietest.Append(rows...)}}, effect{kind: added, rows: ids}))
	s.w.observe()
}

// files are the kinds of files of a snapshot, and how an error calls each.
var files = map[string]struct{ part, called string }{
	"metadata file": {".metadata.json", "metadata file"},
	"manifest list": {"/snap-", "manifest list"},
	"manifest":      {"-m1.avro", "manifest"},
	"data file":     {".parquet", "data file"},
}

// damages are what can become of a file.
var damages = map[string]func(t *testing.T, s3 *corpus.S3, key string, whole []byte){
	"missing": func(t *testing.T, s3 *corpus.S3, key string, _ []byte) { require.NoError(t, s3.Delete(key)) },
	"truncated": func(t *testing.T, s3 *corpus.S3, key string, whole []byte) {
		require.NoError(t, s3.Put(key, whole[:len(whole)/2]))
	},
	"empty": func(t *testing.T, s3 *corpus.S3, key string, _ []byte) { require.NoError(t, s3.Put(key, nil)) },
	"of other content": func(t *testing.T, s3 *corpus.S3, key string, whole []byte) {
		require.NoError(t, s3.Put(key, []byte(strings.Repeat("x", len(whole)))))
	},
}

// A file that can't be read stops the input at its place, with an error that
// names it, and once it is put back the running input goes on.
func TestABrokenFileStopsTheInputAtItsPlaceUntilItIsPutBack(t *testing.T) {
	for kind, file := range files {
		for how, damage := range damages {
			t.Run(kind+" "+how, func(t *testing.T) {
				t.Parallel()
				s := openScene(t, 65536)
				before := s.w.head()
				s.at(before)
				var (
					broken string
					whole  []byte
				)
				s.unseen(3, func(keys []string) {
					for _, key := range keys {
						if strings.Contains(key, file.part) {
							broken = key
						}
					}
					require.NotEmpty(t, broken, keys)
					var err error
					whole, err = s.s3.Get(broken)
					require.NoError(t, err)
					damage(t, s.s3, broken, whole)
				})
				why := s.refusal()
				assert.Contains(t, why, file.called)
				assert.Contains(t, why, broken)
				if how == "missing" && kind != "metadata file" {
					assert.Contains(t, why, "Restore the file")
				}
				assert.NotContains(t, why, "topsecret")
				s.at(before)
				require.NoError(t, s.s3.Put(broken, whole))
				s.takes(2 + 3)
				s.at(s.w.head())
			})
		}
	}
}

// What the store answers for a moment is waited out: by another attempt, or by
// another connection. No row is doubled by it.
func TestFaultsOfTheStoreAreWaitedOut(t *testing.T) {
	for name, fault := range map[string]corpus.Fault{
		"400 of expired credentials": {Status: http.StatusBadRequest},
		"401":                        {Status: http.StatusUnauthorized},
		"403":                        {Status: http.StatusForbidden},
		"429":                        {Status: http.StatusTooManyRequests},
		"500":                        {Status: http.StatusInternalServerError},
		"503":                        {Status: http.StatusServiceUnavailable},
		"hangup":                     {Hangup: true},
		"cut":                        {Cut: 10},
	} {
		for kind, file := range files {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := openScene(t, 65536)
				var met atomic.Int64
				s.unseen(3, func([]string) {
					s.s3.Fail(func(r corpus.S3Request) *corpus.Fault {
						if r.Method == http.MethodGet && strings.Contains(r.Key, file.part) && met.Add(1) <= 2 {
							return &fault
						}
						return nil
					})
				})
				s.takes(2 + 3)
				s.at(s.w.head())
				assert.GreaterOrEqual(t, met.Load(), int64(2), "the fault was met")
			})
		}
	}
}

// Refused credentials are said with the endpoint and the status, never with the
// secret, and the input goes on with the ones that are accepted again.
func TestExpiredCredentialsOfTheCatalog(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := openScene(t, 65536)
			s.w.Server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get(readerHeader) == "" {
					return false
				}
				w.WriteHeader(status)
				return true
			})
			why := s.refusal()
			assert.Contains(t, why, s.w.Server.URL)
			assert.Contains(t, why, fmt.Sprint(status))
			s.w.Server.Intercept(nil)
			s.append(3)
			s.takes(2 + 3)
			s.at(s.w.head())
		})
	}
}

// The checkpoint is written beside delivery: a cache that hangs costs nothing
// but the progress of the stored value, and delivery stands still only where
// the output does not acknowledge.
func TestAHangingCacheDoesNotHoldDelivery(t *testing.T) {
	s := openScene(t, 4)
	first := s.w.head()
	s.at(first)
	s.keeper.Turn(histories.Slow)
	for range 5 {
		s.append(4)
	}
	s.takes(2 + 20)
	assert.Equal(t, fmt.Sprint(first.snapshot), s.stored().Last.SnapshotID, "nothing could be stored")

	s.append(8)
	var held []*flight
	for range 4 {
		held = append(held, s.ledger.deliver(<-s.life.Got))
	}
	select {
	case <-s.life.Got:
		require.Fail(t, "more is in flight than checkpoint_limit allows")
	case <-time.After(50 * time.Millisecond):
	}
	for _, f := range held {
		s.ledger.accept(f)
	}
	s.takes(2 + 28)
	s.keeper.Turn(histories.Healthy)
	s.at(s.w.head())
}

// Of two inputs on one key the newest wins. The other stops and says who has
// the key; the same rows are never delivered by both from then on.
func TestTheNewestOwnerWins(t *testing.T) {
	s := openScene(t, 65536)
	s.at(s.w.head())
	heir := newLedger(s.w)
	heir.newLife(s.stored(), s.pol)
	second := heir.begin(s.keeper, s.pol)
	require.Eventually(t, func() bool { polls, _, _ := second.Seen(); return polls > 0 }, histories.Patience, time.Millisecond)
	first := s.life
	s.life = second
	s.ledger = heir
	s.append(3)
	s.takes(3)
	s.at(s.w.head())

	// The first may have read the rows; it stores nothing of it.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case d := <-first.Got:
				_ = d.Ack(t.Context(), nil)
			case <-first.Ended:
				return
			}
		}
	}()
	require.Eventually(t, func() bool { _, _, refused := first.Seen(); return len(refused) > 0 }, histories.Patience, time.Millisecond)
	_, _, refused := first.Seen()
	assert.Regexp(t, `the checkpoint under key "place" was taken over by another input \(host \S+, pid \d+, started \d{4}-\S+Z\)`, refused[0])
	s.append(2)
	s.takes(5)
	s.at(s.w.head())
	first.Kill(nil)
	<-ended
}

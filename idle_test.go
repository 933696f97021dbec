// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// lengthen gives the table n snapshots, in a metadata file of its own: the
// last one's manifest list is that of the real one.
func (s *shop) lengthen(n int) {
	s.t.Helper()
	head, err := s.Client.Head(s.t.Context(), catalog.Ref{Name: "main"}, s.key)
	require.NoError(s.t, err)
	from, err := url.Parse(head.Content.MetadataLocation)
	require.NoError(s.t, err)
	text, err := os.ReadFile(from.Path)
	require.NoError(s.t, err)
	var meta map[string]any
	require.NoError(s.t, json.Unmarshal(text, &meta))
	model := meta["snapshots"].([]any)[0].(map[string]any)
	started := int64(meta["last-updated-ms"].(float64))
	snapshots, log := make([]any, n), make([]any, n)
	for i := range n {
		one := maps.Clone(model)
		one["snapshot-id"], one["sequence-number"], one["timestamp-ms"] = i+1, i+1, started+int64(i)
		if i > 0 {
			one["parent-snapshot-id"] = i
		}
		snapshots[i] = one
		log[i] = map[string]any{"snapshot-id": i + 1, "timestamp-ms": started + int64(i)}
	}
	meta["snapshots"], meta["snapshot-log"] = snapshots, log
	meta["current-snapshot-id"], meta["last-sequence-number"], meta["last-updated-ms"] = n, n, started+int64(n)
	meta["refs"] = map[string]any{"main": map[string]any{"snapshot-id": n, "type": "branch"}}
	text, err = json.Marshal(meta)
	require.NoError(s.t, err)
	to := filepath.Join(filepath.Dir(from.Path), fmt.Sprintf("%d.metadata.json", n))
	require.NoError(s.t, os.WriteFile(to, text, 0o600))
	content := head.Content
	content.MetadataLocation, content.SnapshotID = "file://"+to, int64(n)
	_, err = s.Client.Commit(s.t.Context(), head.Reference, "many", []catalog.Operation{{Type: catalog.Put, Key: s.key, Content: content}})
	require.NoError(s.t, err)
}

func TestIdlePollsAreOneRequestEach(t *testing.T) {
	for _, n := range []int{10, 10_000} {
		t.Run(fmt.Sprintf("%d snapshots", n), func(t *testing.T) {
			s := newShop(t)
			s.add(1)
			s.lengthen(n)
			r := newRig(t)
			const interval = 20 * time.Millisecond
			l := r.start(s.increments("start_from: latest", "poll_interval: "+interval.String()))
			unchanged := func() int64 { return r.numbers.of("nessie_polls", "result=unchanged") }
			r.eventually(func() bool { return unchanged() > 0 }, "a poll that finds nothing new")
			var began time.Time
			var before int64
			r.eventually(func() bool {
				began, before = time.Now(), unchanged()
				s.Server.Requests()
				return unchanged() == before
			}, "a moment in which no poll ends")
			r.eventually(func() bool { return unchanged() >= before+10 }, "ten more")
			l.stop()
			took, polls := time.Since(began), unchanged()-before
			asked := s.Server.Requests()
			assert.InDelta(t, polls, len(asked), 1, "the requests of %d polls (one may have begun before or after the count)", polls)
			for _, q := range asked {
				assert.Equal(t, "content", q.Call)
				assert.Equal(t, asked[0].Path, q.Path)
			}
			assert.LessOrEqual(t, polls, int64(took/interval)+1, "no busy loop")
			assert.Empty(t, r.out.bodies())
		})
	}
}

func TestARateLimitIsAskedForEachRequest(t *testing.T) {
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	l := r.startYAML(pipeline(s.increments("poll_interval: 1ms", "rate_limit: slow")) + `
rate_limit_resources:
  - label: slow
    local:
      count: 5
      interval: 1h
`)
	r.eventually(func() bool { return len(s.Server.Requests()) >= 0 && r.numbers.of("nessie_catalog_requests") == 5 }, "the requests that are allowed")
	assert.Never(t, func() bool { return r.numbers.of("nessie_catalog_requests") > 5 }, 50*time.Millisecond, glance)
	l.stop()
}

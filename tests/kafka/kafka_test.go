// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

const (
	topic      = "orders"
	partitions = 3
	snapshots  = 10
	restarts   = 2
	patience   = 10 * time.Minute // a million rows on two cores
)

// shop is a Nessie in this process with a table shop.orders.
type shop struct {
	url, warehouse string
	rows           int
	snapshotOf     map[int64]int // by snapshot id: which one, so which ids
}

func openShop(t *testing.T, rows int) *shop {
	t.Helper()
	server, err := nessietest.Start(nessietest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := &shop{url: server.URL, warehouse: t.TempDir(), rows: rows, snapshotOf: map[int64]int{}}
	writer, err := nessietest.NewWriter(t.Context(), nessietest.WriterConfig{Catalog: client, Warehouse: "file://" + s.warehouse})
	require.NoError(t, err)
	key := catalog.Key{"shop", "orders"}
	_, err = writer.Create(t.Context(), key, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "item", Type: iceberg.PrimitiveTypes.String},
	), nessietest.TableOptions{})
	require.NoError(t, err)
	for n := range snapshots {
		var bodies []string
		for id := n * rows / snapshots; id < (n+1)*rows/snapshots; id++ {
			bodies = append(bodies, body(id))
		}
		written, err := writer.Append(t.Context(), key, bodies...)
		require.NoError(t, err)
		s.snapshotOf[written.SnapshotID()] = n
	}
	return s
}

func body(id int) string { return fmt.Sprintf(`{"id":%d,"item":"item %[1]d"}`, id) }

// pipeline takes the table into the topic, in order, and ends.
func (s *shop) pipeline(broker string) string {
	return fmt.Sprintf(`
http: { enabled: false }
logger: { level: "OFF" }
shutdown_timeout: 5m
input:
  nessie:
    base_url: %s
    namespace: shop
    table: orders
    poll_interval: 0s
    incremental_by_snapshot: true
    start_from: earliest
    checkpoint_cache: progress
    storage: { local_root: %q }
output:
  kafka_franz:
    seed_brokers: [ %q ]
    topic: orders
    key: ${! json("id") }
    metadata: { include_patterns: [ "^snapshot_id$", "^operation$" ] }
    max_in_flight: 1
cache_resources:
  - label: progress
    memory: { default_ttl: 24h }
`, s.url, s.warehouse, broker)
}

func admin(t *testing.T, broker string) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// stored is how many records the topic holds, 0 while nobody can say.
func stored(ctx context.Context, to *kadm.Client) (n int64) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	offsets, err := to.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0
	}
	offsets.Each(func(o kadm.ListedOffset) { n += max(0, o.Offset) })
	return n
}

func TestEveryRowReachesABrokerThatCrashes(t *testing.T) {
	rows := rowsToSend(t)
	kafka := servers.StartKafka(t)
	to := admin(t, kafka.Address)
	_, err := to.CreateTopic(t.Context(), partitions, 1, nil, topic)
	require.NoError(t, err)
	s := openShop(t, rows)

	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetYAML(s.pipeline(kafka.Address)))
	stream, err := builder.Build()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(ctx) }()
	for n := range restarts {
		enough := int64(rows) * int64(n+1) / (restarts + 2)
		require.Eventually(t, func() bool { return stored(ctx, to) >= enough }, patience, 20*time.Millisecond)
		require.NoError(t, kafka.Restart())
	}
	require.NoError(t, <-ended)
	require.NoError(t, ctx.Err(), "it did not end in time")
	s.check(t, kafka.Address, stored(t.Context(), to))
}

// check reads the topic to its end and compares what is there with what was written. Idempotence spans the connections
// of a producer, so that a crash of the broker doubles nothing.
func (s *shop) check(t *testing.T, broker string, records int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := make([]int, s.rows)
	last := [partitions]int{-1, -1, -1}
	for n := int64(0); n < records; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			id := s.checkRecord(t, r)
			seen[id]++
			if seen[id] == 1 {
				require.Greater(t, id, last[r.Partition], "partition %d is out of order", r.Partition)
				last[r.Partition] = id
			}
		})
	}
	missing, doubled := 0, 0
	for _, times := range seen {
		switch {
		case times == 0:
			missing++
		case times > 1:
			doubled++
		}
	}
	assert.Zero(t, missing, "rows that are missing")
	assert.Zero(t, doubled, "rows that are there twice")
}

func (s *shop) checkRecord(t *testing.T, r *kgo.Record) int {
	t.Helper()
	id, err := strconv.Atoi(string(r.Key))
	require.NoError(t, err)
	require.Less(t, id, s.rows)
	require.Equal(t, body(id), string(r.Value))
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	snapshot, err := strconv.ParseInt(headers["snapshot_id"], 10, 64)
	require.NoError(t, err)
	ordinal, known := s.snapshotOf[snapshot]
	require.True(t, known, "snapshot %d", snapshot)
	require.True(t, id >= ordinal*s.rows/snapshots && id < (ordinal+1)*s.rows/snapshots, "row %d is not of snapshot %d", id, ordinal)
	require.Contains(t, []string{"read", "insert"}, headers["operation"])
	require.Len(t, headers, 2)
	return id
}

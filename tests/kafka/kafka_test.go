// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/tests/servers"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

const (
	topic      = "orders"
	partitions = 3
	snapshots  = 10
	restarts   = 2
	patience   = 10 * time.Minute // a million rows on two cores
)

// orders is a table of some snapshots.
type orders struct {
	*tables.Place
	rows       int
	snapshotOf map[int64]int // by snapshot id: which one, so which ids
}

func openShop(t *testing.T, rows int) *orders {
	t.Helper()
	o := &orders{Place: tables.OpenOrders(t), rows: rows, snapshotOf: map[int64]int{}}
	for n := range snapshots {
		var bodies []string
		for id := n * rows / snapshots; id < (n+1)*rows/snapshots; id++ {
			bodies = append(bodies, tables.Order(id))
		}
		written, err := o.Writer.Append(t.Context(), tables.Orders(), bodies...)
		require.NoError(t, err)
		o.snapshotOf[written.SnapshotID()] = n
	}
	return o
}

// pipeline takes the table into the topic, in order, and ends.
func (o *orders) pipeline(broker string) string {
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
`, o.Server.URL, o.Warehouse, broker)
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
	o := openShop(t, rows)

	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetYAML(o.pipeline(kafka.Address)))
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
	o.check(t, kafka.Address, stored(t.Context(), to))
}

// check reads the topic to its end and compares what is there with what was written. Idempotence spans the connections
// of a producer, so that a crash of the broker doubles nothing.
func (o *orders) check(t *testing.T, broker string, records int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := make([]int, o.rows)
	last := [partitions]int{-1, -1, -1}
	for n := int64(0); n < records; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			id := o.checkRecord(t, r)
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

func (o *orders) checkRecord(t *testing.T, r *kgo.Record) int {
	t.Helper()
	id, err := strconv.Atoi(string(r.Key))
	require.NoError(t, err)
	require.Less(t, id, o.rows)
	require.Equal(t, tables.Order(id), string(r.Value))
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	snapshot, err := strconv.ParseInt(headers["snapshot_id"], 10, 64)
	require.NoError(t, err)
	ordinal, known := o.snapshotOf[snapshot]
	require.True(t, known, "snapshot %d", snapshot)
	require.True(t, id >= ordinal*o.rows/snapshots && id < (ordinal+1)*o.rows/snapshots, "row %d is not of snapshot %d", id, ordinal)
	require.Contains(t, []string{"read", "insert"}, headers["operation"])
	require.Len(t, headers, 2)
	return id
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
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

const group = "readers"

// ledger is what the members of a group accepted. It takes rows up to a number of them only, so that what happens to the
// group happens in the middle, and now and then it refuses a row, which then has to come again.
type ledger struct {
	mu      sync.Mutex
	changed *sync.Cond
	seen    map[int]bool
	limit   int
}

func newLedger() *ledger {
	l := &ledger{seen: map[int]bool{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *ledger) accept(_ context.Context, m *service.Message) error {
	if rand.IntN(50) == 0 {
		return errors.New("refused")
	}
	text, err := m.AsBytes()
	if err != nil {
		return err
	}
	var row struct{ ID int }
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.seen) >= l.limit {
		l.changed.Wait()
	}
	l.seen[row.ID] = true
	return nil
}

// allow lets rows up to that many through.
func (l *ledger) allow(rows int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = rows
	l.changed.Broadcast()
}

func (l *ledger) rows() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func (l *ledger) await(t *testing.T, rows int) {
	t.Helper()
	require.Eventually(t, func() bool { return l.rows() >= rows }, patience, 20*time.Millisecond, "rows are missing")
}

// settled waits until the group has that many members, and all of them know their partitions.
func settled(t *testing.T, to *kadm.Client, members int) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		groups, err := to.DescribeGroups(ctx, group)
		return err == nil && groups[group].State == "Stable" && len(groups[group].Members) == members
	}, patience, 100*time.Millisecond, "the group does not get %d members", members)
}

// join starts a pipeline that is a member of the group. It returns what makes it leave, which lets all rows through: it
// leaves when what it has is accepted.
func (l *ledger) join(t *testing.T, broker string) (leave func()) {
	t.Helper()
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetLoggerYAML(`level: "OFF"`))
	require.NoError(t, builder.AddInputYAML(fmt.Sprintf(`
kafka_franz:
  seed_brokers: [ %q ]
  topics: [ %s ]
  consumer_group: %s
  commit_period: 100ms
  session_timeout: 6s
  heartbeat_interval: 500ms
  fetch_max_wait: 200ms
`, broker, topic, group)))
	require.NoError(t, builder.AddConsumerFunc(l.accept))
	stream, err := builder.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.WithoutCancel(t.Context())) }()
	leave = sync.OnceFunc(func() {
		l.allow(math.MaxInt)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		assert.NoError(t, stream.Stop(ctx))
		assert.NoError(t, <-ended)
	})
	t.Cleanup(leave)
	return leave
}

// A consumer group of the input on a real broker: members come and go, rows are refused, and the broker crashes.
func TestAGroupConsumesEverythingThroughCrashes(t *testing.T) {
	const rows = 30_000
	kafka := servers.StartKafka(t)
	to := admin(t, kafka.Address)
	_, err := to.CreateTopic(t.Context(), partitions, 1, nil, topic)
	require.NoError(t, err)
	produce(t, kafka.Address, rows)

	l := newLedger()
	leaveFirst := l.join(t, kafka.Address)
	l.allow(rows / 10)
	l.await(t, rows/10)
	leaveSecond := l.join(t, kafka.Address)
	settled(t, to, 2)
	l.allow(rows / 4)
	l.await(t, rows/4)
	require.NoError(t, kafka.Restart())
	settled(t, to, 2)
	l.allow(rows / 2)
	l.await(t, rows/2)
	leaveFirst()
	l.await(t, rows)
	settled(t, to, 1)
	leaveSecond()

	committed, err := to.FetchOffsets(t.Context(), group)
	require.NoError(t, err)
	require.NoError(t, committed.Error())
	total := int64(0)
	committed.Each(func(o kadm.OffsetResponse) { total += o.At })
	assert.Equal(t, int64(rows), total, "who leaves commits all that was accepted: %v", committed)
}

// produce writes rows round the partitions.
func produce(t *testing.T, broker string, rows int) {
	t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	require.NoError(t, err)
	defer producer.Close()
	for id := range rows {
		producer.Produce(t.Context(), kgo.StringRecord(tables.Order(id)), func(_ *kgo.Record, err error) { assert.NoError(t, err) })
	}
	require.NoError(t, producer.Flush(t.Context()))
}

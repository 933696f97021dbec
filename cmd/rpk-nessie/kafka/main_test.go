// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// cluster is a Kafka in this process with topics of three partitions.
func cluster(t *testing.T, topics ...string) *kfake.Cluster {
	t.Helper()
	return clusterWith(t, kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
}

func clusterWith(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// fields are a component's YAML lines with the cluster's address in front.
func fields(c *kfake.Cluster, lines ...string) string {
	return "seed_brokers: [ " + strings.Join(c.ListenAddrs(), ", ") + " ]\n" + strings.Join(lines, "\n")
}

func parse(t *testing.T, spec *service.ConfigSpec, yaml string) *service.ParsedConfig {
	t.Helper()
	conf, err := spec.ParseYAML(yaml, nil)
	require.NoError(t, err)
	return conf
}

// output is a connected output that the test closes.
func output(t *testing.T, c *kfake.Cluster, lines ...string) *writer {
	t.Helper()
	w, err := newWriter(parse(t, outputSpec(), fields(c, lines...)), service.MockResources().Logger())
	require.NoError(t, err)
	require.NoError(t, w.Connect(t.Context()))
	t.Cleanup(func() { require.NoError(t, w.Close(context.Background())) })
	return w
}

// input is a connected input that the test closes.
func input(t *testing.T, c *kfake.Cluster, lines ...string) *reader {
	t.Helper()
	r, err := newReader(parse(t, inputSpec(), fields(c, lines...)), service.MockResources())
	require.NoError(t, err)
	require.NoError(t, r.Connect(t.Context()))
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// seed writes records into one partition.
func seed(t *testing.T, c *kfake.Cluster, topic string, partition int32, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	for _, v := range values {
		record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
		require.NoError(t, client.ProduceSync(t.Context(), record).FirstErr())
	}
}

// stored reads n records of a topic.
func stored(t *testing.T, c *kfake.Cluster, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%d of %d records came", len(records), n)
		records = append(records, fetches.Records()...)
	}
	require.Len(t, records, n)
	return records
}

// receive reads one batch.
func receive(t *testing.T, r *reader) ([]string, service.MessageBatch, service.AckFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	batch, ack, err := r.ReadBatch(ctx)
	require.NoError(t, err)
	return bodies(t, batch), batch, ack
}

func bodies(t *testing.T, batch service.MessageBatch) []string {
	t.Helper()
	all := make([]string, len(batch))
	for i, m := range batch {
		body, err := m.AsBytes()
		require.NoError(t, err)
		all[i] = string(body)
	}
	return all
}

func numbered(from, to int) []string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprintf("v%d", i))
	}
	return all
}

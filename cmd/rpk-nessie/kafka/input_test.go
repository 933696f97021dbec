// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const quick = "fetch_max_wait: 100ms"

// committed is the group's offset of a partition, -1 if there is none.
func committed(t *testing.T, c *kfake.Cluster, group, topic string, partition int32) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(t.Context(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1
	}
	require.NoError(t, err)
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

func TestAMessageHasTheRecordsBodyHeadersAndPlace(t *testing.T) {
	c := cluster(t, "orders")
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	at := time.UnixMilli(1700000000123)
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte("first")}, {Key: "h", Value: []byte("last")}}
	for _, value := range [][]byte{[]byte("body"), nil} {
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: 2, Key: []byte("k"), Value: value, Timestamp: at, Headers: headers}).FirstErr())
	}
	for _, multi := range []bool{false, true} {
		t.Run(fmt.Sprint("multi_header ", multi), func(t *testing.T) {
			r := input(t, c, "topics: [ orders ]", quick, fmt.Sprint("multi_header: ", multi))
			want := map[string]any{
				metaKey: "k", metaTopic: "orders", metaPartition: int(2), metaOffset: int64(0), metaLag: int64(1),
				metaTimeMs: int64(1700000000123), metaTimeUnix: int64(1700000000), metaTombstone: false, "h": "last",
			}
			if multi {
				want["h"] = []any{"first", "last"}
			}
			got, batch, _ := receive(t, r)
			assert.Equal(t, []string{"body"}, got)
			assert.Equal(t, want, metadataOf(t, batch[0]))
			got, batch, _ = receive(t, r)
			assert.Equal(t, []string{""}, got)
			tombstone, _ := batch[0].MetaGetMut(metaTombstone)
			assert.Equal(t, true, tombstone)
		})
	}
}

func metadataOf(t *testing.T, m *service.Message) map[string]any {
	t.Helper()
	all := map[string]any{}
	require.NoError(t, m.MetaWalkMut(func(key string, value any) error {
		all[key] = value
		return nil
	}))
	return all
}

func TestPartitionsAndOffsetsWithoutAGroup(t *testing.T) {
	c := cluster(t, "orders")
	for p := range int32(3) {
		seed(t, c, "orders", p, fmt.Sprint("p", p, "a"), fmt.Sprint("p", p, "b"))
	}
	for topics, want := range map[string][]string{
		"[ orders ]":                {"p0a", "p0b", "p1a", "p1b", "p2a", "p2b"},
		"[ 'orders:1' ]":            {"p1a", "p1b"},
		"[ 'orders:1-2' ]":          {"p1a", "p1b", "p2a", "p2b"},
		"[ 'orders:0:1' ]":          {"p0b"},
		"[ 'orders:0:1,orders:2' ]": {"p0b", "p2a", "p2b"},
		"[ 'orders:0-2:1' ]":        {"p0b", "p1b", "p2b"},
	} {
		t.Run(topics, func(t *testing.T) {
			r := input(t, c, "topics: "+topics, quick)
			var got []string
			for range want {
				body, _, ack := receive(t, r)
				require.NoError(t, ack(t.Context(), nil))
				got = append(got, body...)
			}
			slices.Sort(got)
			assert.Equal(t, want, got)
		})
	}
}

func TestTopicsThatMatchAPattern(t *testing.T) {
	c := cluster(t, "eu-orders", "us-orders", "us-orders-test", "people")
	seed(t, c, "eu-orders", 0, "eu")
	seed(t, c, "us-orders", 0, "us")
	seed(t, c, "us-orders-test", 0, "test")
	seed(t, c, "people", 0, "no")
	for name, lines := range map[string][]string{
		"regexp_topics":         {"topics: [ '^.{1,2}-orders$' ]", "regexp_topics: true"},
		"regexp_topics_include": {"regexp_topics_include: [ '^.{1,2}-orders$' ]"},
		"regexp_topics_exclude": {"regexp_topics_include: [ '-orders' ]", "regexp_topics_exclude: [ '-test$' ]"},
		"both ways to exclude":  {"topics: [ '-orders' ]", "regexp_topics: true", "regexp_topics_exclude: [ '-test$' ]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := input(t, c, append(lines, quick)...)
			a, _, _ := receive(t, r)
			b, _, _ := receive(t, r)
			got := append(a, b...)
			slices.Sort(got)
			assert.Equal(t, []string{"eu", "us"}, got)
		})
	}
}

func TestAGroupGoesOnBehindWhatWasAcknowledgedWithoutAGap(t *testing.T) {
	c := cluster(t, "orders")
	seed(t, c, "orders", 0, numbered(0, 9)...)
	lines := []string{"topics: [ orders ]", "consumer_group: g", quick, "commit_period: 100ms"}
	first := input(t, c, lines...)
	var acks []service.AckFunc
	for i := range 6 {
		got, _, ack := receive(t, first)
		require.Equal(t, []string{fmt.Sprint("v", i)}, got)
		acks = append(acks, ack)
	}
	assert.Equal(t, int64(-1), committed(t, c, "g", "orders", 0))
	for _, i := range []int{2, 0, 1, 5} { // 3 and 4 are open
		require.NoError(t, acks[i](t.Context(), nil))
	}
	require.Eventually(t, func() bool { return committed(t, c, "g", "orders", 0) == 3 }, patience, 20*time.Millisecond)
	require.NoError(t, acks[3](t.Context(), nil))
	require.NoError(t, first.Close(t.Context()))
	assert.Equal(t, int64(4), committed(t, c, "g", "orders", 0), "the last offsets are committed at the end")

	second := input(t, c, lines...)
	for i := 4; i < 10; i++ {
		got, _, ack := receive(t, second)
		require.Equal(t, []string{fmt.Sprint("v", i)}, got)
		require.NoError(t, ack(t.Context(), nil))
	}
}

func TestStartFromNewest(t *testing.T) {
	for _, line := range []string{"start_from_oldest: false", "start_offset: latest"} {
		t.Run(line, func(t *testing.T) {
			c := cluster(t, "orders")
			seed(t, c, "orders", 0, "old")
			r := input(t, c, "topics: [ 'orders:0' ]", line, quick)
			require.Eventually(t, func() bool { // until the client stands at the end its offset is anywhere
				seed(t, c, "orders", 0, "new")
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				batch, _, err := r.ReadBatch(ctx)
				return err == nil && assert.Equal(t, []string{"new"}, bodies(t, batch))
			}, patience, 20*time.Millisecond)
		})
	}
}

func TestStartAtCommitted(t *testing.T) {
	c := cluster(t, "orders")
	seed(t, c, "orders", 0, "known")
	seed(t, c, "orders", 1, "not known to the group")
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	var offsets kadm.Offsets
	offsets.AddOffset("orders", 0, 0, -1)
	require.NoError(t, kadm.NewClient(client).CommitAllOffsets(t.Context(), "g", offsets))
	r := input(t, c, "topics: [ orders ]", "consumer_group: g", "start_offset: committed", quick)
	got, _, _ := receive(t, r)
	assert.Equal(t, []string{"known"}, got)
	seed(t, c, "orders", 1, "still not")
	seed(t, c, "orders", 0, "also")
	got, _, _ = receive(t, r)
	assert.Equal(t, []string{"also"}, got)
}

func TestUnacknowledgedRecordsAreLimited(t *testing.T) {
	c := cluster(t, "orders")
	seed(t, c, "orders", 0, numbered(0, 49)...)
	seed(t, c, "orders", 1, "other")
	r := input(t, c, "topics: [ 'orders:0' ]", "checkpoint_limit: 5", quick)
	var open []service.AckFunc
	for i := range 5 {
		got, _, ack := receive(t, r)
		require.Equal(t, []string{fmt.Sprint("v", i)}, got)
		open = append(open, ack)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	_, _, err := r.ReadBatch(ctx)
	cancel()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for i := 5; i < 50; i++ {
		require.NoError(t, open[0](t.Context(), nil))
		got, _, ack := receive(t, r)
		require.Equal(t, []string{fmt.Sprint("v", i)}, got)
		open = append(open[1:], ack)
	}
}

func TestBatches(t *testing.T) {
	c := cluster(t, "orders")
	seed(t, c, "orders", 0, numbered(0, 6)...)
	r := input(t, c, "topics: [ 'orders:0' ]", quick, "batching: { count: 3, period: 3s, processors: [ { mapping: 'root = if content() == \"v1\" { deleted() }' } ] }",
		"consumer_group: ''")
	for _, want := range [][]string{{"v0", "v2"}, {"v3", "v4", "v5"}, {"v6"}} {
		got, _, ack := receive(t, r)
		assert.Equal(t, want, got)
		require.NoError(t, ack(t.Context(), nil))
	}
}

func TestBatchesThatAPolicyDropsWholeAreCommitted(t *testing.T) {
	c := cluster(t, "orders")
	seed(t, c, "orders", 0, numbered(0, 3)...)
	input(t, c, "topics: [ orders ]", "consumer_group: g", "commit_period: 100ms", quick, "batching: { count: 2, processors: [ { mapping: 'root = deleted()' } ] }")
	require.Eventually(t, func() bool { return committed(t, c, "g", "orders", 0) == 4 }, patience, 20*time.Millisecond)
}

func TestARebalanceLosesNothing(t *testing.T) {
	c := cluster(t, "orders")
	const rows = 300
	for p := range int32(3) {
		var values []string
		for i := range rows / 3 {
			values = append(values, fmt.Sprintf("p%d-%d", p, i))
		}
		seed(t, c, "orders", p, values...)
	}
	lines := []string{"topics: [ orders ]", "consumer_group: g", "commit_period: 100ms", "heartbeat_interval: 50ms", quick}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	got := make(chan string)
	consume := func(r *reader, until context.Context) {
		for {
			batch, ack, err := r.ReadBatch(until)
			if err != nil {
				return
			}
			for _, m := range batch {
				body, _ := m.AsBytes()
				select {
				case got <- string(body):
				case <-until.Done():
					return
				}
			}
			if ack(until, nil) != nil {
				return
			}
		}
	}
	first := input(t, c, lines...)
	go consume(first, ctx)
	seen := map[string]bool{}
	var second *reader
	for len(seen) < rows {
		select {
		case v := <-got:
			seen[v] = true
		case <-ctx.Done():
			require.Fail(t, "rows are missing", "%d of %d came", len(seen), rows)
		}
		if len(seen) == 20 && second == nil {
			second = input(t, c, lines...)
			go consume(second, ctx)
		}
		if len(seen) == 150 && first != nil {
			require.NoError(t, first.Close(ctx))
			first = nil
		}
	}
}

func TestAPipelineCopiesATopic(t *testing.T) {
	c := cluster(t, "from", "to")
	seed(t, c, "from", 0, numbered(0, 99)...)
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetLoggerYAML("level: OFF"))
	require.NoError(t, builder.AddInputYAML("kafka_franz:\n  seed_brokers: [ "+c.ListenAddrs()[0]+" ]\n  topics: [ from ]\n  consumer_group: copy\n  fetch_max_wait: 100ms\n"))
	require.NoError(t, builder.AddOutputYAML("kafka_franz:\n  seed_brokers: [ "+c.ListenAddrs()[0]+" ]\n  topic: to\n  key: ${! metadata(\"kafka_offset\") }\n  metadata: { include_prefixes: [ kafka_offset ] }\n  max_in_flight: 1\n  batching: { count: 10, period: 50ms }\n"))
	stream, err := builder.Build()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(context.Background()) }()
	for _, r := range stored(t, c, "to", 100) {
		assert.Equal(t, "v"+string(r.Key), string(r.Value))
		assert.Equal(t, []kgo.RecordHeader{{Key: "kafka_offset", Value: r.Key}}, r.Headers)
	}
	require.NoError(t, stream.Stop(t.Context()))
	require.NoError(t, <-ended)
	assert.Equal(t, int64(100), committed(t, c, "copy", "from", 0))
}

func TestTopicItems(t *testing.T) {
	start := kgo.NewOffset().AtStart()
	for text, says := range map[string]string{
		":0": "names no topic", "a:x": `"x" is no partition`, "a:3-1": "partition 3 is after 1", "a:0:y": `"y" is no offset`,
		"a:0:-1": "is no offset", "a:-1": "is no partition", "a:0-99999999": "is no partition", " , ": "at least one topic", "": "at least one topic",
	} {
		_, err := parseTopics([]string{text}, start)
		require.ErrorContains(t, err, says, text)
	}
	s, err := parseTopics([]string{"a, b:1", "b:2-3:7"}, start)
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, s.topics)
	assert.Equal(t, map[string]map[int32]kgo.Offset{"b": {1: start, 2: kgo.NewOffset().At(7), 3: kgo.NewOffset().At(7)}}, s.partitions)
	_, err = parsePatterns([]string{"("}, nil)
	require.ErrorContains(t, err, "missing closing")
}

func TestWrongInputSettingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ lines, says string }{
		"partitions in a group": {"topics: [ 'a:0' ]\nconsumer_group: g", "leave out the partitions or the group"},
		"no topic":              {"topics: []", "at least one topic"},
		"topics and patterns":   {"topics: [ a ]\nregexp_topics_include: [ b ]", "exclude each other"},
		"only exclusions":       {"topics: [ a ]\nregexp_topics_exclude: [ b ]", "regexp_topics_exclude needs regexp_topics_include"},
		"two starts":            {"topics: [ a ]\nstart_from_oldest: false\nstart_offset: earliest", "contradict each other"},
		"no start":              {"topics: [ a ]\nstart_offset: middle", "middle"},
		"keep-alive too short":  {"topics: [ a ]\ntcp: { tcp_user_timeout: 1m }", "must be greater than tcp_user_timeout"},
		"no limit":              {"topics: [ a ]\ncheckpoint_limit: 0", "checkpoint_limit must be at least 1"},
		"no size":               {"topics: [ a ]\nfetch_max_bytes: much", "fetch_max_bytes"},
		"no period":             {"topics: [ a ]\nconsumer_group: g\ncommit_period: 0s", "commit_period must be more than 0"},
		"a short period":        {"topics: [ a ]\nconsumer_group: g\ncommit_period: 1ms", "less than allowed 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := inputSpec().ParseYAML("seed_brokers: [ a ]\n"+tc.lines, nil)
			if err == nil {
				_, err = newReader(conf, service.MockResources())
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
	lints, err := service.NewEnvironment().NewComponentConfigLinter().LintInputYAML([]byte("kafka_franz:\n  seed_brokers: [ a ]\n  topics: [ 'a:0' ]\n  consumer_group: g\n"))
	require.NoError(t, err)
	require.Len(t, lints, 1)
	assert.ErrorContains(t, errors.Join(lints[0]), "leave out the partitions or the group")
}

func TestReadingWithoutAConnection(t *testing.T) {
	r, err := newReader(parse(t, inputSpec(), "seed_brokers: [ '127.0.0.1:1' ]\ntopics: [ a ]"), service.MockResources())
	require.NoError(t, err)
	require.ErrorContains(t, r.Connect(t.Context()), "127.0.0.1:1")
	_, _, err = r.ReadBatch(t.Context())
	require.ErrorIs(t, err, service.ErrNotConnected)
	require.NoError(t, r.Close(t.Context()))
}

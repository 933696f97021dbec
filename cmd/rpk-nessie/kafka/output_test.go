// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func message(body string, meta ...any) *service.Message {
	m := service.NewMessage([]byte(body))
	for i := 0; i < len(meta); i += 2 {
		m.MetaSetMut(meta[i].(string), meta[i+1])
	}
	return m
}

func TestARecordHasTheMessagesBodyKeyHeadersAndTime(t *testing.T) {
	for _, compression := range []string{"lz4", "snappy", "gzip", "none", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			c := cluster(t, "orders")
			w := output(t, c, "topic: ${! metadata(\"table\") }", "key: ${! json(\"id\") }", "compression: "+compression,
				"metadata: { include_prefixes: [ snap ], include_patterns: [ ^oper ] }", "timestamp_ms: ${! metadata(\"commit_ts_ms\") }")
			require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{
				message(`{"id":7}`, "table", "orders", "snapshot_id", "123", "snap", int64(5), "operation", "insert", "commit_ts_ms", int64(1700000000123)),
			}))
			got := stored(t, c, "orders", 1)[0]
			assert.Equal(t, `{"id":7}`, string(got.Value))
			assert.Equal(t, "7", string(got.Key))
			assert.Equal(t, int64(1700000000123), got.Timestamp.UnixMilli())
			headers := map[string]string{}
			for _, h := range got.Headers {
				headers[h.Key] = string(h.Value)
			}
			assert.Equal(t, map[string]string{"snapshot_id": "123", "snap": "5", "operation": "insert"}, headers)
		})
	}
}

func TestWithoutKeyAndMetadataARecordHasNone(t *testing.T) {
	c := cluster(t, "orders")
	w := output(t, c, "topic: orders", "idempotent_write: false")
	before := time.Now().Add(-time.Second)
	require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{message("x", "snapshot_id", "123")}))
	got := stored(t, c, "orders", 1)[0]
	assert.Nil(t, got.Key)
	assert.Empty(t, got.Headers)
	assert.True(t, got.Timestamp.After(before))
}

func TestAcksAreWhatTheBrokersAreAskedFor(t *testing.T) {
	for lines, asked := range map[string]int16{
		"": -1, "acks: all\nidempotent_write: false": -1, "acks: leader\nidempotent_write: false": 1, "acks: none\nidempotent_write: false": 0,
	} {
		t.Run(lines, func(t *testing.T) {
			c := cluster(t, "orders")
			var acks atomic.Int32
			acks.Store(-100)
			c.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
				acks.Store(int32(request.(*kmsg.ProduceRequest).Acks))
				return nil, nil, false
			})
			w := output(t, c, "topic: orders", lines)
			require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{message("x")}))
			assert.Equal(t, "x", string(stored(t, c, "orders", 1)[0].Value))
			assert.Equal(t, int32(asked), acks.Load())
		})
	}
}

func TestTombstonesAreMarkedOnes(t *testing.T) {
	c := clusterWith(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	w := output(t, c, "topic: orders", "key: k")
	require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{
		message("", metaTombstone, true), message(""), message("body", metaTombstone, true),
	}))
	got := stored(t, c, "orders", 3)
	assert.Nil(t, got[0].Value)
	assert.Equal(t, []byte{}, got[1].Value)
	assert.Equal(t, "body", string(got[2].Value))
}

func TestPartitioners(t *testing.T) {
	batch := service.MessageBatch{}
	for i := range 60 {
		batch = append(batch, message(fmt.Sprint(i), "key", fmt.Sprint("key ", i%6), "to", i%3))
	}
	tests := map[string]struct {
		lines []string
		check func(t *testing.T, key string, body, partition int)
	}{
		"by key":     {lines: []string{"key: ${! metadata(\"key\") }"}},
		"murmur2":    {lines: []string{"key: ${! metadata(\"key\") }", "partitioner: murmur2_hash"}},
		"least":      {lines: []string{"partitioner: least_backup"}},
		"round":      {lines: []string{"partitioner: round_robin"}},
		"by message": {lines: []string{"partitioner: manual", "partition: ${! metadata(\"to\") }"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, "orders")
			w := output(t, c, append(tc.lines, "topic: orders")...)
			require.NoError(t, w.WriteBatch(t.Context(), batch))
			ofKey, sizes := map[string]int32{}, map[int32]int{}
			for _, r := range stored(t, c, "orders", len(batch)) {
				sizes[r.Partition]++
				if r.Key != nil {
					p, seen := ofKey[string(r.Key)]
					assert.True(t, !seen || p == r.Partition, "key %s is in two partitions", r.Key)
					ofKey[string(r.Key)] = r.Partition
				}
				if name == "by message" {
					assert.Equal(t, map[string]int32{"0": 0, "1": 1, "2": 2}[fmt.Sprint(atoi(t, string(r.Value))%3)], r.Partition)
				}
			}
			if name == "round" || name == "by message" {
				assert.Equal(t, map[int32]int{0: 20, 1: 20, 2: 20}, sizes)
			}
		})
	}
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

func TestMurmur2IsThatOfKafkasOwnClients(t *testing.T) {
	// Partitions that Kafka's DefaultPartitioner gives to these keys among 3: toPositive(murmur2(key)) % 3.
	c := cluster(t, "orders")
	w := output(t, c, "topic: orders", "key: ${! content() }")
	require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{message("21"), message("foobar")}))
	for _, r := range stored(t, c, "orders", 2) {
		// From Kafka's UtilsTest: murmur2("21") = -973932308, murmur2("foobar") = -790332482.
		hash := map[string]int32{"21": -973932308, "foobar": -790332482}[string(r.Key)]
		assert.Equal(t, (hash&0x7fffffff)%3, r.Partition, string(r.Key))
	}
}

func TestARefusedRecordFailsAlone(t *testing.T) {
	c := cluster(t, "orders")
	w := output(t, c, "topic: orders", "max_message_bytes: 1KiB", "partitioner: manual", "partition: ${! metadata(\"to\") }")
	batch := service.MessageBatch{message("a", "to", 0), message(strings.Repeat("x", 2000), "to", 1), message("c", "to", 2)}
	err := w.WriteBatch(t.Context(), batch)
	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 1, failed.IndexedErrors())
	failed.WalkMessagesIndexedBy(batch.Index(), func(i int, _ *service.Message, err error) bool {
		assert.Equal(t, i == 1, err != nil)
		return true
	})
	assert.ErrorContains(t, err, `writing a record of 2000 bytes to topic "orders"`)
	assert.ErrorContains(t, err, "raise max_message_bytes")
	stored(t, c, "orders", 2)
}

func TestAnUnknownTopicSaysWhatToDo(t *testing.T) {
	c := cluster(t, "orders")
	w := output(t, c, "topic: nowhere", "allow_auto_topic_creation: false", "metadata_max_age: 1s")
	err := w.WriteBatch(t.Context(), service.MessageBatch{message("a")})
	require.ErrorContains(t, err, `topic "nowhere"`)
	require.ErrorContains(t, err, "create the topic")
}

func TestAMessageThatMakesNoRecordIsNamed(t *testing.T) {
	c := cluster(t, "orders")
	w := output(t, c, "topic: orders", "partitioner: manual", "partition: ${! content() }", "timestamp_ms: ${! metadata(\"at\") }")
	for body, want := range map[string]string{
		"x": `message 1 of the batch: partition: "x" is no whole number`, "-1": `"-1" is no whole number`, "99999999999": "partition:", "1": "timestamp_ms:",
	} {
		err := w.WriteBatch(t.Context(), service.MessageBatch{message("0", "at", 5), message(body)})
		require.ErrorContains(t, err, want)
	}
}

func TestWithoutABrokerConnectNamesTheAddress(t *testing.T) {
	w, err := newWriter(parse(t, outputSpec(), "seed_brokers: [ '127.0.0.1:1' ]\ntopic: x"), service.MockResources().Logger())
	require.NoError(t, err)
	require.ErrorContains(t, w.Connect(t.Context()), "looking for a broker at 127.0.0.1:1")
	require.ErrorIs(t, w.WriteBatch(t.Context(), service.MessageBatch{message("a")}), service.ErrNotConnected)
	require.NoError(t, w.Close(t.Context()))
}

func TestAWriteWaitsForABrokerUntilItsContextEnds(t *testing.T) {
	c := cluster(t, "orders")
	w := output(t, c, "topic: orders")
	require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{message("a")}))
	c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.WriteBatch(ctx, service.MessageBatch{message("b")}) }()
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func TestAuthentication(t *testing.T) {
	c := clusterWith(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "ann", "secret1"), kfake.Superuser("SCRAM-SHA-256", "bob", "secret2"), kfake.Superuser("SCRAM-SHA-512", "cy", "secret3"))
	for name, tc := range map[string]struct {
		sasl string
		fine bool
	}{
		"plain":            {"{ mechanism: PLAIN, username: ann, password: secret1 }", true},
		"scram 256":        {"{ mechanism: SCRAM-SHA-256, username: bob, password: secret2 }", true},
		"scram 512":        {"{ mechanism: SCRAM-SHA-512, username: cy, password: secret3 }", true},
		"a wrong password": {"{ mechanism: PLAIN, username: ann, password: wrong }", false},
		"none":             {"{ mechanism: none }", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := newWriter(parse(t, outputSpec(), fields(c, "topic: orders", "sasl: [ "+tc.sasl+" ]")), service.MockResources().Logger())
			require.NoError(t, err)
			defer func() { require.NoError(t, w.Close(context.Background())) }()
			limit := patience
			if !tc.fine {
				limit = 3 * time.Second // it is tried again until then
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err = w.Connect(ctx)
			if err == nil {
				err = w.WriteBatch(ctx, service.MessageBatch{message("a")})
			}
			assert.Equal(t, tc.fine, err == nil, "%v", err)
			if err != nil {
				assert.NotContains(t, err.Error(), "wrong")
			}
		})
	}
}

// The certificate is httptest's own, for 127.0.0.1.
func TestTLSAndTCPSettings(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	c := clusterWith(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.TLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	trusting := "tls: { enabled: true, root_cas: " + strconv.Quote(authority) + " }"
	tcp := "tcp: { connect_timeout: 5s, tcp_user_timeout: 10s, keep_alive: { idle: 20s, interval: 1s, count: 3 } }"

	w := output(t, c, "topic: orders", trusting, tcp)
	require.NoError(t, w.WriteBatch(t.Context(), service.MessageBatch{message("a")}))
	got, _, _ := receive(t, input(t, c, "topics: [ orders ]", trusting, tcp, quick))
	assert.Equal(t, []string{"a"}, got)

	stranger, err := newWriter(parse(t, outputSpec(), fields(c, "topic: orders", "tls: { enabled: true }")), service.MockResources().Logger())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorContains(t, stranger.Connect(ctx), "certificate")
}

func TestWrongOutputSettingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ lines, says string }{
		"no brokers":              {"seed_brokers: []\ntopic: x", "seed_brokers needs"},
		"no size":                 {"seed_brokers: [ a ]\ntopic: x\nmax_message_bytes: much", "write for example 1MiB"},
		"too large":               {"seed_brokers: [ a ]\ntopic: x\nmax_message_bytes: 3GiB", "2GiB"},
		"request too small":       {"seed_brokers: [ a ]\ntopic: x\nbroker_write_max_bytes: 1KiB", "broker_write_max_bytes must be at least"},
		"manual, no partition":    {"seed_brokers: [ a ]\ntopic: x\npartitioner: manual", "go together"},
		"partition, no manual":    {"seed_brokers: [ a ]\ntopic: x\npartition: '1'", "go together"},
		"unknown partitioner":     {"seed_brokers: [ a ]\ntopic: x\npartitioner: best", "best"},
		"acks, idempotent":        {"seed_brokers: [ a ]\ntopic: x\nacks: leader", "acks other than all need idempotent_write: false"},
		"unknown acks":            {"seed_brokers: [ a ]\ntopic: x\nacks: most\nidempotent_write: false", "most"},
		"unknown compression":     {"seed_brokers: [ a ]\ntopic: x\ncompression: best", "best"},
		"unknown mechanism":       {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: KERBEROS } ]", "KERBEROS"},
		"plain without user":      {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: PLAIN } ]", "sasl[0]: PLAIN needs a username"},
		"bearer without a token":  {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: none }, { mechanism: OAUTHBEARER } ]", "sasl[1]: OAUTHBEARER needs a token"},
		"half a key of AWS":       {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: AWS_MSK_IAM, aws: { credentials: { id: a } } } ]", "sasl[0]: aws: credentials: id and secret go together"},
		"id without its role":     {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: AWS_MSK_IAM, aws: { credentials: { role_external_id: a } } } ]", "sasl[0]: aws: credentials: role_external_id needs a role"},
		"no such profile":         {"seed_brokers: [ a ]\ntopic: x\nsasl: [ { mechanism: AWS_MSK_IAM, aws: { credentials: { profile: nobody } } } ]", "sasl[0]: aws: configuring AWS: failed to get shared config profile, nobody"},
		"certificate is nowhere":  {"seed_brokers: [ a ]\ntopic: x\ntls: { enabled: true, root_cas_file: /nowhere }", "/nowhere"},
		"what is no metadata key": {"seed_brokers: [ a ]\ntopic: x\nmetadata: { include_patterns: [ '(' ] }", "missing closing"},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := outputSpec().ParseYAML(tc.lines, nil)
			if err == nil {
				_, err = newWriter(conf, service.MockResources().Logger())
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestLint(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, says string }{
		"fine":                    {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  partitioner: manual\n  partition: '3'\n", ""},
		"manual, no partition":    {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  partitioner: manual\n", "partitioner manual needs a partition"},
		"partition, not manual":   {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  partition: '3'\n", "with partitioner manual only"},
		"no brokers":              {"kafka_franz:\n  seed_brokers: []\n  topic: x\n", "seed_brokers needs"},
		"no brokers at all":       {"kafka_franz:\n  topic: x\n", "seed_brokers needs"},
		"acks, idempotent":        {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  acks: none\n", "acks other than all need idempotent_write: false"},
		"acks":                    {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  acks: none\n  idempotent_write: false\n", ""},
		"nothing in flight":       {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  max_in_flight: 0\n", "at least 1"},
		"half a key of AWS":       {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  sasl: [ { mechanism: AWS_MSK_IAM, aws: { credentials: { id: a } } } ]\n", "id and secret go together"},
		"a whole key of AWS":      {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  sasl: [ { mechanism: AWS_MSK_IAM, aws: { region: eu-central-1, credentials: { id: a, secret: b, role: c, role_external_id: d } } } ]\n", ""},
		"a key and a machine's":   {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  sasl: [ { mechanism: AWS_MSK_IAM, aws: { credentials: { id: a, secret: b, from_ec2_role: true } } } ]\n", "exclude each other"},
		"a field of another time": {"kafka_franz:\n  seed_brokers: [ a ]\n  topic: x\n  addresses: [ a ]\n", "addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			lints, err := service.NewEnvironment().NewComponentConfigLinter().LintOutputYAML([]byte(tc.yaml))
			require.NoError(t, err)
			var all []error
			for _, l := range lints {
				all = append(all, l)
			}
			if tc.says == "" {
				assert.Empty(t, all)
				return
			}
			assert.ErrorContains(t, errors.Join(all...), tc.says)
		})
	}
}

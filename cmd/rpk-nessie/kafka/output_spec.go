// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	kfoFieldTopic             = "topic"
	kfoFieldKey               = "key"
	kfoFieldPartitioner       = "partitioner"
	kfoFieldPartition         = "partition"
	kfoFieldMetadata          = "metadata"
	kfoFieldTimestampMs       = "timestamp_ms"
	kfoFieldAcks              = "acks"
	kfoFieldIdempotentWrite   = "idempotent_write"
	kfoFieldCompression       = "compression"
	kfoFieldAutoTopicCreation = "allow_auto_topic_creation"
	kfoFieldTimeout           = "timeout"
	kfoFieldMaxMessageBytes   = "max_message_bytes"
	kfoFieldBrokerWriteMax    = "broker_write_max_bytes"
	kfoFieldMaxInFlight       = "max_in_flight"
	kfoFieldBatching          = "batching"

	partitionerManual = "manual"

	acksAll    = "all"
	acksLeader = "leader"
	acksNone   = "none"
)

func outputSpec() *service.ConfigSpec {
	spec := service.NewConfigSpec().
		Stable().
		Categories("Services").
		Summary("Writes messages to Kafka and acknowledges them when all in-sync replicas have them, unless `acks` says otherwise.").
		Description(`A batch is handed to the client at once. A record that the brokers refuse for good (too large, not authorised, unknown topic) fails alone; the others of its batch are acknowledged. While no broker can be reached records wait in the client, in order, and the log says so.

Records of one partition keep their order as long as ` + "`max_in_flight`" + ` is 1: with more, batches are written side by side. With ` + "`idempotent_write`" + ` what the client sends again after a lost connection is not stored twice; a batch that is refused and sent again by the pipeline is.

A message without a body whose metadata ` + "`kafka_tombstone_message`" + ` is ` + "`true`" + ` is written as a tombstone (a null value).`).
		Fields(connectionFields()...).
		Fields(recordFields()...).
		Fields(producerFields()...).
		// Without a topic nothing is filled in yet: that is a skeleton.
		LintRule(`root = [
  if this.seed_brokers.or([]).length() == 0 && this.topic.or("") != "" { "seed_brokers needs at least one address" },
  if this.acks.or("all") != "all" && this.idempotent_write.or(true) { "acks other than all need idempotent_write: false" },
  if this.partitioner.or("") == "manual" && this.partition.or("") == "" { "partitioner manual needs a partition" },
  if this.partitioner.or("") != "manual" && this.partition.or("") != "" { "a partition is used with partitioner manual only" }
]`)
	return spec.Example("New rows of a table, by key", "One record a row, keyed by the row's id, with the snapshot as header. `max_in_flight: 1` keeps the table's order in each partition.", `
input:
  nessie:
    base_url: http://localhost:19120
    namespace: sales
    table: orders
    incremental_by_snapshot: true
    checkpoint_cache: progress

output:
  kafka_franz:
    seed_brokers: [ localhost:9092 ]
    topic: orders
    key: ${! json("id") }
    metadata:
      include_patterns: [ ^snapshot_id$, ^operation$ ]
    max_in_flight: 1

cache_resources:
  - label: progress
    nessie_durable_file:
      directory: /var/lib/rpk-nessie
`)
}

func recordFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewInterpolatedStringField(kfoFieldTopic).
			Description("The topic to write to."),
		service.NewInterpolatedStringField(kfoFieldKey).
			Description("The record's key. Without this field records have no key.").
			Optional().
			Example(`${! json("id") }`),
		service.NewStringAnnotatedEnumField(kfoFieldPartitioner, map[string]string{
			"murmur2_hash":    "The hash that Kafka's own clients use: a key is always in the same partition. Records without a key go to one partition until a batch is full.",
			"round_robin":     "One partition after the other, whatever the key.",
			"least_backup":    "The partition that waits for the fewest records, whatever the key.",
			partitionerManual: "The partition that the field `partition` says.",
		}).
			Description("How a record's partition is chosen. Without this field it is `murmur2_hash`.").
			Optional().
			Advanced().
			Example("murmur2_hash"),
		service.NewInterpolatedStringField(kfoFieldPartition).
			Description("The partition's number, for partitioner `manual`, such as `${! metadata(\"partition\") }`.").
			Optional().
			Advanced(),
		service.NewMetadataFilterField(kfoFieldMetadata).
			Description("Which metadata of a message become headers of its record. By default none.").
			Optional(),
		service.NewInterpolatedStringField(kfoFieldTimestampMs).
			Description("The record's time in milliseconds since 1970. Without this field it is the time of writing.").
			Optional().
			Advanced().
			Example(`${! metadata("commit_ts_ms") }`),
	}
}

func producerFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringAnnotatedEnumField(kfoFieldAcks, map[string]string{
			acksAll:    "When all in-sync replicas have it.",
			acksLeader: "When the partition's leader has it: what it has alone is lost with it.",
			acksNone:   "When it was sent: what does not arrive is lost, and nobody says so.",
		}).
			Description("When a record counts as written, and its row as delivered. All but `" + acksAll + "` may lose rows, and need `" + kfoFieldIdempotentWrite + ": false`.").
			Default(acksAll).
			Advanced(),
		service.NewBoolField(kfoFieldIdempotentWrite).
			Description("Let the brokers drop what the client had to send twice. Brokers before 3.0 ask for the permission `IDEMPOTENT_WRITE` on the cluster.").
			Default(true).
			Advanced(),
		service.NewStringEnumField(kfoFieldCompression, "lz4", "snappy", "gzip", "none", "zstd").
			Description("How record batches are compressed. Without this field it is `snappy`.").
			Optional().
			Advanced().
			Example("snappy"),
		service.NewBoolField(kfoFieldAutoTopicCreation).
			Description("Create a topic that does not exist, if the brokers allow that.").
			Default(true).
			Advanced(),
		service.NewDurationField(kfoFieldTimeout).
			LintRule(forms.Duration).
			Description("How long the brokers may take to replicate a write. After that the write is tried again.").
			Default("10s").
			Advanced(),
		service.NewStringField(kfoFieldMaxMessageBytes).
			LintRule(forms.Size).
			Description("The largest record batch before compression, and so the largest record; the topic's `max.message.bytes` has to allow it.").
			Default("1MiB").
			Advanced().
			Example("100MB").Example("50MiB"),
		service.NewStringField(kfoFieldBrokerWriteMax).
			LintRule(forms.Size).
			Description("The largest request to one broker; the broker's `socket.request.max.bytes` has to allow it.").
			Default("100MiB").
			Advanced().
			Example("128MB").Example("50MiB"),
		service.NewIntField(kfoFieldMaxInFlight).
			Description("How many batches are written side by side. 1 keeps the order.").
			Default(10).
			LintRule(`root = if this < 1 { [ "max_in_flight must be at least 1" ] }`),
		service.NewBatchPolicyField(kfoFieldBatching),
	}
}

// producerOptions are the client's options for producerFields and the partitioner.
func producerOptions(conf *service.ParsedConfig) ([]kgo.Opt, error) {
	var opts []kgo.Opt
	idempotent, err := conf.FieldBool(kfoFieldIdempotentWrite)
	if err != nil {
		return nil, err
	}
	if !idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	acks, err := acksOf(conf)
	if err != nil {
		return nil, err
	}
	if idempotent && acks != kgo.AllISRAcks() {
		return nil, fmt.Errorf("%s other than %s need %s: false", kfoFieldAcks, acksAll, kfoFieldIdempotentWrite)
	}
	create, err := conf.FieldBool(kfoFieldAutoTopicCreation)
	if err != nil {
		return nil, err
	}
	if create {
		opts = append(opts, kgo.AllowAutoTopicCreation())
	}
	timeout, err := conf.FieldDuration(kfoFieldTimeout)
	if err != nil {
		return nil, err
	}
	largest, err := bytesOf(conf, kfoFieldMaxMessageBytes)
	if err != nil {
		return nil, err
	}
	request, err := bytesOf(conf, kfoFieldBrokerWriteMax)
	if err != nil {
		return nil, err
	}
	if request < largest {
		return nil, fmt.Errorf("%s must be at least %s", kfoFieldBrokerWriteMax, kfoFieldMaxMessageBytes)
	}
	partitioner, err := partitionerOf(conf)
	if err != nil {
		return nil, err
	}
	codec, err := compressionOf(conf)
	if err != nil {
		return nil, err
	}
	return append(opts, kgo.RequiredAcks(acks), kgo.ProduceRequestTimeout(timeout), kgo.ProducerBatchMaxBytes(largest), kgo.BrokerMaxWriteBytes(request),
		kgo.RecordPartitioner(partitioner), kgo.ProducerBatchCompression(codec...)), nil
}

func acksOf(conf *service.ParsedConfig) (kgo.Acks, error) {
	name, err := conf.FieldString(kfoFieldAcks)
	if err != nil {
		return kgo.Acks{}, err
	}
	switch name {
	case acksAll:
		return kgo.AllISRAcks(), nil
	case acksLeader:
		return kgo.LeaderAck(), nil
	case acksNone:
		return kgo.NoAck(), nil
	default:
		return kgo.Acks{}, fmt.Errorf("unknown %s %q", kfoFieldAcks, name)
	}
}

func partitionerOf(conf *service.ParsedConfig) (kgo.Partitioner, error) {
	name := "murmur2_hash"
	if conf.Contains(kfoFieldPartitioner) {
		var err error
		if name, err = conf.FieldString(kfoFieldPartitioner); err != nil {
			return nil, err
		}
	}
	if conf.Contains(kfoFieldPartition) != (name == partitionerManual) {
		return nil, errors.New("partition and partitioner manual go together")
	}
	switch name {
	case "murmur2_hash":
		return kgo.StickyKeyPartitioner(nil), nil
	case "round_robin":
		return kgo.RoundRobinPartitioner(), nil
	case "least_backup":
		return kgo.LeastBackupPartitioner(), nil
	case partitionerManual:
		return kgo.ManualPartitioner(), nil
	default:
		return nil, fmt.Errorf("unknown partitioner %q", name)
	}
}

func compressionOf(conf *service.ParsedConfig) ([]kgo.CompressionCodec, error) {
	if !conf.Contains(kfoFieldCompression) {
		return []kgo.CompressionCodec{kgo.SnappyCompression(), kgo.NoCompression()}, nil
	}
	name, err := conf.FieldString(kfoFieldCompression)
	if err != nil {
		return nil, err
	}
	codec, known := map[string]kgo.CompressionCodec{
		"lz4": kgo.Lz4Compression(), "snappy": kgo.SnappyCompression(), "gzip": kgo.GzipCompression(),
		"none": kgo.NoCompression(), "zstd": kgo.ZstdCompression(),
	}[name]
	if !known {
		return nil, fmt.Errorf("unknown compression %q", name)
	}
	return []kgo.CompressionCodec{codec}, nil
}

// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	kfiFieldTopics           = "topics"
	kfiFieldRegexpTopics     = "regexp_topics"
	kfiFieldRegexpInclude    = "regexp_topics_include"
	kfiFieldRegexpExclude    = "regexp_topics_exclude"
	kfiFieldConsumerGroup    = "consumer_group"
	kfiFieldInstanceID       = "instance_id"
	kfiFieldRackID           = "rack_id"
	kfiFieldIsolation        = "transaction_isolation_level"
	kfiFieldStartFromOldest  = "start_from_oldest"
	kfiFieldStartOffset      = "start_offset"
	kfiFieldCommitPeriod     = "commit_period"
	kfiFieldCheckpointLimit  = "checkpoint_limit"
	kfiFieldSessionTimeout   = "session_timeout"
	kfiFieldRebalanceTimeout = "rebalance_timeout"
	kfiFieldHeartbeat        = "heartbeat_interval"
	kfiFieldFetchMaxBytes    = "fetch_max_bytes"
	kfiFieldFetchMinBytes    = "fetch_min_bytes"
	kfiFieldFetchMaxWait     = "fetch_max_wait"
	kfiFieldPartitionMax     = "fetch_max_partition_bytes"
	kfiFieldMultiHeader      = "multi_header"
	kfiFieldBatching         = "batching"

	startEarliest  = "earliest"
	startLatest    = "latest"
	startCommitted = "committed"
)

func inputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Services").
		Summary("Consumes topics of Kafka, alone or in a consumer group, and commits what the output acknowledged.").
		Description("With a `"+kfiFieldConsumerGroup+"` the partitions are shared among the group's members, and the group's offsets are committed up to the last record before which all are acknowledged: a record is not lost, and after a crash or a rebalance some come again. Without a group each start begins at `"+kfiFieldStartOffset+"` or at the given offsets, and nothing is committed.\n\n"+
			"A batch holds records of one partition, in order: without `"+kfiFieldBatching+"` one record.\n\n"+
			"Metadata: the record's headers under their names, and `"+metaKey+"`, `"+metaTopic+"`, `"+metaPartition+"`, `"+metaOffset+"`, `"+metaLag+"` (records behind it in the partition when it was fetched), `"+metaTimeMs+"`, `"+metaTimeUnix+"`, `"+metaTombstone+"` (true where the value is null).").
		Fields(connectionFields()...).
		Fields(subscriptionFields()...).
		Fields(fetchFields()...).
		Fields(
			service.NewBoolField(kfiFieldMultiHeader).
				Description("Keep all headers of one name, as a list. Otherwise the last one is kept.").
				Default(false).
				Advanced(),
			service.NewBatchPolicyField(kfiFieldBatching).Advanced(),
			service.NewAutoRetryNacksToggleField(),
		).
		// Where both are empty nothing is filled in yet: that is a skeleton.
		LintRule(`root = [
  if this.consumer_group.or("") != "" && !this.regexp_topics.or(false) && this.topics.or([]).any(t -> t.contains(":")) {
    "topics with partitions can't be consumed in a consumer_group: leave out the partitions or the group"
  },
  if this.seed_brokers.or([]).length() == 0 && this.topics.or([]).length() + this.regexp_topics_include.or([]).length() > 0 { "seed_brokers needs at least one address" },
  if this.seed_brokers.or([]).length() > 0 && this.topics.or([]).length() + this.regexp_topics_include.or([]).length() == 0 { "topics needs at least one topic, or regexp_topics_include a pattern" },
  if this.topics.or([]).length() > 0 && this.regexp_topics_include.or([]).length() > 0 { "topics and regexp_topics_include exclude each other" },
  if this.regexp_topics_exclude.or([]).length() > 0 && !this.regexp_topics.or(false) && this.regexp_topics_include.or([]).length() == 0 { "regexp_topics_exclude needs regexp_topics_include" },
  if this.start_offset.or("") == "earliest" && !this.start_from_oldest.or(true) { "start_from_oldest: false and start_offset: earliest contradict each other" }
]`)
}

func subscriptionFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(kfiFieldTopics).
			Description("Topics to consume. An item may hold several, separated by commas. Without a consumer group a topic may name partitions, as in `foo:0`, `foo:0-5`, and an offset to begin at, as in `foo:0:1000`. With `" + kfiFieldRegexpTopics + "` each item is a regular expression.").
			Example([]string{"foo", "bar"}).
			Example([]string{"things.*"}).
			Example([]string{"foo:0", "bar:0-5", "baz:2:1000"}).
			Optional(),
		service.NewBoolField(kfiFieldRegexpTopics).
			Description("Whether `" + kfiFieldTopics + "` are regular expressions; `" + kfiFieldRegexpInclude + "` says the same by itself.").
			Default(false),
		service.NewStringListField(kfiFieldRegexpInclude).
			Description("Regular expressions of topics to consume, in place of `" + kfiFieldTopics + "`. Topics that match later are found too, within `" + kfFieldMetadataMaxAge + "`. They match anywhere in a name unless they begin with `^` and end with `$`.").
			Example([]string{"^orders_.*$"}).
			Optional(),
		service.NewStringListField(kfiFieldRegexpExclude).
			Description("Regular expressions of topics to leave out of those that match.").
			Example([]string{"^_", "_test$"}).
			Optional(),
		service.NewStringField(kfiFieldConsumerGroup).
			Description("The consumer group to be a member of.").
			Optional(),
		service.NewStringField(kfiFieldInstanceID).
			Description("A name that lasts over restarts of this member, so that a restart within `" + kfiFieldSessionTimeout + "` causes no rebalance.").
			Default("").
			Advanced(),
		service.NewStringField(kfiFieldRackID).
			Description("The rack of this client: replicas there are read from.").
			Default("").
			Advanced(),
		service.NewStringAnnotatedEnumField(kfiFieldIsolation, map[string]string{
			"read_uncommitted": "All records, also of transactions that are open or were aborted.",
			"read_committed":   "Records of committed transactions only.",
		}).
			Description("What of transactions is consumed.").
			Default("read_uncommitted").
			Advanced(),
		service.NewStringAnnotatedEnumField(kfiFieldStartOffset, map[string]string{
			startEarliest:  "At the oldest record.",
			startLatest:    "Behind the newest record.",
			startCommitted: "Nowhere: a partition of which the group has committed nothing is not consumed, which is logged.",
		}).
			Description("Where to begin if no offset is committed or it is gone. Without this field `" + kfiFieldStartFromOldest + "` says it.").
			Optional().
			Advanced().
			Example(startEarliest),
		service.NewBoolField(kfiFieldStartFromOldest).
			Description("The older name of `" + kfiFieldStartOffset + "`: `true` is `" + startEarliest + "`, `false` is `" + startLatest + "`.").
			Default(true).
			Advanced(),
		service.NewDurationField(kfiFieldCommitPeriod).
			LintRule(forms.PositiveDuration).
			Description("How often acknowledged offsets are committed. They are also committed when a partition is given away and at the end.").
			Default("5s").
			Advanced(),
		service.NewIntField(kfiFieldCheckpointLimit).
			Description("How many records of a partition may wait for their acknowledgement. A batching policy that needs more than that waits for ever.").
			Default(1024).
			Advanced().
			LintRule(`root = if this < 1 { [ "checkpoint_limit must be at least 1" ] }`),
		service.NewDurationField(kfiFieldSessionTimeout).
			LintRule(forms.PositiveDuration).
			Description("After how long without a heartbeat a member is taken for dead.").
			Default("1m").
			Advanced(),
		service.NewDurationField(kfiFieldRebalanceTimeout).
			LintRule(forms.PositiveDuration).
			Description("How long members may take to join a rebalance.").
			Default("45s").
			Advanced(),
		service.NewDurationField(kfiFieldHeartbeat).
			LintRule(forms.PositiveDuration).
			Description("How often a heartbeat is sent; at most a third of `" + kfiFieldSessionTimeout + "`.").
			Default("3s").
			Advanced(),
	}
}

func fetchFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(kfiFieldFetchMaxBytes).
			LintRule(forms.Size).
			Description("The most bytes that a broker sends at once.").
			Default("50MiB").
			Advanced(),
		service.NewDurationField(kfiFieldFetchMaxWait).
			LintRule(forms.Duration).
			Description("How long a broker waits for `" + kfiFieldFetchMinBytes + "`.").
			Default("5s").
			Advanced(),
		service.NewStringField(kfiFieldFetchMinBytes).
			LintRule(forms.Size).
			Description("The fewest bytes that a broker answers with before `" + kfiFieldFetchMaxWait + "`.").
			Default("1B").
			Advanced(),
		service.NewStringField(kfiFieldPartitionMax).
			LintRule(forms.Size).
			Description("The most bytes that a broker sends of one partition at once.").
			Default("1MiB").
			Advanced(),
	}
}

// consumerOptions are the client's options for the fields above, without those of a group's callbacks.
func consumerOptions(conf *service.ParsedConfig) ([]kgo.Opt, error) {
	start, err := startOf(conf)
	if err != nil {
		return nil, err
	}
	level, err := conf.FieldString(kfiFieldIsolation)
	if err != nil {
		return nil, err
	}
	isolation := kgo.ReadUncommitted()
	if level == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	rack, err := conf.FieldString(kfiFieldRackID)
	if err != nil {
		return nil, err
	}
	wait, err := conf.FieldDuration(kfiFieldFetchMaxWait)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{kgo.ConsumeResetOffset(start), kgo.FetchIsolationLevel(isolation), kgo.Rack(rack), kgo.FetchMaxWait(wait)}
	for _, f := range []struct {
		name string
		opt  func(int32) kgo.ConsumerOpt
	}{
		{kfiFieldFetchMaxBytes, kgo.FetchMaxBytes},
		{kfiFieldFetchMinBytes, kgo.FetchMinBytes},
		{kfiFieldPartitionMax, kgo.FetchMaxPartitionBytes},
	} {
		n, err := bytesOf(conf, f.name)
		if err != nil {
			return nil, err
		}
		opts = append(opts, f.opt(n))
	}
	return opts, nil
}

// startOf is where a partition begins of which no offset is known.
func startOf(conf *service.ParsedConfig) (kgo.Offset, error) {
	start := kgo.NewOffset()
	oldest, err := conf.FieldBool(kfiFieldStartFromOldest)
	if err != nil {
		return start, err
	}
	name := startLatest
	if oldest {
		name = startEarliest
	}
	if conf.Contains(kfiFieldStartOffset) {
		if name, err = conf.FieldString(kfiFieldStartOffset); err != nil {
			return start, err
		}
	}
	switch name {
	case startEarliest:
		if !oldest {
			return start, fmt.Errorf("%s: false and %s: %s contradict each other", kfiFieldStartFromOldest, kfiFieldStartOffset, startEarliest)
		}
		return start.AtStart(), nil
	case startLatest:
		return start.AtEnd(), nil
	case startCommitted:
		return start.AtCommitted(), nil
	default:
		return start, fmt.Errorf("unknown %s %q", kfiFieldStartOffset, name)
	}
}

// groupOptions are the options of a member of a consumer group.
func groupOptions(conf *service.ParsedConfig, group string) ([]kgo.Opt, error) {
	instance, err := conf.FieldString(kfiFieldInstanceID)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.AutoCommitMarks(),
		// A partition is given away between two polls only, so that no record of it is taken up afterwards.
		kgo.BlockRebalanceOnPoll(),
	}
	if instance != "" {
		opts = append(opts, kgo.InstanceID(instance))
	}
	for _, f := range []struct {
		name string
		opt  func(time.Duration) kgo.GroupOpt
	}{
		{kfiFieldCommitPeriod, kgo.AutoCommitInterval},
		{kfiFieldSessionTimeout, kgo.SessionTimeout},
		{kfiFieldRebalanceTimeout, kgo.RebalanceTimeout},
		{kfiFieldHeartbeat, kgo.HeartbeatInterval},
	} {
		d, err := conf.FieldDuration(f.name)
		if err != nil {
			return nil, err
		}
		if d <= 0 {
			return nil, fmt.Errorf("%s must be more than 0", f.name)
		}
		opts = append(opts, f.opt(d))
	}
	return opts, nil
}

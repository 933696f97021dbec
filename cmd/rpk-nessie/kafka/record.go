// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The metadata of consumed messages. Headers come as metadata under their own names.
const (
	metaKey       = "kafka_key"
	metaTopic     = "kafka_topic"
	metaPartition = "kafka_partition"
	metaOffset    = "kafka_offset"
	metaLag       = "kafka_lag"
	metaTimeMs    = "kafka_timestamp_ms"
	metaTimeUnix  = "kafka_timestamp_unix"
	metaTombstone = "kafka_tombstone_message"
)

// messageOf is a record as a message. The header wins that comes last, unless all are kept (multi).
func messageOf(r *kgo.Record, lag int64, multi bool) *service.Message {
	m := service.NewMessage(r.Value)
	headers := map[string][]any{}
	for _, h := range r.Headers {
		headers[h.Key] = append(headers[h.Key], string(h.Value))
	}
	for key, values := range headers {
		if multi {
			m.MetaSetMut(key, values)
		} else {
			m.MetaSetMut(key, values[len(values)-1])
		}
	}
	m.MetaSetMut(metaKey, string(r.Key))
	m.MetaSetMut(metaTopic, r.Topic)
	m.MetaSetMut(metaPartition, int(r.Partition))
	m.MetaSetMut(metaOffset, r.Offset)
	m.MetaSetMut(metaLag, lag)
	m.MetaSetMut(metaTimeMs, r.Timestamp.UnixMilli())
	m.MetaSetMut(metaTimeUnix, r.Timestamp.Unix())
	m.MetaSetMut(metaTombstone, r.Value == nil)
	return m
}

// recordMaker makes records of messages.
type recordMaker struct {
	topic, key, partition, timeMs *service.InterpolatedString // nil where not configured
	headers                       *service.MetadataFilter
}

func (m *recordMaker) configure(conf *service.ParsedConfig) (err error) {
	for _, f := range []struct {
		name string
		to   **service.InterpolatedString
	}{
		{kfoFieldTopic, &m.topic},
		{kfoFieldKey, &m.key},
		{kfoFieldPartition, &m.partition},
		{kfoFieldTimestampMs, &m.timeMs},
	} {
		if conf.Contains(f.name) {
			if *f.to, err = conf.FieldInterpolatedString(f.name); err != nil {
				return err
			}
		}
	}
	if conf.Contains(kfoFieldMetadata) {
		m.headers, err = conf.FieldMetadataFilter(kfoFieldMetadata)
	}
	return err
}

// of makes a record of each message. If one can't be made no record is.
func (m *recordMaker) of(batch service.MessageBatch) ([]*kgo.Record, error) {
	fields := recordFieldsOf{topic: executor(batch, m.topic), key: executor(batch, m.key), partition: executor(batch, m.partition), timeMs: executor(batch, m.timeMs)}
	records := make([]*kgo.Record, len(batch))
	for i, message := range batch {
		record, err := fields.record(i)
		if err == nil {
			record.Value, err = valueOf(message)
		}
		if err == nil {
			record.Headers, err = m.headersOf(message)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		records[i] = record
	}
	return records, nil
}

func executor(batch service.MessageBatch, field *service.InterpolatedString) *service.MessageBatchInterpolationExecutor {
	if field == nil {
		return nil
	}
	return batch.InterpolationExecutor(field)
}

// recordFieldsOf are a batch's interpolated fields; nil where not configured.
type recordFieldsOf struct {
	topic, key, partition, timeMs *service.MessageBatchInterpolationExecutor
}

func (f recordFieldsOf) record(i int) (*kgo.Record, error) {
	topic, err := f.topic.TryString(i)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kfoFieldTopic, err)
	}
	record := &kgo.Record{Topic: topic}
	if f.key != nil {
		if record.Key, err = f.key.TryBytes(i); err != nil {
			return nil, fmt.Errorf("%s: %w", kfoFieldKey, err)
		}
	}
	if f.partition != nil {
		n, err := number(f.partition, i, kfoFieldPartition, 32)
		if err != nil {
			return nil, err
		}
		record.Partition = int32(n)
	}
	if f.timeMs != nil {
		ms, err := number(f.timeMs, i, kfoFieldTimestampMs, 64)
		if err != nil {
			return nil, err
		}
		record.Timestamp = time.UnixMilli(ms)
	}
	return record, nil
}

func number(field *service.MessageBatchInterpolationExecutor, i int, name string, bits int) (int64, error) {
	text, err := field.TryString(i)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is no whole number from 0 on", name, text)
	}
	return n, nil
}

// valueOf is the message's body, or nil for a tombstone.
func valueOf(m *service.Message) ([]byte, error) {
	value, err := m.AsBytes()
	if err != nil {
		return nil, err
	}
	if len(value) == 0 {
		if tombstone, _ := m.MetaGet(metaTombstone); tombstone == "true" {
			return nil, nil
		}
		return []byte{}, nil
	}
	return value, nil
}

func (m *recordMaker) headersOf(message *service.Message) (headers []kgo.RecordHeader, err error) {
	err = m.headers.Walk(message, func(key, value string) error {
		headers = append(headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
		return nil
	})
	return headers, err
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/redpanda-data/benthos/v4/public/schema"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// Metadata keys of every message. No other file names one.
const (
	metaSnapshotID       = "snapshot_id"
	metaSnapshotSequence = "snapshot_sequence"
	metaNamespace        = "namespace"
	metaTable            = "table"
	metaOperation        = "operation"
	metaBranch           = "branch"
	metaCommitHash       = "commit_hash"
	metaCommitTime       = "commit_ts_ms"
	metaSchemaID         = "schema_id"
	metaTableUUID        = "table_uuid"
	metaSchema           = "schema"
	metaStep             = "step"
	metaFirstRow         = "first_row"
	metaSnapshotLast     = "snapshot_last"
	metaRows             = "rows"
	metaRowOrdinal       = "row_ordinal"
	metaSnapshotFrom     = "snapshot_from"
)

// stepMessage makes the messages of one step. What all of them share stands
// once in a base message; copies share its metadata until somebody writes to
// theirs.
type stepMessage struct {
	base *service.Message
	// perRow is false where a message holds several rows and counts them.
	perRow bool
	// ordinals puts its ordinal on each row.
	ordinals bool
}

func newStepMessage(conf *Config, s *step, rows *iceberg.Schema) *stepMessage {
	base := service.NewMessage(nil)
	base.MetaSetMut(metaSnapshotID, strconv.FormatInt(s.After.SnapshotID, 10))
	base.MetaSetMut(metaSnapshotSequence, s.After.Sequence)
	base.MetaSetMut(metaNamespace, conf.Namespace)
	base.MetaSetMut(metaTable, conf.Key[len(conf.Key)-1])
	base.MetaSetMut(metaBranch, conf.Ref.String())
	base.MetaSetMut(metaCommitHash, s.Commit.Hash)
	base.MetaSetMut(metaCommitTime, s.Commit.TimeMs)
	base.MetaSetMut(metaTableUUID, s.After.TableUUID)
	base.MetaSetMut(metaStep, s.Ordinal)
	if rows != nil {
		common := commonSchema(conf.Key[len(conf.Key)-1], rows)
		base.MetaSetMut(metaSchema, common.ToAny())
		base.MetaSetMut(metaSchemaID, rows.ID)
	}
	if s.Kind == lineage.Bridge || s.Kind == lineage.CatchUp {
		base.MetaSetMut(metaSnapshotFrom, strconv.FormatInt(s.Before.SnapshotID, 10))
	}
	return &stepMessage{base: base, perRow: conf.Format == formatJSON, ordinals: conf.RowOrdinals}
}

// batch makes the messages of one batch, marked. They own the batch's bytes,
// which nobody else writes to or reads again.
func (m *stepMessage) batch(b scan.Batch) service.MessageBatch {
	base := m.base.Copy()
	base.MetaSetMut(metaOperation, b.Operation)
	base.MetaSetMut(metaFirstRow, b.First)
	base.MetaSetMut(metaSnapshotLast, b.Last)
	if !m.perRow {
		base.MetaSetMut(metaRows, b.Rows)
	}
	out := make(service.MessageBatch, len(b.Messages))
	messages, marks := make([]service.Message, len(out)), newMarks(len(out))
	operations := map[string]*service.Message{b.Operation: base}
	for i, body := range b.Messages {
		from := base
		if b.Operations != nil {
			from = withOperation(operations, base, b.Operations[i])
		}
		marks[i].Context = base.Context()
		messages[i] = *from.Copy().WithContext(&marks[i])
		msg := &messages[i]
		msg.SetBytes(body)
		if m.ordinals {
			msg.MetaSetMut(metaRowOrdinal, b.First+int64(i))
		}
		out[i] = msg
	}
	return out
}

// withOperation is the base message of an operation, made at its first row.
func withOperation(known map[string]*service.Message, base *service.Message, operation string) *service.Message {
	from := known[operation]
	if from == nil {
		from = base.Copy()
		from.MetaSetMut(metaOperation, operation)
		known[operation] = from
	}
	return from
}

// truncation is the step that tells a changelog's reader to drop all it has:
// one message with a null body.
func truncation(conf *Config, s *step) madeBatch {
	body := []byte("null")
	again := func() service.MessageBatch {
		return newStepMessage(conf, s, nil).batch(scan.Batch{
			Rows: 1, Messages: [][]byte{body}, Operation: operationTruncate, Last: true,
		})
	}
	return madeBatch{messages: again(), again: again, rows: 1, bytes: int64(len(body)), next: 1, last: true}
}

const operationTruncate = "truncate"

// rowsOf counts the rows of a batch that this input made.
func rowsOf(batch service.MessageBatch) int64 {
	rows := int64(0)
	for _, m := range batch {
		counted, _ := m.MetaGetMut(metaRows)
		if n, ok := counted.(int); ok {
			rows += int64(n)
		} else {
			rows++
		}
	}
	return rows
}

// commonSchema is the schema of a row in Benthos's common form. Types that the
// form does not know are named by what their JSON is.
func commonSchema(name string, s *iceberg.Schema) schema.Common {
	c := schema.Common{Name: name, Type: schema.Object}
	for _, f := range s.Fields() {
		c.Children = append(c.Children, commonField(f.Name, f.Type, !f.Required))
	}
	return c
}

func commonField(name string, t iceberg.Type, optional bool) schema.Common {
	c := schema.Common{Name: name, Optional: optional}
	switch t := t.(type) {
	case iceberg.BooleanType:
		c.Type = schema.Boolean
	case iceberg.Int32Type:
		c.Type = schema.Int32
	case iceberg.Int64Type:
		c.Type = schema.Int64
	case iceberg.Float32Type:
		c.Type = schema.Float32
	case iceberg.Float64Type:
		c.Type = schema.Float64
	case *iceberg.StructType:
		c.Type = schema.Object
		for _, f := range t.FieldList {
			c.Children = append(c.Children, commonField(f.Name, f.Type, !f.Required))
		}
	case *iceberg.ListType:
		c.Type = schema.Array
		c.Children = []schema.Common{commonField("", t.Element, !t.ElementRequired)}
	case *iceberg.MapType:
		return commonMap(c, t)
	case iceberg.UnknownType:
		c.Type, c.Optional = schema.Null, true
	default:
		c.Type = schema.String
	}
	return c
}

// commonMap follows the JSON: an object where the keys are strings, otherwise
// a list of keys with their values.
func commonMap(c schema.Common, t *iceberg.MapType) schema.Common {
	value := commonField("", t.ValueType, !t.ValueRequired)
	if _, ok := t.KeyType.(iceberg.StringType); ok {
		c.Type, c.Children = schema.Map, []schema.Common{value}
		return c
	}
	value.Name = "value"
	c.Type = schema.Array
	c.Children = []schema.Common{{
		Type:     schema.Object,
		Children: []schema.Common{commonField("key", t.KeyType, false), value},
	}}
	return c
}

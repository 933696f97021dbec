// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	sqFieldMaxInFlight = "max_in_flight"
	sqFieldBatching    = "batching"
)

func init() {
	service.MustRegisterBatchOutput("sql_raw", rawOutputSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (
		out service.BatchOutput, policy service.BatchPolicy, maxInFlight int, err error,
	) {
		if policy, maxInFlight, err = outputSettings(conf); err != nil {
			return nil, policy, 0, err
		}
		out, err = newRawOutput(conf)
		return out, policy, maxInFlight, err
	})
}

// outputFields are those of all outputs.
func outputFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewIntField(sqFieldMaxInFlight).
			Description("How many batches are written side by side. 1 keeps the order.").
			Default(64).
			LintRule(`root = if this < 1 { [ "max_in_flight must be at least 1" ] }`),
		service.NewBatchPolicyField(sqFieldBatching),
	}
}

func outputSettings(conf *service.ParsedConfig) (policy service.BatchPolicy, maxInFlight int, err error) {
	if maxInFlight, err = conf.FieldInt(sqFieldMaxInFlight); err != nil {
		return policy, 0, err
	}
	policy, err = conf.FieldBatchPolicy(sqFieldBatching)
	return policy, maxInFlight, err
}

func rawOutputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Services").
		Summary("Runs SQL statements for each message.").
		Description("A batch is written in one transaction: all of its messages or none. If a statement fails, the error names the message, and the whole batch is refused and can be sent again. A batch of one message with one statement is run without a transaction, so that statements work which do not allow one.\n\nBigger batches are much faster: a transaction costs a write to the disk.").
		Fields(databaseFields()...).
		Fields(queryFields(false)...).
		Fields(outputFields()...).
		Fields(connectionFields()...).
		LintRule(needsQuery).
		Example("Upsert rows", "Rows of a table, again and again without doubles.", `
output:
  sql_raw:
    driver: postgres
    dsn: postgres://follower:${PG_PASSWORD}@localhost:5432/shop
    query: |
      INSERT INTO orders (id, item) VALUES ($1, $2)
      ON CONFLICT (id) DO UPDATE SET item = EXCLUDED.item
    args_mapping: root = [ this.id, this.item ]
    max_in_flight: 1
    init_statement: CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, item TEXT)
`)
}

// rawOutput is the sql_raw output. WriteBatch may be called concurrently.
type rawOutput struct {
	connection *connection
	queries    []query
}

func newRawOutput(conf *service.ParsedConfig) (*rawOutput, error) {
	c, err := newConnection(conf)
	if err != nil {
		return nil, err
	}
	queries, err := parseQueries(conf, false)
	return &rawOutput{c, queries}, err
}

func (o *rawOutput) Connect(ctx context.Context) error { return o.connection.connect(ctx) }

func (o *rawOutput) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	db, err := o.connection.open()
	if err != nil {
		return err
	}
	if len(batch) == 1 && len(o.queries) == 1 {
		return o.write(ctx, db, batch)
	}
	return inTransaction(ctx, db, func(tx *transaction) error { return o.write(ctx, tx, batch) })
}

func (o *rawOutput) write(ctx context.Context, on executor, batch service.MessageBatch) error {
	args := newArguments(o.connection.dialect, batch)
	for i := range batch {
		for n, q := range o.queries {
			if err := q.execute(ctx, on, args, i); err != nil {
				return fmt.Errorf("message %d of %d, statement %d: %w", i+1, len(batch), n+1, err)
			}
		}
	}
	return nil
}

func (o *rawOutput) Close(context.Context) error { return o.connection.close() }

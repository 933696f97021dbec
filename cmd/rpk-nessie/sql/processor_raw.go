// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

func init() {
	service.MustRegisterBatchProcessor("sql_raw", rawProcessorSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchProcessor, error) {
		return newRawProcessor(conf)
	})
}

func rawProcessorSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Integration").
		Summary("Runs SQL statements for each message and makes the message the rows that came back.").
		Description("The message becomes an array with an object for each row, unless `"+sqFieldExecOnly+"` is true. Several statements are run in one transaction a message. If one fails the message stays as it is and carries the error, which `catch` and other error handling sees.").
		Fields(databaseFields()...).
		Fields(queryFields(true)...).
		Fields(connectionFields()...).
		LintRule(needsQuery).
		Example("Look something up", "Adds what another table knows.", `
pipeline:
  processors:
    - branch:
        processors:
          - sql_raw:
              driver: postgres
              dsn: postgres://follower:${PG_PASSWORD}@localhost:5432/shop
              query: SELECT name, city FROM customers WHERE id = $1
              args_mapping: root = [ this.customer_id ]
        result_map: root.customer = this.index(0)
`)
}

// rawProcessor is the sql_raw processor.
type rawProcessor struct {
	connection *connection
	queries    []query
}

func newRawProcessor(conf *service.ParsedConfig) (*rawProcessor, error) {
	c, err := newConnection(conf)
	if err != nil {
		return nil, err
	}
	queries, err := parseQueries(conf, true)
	return &rawProcessor{c, queries}, err
}

func (p *rawProcessor) ProcessBatch(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
	db, err := p.connection.opened(ctx)
	if err != nil {
		return nil, err
	}
	args := newArguments(p.connection.dialect, batch)
	batch = batch.Copy()
	for i, message := range batch {
		work := func(on executor) error { return p.process(ctx, on, args, i, message) }
		if len(p.queries) == 1 {
			err = work(db)
		} else {
			err = inTransaction(ctx, db, func(tx *transaction) error { return work(tx) })
		}
		if err != nil {
			message.SetError(err)
		}
	}
	return []service.MessageBatch{batch}, nil
}

// process runs all queries for message i of the batch that args knows, and sets its rows.
func (p *rawProcessor) process(ctx context.Context, on executor, args *argumentsOf, i int, message *service.Message) error {
	var rows []any
	for n, q := range p.queries {
		var err error
		if q.execOnly {
			err = q.execute(ctx, on, args, i)
		} else {
			rows, err = q.fetch(ctx, on, args, i)
		}
		if err != nil {
			return fmt.Errorf("statement %d: %w", n+1, err)
		}
	}
	if rows != nil {
		message.SetStructuredMut(rows)
	}
	return nil
}

func (p *rawProcessor) Close(context.Context) error { return p.connection.close() }

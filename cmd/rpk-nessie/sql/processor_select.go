// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"errors"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const sqFieldWhere = "where"

func init() {
	service.MustRegisterBatchProcessor("sql_select", selectSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchProcessor, error) {
		return newSelection(conf)
	})
}

func selectSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Integration").
		Summary("Selects rows of a table for each message and makes the message these rows.").
		Description("The message becomes an array with an object for each row. If the query fails the message stays as it is and carries the error, which `catch` and other error handling sees.").
		Fields(databaseFields()...).
		Fields(
			service.NewStringField(sqFieldTable).
				Description("The table, such as `customers`. It is put into the statement as it is: quote it where SQL asks for quotes."),
			service.NewStringListField(sqFieldColumns).
				Description("The columns. They are put into the statement as they are.").
				Example([]string{"*"}).
				Example([]string{"name", "city"}),
			service.NewStringField(sqFieldWhere).
				Description("The condition. Its placeholders are question marks for every database; `??` is a question mark that is none.").
				Optional().
				Example("id = ?").
				Example("customer = ? AND ordered_at > ?"),
			service.NewBloblangField(sqFieldArgsMapping).
				Description("A mapping that gives an array with a value for each placeholder.").
				Optional().
				Example("root = [ this.customer_id ]"),
			service.NewStringField(sqFieldPrefix).
				Description("Text in front of the statement.").
				Optional().
				Advanced(),
			service.NewStringField(sqFieldSuffix).
				Description("Text behind the statement.").
				Optional().
				Advanced().
				Example("ORDER BY name LIMIT 1"),
		).
		Fields(connectionFields()...).
		LintRule(needsColumns).
		Example("Look something up", "Adds what another table knows.", `
pipeline:
  processors:
    - branch:
        processors:
          - sql_select:
              driver: sqlite
              dsn: file:./customers.db
              table: customers
              columns: [ name, city ]
              where: id = ?
              args_mapping: root = [ this.customer_id ]
        result_map: root.customer = this.index(0)
`)
}

// selection is the sql_select processor.
type selection struct {
	connection *connection
	query      query
}

func newSelection(conf *service.ParsedConfig) (*selection, error) {
	c, err := newConnection(conf)
	if err != nil {
		return nil, err
	}
	var text [4]string
	for i, name := range []string{sqFieldPrefix, sqFieldTable, sqFieldWhere, sqFieldSuffix} {
		if conf.Contains(name) {
			if text[i], err = conf.FieldString(name); err != nil {
				return nil, err
			}
		}
	}
	prefix, table, where, suffix := text[0], text[1], text[2], text[3]
	columns, err := conf.FieldStringList(sqFieldColumns)
	if err != nil {
		return nil, err
	}
	if table == "" || len(columns) == 0 {
		return nil, errors.New("a table and columns are needed")
	}
	words := []string{"SELECT", strings.Join(columns, ", "), "FROM", table}
	if prefix != "" {
		words = append([]string{prefix}, words...)
	}
	if where != "" {
		words = append(words, "WHERE", c.dialect.numbered(where))
	}
	if suffix != "" {
		words = append(words, suffix)
	}
	var mapping *bloblang.Executor
	if conf.Contains(sqFieldArgsMapping) {
		if mapping, err = conf.FieldBloblang(sqFieldArgsMapping); err != nil {
			return nil, err
		}
	}
	return &selection{c, query{text: strings.Join(words, " "), mapping: mapping}}, nil
}

func (s *selection) ProcessBatch(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
	db, err := s.connection.opened(ctx)
	if err != nil {
		return nil, err
	}
	args := newArguments(s.connection.dialect, batch)
	batch = batch.Copy()
	for i, message := range batch {
		rows, err := s.query.fetch(ctx, db, args, i)
		if err != nil {
			message.SetError(err)
			continue
		}
		message.SetStructuredMut(rows)
	}
	return []service.MessageBatch{batch}, nil
}

func (s *selection) Close(context.Context) error { return s.connection.close() }

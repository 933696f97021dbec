// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	sqFieldTable   = "table"
	sqFieldColumns = "columns"
	sqFieldPrefix  = "prefix"
	sqFieldSuffix  = "suffix"
	sqFieldOptions = "options"

	// needsColumns holds once a table is named: without one nothing is filled in yet, and that is a skeleton.
	needsColumns = `root = if this.table.or("") != "" && this.columns.or([]).length() == 0 { "columns needs at least one column" }`

	// rowsInStatement bounds the length of a statement; more gains nothing.
	rowsInStatement = 1000
)

func init() {
	service.MustRegisterBatchOutput("sql_insert", insertSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (
		out service.BatchOutput, policy service.BatchPolicy, maxInFlight int, err error,
	) {
		if policy, maxInFlight, err = outputSettings(conf); err != nil {
			return nil, policy, 0, err
		}
		out, err = newInsert(conf)
		return out, policy, maxInFlight, err
	})
}

func insertSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Services").
		Summary("Inserts a row into a table for each message.").
		Description("A batch is written in one transaction: all of its rows or none. Rows go into as few statements as the database allows; with a `"+sqFieldSuffix+"` each row is a statement of its own, so that an `ON CONFLICT` clause may meet one key twice in a batch.\n\nBigger batches are much faster: a transaction costs a write to the disk.").
		Fields(databaseFields()...).
		Fields(
			service.NewStringField(sqFieldTable).
				Description("The table, such as `orders` or `sales.orders`. It is put into the statement as it is: quote it where SQL asks for quotes."),
			service.NewStringListField(sqFieldColumns).
				Description("The columns. They are put into the statement as they are.").
				Example([]string{"id", "item", "ordered_at"}),
			service.NewBloblangField(sqFieldArgsMapping).
				Description("A mapping that gives an array with a value for each column. Objects and arrays in it are bound as JSON.").
				Example("root = [ this.id, this.item, this.ordered_at ]").
				Example(`root = [ this.id, metadata("snapshot_id").string() ]`),
			service.NewStringField(sqFieldPrefix).
				Description("Text in front of the statement.").
				Optional().
				Advanced(),
			service.NewStringField(sqFieldSuffix).
				Description("Text behind the statement.").
				Optional().
				Advanced().
				Example("ON CONFLICT (id) DO NOTHING"),
			service.NewStringListField(sqFieldOptions).
				Description("Key words between INSERT and INTO.").
				Optional().
				Advanced().
				Example([]string{"OR", "REPLACE"}),
		).
		Fields(outputFields()...).
		Fields(connectionFields()...).
		LintRule(needsColumns).
		Example("Append rows", "A batch is a transaction.", `
output:
  sql_insert:
    driver: sqlite
    dsn: file:./orders.db
    table: orders
    columns: [ id, item ]
    args_mapping: root = [ this.id, this.item ]
    init_statement: CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT)
    batching: { count: 1000, period: 1s }
`)
}

// insert is the sql_insert output. WriteBatch may be called concurrently.
type insert struct {
	connection *connection
	mapping    *bloblang.Executor
	columns    int
	head, tail string // the statement around its rows
	rows       int    // in one statement
}

func newInsert(conf *service.ParsedConfig) (*insert, error) {
	c, err := newConnection(conf)
	if err != nil {
		return nil, err
	}
	table, err := conf.FieldString(sqFieldTable)
	if err != nil {
		return nil, err
	}
	columns, err := conf.FieldStringList(sqFieldColumns)
	if err != nil {
		return nil, err
	}
	if table == "" || len(columns) == 0 {
		return nil, errors.New("a table and its columns are needed")
	}
	o := &insert{connection: c, columns: len(columns)}
	if o.mapping, err = conf.FieldBloblang(sqFieldArgsMapping); err != nil {
		return nil, err
	}
	var prefix, suffix string
	for name, to := range map[string]*string{sqFieldPrefix: &prefix, sqFieldSuffix: &suffix} {
		if conf.Contains(name) {
			if *to, err = conf.FieldString(name); err != nil {
				return nil, err
			}
		}
	}
	words := []string{prefix, "INSERT"}
	if conf.Contains(sqFieldOptions) {
		options, err := conf.FieldStringList(sqFieldOptions)
		if err != nil {
			return nil, err
		}
		words = append(words, options...)
	}
	words = append(words, "INTO", table, "("+strings.Join(columns, ", ")+")", "VALUES ")
	o.head, o.tail = strings.TrimLeft(strings.Join(words, " "), " "), suffix
	o.rows = max(1, min(rowsInStatement, c.dialect.mostParameters/len(columns)))
	if suffix != "" {
		o.tail, o.rows = " "+suffix, 1
	}
	return o, nil
}

func (o *insert) Connect(ctx context.Context) error { return o.connection.connect(ctx) }

func (o *insert) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	db, err := o.connection.open()
	if err != nil {
		return err
	}
	values := make([]any, 0, len(batch)*o.columns)
	args := newArguments(o.connection.dialect, batch)
	for i := range batch {
		row, err := args.values(o.mapping, i)
		if err == nil && len(row) != o.columns {
			err = fmt.Errorf("%s gave %d values for %d columns", sqFieldArgsMapping, len(row), o.columns)
		}
		if err != nil {
			return fmt.Errorf("message %d of %d: %w", i+1, len(batch), err)
		}
		values = append(values, row...)
	}
	if len(batch) <= o.rows {
		return o.write(ctx, db, values)
	}
	return inTransaction(ctx, db, func(tx *transaction) error {
		most := o.rows * o.columns
		for ; len(values) > most; values = values[most:] {
			if err := o.write(ctx, tx, values[:most]); err != nil {
				return err
			}
		}
		return o.write(ctx, tx, values)
	})
}

// write inserts rows, one after the other in values, by one statement.
func (o *insert) write(ctx context.Context, on executor, values []any) error {
	if _, err := on.ExecContext(ctx, o.statement(len(values)/o.columns), values...); err != nil {
		return fmt.Errorf("inserting %d rows: %w", len(values)/o.columns, err)
	}
	return nil
}

func (o *insert) statement(rows int) string {
	var text strings.Builder
	text.WriteString(o.head)
	for n := range rows * o.columns {
		switch {
		case n == 0:
			text.WriteString("(")
		case n%o.columns == 0:
			text.WriteString("), (")
		default:
			text.WriteString(", ")
		}
		text.WriteString(o.connection.dialect.parameter(n + 1))
	}
	text.WriteString(")")
	text.WriteString(o.tail)
	return text.String()
}

func (o *insert) Close(context.Context) error { return o.connection.close() }

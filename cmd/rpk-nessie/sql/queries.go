// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	sqFieldQuery       = "query"
	sqFieldUnsafe      = "unsafe_dynamic_query"
	sqFieldArgsMapping = "args_mapping"
	sqFieldExecOnly    = "exec_only"
	sqFieldQueries     = "queries"
)

// query is one statement of sql_raw.
type query struct {
	text     string
	dynamic  *service.InterpolatedString // instead of text, with unsafe_dynamic_query
	mapping  *bloblang.Executor          // nil: no parameters
	execOnly bool
}

// queryFields are those of sql_raw. A processor also has exec_only.
func queryFields(processor bool) []*service.ConfigField {
	own := func(optional bool) []*service.ConfigField {
		text := service.NewStringField(sqFieldQuery).
			Description("The statement. Its placeholders are those of the database: `$1`, `$2`, … for PostgreSQL, `?` for SQLite.").
			Example("INSERT INTO orders (id, item) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET item = EXCLUDED.item").
			Example("DELETE FROM orders WHERE id = ?")
		args := service.NewBloblangField(sqFieldArgsMapping).
			Description("A mapping that gives an array with a value for each placeholder. Objects and arrays in it are bound as JSON.").
			Optional().
			Example("root = [ this.id, this.item ]").
			Example(`root = [ metadata("snapshot_id").string() ]`)
		if optional {
			text = text.Optional()
		}
		fields := []*service.ConfigField{text, args}
		if processor {
			fields = append(fields, service.NewBoolField(sqFieldExecOnly).
				Description("Leave the message as it is. Otherwise it becomes the array of the rows that the statement returned, one object a row. In `"+sqFieldQueries+"` only the last statement's rows are taken, unless it says `true`.").
				Optional())
		}
		return fields
	}
	unsafe := service.NewBoolField(sqFieldUnsafe).
		Description("Interpolate functions in the statements. Text of messages then becomes part of statements, and whoever writes the messages can write statements: use `" + sqFieldArgsMapping + "` for values, and this only for what can't be a parameter.").
		Default(false).
		Advanced()
	queries := service.NewObjectListField(sqFieldQueries, own(false)...).
		Description("More statements, run in this order after `" + sqFieldQuery + "`, in one transaction with it.").
		Optional()
	return append(own(true), unsafe, queries)
}

// needsQuery is a lint rule of sql_raw.
const needsQuery = `root = if this.query.or("") == "" && this.queries.or([]).length() == 0 { "a query or queries are needed" }`

// parseQueries reads what queryFields describe.
func parseQueries(conf *service.ParsedConfig, processor bool) ([]query, error) {
	unsafe, err := conf.FieldBool(sqFieldUnsafe)
	if err != nil {
		return nil, err
	}
	var sources []*service.ParsedConfig
	if conf.Contains(sqFieldQuery) {
		sources = append(sources, conf)
	}
	if conf.Contains(sqFieldQueries) {
		more, err := conf.FieldObjectList(sqFieldQueries)
		if err != nil {
			return nil, err
		}
		sources = append(sources, more...)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("a %s or %s are needed", sqFieldQuery, sqFieldQueries)
	}
	queries := make([]query, len(sources))
	for i, source := range sources {
		q := query{execOnly: i < len(sources)-1}
		if q.text, err = source.FieldString(sqFieldQuery); err != nil {
			return nil, err
		}
		if unsafe {
			if q.dynamic, err = source.FieldInterpolatedString(sqFieldQuery); err != nil {
				return nil, err
			}
		}
		if source.Contains(sqFieldArgsMapping) {
			if q.mapping, err = source.FieldBloblang(sqFieldArgsMapping); err != nil {
				return nil, err
			}
		}
		if processor && source.Contains(sqFieldExecOnly) {
			if q.execOnly, err = source.FieldBool(sqFieldExecOnly); err != nil {
				return nil, err
			}
		}
		queries[i] = q
	}
	return queries, nil
}

// statement is a query's text and parameters for message i.
func (q query) statement(a *argumentsOf, i int) (string, []any, error) {
	text := q.text
	if q.dynamic != nil {
		var err error
		if text, err = a.text(q.dynamic, i); err != nil {
			return "", nil, fmt.Errorf("%s: %w", sqFieldQuery, err)
		}
	}
	values, err := a.values(q.mapping, i)
	return text, a.dialect.arguments(values), err
}

// execute runs the query for message i and discards what it returns.
func (q query) execute(ctx context.Context, on executor, a *argumentsOf, i int) error {
	text, args, err := q.statement(a, i)
	if err != nil {
		return err
	}
	_, err = on.ExecContext(ctx, text, args...)
	return err
}

// fetch runs the query for message i and returns its rows.
func (q query) fetch(ctx context.Context, on executor, a *argumentsOf, i int) ([]any, error) {
	text, args, err := q.statement(a, i)
	if err != nil {
		return nil, err
	}
	return rowsOf(on.QueryContext(ctx, text, args...))
}

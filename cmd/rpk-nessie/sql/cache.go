// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	sqFieldKeyColumn   = "key_column"
	sqFieldValueColumn = "value_column"
	sqFieldSetSuffix   = "set_suffix"
)

func init() {
	service.MustRegisterCache("sql", cacheSpec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.Cache, error) {
		return newCache(conf)
	})
}

func cacheSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Categories("Integration").
		Summary("Keeps each item as a row of a table.").
		Description("The table needs a column for keys with a unique index (or as primary key), of a text type, and a column for values, of a text or binary type: `BYTEA` or `TEXT` in PostgreSQL, `BLOB` or `TEXT` in SQLite.\n\nItems never expire: a TTL is ignored. An item is as durable as the database's commits: what is stored is stored when the write returns, unless the database was told otherwise (PostgreSQL's `synchronous_commit` and `fsync`, SQLite's `synchronous`).\n\nThe connection is made when the cache is first used; if that fails the next use tries again.").
		Fields(databaseFields()...).
		Fields(
			service.NewStringField(sqFieldTable).
				Description("The table. It is put into statements as it is.").
				Example("checkpoints"),
			service.NewStringField(sqFieldKeyColumn).
				Description("The column of the keys. It is put into statements as it is.").
				Example("key"),
			service.NewStringField(sqFieldValueColumn).
				Description("The column of the values. It is put into statements as it is.").
				Example("value"),
			service.NewStringField(sqFieldSetSuffix).
				Description("Text behind the INSERT that sets an item, which has to make it write over an item that is there. Without this field it is `ON CONFLICT (key_column) DO UPDATE SET value_column = EXCLUDED.value_column`.").
				Optional().
				Example("ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"),
		).
		Fields(connectionFields()...).
		Example("Checkpoints beside the data", "Where the rows go into a database, their place fits there too.", `
cache_resources:
  - label: progress
    sql:
      driver: postgres
      dsn: postgres://follower:${PG_PASSWORD}@localhost:5432/shop
      table: checkpoints
      key_column: key
      value_column: value
      set_suffix: ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value
      init_statement: CREATE TABLE IF NOT EXISTS checkpoints (key TEXT PRIMARY KEY, value TEXT NOT NULL)
`)
}

// cache is the sql cache. It may be used concurrently.
type cache struct {
	connection            *connection
	get, set, add, delete string
}

func newCache(conf *service.ParsedConfig) (*cache, error) {
	c, err := newConnection(conf)
	if err != nil {
		return nil, err
	}
	var text [3]string
	for i, name := range []string{sqFieldTable, sqFieldKeyColumn, sqFieldValueColumn} {
		if text[i], err = conf.FieldString(name); err != nil {
			return nil, err
		}
		if text[i] == "" {
			return nil, fmt.Errorf("%s is needed", name)
		}
	}
	table, key, value := text[0], text[1], text[2]
	suffix := fmt.Sprintf("ON CONFLICT (%s) DO UPDATE SET %s = EXCLUDED.%s", key, value, value)
	if conf.Contains(sqFieldSetSuffix) {
		if suffix, err = conf.FieldString(sqFieldSetSuffix); err != nil {
			return nil, err
		}
	}
	p := c.dialect.parameter
	add := fmt.Sprintf("INSERT INTO %s (%s, %s) VALUES (%s, %s)", table, key, value, p(1), p(2))
	return &cache{
		connection: c,
		get:        fmt.Sprintf("SELECT %s FROM %s WHERE %s = %s", value, table, key, p(1)),
		set:        add + " " + suffix,
		add:        add,
		delete:     fmt.Sprintf("DELETE FROM %s WHERE %s = %s", table, key, p(1)),
	}, nil
}

func (c *cache) Get(ctx context.Context, key string) ([]byte, error) {
	db, err := c.connection.opened(ctx)
	if err != nil {
		return nil, err
	}
	var value []byte
	switch err := db.QueryRowContext(ctx, c.get, key).Scan(&value); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, service.ErrKeyNotFound
	case err != nil:
		return nil, fmt.Errorf("reading key %q: %w", key, err)
	}
	return value, nil
}

func (c *cache) Set(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	return c.execute(ctx, "writing", c.set, key, value)
}

func (c *cache) Add(ctx context.Context, key string, value []byte, _ *time.Duration) error {
	err := c.execute(ctx, "adding", c.add, key, value)
	if err != nil && c.connection.dialect.duplicate(err) {
		return service.ErrKeyAlreadyExists
	}
	return err
}

func (c *cache) Delete(ctx context.Context, key string) error {
	return c.execute(ctx, "deleting", c.delete, key)
}

func (c *cache) execute(ctx context.Context, doing, statement, key string, more ...any) error {
	db, err := c.connection.opened(ctx)
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, statement, append([]any{key}, more...)...); err != nil {
		return fmt.Errorf("%s key %q: %w", doing, key, err)
	}
	return nil
}

func (c *cache) Close(context.Context) error { return c.connection.close() }

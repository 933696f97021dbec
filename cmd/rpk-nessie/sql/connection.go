// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cmd/rpk-nessie/forms"
)

const (
	sqFieldDriver        = "driver"
	sqFieldDSN           = "dsn"
	sqFieldInitFiles     = "init_files"
	sqFieldInitStatement = "init_statement"
	sqFieldConnIdleTime  = "conn_max_idle_time"
	sqFieldConnLifeTime  = "conn_max_life_time"
	sqFieldConnMaxIdle   = "conn_max_idle"
	sqFieldConnMaxOpen   = "conn_max_open"
)

// databaseFields say which database; every component has them.
func databaseFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringAnnotatedEnumField(sqFieldDriver, map[string]string{
			postgres:      "PostgreSQL. Placeholders are `$1`, `$2`, …",
			postgresByPgx: "The same as `postgres`.",
			sqlite:        "SQLite. Placeholders are `?`.",
		}).Description("The kind of database.").Example(postgres),
		service.NewStringField(sqFieldDSN).
			Description("Where the database is. PostgreSQL: a URL or a connection string; without `sslmode` TLS is tried first and left out if the server has none. SQLite: a path or a `file:` URL; settings go into it as `_pragma`, and `busy_timeout` is 5 s unless the DSN says otherwise.").
			Example("postgres://follower:${PG_PASSWORD}@localhost:5432/shop?sslmode=require").
			Example("file:/var/lib/rpk-nessie/shop.db?_pragma=journal_mode(WAL)").
			Secret(),
	}
}

// connectionFields say how connections are made and kept; every component has them.
func connectionFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(sqFieldInitFiles).
			Description("Files with SQL that is run once connected, before `" + sqFieldInitStatement + "`. Patterns are expanded, and the files of one are run in the order of their names.").
			Optional().
			Advanced().
			Example([]string{"./init/*.sql"}),
		service.NewStringField(sqFieldInitStatement).
			Description("SQL that is run once connected, for example to create a table. It is run at every start, so write it so that it may run again. If it fails, connecting fails.").
			Optional().
			Advanced().
			Example("CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, item TEXT)"),
		service.NewDurationField(sqFieldConnIdleTime).
			LintRule(forms.Duration).
			Description("How long a connection may be idle before it is closed. Without this field it is kept.").
			Optional().
			Advanced(),
		service.NewDurationField(sqFieldConnLifeTime).
			LintRule(forms.Duration).
			Description("How old a connection may get before it is replaced. Without this field it is kept.").
			Optional().
			Advanced(),
		service.NewIntField(sqFieldConnMaxIdle).
			Description("How many idle connections are kept.").
			Default(2).
			Advanced(),
		service.NewIntField(sqFieldConnMaxOpen).
			Description("How many connections may be open. Without this field there is no limit for PostgreSQL, and it is one for SQLite, which lets one writer in at a time.").
			Optional().
			Advanced(),
	}
}

// connection is a database that a component connects to when it starts. It may be used concurrently.
type connection struct {
	dialect dialect
	dsn     string
	files   []string
	init    string
	tune    func(*sql.DB)
	fs      fs.FS

	mu sync.Mutex
	db *sql.DB // nil while not connected
}

func newConnection(conf *service.ParsedConfig) (*connection, error) {
	c := &connection{fs: conf.Resources().FS()}
	driver, err := conf.FieldString(sqFieldDriver)
	if err != nil {
		return nil, err
	}
	if c.dialect, err = dialectOf(driver); err != nil {
		return nil, err
	}
	if c.dsn, err = conf.FieldString(sqFieldDSN); err != nil {
		return nil, err
	}
	if c.dsn == "" {
		return nil, fmt.Errorf("%s says no database", sqFieldDSN)
	}
	if conf.Contains(sqFieldInitFiles) {
		if c.files, err = conf.FieldStringList(sqFieldInitFiles); err != nil {
			return nil, err
		}
	}
	if conf.Contains(sqFieldInitStatement) {
		if c.init, err = conf.FieldString(sqFieldInitStatement); err != nil {
			return nil, err
		}
	}
	if c.tune, err = tuning(conf, c.dialect); err != nil {
		return nil, err
	}
	return c, nil
}

// tuning reads the settings of the pool of connections.
func tuning(conf *service.ParsedConfig, d dialect) (func(*sql.DB), error) {
	var idleTime, lifeTime time.Duration
	open := d.mostConnections
	var err error
	if conf.Contains(sqFieldConnIdleTime) {
		if idleTime, err = conf.FieldDuration(sqFieldConnIdleTime); err != nil {
			return nil, err
		}
	}
	if conf.Contains(sqFieldConnLifeTime) {
		if lifeTime, err = conf.FieldDuration(sqFieldConnLifeTime); err != nil {
			return nil, err
		}
	}
	if conf.Contains(sqFieldConnMaxOpen) {
		if open, err = conf.FieldInt(sqFieldConnMaxOpen); err != nil {
			return nil, err
		}
	}
	idle, err := conf.FieldInt(sqFieldConnMaxIdle)
	if err != nil {
		return nil, err
	}
	return func(db *sql.DB) {
		db.SetConnMaxIdleTime(idleTime)
		db.SetConnMaxLifetime(lifeTime)
		db.SetMaxOpenConns(open)
		db.SetMaxIdleConns(idle)
	}, nil
}

// connect is safe to call again.
func (c *connection) connect(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db != nil {
		return nil
	}
	db, err := c.dialect.open(c.dsn)
	if err != nil {
		return fmt.Errorf("opening the %s database: %w", c.dialect.name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	c.tune(db)
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("connecting to the %s database of %s: %w", c.dialect.name, sqFieldDSN, err)
	}
	if err := c.initialise(ctx, db); err != nil {
		return err
	}
	c.db = db
	return nil
}

func (c *connection) initialise(ctx context.Context, db *sql.DB) error {
	for _, pattern := range c.files {
		names, err := service.Globs(c.fs, pattern)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", sqFieldInitFiles, pattern, err)
		}
		if len(names) == 0 {
			return fmt.Errorf("%s: no file is named %q", sqFieldInitFiles, pattern)
		}
		for _, name := range names {
			text, err := service.ReadFile(c.fs, name)
			if err != nil {
				return fmt.Errorf("%s: %w", sqFieldInitFiles, err)
			}
			if err := c.dialect.run(ctx, db, string(text)); err != nil {
				return fmt.Errorf("running %s: %w", name, err)
			}
		}
	}
	if c.init == "" {
		return nil
	}
	if err := c.dialect.run(ctx, db, c.init); err != nil {
		return fmt.Errorf("running %s: %w", sqFieldInitStatement, err)
	}
	return nil
}

// open is the database, or ErrNotConnected.
func (c *connection) open() (*sql.DB, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		return nil, service.ErrNotConnected
	}
	return c.db, nil
}

// opened is the database, connected now if need be: processors and caches have no moment of their own for that.
func (c *connection) opened(ctx context.Context) (*sql.DB, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c.open()
}

func (c *connection) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		return nil
	}
	err := c.db.Close()
	c.db = nil
	return err
}

// transaction is database/sql's; with this name files that use it need not know that package.
type transaction = sql.Tx

// inTransaction runs work in a transaction that is committed if work succeeds.
func inTransaction(ctx context.Context, db *sql.DB, work func(*transaction) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := work(tx); err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			return errors.Join(err, fmt.Errorf("rolling back: %w", undo))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing a transaction: %w", err)
	}
	return nil
}

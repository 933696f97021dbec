// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql's driver "pgx"
	driver "modernc.org/sqlite"        // database/sql's driver "sqlite"
	codes "modernc.org/sqlite/lib"
)

const (
	postgres      = "postgres"
	postgresByPgx = "pgx" // another name of postgres
	sqlite        = "sqlite"
)

// dialect is what differs between databases.
type dialect struct {
	name            string // as in the configuration
	driver          string // as database/sql knows it
	mostParameters  int    // in one statement
	mostConnections int    // if the configuration does not say; 0 is no limit
	parameter       func(ordinal int) string
	dsn             func(string) string
	// bind turns a value of a message into one that the driver binds.
	bind func(any) (any, error)
	// simple are arguments of the driver's own that let a text hold several statements, if it has no parameters.
	simple    []any
	duplicate func(error) bool // whether a unique key was violated
}

func dialectOf(name string) (dialect, error) {
	switch name {
	case postgres, postgresByPgx:
		return dialect{
			name: postgres, driver: "pgx", mostParameters: 65535,
			parameter: func(n int) string { return "$" + strconv.Itoa(n) },
			dsn:       func(dsn string) string { return dsn },
			bind:      bindText,
			simple:    []any{pgx.QueryExecModeSimpleProtocol},
			duplicate: func(err error) bool {
				refused := new(pgconn.PgError)
				return errors.As(err, &refused) && refused.Code == "23505"
			},
		}, nil
	case sqlite:
		return dialect{
			name: sqlite, driver: "sqlite", mostParameters: 32766, mostConnections: 1,
			parameter: func(int) string { return "?" },
			dsn:       patient,
			bind:      bindNative,
			duplicate: func(err error) bool {
				refused := new(driver.Error)
				return errors.As(err, &refused) &&
					(refused.Code() == codes.SQLITE_CONSTRAINT_PRIMARYKEY || refused.Code() == codes.SQLITE_CONSTRAINT_UNIQUE)
			},
		}, nil
	default:
		return dialect{}, fmt.Errorf("unknown driver %q: use %s or %s", name, postgres, sqlite)
	}
}

func (d dialect) open(dsn string) (*sql.DB, error) { return sql.Open(d.driver, d.dsn(dsn)) }

// patient lets SQLite wait for other writers instead of failing at once.
func patient(dsn string) string {
	if strings.Contains(dsn, "busy_timeout") {
		return dsn
	}
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + "_pragma=busy_timeout(5000)"
}

// executor is a database or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// run executes text without parameters; it may hold several statements.
func (d dialect) run(ctx context.Context, on executor, text string) error {
	_, err := on.ExecContext(ctx, text, d.simple...)
	return err
}

// arguments are what the driver is given for a statement with these parameters.
func (d dialect) arguments(parameters []any) []any {
	if len(parameters) == 0 {
		return d.simple
	}
	return parameters
}

// numbered turns question marks into the dialect's placeholders; ?? is a question mark. Those in quotes are left alone.
func (d dialect) numbered(text string) string {
	if d.name != postgres {
		return text
	}
	var out strings.Builder
	quote, n := byte(0), 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '?' && i+1 < len(text) && text[i+1] == '?':
			i++
		case c == '?':
			n++
			out.WriteString(d.parameter(n))
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// bindText binds scalars as text: the server reads them as the type that the statement asks for, so that a number fits
// into a text column, and a decimal keeps its digits.
func bindText(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, []byte:
		return v, nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case int:
		return strconv.Itoa(v), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		return bindJSON(v)
	}
}

// bindNative binds scalars as they are.
func bindNative(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, []byte, bool, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil // SQLite makes a number of it where the column asks for one
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole, nil
		}
		return v.Float64()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	default:
		return bindJSON(v)
	}
}

// bindJSON binds objects and arrays as JSON.
func bindJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a %T as JSON: %w", value, err)
	}
	return string(text), nil
}

// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is a SQLite file of the test, and a second way into it.
type database struct {
	path string
	db   *sql.DB
}

func newDatabase(t *testing.T, statements ...string) *database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	return &database{path, db}
}

// yaml is a component's settings on the database.
func (d *database) yaml(lines ...string) string {
	return "driver: sqlite\ndsn: file:" + d.path + "\n" + strings.Join(lines, "\n")
}

// rows are what a query returns, as objects.
func (d *database) rows(t *testing.T, query string) []any {
	t.Helper()
	rows, err := rowsOf(d.db.QueryContext(t.Context(), query))
	require.NoError(t, err)
	return rows
}

func parse(t *testing.T, spec *service.ConfigSpec, yaml string) *service.ParsedConfig {
	t.Helper()
	conf, err := spec.ParseYAML(yaml, nil)
	require.NoError(t, err)
	return conf
}

func batchOf(bodies ...string) service.MessageBatch {
	var batch service.MessageBatch
	for _, body := range bodies {
		batch = append(batch, service.NewMessage([]byte(body)))
	}
	return batch
}

type object = map[string]any

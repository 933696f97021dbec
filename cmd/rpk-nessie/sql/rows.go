// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"database/sql"
	"fmt"
	"time"
)

// rowsOf reads rows as objects, and closes them.
func rowsOf(rows *sql.Rows, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	all := []any{}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := make(map[string]any, len(columns))
		for i, column := range columns {
			row[column] = plain(values[i])
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// plain is a database's value as messages hold it: a scalar.
func plain(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int64, float64:
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	default:
		return fmt.Sprint(v)
	}
}

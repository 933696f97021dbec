// SPDX-License-Identifier: Apache-2.0

// Package sql registers what speaks to SQL databases: the sql_insert and sql_raw outputs, the sql_raw and sql_select
// processors and the sql cache, for PostgreSQL and SQLite. Fields have the names and meanings that users of Redpanda
// Connect know.
//
// Values of messages are always bound as parameters. Text of the configuration (tables, columns, queries) is put into
// statements as it is; text of messages only with unsafe_dynamic_query.
package sql

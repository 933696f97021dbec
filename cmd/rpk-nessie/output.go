// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-isatty"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// sheet is rows of named columns, to be shown as a table, JSON or CSV. A nil value is one that is not known or not there.
type sheet struct {
	columns []string
	rows    [][]any
	// note is a line that stands below a table for people.
	note string
}

func (s *sheet) add(values ...any) { s.rows = append(s.rows, values) }

// The forms of a sheet.
const (
	formTable = "table"
	formJSON  = "json"
	formCSV   = "csv"
)

// Values that are shown in a way of their own.
type (
	snapshotID int64 // "" or null for none; a string in JSON, as it exceeds 2^53
	moment     int64 // milliseconds since 1970; 0 is unknown
	size       int64 // bytes
)

func (id snapshotID) String() string {
	if int64(id) == catalog.NoSnapshot {
		return ""
	}
	return strconv.FormatInt(int64(id), 10)
}

// MarshalJSON writes the id as a string.
func (id snapshotID) MarshalJSON() ([]byte, error) {
	if int64(id) == catalog.NoSnapshot {
		return []byte("null"), nil
	}
	return json.Marshal(id.String())
}

func (m moment) String() string {
	if m == 0 {
		return ""
	}
	return time.UnixMilli(int64(m)).UTC().Format("2006-01-02 15:04:05Z")
}

// MarshalJSON writes the time as RFC 3339 in UTC.
func (m moment) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(m.exact())
}

func (m moment) exact() string {
	return time.UnixMilli(int64(m)).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (s size) String() string { return humanize.IBytes(uint64(max(s, 0))) }

// orNil is nil for what is not known.
func orNil[T any](v T, known bool) any {
	if !known {
		return nil
	}
	return v
}

func (s *sheet) write(w io.Writer, form string) error {
	switch form {
	case formJSON:
		return s.writeJSON(w)
	case formCSV:
		return s.writeCSV(w)
	}
	return s.writeTable(w)
}

func (s *sheet) writeTable(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	header := make(table.Row, len(s.columns))
	for i, c := range s.columns {
		header[i] = strings.ReplaceAll(c, "_", " ")
	}
	t.AppendHeader(header)
	var right []table.ColumnConfig
	for i := range s.columns {
		if s.numeric(i) {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(right)
	for _, values := range s.rows {
		row := make(table.Row, len(values))
		for i, v := range values {
			row[i] = printable(plain(v))
		}
		t.AppendRow(row)
	}
	for line := range strings.Lines(t.Render()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	if s.note == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, s.note)
	return err
}

// numeric reports whether a column holds numbers that are compared by their length.
func (s *sheet) numeric(column int) bool {
	some := false
	for _, row := range s.rows {
		switch row[column].(type) {
		case nil:
		case int, int32, int64, size:
			some = true
		default:
			return false
		}
	}
	return some
}

// plain is a value for a cell of a table.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ", ")
	case json.RawMessage:
		return string(v)
	}
	return fmt.Sprint(v)
}

func (s *sheet) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(s.columns); err != nil {
		return err
	}
	for _, values := range s.rows {
		record := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case size:
				record[i] = strconv.FormatInt(int64(v), 10)
			case moment:
				if v != 0 {
					record[i] = v.exact()
				}
			default:
				record[i] = plain(v)
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writeJSON writes an array with an object a row, keys in the order of the columns, one row a line.
func (s *sheet) writeJSON(w io.Writer) error {
	var b bytes.Buffer
	for i, values := range s.rows {
		b.WriteString(map[bool]string{true: "[", false: ",\n "}[i == 0])
		for j, v := range values {
			b.WriteString(map[bool]string{true: "{", false: ","}[j == 0])
			key, _ := json.Marshal(s.columns[j])
			b.Write(append(key, ':'))
			if err := encodeJSON(&b, v); err != nil {
				return err
			}
		}
		b.WriteString("}")
	}
	if len(s.rows) == 0 {
		b.WriteString("[")
	}
	b.WriteString("]\n")
	_, err := w.Write(b.Bytes())
	return err
}

// encodeJSON leaves <, > and & as they are.
func encodeJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}

// printJSON writes one value, indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

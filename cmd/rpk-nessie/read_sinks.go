// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// sink writes batches of one schema in one form.
type sink interface {
	// format is what batches must hold.
	format() scan.Format
	write(scan.Batch) error
	// close ends the output; it does not close the writer below.
	close() error
}

func newSink(form string, w io.Writer, schema *iceberg.Schema) (sink, error) {
	switch form {
	case "ndjson":
		return &lines{w: w}, nil
	case "json":
		return &jsonArray{w: w}, nil
	case "csv":
		return newCSVRows(w, schema)
	case "arrow", "parquet":
		columns, err := table.SchemaToArrowSchema(schema, nil, false, false)
		if err != nil {
			return nil, fmt.Errorf("making the Arrow schema: %w", err)
		}
		if form == "arrow" {
			return &records{writer: ipc.NewWriter(w, ipc.WithSchema(columns))}, nil
		}
		return newParquet(w, columns)
	}
	return nil, fmt.Errorf("--format must be json, ndjson, csv, arrow or parquet, not %q", form)
}

type lines struct{ w io.Writer }

func (*lines) format() scan.Format { return scan.FormatNDJSON }

func (l *lines) write(b scan.Batch) error {
	for _, m := range b.Messages {
		if _, err := l.w.Write(m); err != nil {
			return err
		}
	}
	return nil
}

func (*lines) close() error { return nil }

// jsonArray is one array, a row a line.
type jsonArray struct {
	w    io.Writer
	some bool
}

func (*jsonArray) format() scan.Format { return scan.FormatJSON }

func (a *jsonArray) write(b scan.Batch) error {
	for _, m := range b.Messages {
		before := ",\n"
		if !a.some {
			before = "["
		}
		a.some = true
		if _, err := io.WriteString(a.w, before); err != nil {
			return err
		}
		if _, err := a.w.Write(m); err != nil {
			return err
		}
	}
	return nil
}

func (a *jsonArray) close() error {
	end := "]\n"
	if !a.some {
		end = "[]\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}

// csvRows has a header line. Values are as in JSON, strings without quotes, NULL is empty, nested values are JSON.
type csvRows struct {
	w       *csv.Writer
	columns []string
	record  []string
}

func newCSVRows(w io.Writer, schema *iceberg.Schema) (*csvRows, error) {
	c := &csvRows{w: csv.NewWriter(w)}
	for _, f := range schema.Fields() {
		c.columns = append(c.columns, f.Name)
	}
	c.record = make([]string, len(c.columns))
	return c, c.w.Write(c.columns)
}

func (*csvRows) format() scan.Format { return scan.FormatJSON }

func (c *csvRows) write(b scan.Batch) error {
	for _, m := range b.Messages {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(m, &row); err != nil {
			return err
		}
		for i, name := range c.columns {
			value := row[name]
			switch {
			case bytes.Equal(value, []byte("null")):
				c.record[i] = ""
			case len(value) > 0 && value[0] == '"':
				if err := json.Unmarshal(value, &c.record[i]); err != nil {
					return err
				}
			default:
				c.record[i] = string(value)
			}
		}
		if err := c.w.Write(c.record); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvRows) close() error {
	c.w.Flush()
	return c.w.Error()
}

// recordWriter is an Arrow stream or a Parquet file.
type recordWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

// records copies Arrow record batches.
type records struct{ writer recordWriter }

func (*records) format() scan.Format { return scan.FormatArrow }

func (r *records) write(b scan.Batch) error {
	for _, m := range b.Messages {
		stream, err := ipc.NewReader(bytes.NewReader(m))
		if err != nil {
			return err
		}
		for stream.Next() {
			if err := r.writer.Write(stream.RecordBatch()); err != nil {
				stream.Release()
				return err
			}
		}
		err = stream.Err()
		stream.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *records) close() error { return r.writer.Close() }

// newParquet compresses with zstd. Row groups are filled over several batches.
func newParquet(w io.Writer, schema *arrow.Schema) (sink, error) {
	writer, err := pqarrow.NewFileWriter(schema, keepOpen{w},
		parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)),
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, fmt.Errorf("making the Parquet file: %w", err)
	}
	return &records{writer: bufferedParquet{writer}}, nil
}

type bufferedParquet struct{ *pqarrow.FileWriter }

func (b bufferedParquet) Write(rec arrow.RecordBatch) error { return b.WriteBuffered(rec) }

// keepOpen hides that the writer below could be closed.
type keepOpen struct{ io.Writer }

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// AppendLines is Append with a newline behind each row, which the row's end includes: all
// that it appends, or any run of rows, is the body of an ndjson message
// (https://github.com/ndjson/ndjson-spec).
func (e *Encoder) AppendLines(buf []byte, ends []int, rec arrow.RecordBatch, from, to int) ([]byte, []int, error) {
	return e.appendRows(buf, ends, rec, from, to, "}\n")
}

// EncodeArrowStream gives the batches as one Arrow IPC stream with the schema first: the
// form that pyarrow.ipc.open_stream and DuckDB read. Batches must have the schema.
func EncodeArrowStream(schema *arrow.Schema, recs []arrow.RecordBatch) ([]byte, error) {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			return nil, fmt.Errorf("writing Arrow stream: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("ending Arrow stream: %w", err)
	}
	return out.Bytes(), nil
}

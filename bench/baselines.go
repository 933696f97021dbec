// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// ceiling is what Benthos carries when making a row costs nothing: the bodies of one batch of the table's rows are made
// beforehand and sent again and again. The messages around them are new each time, as Benthos itself writes to them.
func ceiling(ctx context.Context, t tableFiles, _ string) (measured, error) {
	plan, done, err := t.plan(ctx)
	if err != nil {
		return measured{}, err
	}
	defer func() { _ = done() }()
	var bodies [][]byte
	for batch, err := range plan.Read(ctx, scan.ReadOptions{BatchRows: batchRows}) {
		if err != nil {
			return measured{}, err
		}
		bodies = batch.Messages
		break
	}
	m := measured{}
	in := func() (service.MessageBatch, error) {
		if m.Rows >= t.Rows {
			return nil, service.ErrEndOfInput
		}
		batch := make(service.MessageBatch, len(bodies))
		for i, body := range bodies {
			batch[i] = service.NewMessage(body)
			m.Bytes += int64(len(body))
		}
		m.Rows += int64(len(batch))
		return batch, nil
	}
	result, err := timed(func() (measured, error) { return measured{}, streamFrom(ctx, batchFunc(in)) })
	m.Seconds = result.Seconds
	return m, err
}

// scanBatches is iceberg-go's scan of the table with its defaults.
func scanBatches(ctx context.Context, t tableFiles) (iter.Seq2[arrow.RecordBatch, error], error) {
	tbl, err := table.NewFromLocation(ctx, table.Identifier{"ns", "t"}, t.Metadata, icebergio.LoadFSFunc(nil, t.Metadata), nil)
	if err != nil {
		return nil, err
	}
	_, batches, err := tbl.Scan().ToArrowRecords(ctx)
	return batches, err
}

// recordToJSON is the input that one writes with iceberg-go's and arrow-go's own means.
func recordToJSON(ctx context.Context, t tableFiles, _ string) (measured, error) {
	return timed(func() (m measured, err error) {
		batches, err := scanBatches(ctx, t)
		if err != nil {
			return m, err
		}
		next, stop := iter.Pull2(lineBatches(batches))
		defer stop()
		in := func() (service.MessageBatch, error) {
			batch, err, ok := next()
			if !ok {
				return nil, service.ErrEndOfInput
			}
			m.Rows += int64(len(batch))
			return batch, err
		}
		err = streamFrom(ctx, batchFunc(in))
		return m, err
	})
}

// lineBatches gives each row as a message of JSON.
func lineBatches(batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[service.MessageBatch, error] {
	return func(yield func(service.MessageBatch, error) bool) {
		for record, err := range batches {
			if err != nil {
				yield(nil, err)
				return
			}
			for from := int64(0); from < record.NumRows(); from += batchRows {
				part := record.NewSlice(from, min(from+batchRows, record.NumRows()))
				var out bytes.Buffer
				err := array.RecordToJSON(part, &out)
				part.Release()
				var batch service.MessageBatch
				for line := range bytes.Lines(out.Bytes()) {
					batch = append(batch, service.NewMessage(bytes.TrimSuffix(line, []byte("\n"))))
				}
				if !yield(batch, err) {
					return
				}
			}
			record.Release()
		}
	}
}

// read is our reading without Benthos.
func read(format scan.Format) func(context.Context, tableFiles, string) (measured, error) {
	return func(ctx context.Context, t tableFiles, _ string) (measured, error) {
		return timed(func() (m measured, err error) {
			plan, done, err := t.plan(ctx)
			if err != nil {
				return m, err
			}
			defer func() { _ = done() }()
			for batch, err := range plan.Read(ctx, scan.ReadOptions{Format: format, BatchRows: batchRows}) {
				if err != nil {
					return m, err
				}
				m.Rows += int64(batch.Rows)
				m.Bytes += batch.Bytes
			}
			return m, nil
		})
	}
}

func decodeOnly(ctx context.Context, t tableFiles, _ string) (measured, error) {
	return timed(func() (m measured, err error) {
		batches, err := scanBatches(ctx, t)
		if err != nil {
			return m, err
		}
		for record, err := range batches {
			if err != nil {
				return m, err
			}
			m.Rows += record.NumRows()
			record.Release()
		}
		return m, nil
	})
}

// encodeOnly encodes the table's first batch until as many rows are written as the table has.
func encodeOnly(ctx context.Context, t tableFiles, _ string) (measured, error) {
	plan, done, err := t.plan(ctx)
	if err != nil {
		return measured{}, err
	}
	defer func() { _ = done() }()
	batches, err := scanBatches(ctx, t)
	if err != nil {
		return measured{}, err
	}
	var first arrow.RecordBatch
	for record, err := range batches {
		if err != nil {
			return measured{}, err
		}
		first = record
		break
	}
	encoder, err := scan.NewEncoder(plan.Schema)
	if err != nil {
		return measured{}, err
	}
	return timed(func() (m measured, err error) {
		var buf []byte
		var ends []int
		for m.Rows < t.Rows {
			n := min(batchRows, int(first.NumRows()))
			if buf, ends, err = encoder.Append(buf[:0], ends[:0], first, 0, n); err != nil {
				return m, err
			}
			m.Rows += int64(n)
			m.Bytes += int64(len(buf))
		}
		return m, nil
	})
}

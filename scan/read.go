// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
)

// Format is the form of a batch's messages.
type Format string

// The formats of Batch.Messages.
const (
	FormatJSON   Format = "json"   // one JSON object a row, one message a row
	FormatNDJSON Format = "ndjson" // one message a batch: a JSON object and a newline for each row
	FormatArrow  Format = "arrow"  // one message a batch: an Arrow IPC stream
)

// The operations of Batch.Operation.
const (
	OperationRead   = "read"   // a row of a table scan
	OperationInsert = "insert" // a row that the step adds
	OperationDelete = "delete" // a row that the step removes
	// An update is two messages beside each other: the row with its key before and after the step.
	OperationUpdateBefore = "update_before"
	OperationUpdateAfter  = "update_after"
)

// ReadOptions say how to read a plan. The zero value of a field stands for its default.
type ReadOptions struct {
	From   int64  // ordinal of the first row to deliver, 0 ≤ From ≤ the number of rows
	Format Format // json
	// BatchRows is the most rows in a batch (4096), and BatchBytes the most bytes of its messages (8 MiB); a row that is
	// larger goes alone. Neither changes which rows come or their order.
	BatchRows  int
	BatchBytes int64
	// Parallelism is how many files, or stretches of large files, are decoded and encoded at once (GOMAXPROCS).
	Parallelism int
	// Memory bounds, in bytes, what reading takes of the process's memory (256 MiB). A sixth of it goes to what is decoded
	// or encoded and not yet taken by the consumer: measured, the rows that the consumer still has and the garbage that Go's
	// collector lets gather take the rest. The file that the consumer waits for may always go on, so that a bound below one
	// row group slows reading and does not stop it.
	Memory int64
	// SpillDir is where a folder is made for what does not fit into Memory: rows that ChangePlan.Read compares, and keys of
	// equality deletes beyond a quarter of Memory (the system's temporary folder).
	SpillDir string

	// Tests make these small: the stored bytes that a worker reads of a file before another may go on, the rows that a
	// row group has at least so that its pages are read ahead of the writing of its rows, and the stored bytes of a file
	// with equality deletes from which on it is worth reading what they compare twice, to write its rows directly.
	stretch, ahead, equality int64
}

// held is how many bytes may wait for the consumer or be in the works.
func (o ReadOptions) held() int64 { return o.Memory / 6 }

func (o ReadOptions) withDefaults() ReadOptions {
	o.Format = cmp.Or(o.Format, FormatJSON)
	o.BatchRows = cmp.Or(max(o.BatchRows, 0), 4096)
	o.BatchBytes = cmp.Or(max(o.BatchBytes, 0), 8<<20)
	o.Parallelism = cmp.Or(max(o.Parallelism, 0), runtime.GOMAXPROCS(0))
	o.Memory = cmp.Or(max(o.Memory, 0), 256<<20)
	o.stretch = cmp.Or(o.stretch, 4<<20)
	o.ahead = cmp.Or(o.ahead, 4*windowRows)
	o.equality = cmp.Or(o.equality, 1<<20)
	return o
}

// Batch is consecutive rows of a plan. Its messages belong to the receiver: their bytes are never written to again by the
// reader, and appending to one does not touch the next.
type Batch struct {
	First     int64 // ordinal of the first row in the plan
	Rows      int
	Messages  [][]byte // json: one a row; ndjson, arrow: one
	Bytes     int64    // of all messages
	Operation string
	// Operations says the operation of each message where they differ; nil: all have Operation, which is "" otherwise.
	Operations []string
	Last       bool // the plan has no rows after these
}

// Read yields the plan's rows from opts.From on, in one order that depends on nothing but the plan: the ordinals of rows
// are the same whatever the options. A batch is held back until it is known whether it is the last. Nothing is yielded
// when there are no rows, and an error ends the sequence; rows before it that are not yet yielded are then not delivered.
//
// Files are read ahead on goroutines of their own, which have ended when the loop ends, also when the consumer breaks out
// or ctx ends (the error is then its cause). Errors: *MissingFileError, *CorruptFileError, *UnsupportedError, or storage's
// own wrapped with the file's name.
func (p *Plan) Read(ctx context.Context, opts ReadOptions) iter.Seq2[Batch, error] {
	opts = opts.withDefaults()
	return func(yield func(Batch, error) bool) {
		if err := p.deliver(ctx, opts, func(b Batch) bool { return yield(b, nil) }); err != nil {
			yield(Batch{}, fmt.Errorf("reading snapshot %d: %w", p.after.SnapshotID, err))
		}
	}
}

// deliver is Read until the end, an error, or the consumer's false, which is no error.
func (p *Plan) deliver(ctx context.Context, opts ReadOptions, yield func(Batch) bool) (err error) {
	if err := p.refuseUnsupported(); err != nil {
		return err
	}
	p, free := p.sharing(p.Tasks, keyMemory(opts), opts.SpillDir)
	defer func() { err = errors.Join(err, free()) }()
	start, skip, err := p.seek(ctx, opts.From)
	if err != nil {
		return err
	}
	flow, stop, err := p.start(ctx, opts, start, skip)
	if err != nil {
		return err
	}
	defer stop()
	a := assembler{opts: opts, schema: p.Schema, first: opts.From, operation: OperationInsert}
	defer a.drop()
	if p.Kind == KindTableScan {
		a.operation = OperationRead
	}
	for {
		piece, ok, err := flow.next()
		if err != nil {
			return err
		}
		batch, full, err := a.add(piece, !ok)
		if err != nil {
			return err
		}
		if full {
			flow.release(batch.weight)
			if !yield(batch.Batch) {
				return nil
			}
		}
		if !ok {
			return nil
		}
	}
}

// seek finds the task that holds row ordinal from, and how many of its rows come before. Files without deletes are
// skipped by their record count; the others have to be counted.
func (p *Plan) seek(ctx context.Context, from int64) (task int, skip int64, err error) {
	for i, t := range p.Tasks {
		if from == 0 {
			return i, 0, nil
		}
		rows := p.rowsOf(t)
		if rows < 0 {
			if rows, err = p.count(ctx, t); err != nil {
				return 0, 0, err
			}
		}
		if from < rows {
			return i, from, nil
		}
		from -= rows
	}
	if from > 0 {
		return 0, 0, fmt.Errorf("the plan ends %d rows before the row to resume at", from)
	}
	return len(p.Tasks), 0, nil
}

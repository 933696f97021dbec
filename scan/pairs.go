// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// message is one row on its way out.
type message struct {
	operation string
	survivor
}

// messagesOf are the messages of a group. Of n deletes and m inserts of a key the first min(n, m) are updates in row order.
// Deletes that have no insert come first: replayed by key they would take away what an update has just written.
func messagesOf(g cluster, keyed bool) []message {
	var deletes, inserts cluster
	for i, row := range g {
		if row.order.isInsert() {
			deletes, inserts = g[:i], g[i:]
			break
		}
		deletes = g[:i+1]
	}
	pairs := 0
	if keyed {
		pairs = min(len(deletes), len(inserts))
	}
	out := make([]message, 0, len(g))
	for _, row := range deletes[pairs:] {
		out = append(out, message{OperationDelete, row})
	}
	for i := range pairs {
		out = append(out, message{OperationUpdateBefore, deletes[i]}, message{OperationUpdateAfter, inserts[i]})
	}
	for _, row := range inserts[pairs:] {
		out = append(out, message{OperationInsert, row})
	}
	return out
}

// renderer makes batches of groups. Groups are encoded some at a time and never split.
type renderer struct {
	opts  ReadOptions
	mode  ChangeMode
	keyed bool
	out   *holder
	code  *rowCode
	rows  *Encoder
	keys  *Encoder // of plain deletes; nil: they are whole rows

	skip  int64 // messages before From
	next  int64 // the ordinal of the first message in waiting
	ends  []int // of the groups in waiting
	size  int64
	waits []message
}

func newRenderer(c *ChangePlan, schema *iceberg.Schema, keyed bool, opts ReadOptions, out *holder) (*renderer, error) {
	r := &renderer{opts: opts, mode: c.opts.Mode, keyed: keyed, out: out, skip: opts.From, next: opts.From}
	var err error
	if r.code, err = newRowCode(schema, nil); err != nil {
		return nil, err
	}
	if r.rows, err = NewEncoder(schema); err != nil {
		return nil, err
	}
	if keyed && c.opts.DeletePayload == PayloadKey {
		var schema *iceberg.Schema
		if schema, err = c.keySchema(); err != nil {
			return nil, err
		}
		r.keys, err = NewEncoder(schema)
	}
	return r, err
}

// add takes the next group.
func (r *renderer) add(g cluster) error {
	messages := messagesOf(g, r.keyed)
	if r.mode == AddedRows && messages[0].operation != OperationInsert {
		return nil
	}
	skipped := min(r.skip, int64(len(messages)))
	r.skip -= skipped
	if messages = messages[skipped:]; len(messages) == 0 {
		return nil
	}
	if r.opts.Format != FormatJSON && len(r.waits) > 0 && r.waits[0].operation != messages[0].operation {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.waits = append(r.waits, messages...)
	r.ends = append(r.ends, len(r.waits))
	for _, m := range messages {
		r.size += int64(len(m.row) + len(m.carried))
	}
	if len(r.waits) >= r.opts.BatchRows || r.size >= r.opts.BatchBytes {
		return r.flush()
	}
	return nil
}

// finish sends what waits.
func (r *renderer) finish() error {
	if r.skip > 0 {
		return fmt.Errorf("the step ends %d messages before the one to resume at", r.skip)
	}
	return r.flush()
}

// flush encodes the messages in waiting and sends them in as few batches as the limits allow.
func (r *renderer) flush() error {
	if len(r.waits) == 0 {
		return nil
	}
	waits, groups := r.waits, r.ends
	r.waits, r.ends, r.size = r.waits[:0], r.ends[:0], 0
	buf, ends, err := r.encode(waits)
	if err != nil {
		return err
	}
	if r.opts.Format == FormatArrow {
		return r.send(waits, [][]byte{buf}, int64(len(buf)))
	}
	start := 0
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && groups[n]-start <= r.opts.BatchRows && int64(ends[groups[n]-1]-offset(ends, start)) <= r.opts.BatchBytes {
			n++
		}
		end := groups[n-1]
		from := offset(ends, start)
		part := buf[from:ends[end-1]:ends[end-1]]
		bodies := [][]byte{part}
		if r.opts.Format == FormatJSON {
			bodies = make([][]byte, 0, end-start)
			for i := start; i < end; i++ {
				bodies = append(bodies, buf[offset(ends, i):ends[i]:ends[i]])
			}
		}
		if err := r.send(waits[start:end], bodies, int64(len(part))); err != nil {
			return err
		}
		start, groups = end, groups[n:]
	}
	return nil
}

// offset is where body i begins.
func offset(ends []int, i int) int {
	if i == 0 {
		return 0
	}
	return ends[i-1]
}

// encode writes the bodies of messages into one buffer, which nobody writes to again.
func (r *renderer) encode(messages []message) (buf []byte, ends []int, err error) {
	rows := make([]survivor, len(messages))
	for i, m := range messages {
		rows[i] = m.survivor
	}
	rec, err := r.code.batch(rows)
	if err != nil {
		return nil, nil, err
	}
	defer rec.Release()
	switch {
	case r.opts.Format == FormatArrow:
		buf, err = EncodeArrowStream(r.code.arrow, []arrow.RecordBatch{rec})
		return buf, nil, err
	case r.opts.Format == FormatNDJSON:
		return r.rows.AppendLines(nil, nil, rec, 0, len(messages))
	case r.keys == nil:
		return r.rows.Append(nil, nil, rec, 0, len(messages))
	}
	for from := 0; from < len(messages); {
		isDelete := messages[from].operation == OperationDelete
		to := from + 1
		for to < len(messages) && (messages[to].operation == OperationDelete) == isDelete {
			to++
		}
		encoder := r.rows
		if isDelete {
			encoder = r.keys
		}
		if buf, ends, err = encoder.Append(buf, ends, rec, from, to); err != nil {
			return nil, nil, err
		}
		from = to
	}
	return buf, ends, nil
}

// send hands a batch on.
func (r *renderer) send(messages []message, bodies [][]byte, size int64) error {
	b := Batch{First: r.next, Rows: len(messages), Messages: bodies, Bytes: size, Operation: messages[0].operation}
	r.next += int64(len(messages))
	mixed := false
	for _, m := range messages {
		mixed = mixed || m.operation != b.Operation
	}
	if mixed {
		b.Operation = ""
		b.Operations = make([]string, len(messages))
		for i, m := range messages {
			b.Operations[i] = m.operation
		}
	}
	return r.out.put(b)
}

// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// replica is what somebody has who applies a changelog's messages: rows by
// their key, or without a key how often each row is there.
type replica struct {
	keyed  bool
	byKey  map[string]values
	counts map[string]int
}

func newReplica(keyed bool) *replica {
	return &replica{keyed: keyed, byKey: map[string]values{}, counts: map[string]int{}}
}

// apply takes one message. schema is the one of its snapshot.
func (r *replica) apply(operation string, body []byte, schema *iceberg.Schema) error {
	if operation == "truncate" {
		if string(body) != "null" {
			return fmt.Errorf("truncate says %s", body)
		}
		clear(r.byKey)
		clear(r.counts)
		return nil
	}
	if r.keyed {
		return r.applyByKey(operation, body, schema)
	}
	row, err := parse(body, schema)
	if err != nil {
		return err
	}
	text, by := row.under(schema), 1
	switch operation {
	case "read", "insert", "update_after":
	case "delete", "update_before":
		by = -1
	default:
		return fmt.Errorf("there is an operation %q", operation)
	}
	if r.counts[text] += by; r.counts[text] == 0 {
		delete(r.counts, text)
	}
	return nil
}

func (r *replica) applyByKey(operation string, body []byte, schema *iceberg.Schema) error {
	var key struct{ ID *json.Number }
	if err := json.Unmarshal(body, &key); err != nil || key.ID == nil {
		return fmt.Errorf("a message without a key: %s", body)
	}
	switch operation {
	case "delete", "update_before":
		delete(r.byKey, key.ID.String())
		return nil
	case "read", "insert", "update_after":
		row, err := parse(body, schema)
		r.byKey[key.ID.String()] = row
		return err
	}
	return fmt.Errorf("there is an operation %q", operation)
}

// rows are those that the replica has, under a schema.
func (r *replica) rows(schema *iceberg.Schema) []string {
	rows := []string{}
	for _, row := range r.byKey {
		rows = append(rows, row.under(schema))
	}
	for text, n := range r.counts {
		if n < 0 {
			rows = append(rows, fmt.Sprintf("%d times %s", n, text))
		}
		for range n {
			rows = append(rows, text)
		}
	}
	slices.Sort(rows)
	return rows
}

// differs says how the replica differs from a snapshot; "" where it does not.
func (r *replica) differs(s *snapshot) string {
	want := []string{}
	for _, row := range s.rows {
		want = append(want, row.under(s.schema))
	}
	slices.Sort(want)
	if got := r.rows(s.schema); !slices.Equal(got, want) {
		return fmt.Sprintf("the replica has\n  %s\nand the table\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return ""
}

// parse reads a row of a schema.
func parse(body []byte, schema *iceberg.Schema) (values, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("reading row %s: %w", body, err)
	}
	v := values{}
	for name, text := range fields {
		f, ok := schema.FindFieldByName(name)
		if !ok {
			return nil, fmt.Errorf("row %s has a column %q, schema %d has none", body, name, schema.ID)
		}
		if string(text) != "null" {
			v[f.ID] = string(text)
		}
	}
	return v, nil
}

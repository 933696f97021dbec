// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// oneFile times the same rows in eight files of one row group each and in one file of 16, in turn.
func oneFile(ctx context.Context, s settings) (measured, error) {
	tables, err := loadTables(s.cache)
	if err != nil {
		return measured{}, err
	}
	var took []time.Duration
	var out measured
	for _, name := range []string{"events10", "events10-one"} {
		t, ok := tables[name]
		if !ok {
			return measured{}, fmt.Errorf("there is no table %s (bench/prepare makes it)", name)
		}
		one, err := nessieTo("ndjson", dropOutput)(ctx, t, s.cache)
		if err != nil {
			return measured{}, fmt.Errorf("reading %s: %w", name, err)
		}
		out.Rows += one.Rows
		out.Seconds += one.Seconds
		took = append(took, time.Duration(one.Seconds*float64(time.Second)))
	}
	out.Values = []value{
		milliseconds("eight files", took[0]), milliseconds("one file", took[1]),
		{"one file against eight", float64(took[1]) / float64(took[0]), "times"},
	}
	return out, nil
}

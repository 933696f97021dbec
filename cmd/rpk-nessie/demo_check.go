// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// check compares the two runs with what was written: each row once, in the order of the snapshots, and the second run
// no row of the snapshots that the first had acknowledged.
func check(say *narrator, o *orders, firstSnapshots int, first, second []delivery) error {
	all := append(slices.Clone(first), second...)
	if diff := difference(o.written, all); diff != "" {
		return fmt.Errorf("what came is not what was written:\n%s", diff)
	}
	fresh := slices.Compact(snapshotsOf(second))
	if len(fresh) != o.snapshots()-firstSnapshots {
		return fmt.Errorf("the second run delivered snapshots %v, but %d were new", fresh, o.snapshots()-firstSnapshots)
	}
	say.line("First run:  %d rows of %d snapshots", len(first), firstSnapshots)
	say.line("Second run: %d rows of %d snapshot, none of them seen before", len(second), len(fresh))
	say.line("All %d rows came once, in order.", len(all))
	return nil
}

func snapshotsOf(rows []delivery) []string {
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.snapshot)
	}
	return ids
}

// difference is empty for equal lists; else it lists what is missing, what is too much, or the first pair that differs
// in order.
func difference(want, got []delivery) string {
	if slices.Equal(want, got) {
		return ""
	}
	counts := map[delivery]int{}
	for _, row := range want {
		counts[row]++
	}
	for _, row := range got {
		counts[row]--
	}
	var lines []string
	for _, row := range slices.Concat(want, got) {
		n := counts[row]
		counts[row] = 0
		switch {
		case n > 0:
			lines = append(lines, fmt.Sprintf("  missing:     snapshot %s %s", row.snapshot, row.body))
		case n < 0:
			lines = append(lines, fmt.Sprintf("  not written: snapshot %s %s (%d times too often)", row.snapshot, row.body, -n))
		}
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n")
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Sprintf("  out of order at row %d: snapshot %s %s came instead of snapshot %s %s",
				i+1, got[i].snapshot, got[i].body, want[i].snapshot, want[i].body)
		}
	}
	return ""
}

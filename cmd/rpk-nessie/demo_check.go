// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// check compares each run with what was written for it: every row once, in the order of the snapshots, and in the second
// run none that the first had acknowledged.
func check(say *narrator, written []delivery, stopped int, first, second []delivery) error {
	if diff := difference(written[:stopped], first); diff != "" {
		return fmt.Errorf("what the first run delivered is not what was written:\n%s", diff)
	}
	if diff := difference(written[stopped:], second); diff != "" {
		return fmt.Errorf("what the second run delivered is not what was written since the first:\n%s", diff)
	}
	say.line("First run:  %d rows.", len(first))
	say.line("Second run: %d rows, none of them seen before.", len(second))
	say.line("All %d rows came once, in order.", len(first)+len(second))
	return nil
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

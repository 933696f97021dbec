// SPDX-License-Identifier: Apache-2.0

package scan

import "fmt"

// leaf writes a window of a column.
type leaf struct {
	column *fileColumn
	side   int   // which of two windows of the column
	maxDef uint8 // the level of a value that is there

	defs, reps []uint8 // of its entries; nil defs: all of them have a value
	room       []uint8
	at, end    int // entry
	out        appender
	k          int // value

	// carried are values of the first row that lay in pages before; written counts those that are written.
	carried encodedValues
	written int
}

// append writes the next entry, of which the ancestors know that it stands for a value of this leaf or a missing one.
func (l *leaf) append(b []byte) []byte {
	if l.defs != nil {
		d := l.def()
		l.at++
		if d != l.maxDef {
			return appendNull(b)
		}
	}
	if l.written < len(l.carried.ends) {
		l.written++
		return l.carried.append(b, l.written-1)
	}
	k := l.k
	l.k++
	return l.out.append(b, k)
}

// skip passes an entry that stands for a missing ancestor.
func (l *leaf) skip() { l.at++ }

// def is the definition level of the next entry: 0 behind the window, where only levels that contradict those of another
// leaf lead; see check.
func (l *leaf) def() uint8 {
	if l.defs == nil {
		return l.maxDef
	}
	if l.at >= len(l.defs) {
		return 0
	}
	return l.defs[l.at]
}

// check reports whether all of the window was written and nothing else.
func (l *leaf) check() error {
	if l.defs != nil && l.at != l.end {
		return fmt.Errorf("column %d has %d entries where others have %d", l.column.index, l.end, l.at)
	}
	return nil
}

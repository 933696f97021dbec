// SPDX-License-Identifier: Apache-2.0

package scan

// node writes one column, or a part of one, row by row. Each call takes what belongs to it from the leaves below; how
// much that is, and what is missing, their levels say (Parquet format, "Nested Encoding").
type node interface {
	// append finds spare bytes behind the buffer's end, and may leave none.
	append(b []byte) []byte
}

// absent is a column that the file does not have.
type absent struct{}

func (absent) append(b []byte) []byte { return appendNull(b) }

// directCell is a named column of a row or struct.
type directCell struct {
	label label
	node  node
}

// leafGroup is what nodes with several leaves share. The first leaf's levels tell for all.
type leafGroup struct {
	leaves []*leaf
}

func (g leafGroup) def() uint8 { return g.leaves[0].def() }

// skip passes what stands for a missing value.
func (g leafGroup) skip() {
	for _, l := range g.leaves {
		l.skip()
	}
}

// directStruct writes a struct.
type directStruct struct {
	leafGroup
	present uint8 // level from which on it is there
	cells   []directCell
}

func (n *directStruct) append(b []byte) []byte {
	if n.def() < n.present {
		n.skip()
		return appendNull(b)
	}
	for i := range n.cells {
		c := &n.cells[i]
		b = c.node.append(c.label.append(b))
	}
	return append(b, '}')
}

// repetition is what lists and maps share.
type repetition struct {
	leafGroup
	present uint8 // level from which on it is there
	filled  uint8 // level from which on it has an element
	level   uint8 // repetition level of its second element and those after it
}

// missing writes what has no elements.
func (n *repetition) missing(b []byte, none string) ([]byte, bool) {
	d := n.def()
	if d >= n.filled {
		return b, false
	}
	n.skip()
	if d < n.present {
		return appendNull(b), true
	}
	return append(b, none...), true
}

// more reports whether another element follows.
func (n *repetition) more() bool {
	first := n.leaves[0]
	return first.at < first.end && first.reps[first.at] == n.level
}

// directList writes a list.
type directList struct {
	repetition
	element node
}

func (n *directList) append(b []byte) []byte {
	if b, done := n.missing(b, "[]"); done {
		return b
	}
	b = append(b, '[')
	for {
		b = n.element.append(withSpare(b))
		if !n.more() {
			return append(b, ']')
		}
		b = append(b, ',')
	}
}

// directMap writes a map as an object where its keys are strings, else as a list.
type directMap struct {
	repetition
	key, value node
	object     bool
}

func (n *directMap) append(b []byte) []byte {
	open, between, behind, end := `[{"key":`, `,"value":`, `},{"key":`, `}]`
	none := "[]"
	if n.object {
		open, between, behind, end, none = "{", ":", ",", "}", "{}"
	}
	if b, done := n.missing(b, none); done {
		return b
	}
	b = append(b, open...)
	for {
		b = n.key.append(withSpare(b))
		b = n.value.append(withSpare(append(b, between...)))
		if !n.more() {
			return append(b, end...)
		}
		b = append(b, behind...)
	}
}

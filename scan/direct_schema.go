// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// layout finds the columns of a schema in a Parquet file, by field id. Every method that fails does so with errIndirect:
// the general decoder knows more forms of files, and the errors of those that are wrong.
type layout struct {
	file   *schema.Schema
	leaves []*leaf
	absent bool // the file lacks a column
}

// cells are the columns of a row or struct. def and rep are the levels of what holds them.
func (l *layout) cells(fields []iceberg.NestedField, in *schema.GroupNode, def, rep uint8) ([]directCell, error) {
	ids := map[int32]schema.Node{}
	for i := range in.NumFields() {
		n := in.Field(i)
		if _, twice := ids[n.FieldID()]; twice || n.FieldID() < 0 {
			return nil, errIndirect
		}
		ids[n.FieldID()] = n
	}
	out := make([]directCell, len(fields))
	for i, cell := range newCells(fields) {
		f := fields[i]
		if f.ID == iceberg.RowIDFieldID || f.ID == iceberg.LastUpdatedSequenceNumberFieldID {
			return nil, errIndirect
		}
		out[i] = directCell{label: cell.label, node: absent{}}
		n, ok := ids[int32(f.ID)]
		switch {
		case !ok && (f.Required || f.InitialDefault != nil):
			return nil, errIndirect
		case !ok:
			l.absent = true
			continue
		}
		var err error
		if out[i].node, err = l.node(f.Type, n, def, rep); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// node is the writer of one value.
func (l *layout) node(t iceberg.Type, n schema.Node, def, rep uint8) (node, error) {
	switch {
	case n.RepetitionType() == parquet.Repetitions.Repeated || def > 250:
		return nil, errIndirect
	case n.RepetitionType() == parquet.Repetitions.Optional:
		def++
	}
	if p, ok := n.(*schema.PrimitiveNode); ok {
		return l.leaf(t, p, def, rep)
	}
	g := n.(*schema.GroupNode)
	first := len(l.leaves)
	switch t := t.(type) {
	case *iceberg.StructType:
		if !isNone(g.LogicalType()) {
			return nil, errIndirect
		}
		cells, err := l.cells(t.FieldList, g, def, rep)
		if err != nil || first == len(l.leaves) {
			return nil, errIndirect
		}
		return &directStruct{leafGroup: leafGroup{l.leaves[first:]}, present: def, cells: cells}, nil
	case *iceberg.ListType:
		if _, ok := g.LogicalType().(schema.ListLogicalType); !ok {
			return nil, errIndirect
		}
		parts, err := repeatedFields(g, t.ElementID)
		if err != nil {
			return nil, err
		}
		element, err := l.node(t.Element, parts[0], def+1, rep+1)
		if err != nil || first == len(l.leaves) {
			return nil, errIndirect
		}
		return &directList{repetition{leafGroup{l.leaves[first:]}, def, def + 1, rep + 1}, element}, nil
	case *iceberg.MapType:
		if _, ok := g.LogicalType().(schema.MapLogicalType); !ok {
			return nil, errIndirect
		}
		parts, err := repeatedFields(g, t.KeyID, t.ValueID)
		if err != nil {
			return nil, err
		}
		key, keyErr := l.node(t.KeyType, parts[0], def+1, rep+1)
		value, valueErr := l.node(t.ValueType, parts[1], def+1, rep+1)
		if keyErr != nil || valueErr != nil || first == len(l.leaves) {
			return nil, errIndirect
		}
		_, object := t.KeyType.(iceberg.StringType)
		return &directMap{repetition{leafGroup{l.leaves[first:]}, def, def + 1, rep + 1}, key, value, object}, nil
	}
	return nil, errIndirect
}

// repeatedFields are the fields of the repeated group inside a list or map, which must have the ids.
func repeatedFields(g *schema.GroupNode, ids ...int) ([]schema.Node, error) {
	if g.NumFields() != 1 || g.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return nil, errIndirect
	}
	inner, ok := g.Field(0).(*schema.GroupNode)
	if !ok || inner.NumFields() != len(ids) {
		return nil, errIndirect
	}
	var out []schema.Node
	for i, id := range ids {
		if inner.Field(i).FieldID() != int32(id) {
			return nil, errIndirect
		}
		out = append(out, inner.Field(i))
	}
	return out, nil
}

func (l *layout) leaf(t iceberg.Type, n *schema.PrimitiveNode, def, rep uint8) (node, error) {
	values := plainValues(t, n)
	index := l.file.ColumnIndexByNode(n)
	if values == nil || index < 0 {
		return nil, errIndirect
	}
	out := &leaf{index: index, maxDef: def, maxRep: rep, plain: values, indexed: indexed{values: plainValues(t, n)}}
	if _, ok := t.(iceberg.BooleanType); ok {
		out.runs = &runBooleans{}
	}
	l.leaves = append(l.leaves, out)
	return out, nil
}

// leafIDs are the field ids of the rows' Parquet columns.
func (p *Plan) leafIDs() []int {
	var ids []int
	var add func(f iceberg.NestedField)
	add = func(f iceberg.NestedField) {
		nested, ok := f.Type.(iceberg.NestedType)
		if !ok {
			ids = append(ids, f.ID)
			return
		}
		for _, f := range nested.Fields() {
			add(f)
		}
	}
	for _, f := range p.Schema.Fields() {
		add(f)
	}
	return ids
}

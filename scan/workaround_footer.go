// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
)

// Files that no Iceberg writer wrote come into a table too: registered by add_files, or migrated from Hive. iceberg-go
// refuses many of them, since it wants each column to have a field id or a name in the mapping, and a type that it knows
// how to promote. Such a file is read again with another footer: one that gives ids to columns, leaves out the Arrow
// schema that is stored beside the Parquet schema, and declares columns of other units as the plain numbers that their
// pages hold; what is read is then brought to the table's types (fitted.go). The pages stay as they are.

// footer is a Parquet file's footer, for changing it. Numbers are the Thrift field ids of parquet.thrift.
type footer struct {
	root  *thriftValue
	nodes []*footerNode // in the file's order: as parents come before their children

	start int64 // where it begins in the file
	size  int64 // of the file
}

// footerNode is one element of the Parquet schema.
type footerNode struct {
	*thriftValue
	children []*footerNode
	leaf     int // number of the column; -1: a group
}

// Field ids of SchemaElement, and the values that are used.
const (
	elementType, elementLength, elementRepetition, elementName = 1, 2, 3, 4
	elementChildren, elementConverted, elementFieldID          = 5, 6, 9
	elementScale, elementPrecision                             = 7, 8
	elementLogical                                             = 10

	physicalInt32, physicalInt64, physicalInt96            = 1, 2, 3
	physicalBytes, physicalFixed                           = 6, 7
	repeated                                               = 2
	convertedMap, convertedMapKeyValue, convertedList      = 1, 2, 3
	convertedTimeMillis                                    = 7
	convertedTimestampMillis, convertedTimestampMicros     = 9, 10
	logicalMap, logicalList, logicalTime, logicalTimestamp = 2, 3, 7, 8
	logicalUUID                                            = 14
)

const arrowSchemaKey = "ARROW:schema"

func readFooter(f iceio.File) (*footer, error) {
	data, start, size, err := footerOf(f)
	if err != nil {
		return nil, err
	}
	out := &footer{start: start, size: size}
	if out.root, err = parseThrift(data); err != nil {
		return nil, err
	}
	return out, out.layOut()
}

// layOut finds the tree that the schema's elements are.
func (f *footer) layOut() error {
	elements := f.root.get(2)
	if elements == nil || len(elements.list) == 0 {
		return errThrift
	}
	leaves, next := 0, 0
	var add func() (*footerNode, error)
	add = func() (*footerNode, error) {
		if next == len(elements.list) {
			return nil, errThrift
		}
		n := &footerNode{thriftValue: &elements.list[next], leaf: -1}
		next++
		f.nodes = append(f.nodes, n)
		children, group := n.integer(elementChildren)
		if !group {
			n.leaf = leaves
			leaves++
		}
		for range children {
			child, err := add()
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, child)
		}
		return n, nil
	}
	_, err := add()
	return err
}

func (f *footer) top() []*footerNode { return f.nodes[0].children }

func (n *footerNode) name() string {
	if name := n.get(elementName); name != nil {
		return string(name.bytes)
	}
	return ""
}

func (n *footerNode) is(field int16, value int64) bool {
	got, ok := n.integer(field)
	return ok && got == value
}

// annotated reports whether the element has one of both annotations, of which files have the older, the newer or both.
func (n *footerNode) annotated(converted, logical int16) bool {
	return n.is(elementConverted, int64(converted)) || n.get(elementLogical).get(logical) != nil
}

// elements are the nodes that stand for what a list or map holds, with their names in a name mapping.
func (n *footerNode) elements() (names []string, nodes []*footerNode) {
	if len(n.children) != 1 || !n.children[0].is(elementRepetition, repeated) {
		return nil, nil
	}
	middle := n.children[0]
	switch {
	case n.annotated(convertedMap, logicalMap) || n.is(elementConverted, convertedMapKeyValue):
		if len(middle.children) != 2 {
			return nil, nil
		}
		return []string{"key", "value"}, middle.children
	case !n.annotated(convertedList, logicalList):
		return nil, nil
	case len(middle.children) != 1 || middle.name() == "array" || middle.name() == n.name()+"_tuple":
		return []string{"element"}, []*footerNode{middle} // a list of two levels (LogicalTypes.md, backward compatibility)
	}
	return []string{"element"}, middle.children
}

// unknownColumns are ids that no table's columns have: the spec reserves all from 2147483447 on, and tables count from 1.
const unknownColumns = 2_000_000_000

// identify gives every column a field id: its own, else that of the name mapping, else one that no table has. What a list
// or map holds has no choice, so it takes the id of the table's column. It fails where the file has no ids and the table
// no mapping, and where a file with ids has none on a column that the table has by that name.
func (f *footer) identify(mapping iceberg.NameMapping, schema *iceberg.Schema) error {
	v := &identifier{known: mapping != nil, mapped: mapping != nil, next: unknownColumns}
	for _, n := range f.top() {
		v.visit(n, n.name(), false, mapping, schema.Fields())
	}
	switch {
	case !v.known:
		return errors.New("data file without field ids in a table without schema.name-mapping.default")
	case v.nameless != "":
		return fmt.Errorf("data file with field ids on some columns only, and none on %s,", v.nameless)
	}
	return nil
}

type identifier struct {
	mapped   bool   // there is a name mapping
	known    bool   // there is, or the file has ids
	nameless string // a column of the table that has no id in a file with ids
	next     int64
}

// visit identifies a column, which a list or map holds or not, and what is in it. among is what the name mapping has beside
// it, and fields what the table has.
func (v *identifier) visit(n *footerNode, name string, held bool, among []iceberg.MappedField, fields []iceberg.NestedField) {
	within := (&iceberg.MappedField{Fields: among}).GetField(name)
	byName := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == name })
	id, ok := n.integer(elementFieldID)
	switch {
	case ok && id > 0:
		v.known = true
	case within != nil && within.FieldID != nil:
		id = int64(*within.FieldID)
	case byName >= 0 && held:
		id = int64(fields[byName].ID)
	default:
		if byName >= 0 && !v.mapped && v.nameless == "" {
			v.nameless = name
		}
		id = v.next
		v.next++
	}
	n.set(elementFieldID, thriftNumber(id))
	var inMapping []iceberg.MappedField
	if within != nil {
		inMapping = within.Fields
	}
	var inTable []iceberg.NestedField
	if i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return int64(f.ID) == id }); i >= 0 {
		if nested, ok := fields[i].Type.(iceberg.NestedType); ok {
			inTable = nested.Fields()
		}
	}
	names, nodes := n.elements()
	for i, element := range nodes {
		v.visit(element, names[i], true, inMapping, inTable)
	}
	if nodes == nil {
		for _, child := range n.children {
			v.visit(child, child.name(), false, inMapping, inTable)
		}
	}
}

// plain takes a column's annotations away, so that it is read as the numbers or bytes that it holds.
func (n *footerNode) plain() {
	n.set(elementConverted, nil)
	n.set(elementLogical, nil)
}

// unit is the unit of a time or timestamp: 1 milliseconds, 2 microseconds, 3 nanoseconds.
func (n *footerNode) unit(logical int16) int16 {
	switch {
	case n.olderTimestamp() && n.is(elementConverted, convertedTimestampMillis):
		return 1
	case n.olderTimestamp():
		return 2
	}
	unit := n.get(elementLogical).get(logical).get(2)
	if unit == nil || len(unit.fields) != 1 {
		return 0
	}
	return unit.fields[0].id
}

// olderTimestamp reports whether the older annotation alone says that it is a timestamp. It is in UTC then.
func (n *footerNode) olderTimestamp() bool {
	return n.get(elementLogical) == nil && (n.is(elementConverted, convertedTimestampMillis) || n.is(elementConverted, convertedTimestampMicros))
}

func (n *footerNode) inUTC() bool {
	utc := n.get(elementLogical).get(logicalTimestamp).get(1)
	return n.olderTimestamp() || (utc != nil && utc.kind == thriftTrue)
}

// fit makes a column readable for the table's type, and says how what is read then becomes that type; nil: it is that
// type, or nothing can be done.
func (f *footer) fit(n *footerNode, t iceberg.Type) *fitting {
	physical, _ := n.integer(elementType)
	if physical == physicalFixed {
		if fitting := f.fitDelta(n, t); fitting != nil {
			return fitting
		}
	}
	switch t.(type) {
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return f.fitTimestamp(n, t)
	case iceberg.TimeType:
		switch {
		case physical == physicalInt32 && n.annotated(convertedTimeMillis, logicalTime):
			n.plain()
			return &fitting{read: iceberg.PrimitiveTypes.Int32, convert: microsOfMillis}
		case physical == physicalInt64 && n.unit(logicalTime) == 3:
			n.plain()
			return &fitting{read: iceberg.PrimitiveTypes.Int64, convert: microsOfNanos}
		}
	case iceberg.UUIDType:
		if physical == physicalFixed && n.is(elementLength, 16) && n.get(elementLogical) == nil {
			n.set(elementLogical, &thriftValue{kind: thriftStruct, fields: []thriftField{{logicalUUID, &thriftValue{kind: thriftStruct}}}})
		}
	}
	return nil
}

func (f *footer) fitTimestamp(n *footerNode, t iceberg.Type) *fitting {
	nanos, zoned := false, false
	switch t.(type) {
	case iceberg.TimestampTzType:
		zoned = true
	case iceberg.TimestampNsType:
		nanos = true
	case iceberg.TimestampTzNsType:
		nanos, zoned = true, true
	}
	physical, _ := n.integer(elementType)
	switch {
	case physical == physicalInt96:
		f.retype(n, physicalFixed)
		n.set(elementLength, thriftNumber(12))
		n.plain()
		convert := microsOfInt96
		if nanos {
			convert = nanosOfInt96
		}
		return &fitting{read: iceberg.FixedTypeOf(12), convert: convert}
	case physical != physicalInt64 || (zoned && !n.inUTC()):
		return nil // what local time a timestamp without zone is in, the file does not say
	}
	// The other way round it is the time in UTC, as ClickHouse means it.
	factor := timestampFactors[nanos][n.unit(logicalTimestamp)]
	if factor == nil {
		return nil
	}
	n.plain()
	return &fitting{read: iceberg.PrimitiveTypes.Int64, convert: factor}
}

// retype changes the physical type of a column, also where the row groups repeat it. Statistics go, since they are in the
// order of the old type.
func (f *footer) retype(n *footerNode, physical int64) {
	n.set(elementType, thriftNumber(physical))
	groups := f.root.get(4)
	if groups == nil {
		return
	}
	for i := range groups.list {
		chunks := groups.list[i].get(1)
		if chunks == nil || n.leaf >= len(chunks.list) {
			continue
		}
		if meta := chunks.list[n.leaf].get(3); meta != nil {
			meta.set(1, thriftNumber(physical))
			meta.set(12, nil)
		}
	}
}

// dropArrowSchema leaves the file's Arrow schema out: it names types that a table has not.
func (f *footer) dropArrowSchema() {
	pairs := f.root.get(5)
	if pairs == nil {
		return
	}
	pairs.list = slices.DeleteFunc(pairs.list, func(kv thriftValue) bool {
		key := kv.get(1)
		return key != nil && string(key.bytes) == arrowSchemaKey
	})
	if len(pairs.list) == 0 {
		f.root.set(5, nil)
	}
}

// over is the file with this footer. It is never smaller than the file, so that what lies in the file by its manifest
// also lies in this one.
func (f *footer) over(file iceio.File) (iceio.File, error) {
	tail := f.root.appendTo(nil)
	if len(tail) > math.MaxInt32 {
		return nil, fmt.Errorf("a footer of %d bytes is too large", len(tail))
	}
	tail = binary.LittleEndian.AppendUint32(tail, uint32(len(tail)))
	tail = append(tail, "PAR1"...)
	if short := f.size - f.start - int64(len(tail)); short > 0 {
		tail = append(make([]byte, short), tail...)
	}
	return &fittedFile{File: file, start: f.start, tail: tail}, nil
}

// fittedFile is a file with another tail from start on.
type fittedFile struct {
	iceio.File
	start int64
	tail  []byte
	at    int64 // of Read
}

func (f *fittedFile) size() int64 { return f.start + int64(len(f.tail)) }

func (f *fittedFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < f.start {
		n, err = f.File.ReadAt(p[:min(int64(len(p)), f.start-off)], off)
		if n == len(p) || off+int64(n) < f.start {
			return n, err
		}
	}
	if off+int64(n) >= f.size() {
		return n, io.EOF
	}
	n += copy(p[n:], f.tail[off+int64(n)-f.start:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *fittedFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *fittedFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size()
	}
	if offset < 0 {
		return 0, fmt.Errorf("seeking to %d", offset)
	}
	f.at = offset
	return offset, nil
}

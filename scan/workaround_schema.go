// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// schemaElement is what is needed of a SchemaElement (parquet.thrift).
type schemaElement struct{ physical, length, repetition, children, id int64 }

func (r *thriftReader) schema() (elements []schemaElement) {
	r.eachStruct(func() {
		e := schemaElement{physical: -1}
		r.numbers([]*int64{
			elementType: &e.physical, elementLength: &e.length, elementRepetition: &e.repetition,
			elementChildren: &e.children, elementFieldID: &e.id,
		})
		elements = append(elements, e)
	})
	return elements
}

// mostLength is what a value of a fixed length may have.
const mostLength = 16 << 20

func (e schemaElement) checkLeaf() error {
	switch {
	case e.physical < 0 || e.physical > physicalFixed:
		return fmt.Errorf("a column has the unknown physical type %d", e.physical)
	case e.physical == physicalFixed && (e.length <= 0 || e.length > mostLength):
		return fmt.Errorf("the values of a column are said to have %d bytes each", e.length)
	}
	return nil
}

// leavesOf are the columns of a schema.
func leavesOf(elements []schemaElement) (leaves []leafLevels, err error) {
	next := 0
	var visit func(above leafLevels, depth int) error
	visit = func(above leafLevels, depth int) error {
		if next == len(elements) || depth > maxThriftDepth {
			return fmt.Errorf("the schema of %d elements is no tree", len(elements))
		}
		e, node := elements[next], next
		next++
		if node > 0 && e.repetition != 0 {
			above.maxDef++
		}
		if node > 0 && e.repetition == repeated {
			above.maxRep++
		}
		if e.children == 0 && node > 0 {
			above.physical = e.physical
			leaves = append(leaves, above)
			return e.checkLeaf()
		}
		if above.maxRep > 0 {
			above.shared = append(slices.Clip(above.shared), sharedNode{node, above.maxDef, above.maxRep})
		}
		if e.children < 0 || e.children > int64(len(elements)) {
			return fmt.Errorf("a column is said to have %d inside of it", e.children)
		}
		for range e.children {
			if err := visit(above, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if len(elements) > 0 {
		err = visit(leafLevels{}, 0)
	}
	return leaves, err
}

// distinctIDs fails where two columns have one of the ids that are wanted, at which iceberg-go panics.
func distinctIDs(elements []schemaElement, wanted []int) error {
	seen := map[int64]bool{}
	for _, e := range elements {
		if seen[e.id] && slices.Contains(wanted, int(e.id)) {
			return fmt.Errorf("two columns have the field id %d", e.id)
		}
		seen[e.id] = true
	}
	return nil
}

// trySchema lets arrow-go make a schema of its elements as the footer has them, to see whether it panics. An error it will
// tell itself.
func trySchema(elements []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("its schema is broken: %v", cause)
		}
	}()
	if s, err := parquetSchemaOf(elements); err == nil {
		_, _ = pqarrow.FromParquet(s, &pqarrow.ArrowReadProperties{}, nil)
	}
	return nil
}

// parquetSchemaOf is arrow-go's schema of the elements. It panics where they are broken.
func parquetSchemaOf(elements []byte) (*schema.Schema, error) {
	footer := append([]byte{0x15, 2, 0x19}, elements...)     // FileMetaData: version 1, schema
	footer = append(footer, 0x16, 0, 0x19, thriftStructs, 0) // no rows, no row groups, the end
	meta, err := metadata.NewFileMetaData(footer, nil)
	if err != nil {
		return nil, err
	}
	return meta.Schema, nil
}

// thriftStructs begins an empty list of structs.
const thriftStructs = byte(thriftStruct)

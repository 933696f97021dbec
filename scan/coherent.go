// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// arrow-go decodes the columns of a nested one apart from each other, and takes their lengths for granted. Where a file is
// damaged they differ, and whoever follows the parent's offsets leaves the child's values.

var errIncoherent = errors.New("the columns inside of a nested one do not have as many values as it says")

// coherent checks that what nested columns of a decoded batch point at is there.
func coherent(batch arrow.RecordBatch) error {
	for i := range int(batch.NumCols()) {
		if err := coherentData(batch.Column(i).Data()); err != nil {
			return fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
	}
	return nil
}

func coherentData(data arrow.ArrayData) error {
	children := data.Children()
	switch t := data.DataType().(type) {
	case *arrow.StructType:
		for _, child := range children {
			if child.Len() < data.Offset()+data.Len() {
				return errIncoherent
			}
		}
	case *arrow.FixedSizeListType:
		if children[0].Len() < (data.Offset()+data.Len())*int(t.Len()) {
			return errIncoherent
		}
	case *arrow.ListType, *arrow.MapType:
		if data.Len() > 0 && !coherentOffsets(data, children[0].Len()) {
			return errIncoherent
		}
	}
	for _, child := range children {
		if err := coherentData(child); err != nil {
			return err
		}
	}
	return nil
}

// coherentOffsets reports whether the offsets of a list's or a map's elements rise within the length of these.
func coherentOffsets(data arrow.ArrayData, length int) bool {
	offsets := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())
	if len(offsets) <= data.Offset()+data.Len() {
		return false
	}
	last := int32(0)
	for _, offset := range offsets[data.Offset() : data.Offset()+data.Len()+1] {
		if offset < last {
			return false
		}
		last = offset
	}
	return int(last) <= length
}

// SPDX-License-Identifier: Apache-2.0

package scan

import "github.com/apache/arrow-go/v18/arrow"

// streamBytes is about how many bytes the rows from ≤ i < to of a batch take in an Arrow stream: values as they are, and for
// each column its description and padding. It errs towards more.
func streamBytes(batch arrow.RecordBatch, from, to int) int64 {
	const message = 1 << 10
	size := int64(message)
	for _, column := range batch.Columns() {
		data := column.Data()
		size += rangeBytes(data, data.DataType(), int64(from), int64(to))
	}
	return size
}

// rangeBytes is streamBytes of one array, or of one that is nested in it.
func rangeBytes(data arrow.ArrayData, t arrow.DataType, from, to int64) int64 {
	const description = 256
	n, start := to-from, int64(data.Offset())+from
	size := description + (n+7)/8
	if n == 0 {
		return size
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		return rangeBytes(data, t.StorageType(), from, to)
	case *arrow.NullType:
		return size
	case *arrow.DictionaryType:
		return size + (n*int64(t.BitWidth())+7)/8 + int64(data.Dictionary().SizeInBytes())
	case *arrow.StructType:
		for _, child := range data.Children() {
			size += rangeBytes(child, child.DataType(), start, start+n)
		}
		return size
	case *arrow.FixedSizeListType:
		child, width := data.Children()[0], int64(t.Len())
		return size + rangeBytes(child, child.DataType(), start*width, (start+n)*width)
	case *arrow.ListType, *arrow.MapType, *arrow.LargeListType:
		low, high, width := offsets(data, t, start, n)
		child := data.Children()[0]
		return size + width*(n+1) + rangeBytes(child, child.DataType(), low, high)
	case *arrow.StringType, *arrow.BinaryType, *arrow.LargeStringType, *arrow.LargeBinaryType:
		low, high, width := offsets(data, t, start, n)
		return size + width*(n+1) + high - low
	case arrow.FixedWidthDataType:
		return size + (n*int64(t.BitWidth())+7)/8
	}
	// Types that no decoder gives: as if all values were alike.
	return size + int64(data.SizeInBytes())*n/max(int64(data.Len()), 1)
}

// offsets are where n values begin and end, and the bytes that an offset takes.
func offsets(data arrow.ArrayData, t arrow.DataType, start, n int64) (low, high, width int64) {
	raw := data.Buffers()[1].Bytes()
	switch t.(type) {
	case *arrow.LargeListType, *arrow.LargeStringType, *arrow.LargeBinaryType:
		all := arrow.Int64Traits.CastFromBytes(raw)
		return all[start], all[start+n], int64(arrow.Int64SizeBytes)
	}
	all := arrow.Int32Traits.CastFromBytes(raw)
	return int64(all[start]), int64(all[start+n]), int64(arrow.Int32SizeBytes)
}

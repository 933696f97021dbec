// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
)

// A Parquet footer is a struct in Thrift's compact protocol. It is kept here as a tree that holds all of it, so that a
// footer of any writer is written again as it was, save what was changed (Thrift, "Compact protocol encoding").

type thriftKind byte

const (
	thriftTrue   thriftKind = 1
	thriftFalse  thriftKind = 2
	thriftByte   thriftKind = 3
	thriftInt16  thriftKind = 4
	thriftInt32  thriftKind = 5
	thriftInt64  thriftKind = 6
	thriftDouble thriftKind = 7
	thriftBytes  thriftKind = 8
	thriftList   thriftKind = 9
	thriftSet    thriftKind = 10
	thriftMap    thriftKind = 11
	thriftStruct thriftKind = 12
)

// thriftValue is a value of any kind. Which part of it counts depends on the kind.
type thriftValue struct {
	kind   thriftKind
	number int64         // integers; the bits of a double; 1 for true in a list
	bytes  []byte        // lies in what was parsed
	of     thriftKind    // of the elements of a list or set, or the keys of a map
	to     thriftKind    // of the values of a map
	list   []thriftValue // elements; keys and values of a map in turn
	fields []thriftField // in rising order of their ids
}

type thriftField struct {
	id    int16
	value *thriftValue
}

// get is a field of a struct; nil where it is not set.
func (v *thriftValue) get(id int16) *thriftValue {
	if v == nil {
		return nil
	}
	for _, f := range v.fields {
		if f.id == id {
			return f.value
		}
	}
	return nil
}

// integer is the field's number.
func (v *thriftValue) integer(id int16) (int64, bool) {
	f := v.get(id)
	if f == nil {
		return 0, false
	}
	return f.number, true
}

// set sets a field, or removes it with nil.
func (v *thriftValue) set(id int16, to *thriftValue) {
	var fields []thriftField
	for _, f := range v.fields {
		if f.id > id && to != nil {
			fields, to = append(fields, thriftField{id, to}), nil
		}
		if f.id != id {
			fields = append(fields, f)
		}
	}
	if to != nil {
		fields = append(fields, thriftField{id, to})
	}
	v.fields = fields
}

func thriftNumber(n int64) *thriftValue { return &thriftValue{kind: thriftInt32, number: n} }

var errThrift = errors.New("the footer is not in Thrift's compact protocol")

// maxThriftDepth is far beyond what a footer nests.
const maxThriftDepth = 64

// parseThrift reads a struct.
func parseThrift(data []byte) (*thriftValue, error) {
	r := &thriftReader{data: data}
	v := r.value(thriftStruct, 0)
	if r.bad {
		return nil, errThrift
	}
	return &v, nil
}

type thriftReader struct {
	data []byte
	bad  bool
}

func (r *thriftReader) byte() byte {
	if len(r.data) == 0 {
		r.bad = true
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *thriftReader) unsigned() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *thriftReader) signed() int64 {
	n := r.unsigned()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *thriftReader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.bad = true
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

// count is a number of elements, each of which takes at least one byte.
func (r *thriftReader) count(n uint64) int {
	if n > uint64(len(r.data)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *thriftReader) value(kind thriftKind, depth int) thriftValue {
	v := thriftValue{kind: kind}
	if depth > maxThriftDepth {
		r.bad = true
	}
	if r.bad {
		return v
	}
	switch kind {
	case thriftTrue, thriftFalse: // in a list; as a field the kind is the value
		v.number = int64(r.byte())
	case thriftByte:
		v.number = int64(r.byte())
	case thriftInt16, thriftInt32, thriftInt64:
		v.number = r.signed()
	case thriftDouble:
		if b := r.take(8); !r.bad {
			v.number = int64(binary.LittleEndian.Uint64(b))
		}
	case thriftBytes:
		v.bytes = r.take(r.unsigned())
	case thriftList, thriftSet:
		head := r.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = r.unsigned()
		}
		v.of = thriftKind(head & 15)
		for range r.count(n) {
			v.list = append(v.list, r.value(v.of, depth+1))
		}
	case thriftMap:
		n := r.unsigned()
		if n == 0 {
			break
		}
		kinds := r.byte()
		v.of, v.to = thriftKind(kinds>>4), thriftKind(kinds&15)
		for range r.count(n) {
			v.list = append(v.list, r.value(v.of, depth+1), r.value(v.to, depth+1))
		}
	case thriftStruct:
		v.fields = r.fields(depth)
	default:
		r.bad = true
	}
	return v
}

func (r *thriftReader) fields(depth int) (fields []thriftField) {
	id := int16(0)
	for !r.bad {
		head := r.byte()
		kind := thriftKind(head & 15)
		if kind == 0 {
			break
		}
		if delta := head >> 4; delta != 0 {
			id += int16(delta)
		} else {
			id = int16(r.signed())
		}
		v := thriftValue{kind: kind}
		if kind != thriftTrue && kind != thriftFalse {
			v = r.value(kind, depth+1)
		}
		fields = append(fields, thriftField{id, &v})
	}
	return fields
}

// each visits the fields of a struct. visit must read or skip the value.
func (r *thriftReader) each(visit func(id int16, kind thriftKind)) {
	id := int16(0)
	for !r.bad {
		head := r.byte()
		kind := thriftKind(head & 15)
		if kind == 0 {
			return
		}
		if delta := head >> 4; delta != 0 {
			id += int16(delta)
		} else {
			id = int16(r.signed())
		}
		visit(id, kind)
	}
}

// eachElement visits the elements of a list or set. visit must read or skip the value. Booleans it passes.
func (r *thriftReader) eachElement(visit func(kind thriftKind)) {
	head := r.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = r.unsigned()
	}
	for range r.count(n) {
		switch kind := thriftKind(head & 15); {
		case r.bad:
			return
		case kind == thriftTrue || kind == thriftFalse:
			r.byte()
		default:
			visit(kind)
		}
	}
}

// skip passes a value. A boolean has no bytes but its kind, save in a list or map.
func (r *thriftReader) skip(kind thriftKind, depth int) {
	if depth > maxThriftDepth {
		r.bad = true
	}
	if r.bad {
		return
	}
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		r.byte()
	case thriftInt16, thriftInt32, thriftInt64:
		r.unsigned()
	case thriftDouble:
		r.take(8)
	case thriftBytes:
		r.take(r.unsigned())
	case thriftList, thriftSet:
		r.eachElement(func(kind thriftKind) { r.skip(kind, depth+1) })
	case thriftMap:
		n := r.unsigned()
		if n == 0 {
			return
		}
		kinds := r.byte()
		for range r.count(n) {
			for _, kind := range []thriftKind{thriftKind(kinds >> 4), thriftKind(kinds & 15)} {
				if kind == thriftTrue || kind == thriftFalse {
					kind = thriftByte
				}
				r.skip(kind, depth+1)
			}
		}
	case thriftStruct:
		r.each(func(_ int16, kind thriftKind) { r.skip(kind, depth+1) })
	default:
		r.bad = true
	}
}

// appendTo writes the value.
func (v *thriftValue) appendTo(b []byte) []byte {
	switch v.kind {
	case thriftTrue, thriftFalse, thriftByte:
		return append(b, byte(v.number))
	case thriftInt16, thriftInt32, thriftInt64:
		return binary.AppendVarint(b, v.number)
	case thriftDouble:
		return binary.LittleEndian.AppendUint64(b, uint64(v.number))
	case thriftBytes:
		return append(binary.AppendUvarint(b, uint64(len(v.bytes))), v.bytes...)
	case thriftList, thriftSet:
		if n := len(v.list); n < 15 {
			b = append(b, byte(n<<4)|byte(v.of))
		} else {
			b = binary.AppendUvarint(append(b, 15<<4|byte(v.of)), uint64(n))
		}
	case thriftMap:
		b = binary.AppendUvarint(b, uint64(len(v.list)/2))
		if len(v.list) > 0 {
			b = append(b, byte(v.of)<<4|byte(v.to))
		}
	case thriftStruct:
		return v.appendFields(b)
	}
	for i := range v.list {
		b = v.list[i].appendTo(b)
	}
	return b
}

func (v *thriftValue) appendFields(b []byte) []byte {
	last := int16(0)
	for _, f := range v.fields {
		if delta := f.id - last; delta > 0 && delta < 16 {
			b = append(b, byte(delta)<<4|byte(f.value.kind))
		} else {
			b = binary.AppendVarint(append(b, byte(f.value.kind)), int64(f.id))
		}
		last = f.id
		if f.value.kind != thriftTrue && f.value.kind != thriftFalse {
			b = f.value.appendTo(b)
		}
	}
	return append(b, 0)
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
)

var errShortPage = errors.New("a page ends before its values")

// hybrid decodes runs of equal and of bit-packed numbers, in which Parquet holds levels, dictionary indices and booleans
// (Parquet format, "Run Length Encoding / Bit-Packing Hybrid").
type hybrid struct {
	data  []byte // behind the current run
	width int    // bits a number, at most 32

	left   int    // numbers left in the current run
	value  uint32 // of each, in a run of equal ones
	packed []byte // nil in a run of equal ones
	bit    int    // where the next packed number begins
}

func newHybrid(data []byte, width int) hybrid { return hybrid{data: data, width: width} }

// run makes sure that the current run has a number left.
func (h *hybrid) run() error {
	for h.left == 0 {
		header, n := binary.Uvarint(h.data)
		if n <= 0 || header>>1 > 1<<31 {
			return errShortPage
		}
		h.data = h.data[n:]
		h.left = int(header >> 1)
		if header&1 == 0 {
			size := (h.width + 7) / 8
			if len(h.data) < size {
				return errShortPage
			}
			h.packed, h.value = nil, 0
			for i := range size {
				h.value |= uint32(h.data[i]) << (8 * i)
			}
			h.data = h.data[size:]
			continue
		}
		h.left *= 8
		// Some writers cut the last group short.
		size := min(h.left*h.width/8, len(h.data))
		if h.width > 0 {
			h.left = min(h.left, size*8/h.width)
		}
		h.packed, h.bit = h.data[:size], 0
		h.data = h.data[size:]
		if h.left == 0 {
			return errShortPage
		}
	}
	return nil
}

// all reports whether the next n numbers are v in one run, and if so takes them.
func (h *hybrid) all(v uint32, n int) bool {
	if n == 0 || h.run() != nil || h.packed != nil || h.value != v || h.left < n {
		return n == 0
	}
	h.left -= n
	return true
}

// small decodes len(out) numbers of at most eight bits.
func (h *hybrid) small(out []uint8) error {
	for len(out) > 0 {
		if err := h.run(); err != nil {
			return err
		}
		n := min(h.left, len(out))
		switch {
		case h.packed == nil:
			for i := range out[:n] {
				out[i] = uint8(h.value)
			}
		case h.width == 1:
			h.flags(out[:n])
		default:
			for i := range out[:n] {
				out[i] = uint8(h.number())
			}
		}
		h.left -= n
		out = out[n:]
	}
	return nil
}

// flags unpacks numbers of one bit, eight at a time where they begin with a byte.
func (h *hybrid) flags(out []uint8) {
	i := 0
	for ; i < len(out) && h.bit&7 != 0; i++ {
		out[i] = h.packed[h.bit>>3] >> (h.bit & 7) & 1
		h.bit++
	}
	for ; i+8 <= len(out); i += 8 {
		// Bit k of the byte goes to bit k of byte k, then each byte that is not zero becomes one.
		w := uint64(h.packed[h.bit>>3]) * 0x0101010101010101 & 0x8040201008040201
		binary.LittleEndian.PutUint64(out[i:], (w+0x7f7f7f7f7f7f7f7f)>>7&0x0101010101010101)
		h.bit += 8
	}
	for ; i < len(out); i++ {
		out[i] = h.packed[h.bit>>3] >> (h.bit & 7) & 1
		h.bit++
	}
}

// numbers decodes len(out) numbers below limit.
func (h *hybrid) numbers(out []uint32, limit uint32) error {
	for len(out) > 0 {
		if err := h.run(); err != nil {
			return err
		}
		n := min(h.left, len(out))
		var most uint32
		if h.packed == nil {
			most = h.value
			for i := range out[:n] {
				out[i] = h.value
			}
		} else {
			most = h.unpack(out[:n])
		}
		if most >= limit {
			return errors.New("a dictionary index points behind the dictionary")
		}
		h.left -= n
		out = out[n:]
	}
	return nil
}

// unpack gives the largest of the numbers that it unpacked.
func (h *hybrid) unpack(out []uint32) (most uint32) {
	i := 0
	mask := uint64(1)<<h.width - 1
	for ; i < len(out) && h.bit>>3+8 <= len(h.packed); i++ {
		v := uint32(binary.LittleEndian.Uint64(h.packed[h.bit>>3:]) >> (h.bit & 7) & mask)
		out[i], most = v, max(most, v)
		h.bit += h.width
	}
	for ; i < len(out); i++ {
		out[i] = h.number()
		most = max(most, out[i])
	}
	return most
}

// number unpacks one number, wherever it lies.
func (h *hybrid) number() uint32 {
	var word [8]byte
	if at := h.bit >> 3; at < len(h.packed) {
		copy(word[:], h.packed[at:])
	}
	v := binary.LittleEndian.Uint64(word[:]) >> (h.bit & 7) & (1<<h.width - 1)
	h.bit += h.width
	return uint32(v)
}

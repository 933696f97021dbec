// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"
)

// keySet maps coded keys to numbers; of several of one key the largest counts.
type keySet struct {
	table keyTable
	runs  []*keyRun // what the table did not have room for
}

// find is the number of a key, -1 without one. block is a buffer that is used again.
func (s *keySet) find(hash uint32, key, block []byte) (number int, _ []byte, err error) {
	number = s.table.find(hash, key)
	for _, run := range s.runs {
		var n int
		if n, block, err = run.find(hash, key, block); err != nil {
			return 0, block, err
		}
		number = max(number, n)
	}
	return number, block, nil
}

// keyTable is an open-addressing hash table without pointers, so that the garbage collector has nothing to follow in
// millions of keys. A key takes 5 bytes beside its own, and 11 to 21 of its slot.
type keyTable struct {
	slots   []uint64 // the hash, then 1 + where the entry begins; 0: empty. As many as a power of two
	entries []byte   // each the number, the length of the key, the key
	count   int
}

// mostKeyTable is how large a table may become: places in it have 32 bits, and its last key may be 2 GiB large.
const mostKeyTable = 1 << 30

func (t *keyTable) bytes() int64 { return int64(8*len(t.slots) + cap(t.entries)) }

// first is the slot where the search for a hash begins.
func (t *keyTable) first(hash uint32) int { return int(uint64(hash) * uint64(len(t.slots)) >> 32) }

// add returns by how many bytes the table grew.
func (t *keyTable) add(hash uint32, key []byte, number uint32) int64 {
	before := t.bytes()
	if 4*(t.count+1) > 3*len(t.slots) {
		t.grow() // also for a key that is there: the next may not be
	}
	i := t.slot(hash, key)
	if t.slots[i] != 0 {
		entry := t.entryAt(t.slots[i])
		if number > binary.LittleEndian.Uint32(entry) {
			binary.LittleEndian.PutUint32(entry, number)
		}
		return t.bytes() - before
	}
	t.slots[i] = uint64(hash)<<32 | uint64(len(t.entries)+1)
	t.entries = binary.LittleEndian.AppendUint32(t.entries, number)
	t.entries = append(binary.AppendUvarint(t.entries, uint64(len(key))), key...)
	t.count++
	return t.bytes() - before
}

func (t *keyTable) find(hash uint32, key []byte) int {
	if t.count == 0 {
		return -1
	}
	slot := t.slots[t.slot(hash, key)]
	if slot == 0 {
		return -1
	}
	return int(binary.LittleEndian.Uint32(t.entryAt(slot)))
}

// slot is where a key is, or would be.
func (t *keyTable) slot(hash uint32, key []byte) int {
	for i := t.first(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		slot := t.slots[i]
		if slot == 0 {
			return i
		}
		if uint32(slot>>32) != hash {
			continue
		}
		if _, held, _ := keyEntry(t.entryAt(slot)); bytes.Equal(held, key) {
			return i
		}
	}
}

func (t *keyTable) entryAt(slot uint64) []byte { return t.entries[uint32(slot)-1:] }

// keyEntry is the first entry of b.
func keyEntry(b []byte) (number int, key, rest []byte) {
	size, n := binary.Uvarint(b[4:])
	key = b[4+n : 4+n+int(size)]
	return int(binary.LittleEndian.Uint32(b)), key, b[4+n+int(size):]
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots = make([]uint64, max(2*len(old), 16))
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		i := t.first(uint32(slot >> 32))
		for t.slots[i] != 0 {
			i = (i + 1) & (len(t.slots) - 1)
		}
		t.slots[i] = slot
	}
}

// keyRun is a table on disk: blocks of entries by their hash. In memory it has a Bloom filter of keyBloomBits bits a key and
// where the blocks end. It does not change.
type keyRun struct {
	file  io.ReaderAt
	ends  []int64 // of the blocks, the beginning of the first before them
	bloom []uint64
}

const (
	keyBlock     = 4 << 10 // bytes of a block, about
	keyBloomBits = 12      // a key; measured, one in 80 keys that the run does not hold costs a look at the file
)

// write appends the table, which stays as it is, to a file, whose end is at from.
func (t *keyTable) write(file *os.File, from int64) (*keyRun, error) {
	slots := make([]uint64, 0, t.count)
	for _, slot := range t.slots {
		if slot != 0 {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots) // by hash
	blocks := len(t.entries)/keyBlock + 1
	run := &keyRun{file: file, ends: make([]int64, 1, blocks+1), bloom: make([]uint64, len(slots)*keyBloomBits/64+1)}
	run.ends[0] = from
	w := bufio.NewWriterSize(io.NewOffsetWriter(file, from), 64<<10)
	for _, slot := range slots {
		hash := uint32(slot >> 32)
		word, bits := run.filter(hash)
		run.bloom[word] |= bits
		for block := int(uint64(hash) * uint64(blocks) >> 32); len(run.ends) <= block; {
			run.ends = append(run.ends, from)
		}
		entry := t.entryAt(slot)
		_, _, rest := keyEntry(entry)
		entry = entry[:len(entry)-len(rest)]
		from += int64(len(entry))
		if _, err := w.Write(entry); err != nil {
			return nil, err
		}
	}
	for len(run.ends) <= blocks {
		run.ends = append(run.ends, from)
	}
	return run, w.Flush()
}

func (r *keyRun) end() int64 { return r.ends[len(r.ends)-1] }

// filter is the word of the Bloom filter that a hash belongs to, and its four bits there.
func (r *keyRun) filter(hash uint32) (word int, bits uint64) {
	spread := uint64(hash) * 0x9e3779b97f4a7c15
	for shift := 40; shift < 64; shift += 6 {
		bits |= 1 << (spread >> shift & 63)
	}
	return int(uint64(hash) * uint64(len(r.bloom)) >> 32), bits
}

// find is the number of a key, -1 without one.
func (r *keyRun) find(hash uint32, key, block []byte) (number int, _ []byte, err error) {
	if word, bits := r.filter(hash); r.bloom[word]&bits != bits {
		return -1, block, nil
	}
	i := int(uint64(hash) * uint64(len(r.ends)-1) >> 32)
	block = slices.Grow(block[:0], int(r.ends[i+1]-r.ends[i]))[:r.ends[i+1]-r.ends[i]]
	if _, err := r.file.ReadAt(block, r.ends[i]); err != nil {
		return 0, block, err
	}
	for rest := block; len(rest) > 0; {
		var held []byte
		if number, held, rest = keyEntry(rest); bytes.Equal(held, key) {
			return number, block, nil
		}
	}
	return -1, block, nil
}

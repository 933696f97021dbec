// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// arrow-go has no reader for Parquet's older LZ4 codec, which is what Spark and Hive write when they are told lz4.
// See docs/upstream.md. RegisterCodec is not safe beside readers, so that it has to be called here.
//
//nolint:gochecknoinits // what arrow-go wants
func init() {
	compress.RegisterCodec(compress.Codecs.Lz4, framedLZ4{})
}

// framedLZ4 reads pages of LZ4 blocks in Hadoop's framing (BlockCompressorStream): a length of decompressed bytes, then as
// many blocks as have them, each behind its compressed length; lengths are four bytes, big-endian. Older Arrow C++ libraries
// wrote a bare block under the same codec: what is not framed is read as one, as Arrow does.
type framedLZ4 struct{}

var errFrame = errors.New("LZ4: lengths that do not fit")

// DecodeWithError decompresses src into dst, which has the room for all of it.
func (framedLZ4) DecodeWithError(dst, src []byte) ([]byte, error) {
	n, err := unframe(dst, src)
	if err == nil {
		return dst[:n], nil
	}
	bare, bareErr := lz4Block(dst, src)
	if bareErr != nil {
		return nil, err
	}
	return bare, nil
}

// unframe decompresses frames, and says how many bytes they gave.
func unframe(dst, src []byte) (n int, err error) {
	for len(src) > 0 {
		var frame int
		if frame, src, err = frameLength(src); err != nil {
			return 0, err
		}
		if frame > len(dst)-n {
			return 0, errFrame
		}
		for end := n + frame; n < end; {
			var size int
			if size, src, err = frameLength(src); err != nil {
				return 0, err
			}
			if size == 0 || size > len(src) {
				return 0, errFrame
			}
			plain, err := lz4Block(dst[n:end], src[:size])
			if err != nil {
				return 0, err
			}
			if len(plain) == 0 {
				return 0, errFrame
			}
			n, src = n+len(plain), src[size:]
		}
	}
	return n, nil
}

// frameLength takes a length.
func frameLength(src []byte) (n int, rest []byte, err error) {
	if len(src) < 4 {
		return 0, nil, errFrame
	}
	return int(binary.BigEndian.Uint32(src)), src[4:], nil
}

// lz4Block decompresses one bare block.
func lz4Block(dst, src []byte) ([]byte, error) {
	raw, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	if err != nil {
		return nil, err
	}
	return compress.Decode(raw, dst, src)
}

// Decode is DecodeWithError for callers that recover.
func (c framedLZ4) Decode(dst, src []byte) []byte {
	plain, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return plain
}

// frameBytes are in front of a page's only block.
const frameBytes = 8

// Encode compresses src as one block.
func (c framedLZ4) Encode(_, src []byte) []byte {
	raw, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	if err != nil {
		panic(err)
	}
	out := make([]byte, frameBytes, c.CompressBound(int64(len(src))))
	out = append(out, raw.Encode(nil, src)...)
	binary.BigEndian.PutUint32(out, uint32(len(src)))                //nolint:gosec // pages have less than 2 GiB
	binary.BigEndian.PutUint32(out[4:], uint32(len(out)-frameBytes)) //nolint:gosec // and so have blocks
	return out
}

// EncodeLevel is Encode: there are no levels.
func (c framedLZ4) EncodeLevel(dst, src []byte, _ int) []byte { return c.Encode(dst, src) }

// CompressBound says how much room n bytes can take.
func (framedLZ4) CompressBound(n int64) int64 {
	return n + n/255 + 16 + frameBytes // as LZ4_compressBound has it
}

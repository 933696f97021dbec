// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLZ4InFramesAndWithoutIsDecompressed(t *testing.T) {
	codec, err := compress.GetCodec(compress.Codecs.Lz4)
	require.NoError(t, err)
	raw, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var want, frames []byte
		for range rapid.IntRange(1, 3).Draw(t, "frames") {
			var plain, blocks []byte
			for range rapid.IntRange(1, 3).Draw(t, "blocks") {
				block := rapid.SliceOfN(rapid.ByteMax(2), 1, 300).Draw(t, "block")
				packed := raw.Encode(nil, block)
				plain = append(plain, block...)
				blocks = append(binary.BigEndian.AppendUint32(blocks, uint32(len(packed))), packed...) //nolint:gosec // small
			}
			want = append(want, plain...)
			frames = append(binary.BigEndian.AppendUint32(frames, uint32(len(plain))), blocks...) //nolint:gosec // small
		}
		for name, packed := range map[string][]byte{"framed": frames, "bare": raw.Encode(nil, want), "encoded": codec.Encode(nil, want)} {
			got, err := compress.Decode(codec, make([]byte, len(want)), packed)
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
	})
}

func TestDamagedLZ4IsAnError(t *testing.T) {
	for name, packed := range map[string][]byte{
		"no length":               {0, 0, 0},
		"more than there is room": {0, 0, 0, 9, 0, 0, 0, 1, 0},
		"a block of nothing":      {0, 0, 0, 4, 0, 0, 0, 0},
		"a block that is cut":     {0, 0, 0, 4, 0, 0, 0, 9, 0x40, 1, 2},
		"a block without bytes":   {0, 0, 0, 4, 0, 0, 0, 1, 0},
		"a block that is none":    {0, 0, 0, 4, 0, 0, 0, 2, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := framedLZ4{}.DecodeWithError(make([]byte, 4), packed)
			require.Error(t, err)
			require.Panics(t, func() { framedLZ4{}.Decode(make([]byte, 4), packed) })
		})
	}
}

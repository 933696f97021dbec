// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesEndInNewlines(t *testing.T) {
	schema, rec := twoColumns(t)
	e, err := NewEncoder(schema)
	require.NoError(t, err)
	buf, ends, err := e.AppendLines(nil, nil, rec, 0, 3)
	require.NoError(t, err)
	assert.Equal(t, "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":null}\n{\"id\":3,\"name\":\"ccc\"}\n", string(buf))
	assert.Equal(t, []int{20, 41, 63}, ends)
}

func TestArrowStreamReadsBack(t *testing.T) {
	_, rec := eventsBatch(10)
	parts := []arrow.RecordBatch{rec.NewSlice(0, 4), rec.NewSlice(4, 10)}
	body, err := EncodeArrowStream(rec.Schema(), parts)
	require.NoError(t, err)

	r, err := ipc.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	defer r.Release()
	assert.True(t, r.Schema().Equal(rec.Schema()))
	var got int
	for r.Next() {
		require.True(t, array.RecordEqual(parts[got], r.RecordBatch()))
		got++
	}
	require.NoError(t, r.Err())
	assert.Equal(t, 2, got)
}

func TestArrowStreamWithoutBatchesHoldsTheSchema(t *testing.T) {
	_, rec := twoColumns(t)
	body, err := EncodeArrowStream(rec.Schema(), nil)
	require.NoError(t, err)
	r, err := ipc.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	defer r.Release()
	assert.True(t, r.Schema().Equal(rec.Schema()))
	assert.False(t, r.Next())
}

func TestArrowStreamRefusesABatchOfAnotherSchema(t *testing.T) {
	_, rec := twoColumns(t)
	_, other := flatBatch(1)
	_, err := EncodeArrowStream(rec.Schema(), []arrow.RecordBatch{other})
	require.ErrorContains(t, err, "writing Arrow stream")
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// partitionKey encodes a partition tuple so that equal tuples, and only those, have equal keys. A null and an absent
// field are one value; all NaNs are one value and -0 is not 0; integers and floats compare by value whatever their width,
// as the width changes when the source column is promoted.
func partitionKey(partition map[int]any) (string, error) {
	if len(partition) == 0 {
		return "", nil
	}
	ids := make([]int, 0, len(partition))
	for id, value := range partition {
		if value != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var key []byte
	for _, id := range ids {
		var err error
		key = binary.AppendUvarint(key, uint64(id))
		if key, err = appendPartitionValue(key, partition[id]); err != nil {
			return "", fmt.Errorf("partition field %d: %w", id, err)
		}
	}
	return string(key), nil
}

func appendPartitionValue(key []byte, value any) ([]byte, error) {
	if n, ok := integerOf(value); ok {
		return binary.BigEndian.AppendUint64(append(key, 'i'), uint64(n)), nil
	}
	switch v := value.(type) {
	case bool:
		if v {
			return append(key, 't'), nil
		}
		return append(key, 'f'), nil
	case float32:
		return appendFloat(key, float64(v)), nil
	case float64:
		return appendFloat(key, v), nil
	case iceberg.Decimal:
		text := v.Val.BigInt().String()
		key = binary.AppendUvarint(append(key, 'd'), uint64(len(text)))
		return append(binary.AppendVarint(append(key, text...), int64(v.Scale)), '.'), nil
	case iceberg.DecimalLiteral:
		return appendPartitionValue(key, iceberg.Decimal(v))
	}
	if b, ok := bytesOf(value); ok {
		return append(binary.AppendUvarint(append(key, 's'), uint64(len(b))), b...), nil
	}
	return nil, fmt.Errorf("a partition value of Go type %T is not known", value)
}

func appendFloat(key []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if math.IsNaN(f) {
		bits = math.Float64bits(math.NaN())
	}
	return binary.BigEndian.AppendUint64(append(key, 'n'), bits)
}

// integerOf is the value of every type that Iceberg stores as an integer: int, long, date, time and timestamps.
func integerOf(value any) (int64, bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case iceberg.Date:
		return int64(v), true
	case iceberg.Time:
		return int64(v), true
	case iceberg.Timestamp:
		return int64(v), true
	case iceberg.TimestampNano:
		return int64(v), true
	}
	return 0, false
}

// bytesOf is the value of string, binary, fixed and uuid.
func bytesOf(value any) ([]byte, bool) {
	switch v := value.(type) {
	case string:
		return []byte(v), true
	case []byte:
		return v, true
	case uuid.UUID:
		return v[:], true
	case [16]byte:
		return v[:], true
	}
	return nil, false
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// A column that an identity partition field was made from may be absent from the data file: Hive wrote it into the path
// only, and such files were migrated. Its value is then the partition's (Iceberg spec, "Column Projection", rule 1).
// iceberg-go reads NULL instead. What it does fill in for an absent column is the field's initial default, so each file is
// read with a schema whose identity partition columns have the file's partition value as initial default; a column that
// the file does have is not touched by that.

// withPartitionValues is the schema to read one file with.
func withPartitionValues(schema *iceberg.Schema, meta table.Metadata, f File) (*iceberg.Schema, error) {
	schema, err := withTypedDefaults(schema)
	if err != nil {
		return nil, err
	}
	spec := meta.PartitionSpecByID(int(f.Data.SpecID()))
	if spec == nil || spec.IsUnpartitioned() {
		return schema, nil
	}
	values := map[int]any{} // by source column
	partition := f.Data.Partition()
	for _, field := range spec.Fields() {
		if _, ok := field.Transform.(iceberg.IdentityTransform); ok {
			values[field.SourceID()] = partition[field.FieldID]
		}
	}
	if len(values) == 0 {
		return schema, nil
	}
	fields := schema.Fields() // a copy
	for i := range fields {
		if err := setDefaults(&fields[i], values); err != nil {
			return nil, fmt.Errorf("the partition of %s: %w", f.path, err)
		}
	}
	return iceberg.NewSchemaWithIdentifiers(schema.ID, schema.IdentifierFieldIDs, fields...), nil
}

// setDefaults descends into structs: a partition's source column can be nested in them, not in lists or maps.
func setDefaults(field *iceberg.NestedField, values map[int]any) error {
	if nested, ok := field.Type.(*iceberg.StructType); ok {
		copied := &iceberg.StructType{FieldList: append([]iceberg.NestedField(nil), nested.FieldList...)}
		for i := range copied.FieldList {
			if err := setDefaults(&copied.FieldList[i], values); err != nil {
				return err
			}
		}
		field.Type = copied
		return nil
	}
	value, ok := values[field.ID]
	if !ok {
		return nil
	}
	if value == nil {
		field.InitialDefault = nil
		return nil
	}
	var err error
	field.InitialDefault, err = defaultOf(value, field.Type)
	return err
}

// defaultOf spells a partition value the way iceberg-go takes a default of the column's present type, which may have been
// promoted since.
func defaultOf(value any, typ iceberg.Type) (any, error) {
	if n, ok := integerOf(value); ok {
		switch typ.(type) {
		case iceberg.Int32Type:
			return int32(n), nil
		case iceberg.Int64Type:
			return n, nil
		case iceberg.DateType:
			return iceberg.Date(n), nil
		case iceberg.TimeType:
			return iceberg.Time(n), nil
		case iceberg.TimestampType, iceberg.TimestampTzType:
			return iceberg.Timestamp(n), nil
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return iceberg.TimestampNano(n), nil
		}
	}
	switch v := value.(type) {
	case bool, float64, string:
		return value, nil
	case float32:
		if _, ok := typ.(iceberg.Float64Type); ok {
			return float64(v), nil
		}
		return value, nil
	case iceberg.DecimalLiteral:
		return iceberg.Decimal(v), nil
	case iceberg.Decimal:
		return v, nil
	}
	if b, ok := bytesOf(value); ok {
		switch t := typ.(type) {
		case iceberg.UUIDType:
			return uuid.FromBytes(b)
		case iceberg.DecimalType: // a manifest that does not mark the type as decimal
			return decimalOf(b, t.Scale())
		}
		return b, nil
	}
	return nil, fmt.Errorf("a value of Go type %T does not fit the column type %s", value, typ)
}

func decimalOf(unscaled []byte, scale int) (iceberg.Decimal, error) {
	var d iceberg.DecimalLiteral
	err := d.UnmarshalBinary(unscaled)
	return iceberg.Decimal{Val: d.Val, Scale: scale}, err
}

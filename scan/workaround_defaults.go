// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
)

// Metadata files hold the defaults of dates, times and timestamps as text (Iceberg spec, "JSON single-value
// serialization"). iceberg-go takes them as numbers only, and fails in files that lack such a column. See docs/upstream.md.

// withTypedDefaults is the schema with such initial defaults as numbers.
func withTypedDefaults(schema *iceberg.Schema) (*iceberg.Schema, error) {
	fields, changed, err := typedFields(schema.Fields()) // a copy
	if err != nil || !changed {
		return schema, err
	}
	return iceberg.NewSchemaWithIdentifiers(schema.ID, schema.IdentifierFieldIDs, fields...), nil
}

// typedFields changes the fields in place, and copies what is nested in them before.
func typedFields(fields []iceberg.NestedField) (_ []iceberg.NestedField, changed bool, err error) {
	for i := range fields {
		f := &fields[i]
		if isInexact(*f) {
			f.InitialDefault, changed = inexactDefault{}, true
			continue
		}
		text, isText := f.InitialDefault.(string)
		if isText {
			value, err := typedDefault(text, f.Type)
			if err != nil {
				return nil, false, fmt.Errorf("initial default of column %s: %w", f.Name, err)
			}
			if value != nil {
				f.InitialDefault, changed = value, true
			}
			continue
		}
		inner, ok := f.Type.(iceberg.NestedType)
		if !ok {
			continue
		}
		nested, nestedChanged, err := typedFields(append([]iceberg.NestedField(nil), inner.Fields()...))
		if err != nil {
			return nil, false, err
		}
		if nestedChanged {
			f.Type, changed = withFields(inner, nested), true
		}
	}
	return fields, changed, nil
}

// inexactDefault stands for a default that iceberg-go has rounded. It fails over it, by the name of this type, where a
// file lacks the column.
type inexactDefault struct{}

// isInexact reports whether a default may have been rounded: iceberg-go reads whole numbers as float64.
func isInexact(f iceberg.NestedField) bool {
	value, isNumber := f.InitialDefault.(float64)
	_, long := f.Type.(iceberg.Int64Type)
	return long && isNumber && math.Abs(value) >= 1<<53
}

// refusedDefault is what an error of iceberg-go is about, where that is a default that it can't fill in.
func refusedDefault(text string) (what string, found bool) {
	switch {
	case strings.Contains(text, "scan.inexactDefault"):
		return "an initial default beyond 2^53", true
	case strings.Contains(text, "makescalar not implemented for type value"):
		return "an initial default of a struct, list or map other than NULL", true
	}
	return "", false
}

func withFields(t iceberg.NestedType, fields []iceberg.NestedField) iceberg.Type {
	switch t := t.(type) {
	case *iceberg.StructType:
		return &iceberg.StructType{FieldList: fields}
	case *iceberg.ListType:
		copied := *t
		copied.Element = fields[0].Type
		return &copied
	case *iceberg.MapType:
		copied := *t
		copied.KeyType, copied.ValueType = fields[0].Type, fields[1].Type
		return &copied
	}
	return t
}

const secondsOfDay = 24 * 60 * 60

// typedDefault is a default as iceberg-go takes it. nil: it takes the text.
func typedDefault(text string, typ iceberg.Type) (any, error) {
	layout := "2006-01-02T15:04:05.999999999"
	switch typ.(type) {
	case iceberg.DateType:
		layout = time.DateOnly
	case iceberg.TimeType:
		layout = "15:04:05.999999999"
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		layout = time.RFC3339Nano
	case iceberg.TimestampType, iceberg.TimestampNsType:
	default:
		return nil, nil
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		return nil, err
	}
	switch typ.(type) {
	case iceberg.DateType:
		return iceberg.Date(at.Unix() / secondsOfDay), nil // a whole day
	case iceberg.TimeType:
		return iceberg.Time(at.Sub(at.Truncate(secondsOfDay * time.Second)).Microseconds()), nil
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.Timestamp(at.UnixMicro()), nil
	}
	return iceberg.TimestampNano(at.UnixNano()), nil
}

// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Schema is an Iceberg schema as metadata files spell it, used to bring rows into one form.
type Schema struct {
	ID     int     `json:"schema-id"`
	Fields []Field `json:"fields"`
}

// Field is a column, or a field of a struct.
type Field struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Type     Type   `json:"type"`
}

// Type is an Iceberg type: Kind is the name of a primitive type, or struct, list or map.
type Type struct {
	Kind    string
	Fields  []Field // of a struct
	Element *Type   // of a list
	Key     *Type   // of a map
	Value   *Type
}

// UnmarshalJSON reads a type's name or its object.
func (t *Type) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &t.Kind)
	}
	var nested struct {
		Type    string  `json:"type"`
		Fields  []Field `json:"fields"`
		Element *Type   `json:"element"`
		Key     *Type   `json:"key"`
		Value   *Type   `json:"value"`
	}
	if err := json.Unmarshal(text, &nested); err != nil {
		return err
	}
	*t = Type{Kind: nested.Type, Fields: nested.Fields, Element: nested.Element, Key: nested.Key, Value: nested.Value}
	return nil
}

// Project is the schema with only the named top-level columns, in the schema's order.
func (s *Schema) Project(columns ...string) *Schema {
	return &Schema{ID: s.ID, Fields: slices.DeleteFunc(slices.Clone(s.Fields), func(f Field) bool {
		return !slices.Contains(columns, f.Name)
	})}
}

// Canon is the one text of a row: two rows have the same one exactly when every value is the same. It takes a message
// body (a map with string keys is an object) and a row of an expected file (any map is a list of key and value).
// A column that is missing or unknown is an error, as are two values for one key, and text after the row.
func (s *Schema) Canon(row []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(row))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("reading a row: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("text after the row %s", row)
	}
	var b strings.Builder
	if err := (&Type{Kind: "struct", Fields: s.Fields}).write(&b, v); err != nil {
		return "", fmt.Errorf("row %s: %w", row, err)
	}
	return b.String(), nil
}

// CanonAll is Canon of every row, sorted.
func CanonAll[R ~[]byte](s *Schema, rows []R) ([]string, error) {
	texts := make([]string, len(rows))
	for i, row := range rows {
		var err error
		if texts[i], err = s.Canon(row); err != nil {
			return nil, err
		}
	}
	slices.Sort(texts)
	return texts, nil
}

func (t *Type) write(b *strings.Builder, v any) error {
	switch {
	case v == nil:
		b.WriteString("null")
		return nil
	case t.Kind == "struct":
		return t.writeStruct(b, v)
	case t.Kind == "list":
		return t.writeList(b, v)
	case t.Kind == "map":
		return t.writeMap(b, v)
	}
	return t.writePrimitive(b, v)
}

func (t *Type) writeStruct(b *strings.Builder, v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no struct", v)
	}
	if len(object) != len(t.Fields) {
		names := slices.Sorted(maps.Keys(object))
		return fmt.Errorf("fields %v where %d are expected", names, len(t.Fields))
	}
	b.WriteByte('{')
	for i, f := range t.Fields {
		if i > 0 {
			b.WriteByte(',')
		}
		value, ok := object[f.Name]
		if !ok {
			return fmt.Errorf("field %q is missing", f.Name)
		}
		b.WriteString(strconv.Quote(f.Name) + ":")
		if err := f.Type.write(b, value); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	b.WriteByte('}')
	return nil
}

func (t *Type) writeList(b *strings.Builder, v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is no list", v)
	}
	b.WriteByte('[')
	for i, element := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := t.Element.write(b, element); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	b.WriteByte(']')
	return nil
}

func (t *Type) writeMap(b *strings.Builder, v any) error {
	pairs := map[string]string{}
	add := func(key, value any) error {
		var k, text strings.Builder
		if err := errors.Join(t.Key.write(&k, key), t.Value.write(&text, value)); err != nil {
			return err
		}
		if _, twice := pairs[k.String()]; twice {
			return fmt.Errorf("key %s is there twice", k.String())
		}
		pairs[k.String()] = text.String()
		return nil
	}
	switch entries := v.(type) {
	case map[string]any:
		if t.Key.Kind != "string" {
			return fmt.Errorf("an object for a map with %s keys", t.Key.Kind)
		}
		for key, value := range entries {
			if err := add(key, value); err != nil {
				return err
			}
		}
	case []any:
		for _, entry := range entries {
			pair, _ := entry.(map[string]any)
			key, okKey := pair["key"]
			value, okValue := pair["value"]
			if !okKey || !okValue || len(pair) != 2 {
				return fmt.Errorf("%v is no map entry", entry)
			}
			if err := add(key, value); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%v is no map", v)
	}
	b.WriteString("map(")
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		b.WriteString(key + "→" + pairs[key] + ";")
	}
	b.WriteByte(')')
	return nil
}

func (t *Type) writePrimitive(b *strings.Builder, v any) error {
	switch value := v.(type) {
	case bool:
		if t.Kind != "boolean" {
			return fmt.Errorf("%v is no %s", v, t.Kind)
		}
		b.WriteString(strconv.FormatBool(value))
	case json.Number:
		text, err := t.number(value.String())
		if err != nil {
			return err
		}
		b.WriteString(text)
	case string:
		if t.Kind == "boolean" || t.Kind == "int" || t.Kind == "long" {
			return fmt.Errorf("%q is no %s", value, t.Kind)
		}
		if (t.Kind == "float" || t.Kind == "double") && !slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, value) {
			return fmt.Errorf("%q is no %s", value, t.Kind)
		}
		b.WriteString(strconv.Quote(value))
	default:
		return fmt.Errorf("%v is no %s", v, t.Kind)
	}
	return nil
}

// number keeps integers as they are written and brings floating point numbers to their shortest text, -0 apart from 0.
func (t *Type) number(text string) (string, error) {
	switch t.Kind {
	case "int":
		n, err := strconv.ParseInt(text, 10, 32)
		return strconv.FormatInt(n, 10), err
	case "long":
		n, err := strconv.ParseInt(text, 10, 64)
		return strconv.FormatInt(n, 10), err
	case "float":
		f, err := strconv.ParseFloat(text, 64)
		if math.IsInf(f, 0) || math.Abs(f) > 3.4035e38 {
			return "", fmt.Errorf("number %s does not fit a float", text)
		}
		// The expected files clamp: they print the largest float as 3.403e+38, which rounds to it from above.
		f = max(-math.MaxFloat32, min(f, math.MaxFloat32))
		return strconv.FormatFloat(float64(float32(f)), 'g', -1, 32), err
	case "double":
		f, err := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(f, 'g', -1, 64), err
	}
	return "", fmt.Errorf("number %s for a %s", text, t.Kind)
}

// Diff compares two multisets of rows in canonical form: empty when they are equal, else what is missing and what is
// too many, at most ten of each.
func Diff(want, got []string) string {
	counts := map[string]int{}
	for _, row := range want {
		counts[row]++
	}
	for _, row := range got {
		counts[row]--
	}
	var missing, extra []string
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		switch n := counts[row]; {
		case n > 0:
			missing = append(missing, fmt.Sprintf("  missing %d× %s", n, row))
		case n < 0:
			extra = append(extra, fmt.Sprintf("  too many %d× %s", -n, row))
		}
	}
	if len(missing)+len(extra) == 0 {
		return ""
	}
	shown := slices.Concat(missing[:min(10, len(missing))], extra[:min(10, len(extra))])
	return fmt.Sprintf("%d rows wanted, %d got, %d distinct missing, %d distinct too many:\n%s",
		len(want), len(got), len(missing), len(extra), strings.Join(shown, "\n"))
}

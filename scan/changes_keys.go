// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
)

// KeyError says why rows can't be told apart by a key. Column is empty where it is not about one.
type KeyError struct {
	Column string
	Reason string
}

func (e *KeyError) Error() string {
	if e.Column == "" {
		return e.Reason
	}
	return fmt.Sprintf("identifier field %q %s", e.Column, e.Reason)
}

// findKeys decides which columns make a row's key.
func (c *ChangePlan) findKeys() error {
	var ids []int
	if c.opts.IdentifierFields == nil {
		for _, id := range c.schema.IdentifierFieldIDs {
			if _, ok := c.Schema.FindFieldByID(id); !ok {
				return nil // it is not read: rows have no key
			}
			ids = append(ids, id)
		}
	}
	for _, name := range c.opts.IdentifierFields {
		f, ok := c.Schema.FindFieldByName(name)
		if _, known := c.schema.FindFieldByName(name); !ok && known {
			return &KeyError{name, "is not among the columns that are read"}
		} else if (ok && isLineage(f.ID)) || (!ok && isLineageName(name)) {
			return &KeyError{name, "is row lineage, by which rows are not compared"}
		} else if !ok {
			return &UnknownColumnError{Column: name, Schema: c.Schema.ID, Close: closeNames(name, columnNames(c.Schema))}
		}
		ids = append(ids, f.ID)
	}
	paths := keyPaths(nil, nil, c.Schema.Fields())
	for _, path := range paths {
		if id := path[len(path)-1]; slices.Contains(ids, id) {
			name, _ := c.Schema.FindColumnName(id)
			c.keys = append(c.keys, path)
			c.Keys = append(c.Keys, name)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(c.keys, func(path keyPath) bool { return path[len(path)-1] == id }) {
			name, _ := c.Schema.FindColumnName(id)
			return &KeyError{name, "is no value of a primitive type outside of lists and maps"}
		}
	}
	return nil
}

// keyPaths are the paths to everything that can be a key column, in the schema's order (Iceberg spec, "Identifier Field
// IDs": primitive, possibly nested in structs).
func keyPaths(paths []keyPath, parents keyPath, fields []iceberg.NestedField) []keyPath {
	for _, f := range fields {
		path := append(slices.Clone(parents), f.ID)
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			paths = keyPaths(paths, path, t.FieldList)
		case iceberg.PrimitiveType:
			if !isLineage(f.ID) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// keySchema is the body of a delete that holds the key only.
func (c *ChangePlan) keySchema() (*iceberg.Schema, error) {
	return project(c.source.Meta, c.Schema, c.Keys)
}

// promotes reports whether rows of the schema before can be read with the schema after: every field id that both have is
// the same or was promoted (Iceberg spec, "Schema Evolution").
func promotes(before, after *iceberg.Schema) bool {
	for _, id := range columnIDs(after) {
		is, ok := after.FindFieldByID(id)
		was, known := before.FindFieldByID(id)
		if ok && known && !promotesType(was.Type, is.Type) {
			return false
		}
	}
	return true
}

func promotesType(was, is iceberg.Type) bool {
	switch was := was.(type) {
	case *iceberg.StructType, *iceberg.ListType, *iceberg.MapType:
		return fmt.Sprintf("%T", was) == fmt.Sprintf("%T", is) // their fields are compared by their own ids
	case iceberg.UnknownType:
		return true
	case iceberg.Int32Type:
		if _, ok := is.(iceberg.Int64Type); ok {
			return true
		}
	case iceberg.Float32Type:
		if _, ok := is.(iceberg.Float64Type); ok {
			return true
		}
	case iceberg.DecimalType:
		if is, ok := is.(iceberg.DecimalType); ok {
			return is.Scale() == was.Scale() && is.Precision() >= was.Precision()
		}
	case iceberg.DateType:
		switch is.(type) {
		case iceberg.TimestampType, iceberg.TimestampNsType:
			return true
		}
	}
	return was.Equals(is)
}

// digest identifies the messages and their order.
func (c *ChangePlan) digest() string {
	d := digester{sha256.New()}
	d.text("rpk-nessie changes 1")
	d.text(c.Plan.Digest)
	d.text(string(c.opts.Mode))
	d.text(string(c.opts.DeletePayload))
	for _, key := range c.keys {
		d.number(int64(key[len(key)-1]))
	}
	d.text("before")
	if c.foreign {
		d.number(int64(c.before.schema.ID))
		for _, id := range columnIDs(c.before.Schema) {
			d.number(int64(id))
		}
	}
	for _, t := range c.Removed {
		d.text("removed")
		d.file(t.File)
		d.deletes(t.Deletes)
	}
	for _, change := range c.Changed {
		d.text("changed")
		d.file(change.File)
		d.deletes(change.Before)
		d.text("to")
		d.deletes(change.After)
	}
	return hex.EncodeToString(d.Sum(nil))
}

func (d digester) deletes(deletes Deletes) {
	for f := range deletes.all() {
		d.text("delete")
		d.file(f)
	}
}

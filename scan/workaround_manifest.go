// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
)

// Some manifests are refused by iceberg-go and read by the Java library. They are read again with another header. See
// docs/upstream.md.

// mend changes the content of a manifest.
type mend func(content []byte) ([]byte, error)

// mends are how many things can be wrong with one.
const mends = 2

// mendFor is what a manifest needs that was refused. nil: nothing helps, or nothing is needed.
func mendFor(m iceberg.ManifestFile, err error) mend {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "'content' metadata is missing"):
		// ClickHouse does not say whether a manifest holds data files or delete files, as its list does.
		return func(content []byte) ([]byte, error) {
			return withHeaderKey(content, "content", m.ManifestContent().String())
		}
	case strings.Contains(err.Error(), "invalid name"):
		return withPlainNames
	}
	return nil
}

// mended lends a manifest with its content changed.
type mended struct {
	iceio.IO
	path string
	mend mend
}

func (m mended) Open(name string) (iceio.File, error) {
	file, err := m.IO.Open(name)
	if err != nil || name != m.path {
		return file, err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if content, err = m.mend(content); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &heldFile{File: file, Reader: bytes.NewReader(content)}, nil
}

const (
	avroMagic = "Obj\x01"
	schemaKey = "avro.schema"
)

var errNoAvro = errors.New("its header is not an Avro file's")

// withHeaderKey adds an entry to the header of an Avro object container file: its metadata is a map in blocks, each a count
// and so many keys and values (Avro specification, "Object Container Files"), so that one more block in front adds to it.
func withHeaderKey(file []byte, key, value string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(file, []byte(avroMagic))
	if !ok {
		return nil, errNoAvro
	}
	return append(appendEntry([]byte(avroMagic), key, value), rest...), nil
}

// appendEntry appends a block of one entry.
func appendEntry(out []byte, key, value string) []byte {
	out = binary.AppendVarint(out, 1)
	for _, text := range []string{key, value} {
		out = append(binary.AppendVarint(out, int64(len(text))), text...)
	}
	return out
}

// withPlainNames changes names in the schema of a manifest that only Java takes for Avro's: a partition field bears its
// column's name, of which the Java library lets letters of all scripts stand. Fields are told by their ids.
func withPlainNames(file []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(file, []byte(avroMagic))
	if !ok {
		return nil, errNoAvro
	}
	out := []byte(avroMagic)
	for {
		count, err := number(&rest)
		if err != nil {
			return nil, err
		}
		if count == 0 {
			return append(append(out, 0), rest...), nil
		}
		if count < 0 { // then comes the block's size in bytes
			count = -count
			if _, err = number(&rest); err != nil {
				return nil, err
			}
		}
		for range count {
			key, err := text(&rest)
			if err != nil {
				return nil, err
			}
			value, err := text(&rest)
			if err != nil {
				return nil, err
			}
			if key == schemaKey {
				if value, err = plainSchema(value); err != nil {
					return nil, err
				}
			}
			out = appendEntry(out, key, value)
		}
	}
}

func number(rest *[]byte) (int64, error) {
	n, size := binary.Varint(*rest)
	if size <= 0 {
		return 0, errNoAvro
	}
	*rest = (*rest)[size:]
	return n, nil
}

func text(rest *[]byte) (string, error) {
	n, err := number(rest)
	if err != nil {
		return "", err
	}
	if n < 0 || n > int64(len(*rest)) {
		return "", errNoAvro
	}
	text := string((*rest)[:n])
	*rest = (*rest)[n:]
	return text, nil
}

func plainSchema(schema string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(schema))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return "", fmt.Errorf("its schema: %w", err)
	}
	rename(root)
	plain, err := json.Marshal(root)
	return string(plain), err
}

// plainName is Avro's rule.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func rename(node any) {
	switch node := node.(type) {
	case []any:
		for _, inner := range node {
			rename(inner)
		}
	case map[string]any:
		name, _ := node["name"].(string)
		if id, ok := node["field-id"]; ok && !plainName.MatchString(name) {
			node["name"] = fmt.Sprintf("name_of_field_%v", id)
		}
		for _, inner := range node {
			rename(inner)
		}
	}
}

// heldFile is a file whose content is in memory.
type heldFile struct {
	iceio.File
	*bytes.Reader
}

func (f *heldFile) Read(p []byte) (int, error)                { return f.Reader.Read(p) }
func (f *heldFile) ReadAt(p []byte, off int64) (int, error)   { return f.Reader.ReadAt(p, off) }
func (f *heldFile) Seek(off int64, whence int) (int64, error) { return f.Reader.Seek(off, whence) }

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
)

// ClickHouse writes manifests whose header does not say whether they hold data files or delete files. iceberg-go refuses
// them, although the manifest list says it too; the Java library takes the list's word. Such a manifest is read again with
// the key that is missing. See docs/upstream.md.

func lacksContent(err error) bool {
	return err != nil && strings.Contains(err.Error(), "'content' metadata is missing")
}

// withContent lends a manifest with the content that its list gives it.
type withContent struct {
	iceio.IO
	manifest iceberg.ManifestFile
}

func (c withContent) Open(name string) (iceio.File, error) {
	file, err := c.IO.Open(name)
	if err != nil || name != c.manifest.FilePath() {
		return file, err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if content, err = withHeaderKey(content, "content", c.manifest.ManifestContent().String()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &heldFile{File: file, Reader: bytes.NewReader(content)}, nil
}

// withHeaderKey adds an entry to the header of an Avro object container file: its metadata is a map in blocks, each a count
// and so many keys and values (Avro specification, "Object Container Files"), so that one more block in front adds to it.
func withHeaderKey(file []byte, key, value string) ([]byte, error) {
	const magic = "Obj\x01"
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok {
		return nil, errors.New("it does not begin like an Avro file")
	}
	out := binary.AppendVarint([]byte(magic), 1)
	for _, text := range []string{key, value} {
		out = append(binary.AppendVarint(out, int64(len(text))), text...)
	}
	return append(out, rest...), nil
}

// heldFile is a file whose content is in memory.
type heldFile struct {
	iceio.File
	*bytes.Reader
}

func (f *heldFile) Read(p []byte) (int, error)                { return f.Reader.Read(p) }
func (f *heldFile) ReadAt(p []byte, off int64) (int, error)   { return f.Reader.ReadAt(p, off) }
func (f *heldFile) Seek(off int64, whence int) (int64, error) { return f.Reader.Seek(off, whence) }

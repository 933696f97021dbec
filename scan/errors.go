// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"io/fs"
	"strings"
)

// FileKind says what a file is in errors.
type FileKind string

// The kinds of files that planning and reading open.
const (
	ManifestListKind FileKind = "manifest list"
	ManifestKind     FileKind = "manifest"
	DataFileKind     FileKind = "data file"
	DeleteFileKind   FileKind = "delete file"
)

// MissingFileError is a file that a snapshot needs and that storage no longer has: errors.Is(err, fs.ErrNotExist).
type MissingFileError struct {
	Snapshot int64 // the snapshot that was planned or read
	Path     string
	Kind     FileKind
}

func (e *MissingFileError) Error() string {
	return fmt.Sprintf("snapshot %d: its %s %s no longer exists", e.Snapshot, e.Kind, e.Path)
}

func (e *MissingFileError) Unwrap() error { return fs.ErrNotExist }

// CorruptFileError is a file that was read without an I/O error and could not be decoded, or that contradicts what the
// metadata says about it. Err is the decoder's own error.
type CorruptFileError struct {
	Kind FileKind
	Path string
	Err  error
}

func (e *CorruptFileError) Error() string {
	return fmt.Sprintf("%s %s can't be decoded: %v", e.Kind, e.Path, e.Err)
}

func (e *CorruptFileError) Unwrap() error { return e.Err }

// UnsupportedError is something that this reader refuses by name instead of reading it wrongly. Path is the file, or
// empty where it is the whole table.
type UnsupportedError struct {
	What string // "Avro data file", "encrypted table", …
	Path string
}

func (e *UnsupportedError) Error() string {
	if e.Path == "" {
		return e.What + " is not supported"
	}
	return fmt.Sprintf("%s is not supported: %s", e.What, e.Path)
}

// UnknownColumnError is a column that the schema does not have. Close are the names that it may have meant.
type UnknownColumnError struct {
	Column string
	Schema int
	Close  []string
}

func (e *UnknownColumnError) Error() string {
	msg := fmt.Sprintf("schema %d has no column %q", e.Schema, e.Column)
	if len(e.Close) > 0 {
		msg += "; it has " + strings.Join(e.Close, ", ")
	}
	return msg
}

// CatchUpError says why the files of a catch-up step can't be proved to be all that was added.
type CatchUpError struct {
	Snapshot int64 // the after-state
	Reason   string
}

func (e *CatchUpError) Error() string {
	return fmt.Sprintf("catching up to snapshot %d by data sequence numbers is not proved: %s", e.Snapshot, e.Reason)
}

// SchemaError is a schema id that no metadata file at hand knows.
type SchemaError struct {
	Snapshot int64
	SchemaID int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("snapshot %d has schema %d, which its metadata file does not hold", e.Snapshot, e.SchemaID)
}

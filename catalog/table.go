// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxMetadataBytes bounds a metadata file, compressed or not. One with 10,000 snapshots has about 8 MB.
const maxMetadataBytes = 512 << 20

// Table is one metadata file of a table. It is read-only and safe for concurrent use.
type Table struct {
	// Location is where the file lies.
	Location string
	// ContentID is Nessie's id for the table, as LoadTable was told.
	ContentID string
	// Meta is the file's content.
	Meta table.Metadata
}

// CorruptError says that a file is there but does not hold what it should: cut short, or something else altogether.
// Reading it again will not help.
type CorruptError struct {
	Kind     string // "metadata file", "manifest list"
	Location string
	Err      error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s %s is corrupt: %v", e.Kind, e.Location, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// UnsupportedTableError says that a table needs something that this build does not have.
type UnsupportedTableError struct {
	What     string // "encryption", "format version 4"
	Location string // of the metadata file
}

func (e *UnsupportedTableError) Error() string {
	return fmt.Sprintf("metadata file %s: tables with %s can't be read", e.Location, e.What)
}

// LoadTable reads the metadata file at location, plain, gzip or zstd: the first bytes decide, since not every writer
// names its files after what they hold.
//
// A missing file satisfies errors.Is(err, fs.ErrNotExist). A file that can't be parsed is a *CorruptError, an encrypted
// table or an unknown format version an *UnsupportedTableError; other errors come from the store.
func LoadTable(ctx context.Context, fsys iceio.IO, location, contentID string) (*Table, error) {
	t, err := loadTable(ctx, fsys, location, contentID, maxMetadataBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingMetadataError{Location: location, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata file %s: %w", location, err)
	}
	return t, nil
}

// loadTable is LoadTable with a bound on the file's size, stored and decompressed; beyond it errTooLarge.
func loadTable(ctx context.Context, fsys iceio.IO, location, contentID string, limit int64) (*Table, error) {
	stored, err := readBounded(ctx, fsys, location, limit)
	if err != nil {
		return nil, err
	}
	plain, err := decompress(stored, limit)
	if errors.Is(err, errTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, &CorruptError{Kind: "metadata file", Location: location, Err: err}
	}
	meta, err := table.ParseMetadataBytes(plain)
	if err != nil {
		return nil, explainMetadata(location, plain, err)
	}
	if encrypted(meta) {
		return nil, &UnsupportedTableError{What: "encryption", Location: location}
	}
	return &Table{Location: location, ContentID: contentID, Meta: meta}, nil
}

var errTooLarge = errors.New("file is too large")

// readBounded reads a whole file of at most limit bytes.
func readBounded(ctx context.Context, fsys iceio.IO, location string, limit int64) (_ []byte, err error) {
	f, err := Within(ctx, fsys).Open(location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var buf bytes.Buffer
	if info, err := f.Stat(); err == nil {
		if info.Size() > limit {
			return nil, fmt.Errorf("%w: %d bytes, at most %d are read", errTooLarge, info.Size(), limit)
		}
		// One byte more than the file: ReadFrom finds the end without growing the buffer.
		buf.Grow(int(info.Size()) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return buf.Bytes(), nil
}

// decompress answers stored itself unless it starts like gzip (RFC 1952) or zstd (RFC 8878).
func decompress(stored []byte, limit int64) ([]byte, error) {
	var r io.Reader
	switch {
	case bytes.HasPrefix(stored, []byte{0x1f, 0x8b}):
		gz, err := gzip.NewReader(bytes.NewReader(stored))
		if err != nil {
			return nil, err
		}
		r = gz
	case bytes.HasPrefix(stored, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		zs, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer zs.Close()
		r = zs
	default:
		return stored, nil
	}
	plain, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(plain)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes when decompressed", errTooLarge, limit)
	}
	return plain, nil
}

// explainMetadata tells a table that is too new for this build from a file that is broken.
func explainMetadata(location string, plain []byte, err error) error {
	var head struct {
		FormatVersion *int `json:"format-version"`
	}
	if json.Unmarshal(plain, &head) == nil && head.FormatVersion != nil && (*head.FormatVersion < 1 || *head.FormatVersion > 3) {
		return &UnsupportedTableError{What: "format version " + strconv.Itoa(*head.FormatVersion), Location: location}
	}
	return &CorruptError{Kind: "metadata file", Location: location, Err: err}
}

// encrypted says whether the table's files are encrypted (Iceberg spec, "Table encryption"): the key is named by a table
// property, and its wrapped form is listed in the metadata.
func encrypted(meta table.Metadata) bool {
	for range meta.EncryptionKeys() {
		return true
	}
	return meta.Properties()["encryption.key-id"] != ""
}

// State answers the state of the snapshot with this id, NoSnapshot included; false if the file does not list it.
func (t *Table) State(id int64) (State, bool) {
	s := State{
		TableUUID:        t.Meta.TableUUID().String(),
		ContentID:        t.ContentID,
		SnapshotID:       id,
		SchemaID:         t.Meta.CurrentSchema().ID,
		Records:          -1,
		MetadataLocation: t.Location,
		FormatVersion:    t.Meta.Version(),
	}
	if id == NoSnapshot {
		s.Records = 0
		s.TimestampMs = t.Meta.LastUpdatedMillis()
		return s, true
	}
	snap := t.Meta.SnapshotByID(id)
	if snap == nil {
		return State{}, false
	}
	fillSnapshot(&s, snap)
	return s, true
}

// fillSnapshot puts into s what a snapshot's entry in the metadata says.
func fillSnapshot(s *State, snap *table.Snapshot) {
	s.SnapshotID = snap.SnapshotID
	s.Sequence = snap.SequenceNumber
	s.TimestampMs = snap.TimestampMs
	s.ManifestList = snap.ManifestList
	s.Manifests = snap.ManifestLocations
	// Some writers say "no parent" with -1.
	if snap.ParentSnapshotID != nil && *snap.ParentSnapshotID != NoSnapshot {
		parent := *snap.ParentSnapshotID
		s.ParentID = &parent
	}
	if snap.SchemaID != nil {
		s.SchemaID = *snap.SchemaID
	}
	if snap.Summary == nil {
		return
	}
	s.Operation = string(snap.Summary.Operation)
	if n, err := strconv.ParseInt(snap.Summary.Properties["total-records"], 10, 64); err == nil && n >= 0 {
		s.Records = n
	}
}

// Current is the state that the file itself calls current. At a commit of Nessie the content's snapshot id decides
// instead: use State(content.SnapshotID).
func (t *Table) Current() State {
	id := NoSnapshot
	if snap := t.Meta.CurrentSnapshot(); snap != nil {
		id = snap.SnapshotID
	}
	s, _ := t.State(id)
	return s
}

// Schema answers the schema with this id, nil if the file does not list it.
func (t *Table) Schema(id int) *iceberg.Schema {
	for _, schema := range t.Meta.Schemas() {
		if schema.ID == id {
			return schema
		}
	}
	return nil
}

// states answers the state of every snapshot that the file lists, in its order.
func (t *Table) states() []State {
	base, _ := t.State(NoSnapshot)
	base.Records, base.TimestampMs = -1, 0
	snapshots := t.Meta.Snapshots()
	states := make([]State, len(snapshots))
	for i := range snapshots {
		states[i] = base
		fillSnapshot(&states[i], &snapshots[i])
	}
	return states
}

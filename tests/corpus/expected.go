// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Expected is what is known of one table on one reference. It is read-only.
type Expected struct {
	Name    string     `json:"-"` // of the file: the table, and the reference where a table is there twice
	Table   string     `json:"table"`
	Keys    [][]string `json:"keys"` // Nessie keys, oldest first: two for a renamed table
	Ref     string     `json:"ref"`
	RefHash string     `json:"refHash"`

	// Schemas holds the Iceberg schemas by table uuid and schema id.
	Schemas map[string]map[string]*Schema `json:"schemas"`

	// HeadChain holds snapshot ids from the root to the head, along the parents. It stops where a parent is in no
	// metadata file.
	HeadChain []int64    `json:"headChain"`
	Commits   []Commit   `json:"commits"`   // oldest first
	Snapshots []Snapshot `json:"snapshots"` // in the order in which they appeared
}

// Commit is one operation of a Nessie commit on the table's key. Row lists are nil where they are not known.
type Commit struct {
	Hash             string    `json:"hash"`
	ParentHashes     []string  `json:"parentHashes"` // two for a merge
	Time             time.Time `json:"commitTime"`
	Message          string    `json:"message"`
	Op               string    `json:"op"` // PUT or DELETE
	Key              []string  `json:"key"`
	ContentID        string    `json:"contentId"`
	MetadataLocation string    `json:"metadataLocation"`
	SnapshotID       int64     `json:"snapshotId"` // -1: none
	SchemaID         int       `json:"schemaId"`

	TableUUID             string `json:"tableUuid"`
	FormatVersion         int    `json:"formatVersion"`
	LastSequenceNumber    int64  `json:"lastSequenceNumber"`
	CurrentSchemaID       int    `json:"currentSchemaId"`
	MetadataSnapshotIDs   IDs    `json:"metadataSnapshotIds"`
	MetadataLogLength     int    `json:"metadataLogLength"`
	NewTable              bool   `json:"newTable"` // another content id or uuid than before
	SameSnapshot          bool   `json:"sameSnapshotAsPrevious"`
	ManifestListIsMissing bool   `json:"manifestListMissingNow"`

	RowCount int64             `json:"rowCount"`
	Rows     []json.RawMessage `json:"rows"`     // all that the table holds, under its current schema
	Inserted []json.RawMessage `json:"inserted"` // against the commit before, under this commit's schema
	Deleted  []json.RawMessage `json:"deleted"`
}

// Snapshot is one snapshot that any of the table's metadata files lists. Row lists are nil where they are not known.
type Snapshot struct {
	ID                int64             `json:"snapshotId"`
	Sequence          int64             `json:"sequenceNumber"`
	ParentInMetadata  *int64            `json:"parentInMetadata"`
	ParentInHeader    *int64            `json:"parentInManifestListHeader"`
	Header            map[string]string `json:"manifestListHeader"`
	Operation         string            `json:"operation"`
	Summary           map[string]string `json:"summary"`
	SchemaID          int               `json:"schemaIdInMetadata"`
	TimestampMs       int64             `json:"timestampMs"`
	FirstCommit       string            `json:"firstCommit"`
	CurrentOfItsFirst bool              `json:"isCurrentOfItsCommit"` // false: several came in one commit, or it was staged
	TableUUID         string            `json:"tableUuid"`
	Manifests         int               `json:"manifests"`
	Files             []File            `json:"files"`
	FilesMissing      []string          `json:"filesMissingNow"`
	Note              string            `json:"note"`

	RowCount int64             `json:"rowCount"`
	Inserted []json.RawMessage `json:"inserted"` // against the parent, under the snapshot's schema; no parent: every row
	Deleted  []json.RawMessage `json:"deleted"`
}

// File is a manifest entry that a snapshot added or deleted.
type File struct {
	Status   string `json:"status"`  // ADDED, DELETED
	Content  string `json:"content"` // data, position deletes, equality deletes
	Path     string `json:"path"`
	Records  int64  `json:"records"`
	Sequence *int64 `json:"sequenceNumber"` // nil: inherited
	Format   string `json:"format"`
}

// IDs is a list of snapshot ids; nil where the corpus gives only their number.
type IDs []int64

// UnmarshalJSON takes the list, or the number of its elements.
func (ids *IDs) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '[' {
		*ids = nil
		return nil
	}
	return json.Unmarshal(text, (*[]int64)(ids))
}

// Names lists the names of all expected files, sorted.
func Names() ([]string, error) {
	root, err := Dir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "expected", "*.json"))
	if err == nil && len(files) == 0 {
		err = errors.New("the corpus holds no expected results")
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	slices.Sort(files)
	return files, err
}

// Load reads one expected file by name.
func Load(name string) (*Expected, error) {
	root, err := Dir()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "expected", name+".json"))
	if err != nil {
		return nil, fmt.Errorf("reading what is expected of %s: %w", name, err)
	}
	e := &Expected{Name: name}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("reading what is expected of %s: %w", name, err)
	}
	return e, nil
}

// LoadAll reads every expected file, in the order of Names.
func LoadAll() ([]*Expected, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	all := make([]*Expected, len(names))
	for i, name := range names {
		if all[i], err = Load(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Key is the table's key at the reference, the new one of a renamed table.
func (e *Expected) Key() []string { return e.Keys[len(e.Keys)-1] }

// Head is the table's last commit.
func (e *Expected) Head() Commit { return e.Commits[len(e.Commits)-1] }

// Snapshot finds a snapshot by id.
func (e *Expected) Snapshot(id int64) (Snapshot, bool) {
	for _, s := range e.Snapshots {
		if s.ID == id {
			return s, true
		}
	}
	return Snapshot{}, false
}

// SchemaOf is the schema with an id in a table uuid, nil when there is none.
func (e *Expected) SchemaOf(uuid string, id int) *Schema {
	return e.Schemas[uuid][fmt.Sprint(id)]
}

// SnapshotSchema is the schema that the rows of a snapshot's Inserted and Deleted are in.
func (e *Expected) SnapshotSchema(s Snapshot) *Schema { return e.SchemaOf(s.TableUUID, s.SchemaID) }

// CommitSchema is the schema that a commit's rows are in.
func (e *Expected) CommitSchema(c Commit) *Schema { return e.SchemaOf(c.TableUUID, c.CurrentSchemaID) }

// AddsOnly says that every snapshot from the root to the head adds rows or changes none, and that all of them are in
// some metadata file: what a reader in append mode can deliver without losing or refusing anything.
func (e *Expected) AddsOnly() bool {
	root := true
	for i, id := range e.HeadChain {
		s, ok := e.Snapshot(id)
		if !ok || s.Inserted == nil || len(s.Deleted) > 0 {
			return false
		}
		if s.Operation != "append" && s.Operation != "replace" && len(s.Inserted) > 0 {
			return false
		}
		if i == 0 {
			root = s.ParentInMetadata == nil && s.ParentInHeader == nil
		}
	}
	return root
}

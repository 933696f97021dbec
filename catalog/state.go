// SPDX-License-Identifier: Apache-2.0

package catalog

// State is what a table holds at one moment: one snapshot, or none. It is a small plain value that its owner may copy
// and keep; Manifests is shared between copies and never written to.
//
// Fields that the source of a state does not know have a value that says so: see each field.
type State struct {
	// TableUUID is the table-uuid of the metadata file; two states with different ones are of two tables.
	TableUUID string
	// ContentID is Nessie's content id; it stays when a table is renamed.
	ContentID string
	// SnapshotID is NoSnapshot when the table holds nothing yet, or nothing any more.
	SnapshotID int64
	// ParentID is the parent as the metadata names it; nil: it names none, which for files written by Nessie's REST
	// catalog says nothing about whether there is one.
	ParentID *int64
	// Sequence is the snapshot's sequence number; 0 in format version 1.
	Sequence int64
	// TimestampMs is the snapshot's commit time in milliseconds since 1970; 0 where unknown.
	TimestampMs int64
	// ManifestList is the location of the manifest list; "" for NoSnapshot and where Manifests is set.
	ManifestList string
	// Manifests are the manifest locations that a format version 1 snapshot embeds instead of a manifest list.
	Manifests []string
	// SchemaID is the snapshot's schema, or the table's current one where the snapshot names none.
	SchemaID int
	// Operation is append, overwrite, delete or replace as the summary says; "" where unknown (hidden snapshot).
	Operation string
	// Records is total-records of the summary; -1 where unknown.
	Records int64
	// MetadataLocation is the metadata file that names the snapshot: its own or a descendant's. For a hidden snapshot it
	// is that of the nearest known descendant, whose schemas and specs apply.
	MetadataLocation string
	// FormatVersion is the table's format version in that metadata file, 1 to 3.
	FormatVersion int
}

// Empty reports whether the state is "no snapshot".
func (s State) Empty() bool { return s.SnapshotID == NoSnapshot }

// Link is the answer to "what is the parent of this state?". Exactly one of three holds: Root (there is none, and that
// is proved), Unknown (nothing that could say it can be read), or ParentID is the parent's snapshot id.
type Link struct {
	ParentID int64
	Root     bool
	Unknown  bool
	// Followed is true where nothing names the parent: ParentID is what the branch held before the commit that brought the
	// state. What lies between the two is their difference, and not what the state's own manifests say that it added.
	Followed bool
	// By is "metadata", "header" (the manifest list's Avro header) or "log" (Followed, or the table's first snapshot); ""
	// when Unknown.
	By string
	// Why says what could not be read when Unknown.
	Why string
}

// Found is the answer to "which state has this snapshot id?".
type Found struct {
	State State
	OK    bool
	// By is where the state was found: "metadata" (a metadata file already read), "log" (the branch's commit log) or
	// "listing" (the manifest list beside the child's).
	By string
	// Why says where was looked and what stood in the way when not OK.
	Why string
}

// TableCommit is one commit of the branch's log that touches the table: the operation on its key.
type TableCommit struct {
	Hash string
	// TimeMs is the commit time in milliseconds since 1970.
	TimeMs int64
	Op     OperationType
	// Content is the table as of that commit; the zero value for a Delete.
	Content Content
	// Key is the table's key at that commit, another one before a rename.
	Key Key
	// Parents[0] is the parent on the branch, the rest are merge parents.
	Parents []string
}

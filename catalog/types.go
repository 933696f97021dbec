// SPDX-License-Identifier: Apache-2.0

// Package catalog knows where an Iceberg table is and where it was: the Nessie API v2 client, the commit log, and the
// states that a table went through.
package catalog

import "time"

// NoSnapshot is the snapshot id of a table that holds no snapshot. That is a state of a table like any other.
const NoSnapshot int64 = -1

// Content types of Nessie. Of these only an Iceberg table can be read.
const (
	ContentTypeIceberg   = "ICEBERG_TABLE"
	ContentTypeNamespace = "NAMESPACE"
)

// Key names a content: the levels of its namespace, then its own name. A Key is not changed once it was made, so that
// it can be shared between goroutines.
type Key []string

// Ref says where to read: a branch or tag ("main"), a branch or tag at a commit ("main@<hash>"), or a commit alone
// ("@<hash>"). Hash is empty or has all 64 hex digits. The zero Ref is the server's default branch.
type Ref struct{ Name, Hash string }

// ReferenceType is what kind of thing a name points from.
type ReferenceType = string

// The reference types of Nessie. Detached is a commit that is read without a name.
const (
	Branch   ReferenceType = "BRANCH"
	Tag      ReferenceType = "TAG"
	Detached ReferenceType = "DETACHED"
)

// Reference is a branch, a tag or a detached commit as the server answered it: Hash is the commit it was at then.
type Reference struct {
	Type ReferenceType
	Name string
	Hash string
}

// Content is what a key points to. For an Iceberg table MetadataLocation is the metadata file, verbatim as the writer
// committed it (it can hold raw '%', spaces and '\'), and ID stays the same through commits and renames. SnapshotID is
// NoSnapshot for an empty table. For other content types only Type and ID are set.
type Content struct {
	Type             string
	ID               string
	MetadataLocation string
	SnapshotID       int64
	SchemaID         int
	SpecID           int
	SortOrderID      int
}

// Head is what a table was at one moment of a reference: Reference.Hash is the commit that was read.
type Head struct {
	Reference Reference
	Content   Content
}

// OperationType says what an operation does to its key.
type OperationType string

// Put adds or replaces a content, Delete removes it.
const (
	Put    OperationType = "PUT"
	Delete OperationType = "DELETE"
)

// Operation is one change inside a commit. Content is the zero Content for a Delete. For a Put that is sent to the
// server an empty Content.ID makes a new content, and a given one changes the content that has it.
type Operation struct {
	Type    OperationType
	Key     Key
	Content Content
}

// Commit is one entry of the commit log. Time is the server's commit time in UTC. Parents[0] is the parent on the
// first-parent log and the rest are merge parents; the first commit's parent is the server's NoAncestorHash, which has
// an empty log. Operations hold all that the commit changed.
type Commit struct {
	Hash       string
	Time       time.Time
	Message    string
	Parents    []string
	Operations []Operation
}

// Entry is one content that exists at a reference. Content is filled only when it was asked for.
type Entry struct {
	Key     Key
	Type    string
	Content Content
}

// ServerConfig is what the server says of itself. SpecVersion is empty for servers that name none. NoAncestorHash is
// where a branch is that never got a commit.
type ServerConfig struct {
	DefaultBranch  string
	MinAPIVersion  int
	MaxAPIVersion  int
	SpecVersion    string
	NoAncestorHash string
}

// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"sync/atomic"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Entry is one entry of a manifest, for people to look at.
type Entry struct {
	File
	// Status says whether the snapshot that wrote the manifest added, kept or deleted the file.
	Status iceberg.ManifestEntryStatus
}

// Live reports whether the state holds the file.
func (e Entry) Live() bool { return e.Status != iceberg.EntryStatusDELETED }

// Manifests lists a state's manifests in the order of its manifest list; "no snapshot" has none. Errors:
// *MissingFileError, *CorruptFileError, *UnsupportedError, or storage's own wrapped with the file's name.
func Manifests(ctx context.Context, fs iceio.IO, state catalog.State) ([]iceberg.ManifestFile, error) {
	return inspected(fs, state).manifests(ctx)
}

// Entries reads all entries of some of a state's manifests, deleted ones too, in the order of the manifests. Errors are
// those of Manifests.
func Entries(ctx context.Context, fs iceio.IO, state catalog.State, manifests ...iceberg.ManifestFile) ([]Entry, error) {
	read, err := inspected(fs, state).entries(ctx, manifests, func(entry) bool { return true })
	entries := make([]Entry, len(read))
	for i, e := range read {
		entries[i] = Entry{File: e.File, Status: e.status}
	}
	return entries, err
}

func inspected(fs iceio.IO, state catalog.State) side {
	return side{fs: fs, state: state, opened: new(atomic.Int64)}
}

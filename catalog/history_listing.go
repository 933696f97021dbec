// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
)

// A hidden snapshot is one that no metadata file lists: a commit through the REST catalog can add several snapshots, and
// only the last one is kept. Its manifest list is where writers put them all: metadata/snap-<id>-<attempt>-<uuid>.avro.

// prefixLister is implemented by a file IO that lists by prefix, as object stores do.
type prefixLister interface {
	ListPrefix(prefix string) ([]string, error)
}

// candidate is a manifest list whose header has the wanted snapshot id.
type candidate struct {
	location  string
	header    ListHeader
	manifests []iceberg.ManifestFile
}

// findByListing looks for the manifest list of snapshot id beside child's. Other lists lie there too, of failed commits
// and of attempts that were repeated: only the id that child's header names enters, and only if one list can be what
// child was built on.
func (h *History) findByListing(ctx context.Context, id int64, child State) (Found, error) {
	cut := strings.LastIndexByte(child.ManifestList, '/')
	if cut < 0 {
		return Found{Why: "its child has no manifest list beside which it could be looked for"}, nil
	}
	prefix := fmt.Sprintf("%s/snap-%d-", child.ManifestList[:cut], id)
	locations, err := listPrefix(ctx, h.cfg.FS, prefix)
	if refused(err) {
		return Found{Why: fmt.Sprintf("%s* can't be listed: %v", prefix, err)}, nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
	}
	candidates, err := h.candidates(ctx, id, locations)
	if err != nil {
		return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
	}
	total := len(candidates)
	if candidates, err = h.buildable(ctx, candidates, child); err != nil {
		return Found{}, fmt.Errorf("looking for snapshot %d: %w", id, err)
	}
	switch {
	case total == 0:
		return Found{Why: fmt.Sprintf("no manifest list %s*", prefix)}, nil
	case len(candidates) == 0:
		return Found{Why: fmt.Sprintf("none of the %d manifest lists %s* can be what snapshot %d was built on", total, prefix, child.SnapshotID)}, nil
	case len(candidates) > 1:
		return Found{Why: fmt.Sprintf("%d manifest lists %s* could be what snapshot %d was built on", len(candidates), prefix, child.SnapshotID)}, nil
	}
	only := candidates[0]
	state := State{
		TableUUID: child.TableUUID, ContentID: child.ContentID, SnapshotID: id, Sequence: only.header.Sequence,
		ManifestList: only.location, SchemaID: child.SchemaID, Records: -1,
		MetadataLocation: child.MetadataLocation, FormatVersion: child.FormatVersion,
	}
	h.headers[id] = only.header
	h.known[id] = knownState{state: state, by: "listing"}
	return Found{State: state, OK: true, By: "listing"}, nil
}

// candidates reads the headers of the lists and keeps those of the snapshot.
func (h *History) candidates(ctx context.Context, id int64, locations []string) ([]candidate, error) {
	var kept []candidate
	for _, location := range locations {
		header, err := ReadListHeader(ctx, h.cfg.FS, location)
		var corrupt *CorruptError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &corrupt) {
			continue // deleted since, or half written by an attempt that failed: none that a child was built on
		}
		if err != nil {
			return nil, err
		}
		if header.SnapshotID == id {
			kept = append(kept, candidate{location: location, header: header})
		}
	}
	return kept, nil
}

// buildable keeps the candidates that child can have been built on: an older sequence number, and every manifest that
// child took over. Of several, those remain whose own manifests child carries. Lists that say the same are one.
func (h *History) buildable(ctx context.Context, candidates []candidate, child State) ([]candidate, error) {
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		return child.Sequence > 0 && c.header.Sequence >= child.Sequence
	})
	if len(candidates) == 0 {
		return nil, nil
	}
	carried, err := readManifestList(ctx, h.cfg.FS, child.ManifestList)
	if errors.Is(err, fs.ErrNotExist) {
		return candidates, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range candidates {
		if candidates[i].manifests, err = readManifestList(ctx, h.cfg.FS, candidates[i].location); err != nil {
			return nil, err
		}
	}
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return !holdsInherited(c.manifests, carried, child.SnapshotID) })
	candidates = slices.CompactFunc(candidates, sameList)
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return !carriesOwn(carried, c) })
	}
	return candidates, nil
}

// holdsInherited reports whether parent holds every manifest of the child that another snapshot than the child added: a
// child takes manifests over from nowhere else.
func holdsInherited(parent, child []iceberg.ManifestFile, childID int64) bool {
	paths := manifestPaths(parent)
	for _, m := range child {
		// Format version 1 lets writers leave the snapshot out.
		if added := m.SnapshotID(); added > 0 && added != childID && !paths[m.FilePath()] {
			return false
		}
	}
	return true
}

// carriesOwn reports whether the child carries a manifest that the candidate's snapshot added, if it added any.
func carriesOwn(child []iceberg.ManifestFile, c candidate) bool {
	paths := manifestPaths(child)
	own := 0
	for _, m := range c.manifests {
		if m.SnapshotID() != c.header.SnapshotID {
			continue
		}
		if own++; paths[m.FilePath()] {
			return true
		}
	}
	return own == 0
}

// sameList reports whether two lists describe one state: attempts of which the first was written and not committed.
func sameList(a, b candidate) bool {
	if a.header.Sequence != b.header.Sequence || len(a.manifests) != len(b.manifests) {
		return false
	}
	if (a.header.ParentID == nil) != (b.header.ParentID == nil) || a.header.ParentID != nil && *a.header.ParentID != *b.header.ParentID {
		return false
	}
	paths := manifestPaths(a.manifests)
	return !slices.ContainsFunc(b.manifests, func(m iceberg.ManifestFile) bool { return !paths[m.FilePath()] })
}

func manifestPaths(manifests []iceberg.ManifestFile) map[string]bool {
	paths := make(map[string]bool, len(manifests))
	for _, m := range manifests {
		paths[m.FilePath()] = true
	}
	return paths
}

// maxListBytes bounds a manifest list. One of 100,000 manifests has about 20 MB.
const maxListBytes = 1 << 30

// readManifestList reads a whole manifest list.
func readManifestList(ctx context.Context, fsys iceio.IO, location string) ([]iceberg.ManifestFile, error) {
	content, err := readBounded(ctx, fsys, location, maxListBytes)
	if err != nil {
		return nil, fmt.Errorf("reading manifest list %s: %w", location, err)
	}
	manifests, err := iceberg.ReadManifestList(bytes.NewReader(content))
	if err != nil {
		return nil, &CorruptError{Kind: "manifest list", Location: location, Err: err}
	}
	return manifests, nil
}

// listPrefix answers the locations that start with prefix, in order.
func listPrefix(ctx context.Context, fsys iceio.IO, prefix string) ([]string, error) {
	fsys = Within(ctx, fsys)
	if l, ok := fsys.(prefixLister); ok {
		return l.ListPrefix(prefix)
	}
	l, ok := fsys.(iceio.ListableIO)
	if !ok {
		return nil, fmt.Errorf("listing %s*: %w", prefix, errors.ErrUnsupported)
	}
	var locations []string
	folder := prefix[:strings.LastIndexByte(prefix, '/')]
	err := l.WalkDir(folder, func(location string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && strings.HasPrefix(location, prefix) {
			locations = append(locations, location)
		}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(locations)
	return locations, err
}

// refused reports whether listing is something that this store or these credentials never do; anything else may work
// the next time, and must not pass for "not there".
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ErrLocationRefused)
}

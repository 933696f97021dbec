// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/hamba/avro/v2/ocf"
	"golang.org/x/sync/errgroup"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// manifestParallelism is how many manifests are read at once; they are small and mostly waited for.
const manifestParallelism = 8

// side reads the manifests of one state.
type side struct {
	fs    iceio.IO
	state catalog.State
	// opened counts the manifests that were opened; a step's two sides share it.
	opened *atomic.Int64
	// metrics says to read the metrics of data files' columns.
	metrics bool
}

// entry is what a manifest says of one file.
type entry struct {
	File
	status  iceberg.ManifestEntryStatus
	addedBy int64 // the snapshot that added the manifest, or unknownSnapshot
}

// unknownSnapshot stands for a snapshot id that format version 1 leaves out.
const unknownSnapshot int64 = -1

func (e entry) live() bool { return e.status != iceberg.EntryStatusDELETED }

// manifests lists the state's manifests: none for "no snapshot".
func (s side) manifests(ctx context.Context) ([]iceberg.ManifestFile, error) {
	if s.state.Empty() {
		return nil, nil
	}
	if s.state.ManifestList == "" {
		return s.embedded(ctx)
	}
	w := watch(ctx, s.fs)
	list, err := readList(w, s.state.ManifestList)
	if err != nil {
		return nil, w.explain(err, s.state.SnapshotID, constantKind(ManifestListKind))
	}
	for _, m := range list {
		if len(m.KeyMetadata()) > 0 {
			return nil, &UnsupportedError{What: "encrypted manifest", Path: m.FilePath()}
		}
	}
	return list, nil
}

func readList(fs iceio.IO, location string) (list []iceberg.ManifestFile, err error) {
	f, err := fs.Open(location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return iceberg.ReadManifestList(f)
}

// embedded describes the manifests that a format version 1 snapshot names itself, without a list: their spec id is in
// their own header, and which snapshot added them is not known (their entries name their snapshots).
func (s side) embedded(ctx context.Context) ([]iceberg.ManifestFile, error) {
	list := make([]iceberg.ManifestFile, len(s.state.Manifests))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(manifestParallelism)
	for i, path := range s.state.Manifests {
		g.Go(func() error {
			w := watch(ctx, s.fs)
			spec, err := readSpecID(w, path)
			if err != nil {
				return w.explain(err, s.state.SnapshotID, constantKind(ManifestKind))
			}
			list[i] = iceberg.NewManifestFile(1, path, 0, spec, unknownSnapshot).
				AddedFiles(-1).ExistingFiles(-1).DeletedFiles(-1).Build()
			return nil
		})
	}
	return list, g.Wait()
}

func readSpecID(fs iceio.IO, path string) (spec int32, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d, err := ocf.NewDecoder(f)
	if err != nil {
		return 0, err
	}
	text := string(d.Metadata()["partition-spec-id"])
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 32)
	return int32(id), err
}

// entries reads the entries of manifests that keep wants, in the order of the manifests.
func (s side) entries(ctx context.Context, manifests []iceberg.ManifestFile, keep func(entry) bool) ([]entry, error) {
	found := make([][]entry, len(manifests))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(manifestParallelism)
	for i, m := range manifests {
		g.Go(func() (err error) {
			found[i], err = s.read(ctx, m, keep)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []entry
	for _, part := range found {
		all = append(all, part...)
	}
	return all, nil
}

// live reads the live files of manifests.
func (s side) live(ctx context.Context, manifests []iceberg.ManifestFile) ([]File, error) {
	entries, err := s.entries(ctx, manifests, entry.live)
	if err != nil {
		return nil, err
	}
	return filesOf(entries), nil
}

func filesOf(entries []entry) []File {
	files := make([]File, len(entries))
	for i, e := range entries {
		files[i] = e.File
	}
	return files
}

func (s side) read(ctx context.Context, m iceberg.ManifestFile, keep func(entry) bool) ([]entry, error) {
	s.opened.Add(1)
	w := watch(ctx, s.fs)
	files := iceio.IO(w)
	entries, err := s.readEntries(w, files, m, keep)
	for range mends {
		mend := mendFor(m, err)
		if mend == nil {
			break
		}
		files = mended{files, m.FilePath(), mend}
		entries, err = s.readEntries(w, files, m, keep)
	}
	return entries, err
}

func (s side) readEntries(w *watchedIO, files iceio.IO, m iceberg.ManifestFile, keep func(entry) bool) ([]entry, error) {
	// The bounds of a position delete file's file_path column may name the one data file that it is for.
	projection := iceberg.ManifestEntryProjection{IncludePruningStats: s.metrics || m.ManifestContent() == iceberg.ManifestContentDeletes}
	var entries []entry
	for raw, err := range iceberg.EntriesWithProjection(files, m, false, projection) {
		if err != nil {
			return nil, w.explain(err, s.state.SnapshotID, constantKind(ManifestKind))
		}
		e, err := newEntry(m, raw)
		if err != nil {
			return nil, &CorruptFileError{Kind: ManifestKind, Path: m.FilePath(), Err: err}
		}
		if keep(e) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func newEntry(m iceberg.ManifestFile, raw iceberg.ManifestEntry) (entry, error) {
	data := upperCased(raw.DataFile())
	e := entry{status: raw.Status(), addedBy: m.SnapshotID(), File: File{
		Data: data, Sequence: raw.SequenceNum(), Snapshot: raw.SnapshotID(), path: data.FilePath(),
	}}
	if e.Sequence < 0 && e.live() {
		return e, fmt.Errorf("the live entry of %s has no sequence number", e.path)
	}
	var err error
	e.partition, err = partitionKey(data.Partition())
	return e, err
}

// split separates data manifests from delete manifests.
func split(manifests []iceberg.ManifestFile) (data, deletes []iceberg.ManifestFile) {
	for _, m := range manifests {
		if m.ManifestContent() == iceberg.ManifestContentDeletes {
			deletes = append(deletes, m)
		} else {
			data = append(data, m)
		}
	}
	return data, deletes
}

func constantKind(kind FileKind) func(string) FileKind { return func(string) FileKind { return kind } }

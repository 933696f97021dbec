// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"github.com/redpanda-data/benthos/v4/public/service"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// storageAdvice says what to change where a file can't be read.
func storageAdvice(err error, location string) string {
	switch {
	case errors.Is(err, catalog.ErrLocationRefused) && isAzure(location):
		return "Set storage.azure_blob_storage to the account and the container that hold " + location + "."
	case errors.Is(err, catalog.ErrLocationRefused):
		return "Set storage.local_root to a folder that holds " + location + "."
	case errors.Is(err, catalog.ErrLocationUnsupported):
		return "No storage that is built in reads such locations."
	case errors.Is(err, fs.ErrNotExist):
		return "The file is gone: somebody deleted it, or storage.aws_s3.endpoint is another store than the writer's."
	case strings.HasPrefix(location, "s3"):
		return "Check storage.aws_s3: region, endpoint, credentials, and force_path_style_urls for stores other than AWS."
	case strings.HasPrefix(location, "gs:"), strings.HasPrefix(location, "gcs:"):
		return "Check storage.gcp_cloud_storage, or the machine's own identity at Google: it needs to read objects of the bucket."
	case isAzure(location):
		return "Check storage.azure_blob_storage: storage_account, and a key or a signature that may read."
	}
	return "Check storage."
}

func isAzure(location string) bool {
	return strings.HasPrefix(location, "abfs") || strings.HasPrefix(location, "wasb")
}

// storage reads the head's manifests and the first bytes of one data file.
func (e *examination) storage(ctx context.Context, look *nessie.Look) {
	if e.skipUnless(look != nil, "storage"); look == nil {
		return
	}
	if look.State.Empty() {
		e.passed("storage", "the metadata file was read; there are no other files yet")
		return
	}
	files := e.t.Storage.Within(ctx)
	manifests, err := scan.Manifests(ctx, files, look.State)
	if err != nil {
		e.failed("storage", storageAdvice(err, look.State.ManifestList), err)
		return
	}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		entries, err := scan.Entries(ctx, files, look.State, m)
		if err != nil {
			e.failed("storage", storageAdvice(err, m.FilePath()), err)
			return
		}
		for _, entry := range entries {
			if entry.Live() {
				e.dataFile(files, entry)
				return
			}
		}
	}
	e.passed("storage", "manifests were read; the table holds no data file")
}

func (e *examination) dataFile(files iceio.IO, entry scan.Entry) {
	f, err := files.Open(entry.Path())
	if err == nil {
		_, err = f.ReadAt(make([]byte, 4), 0)
		err = errors.Join(err, f.Close())
	}
	switch {
	case err != nil:
		e.failed("storage", storageAdvice(err, entry.Path()), err)
	case entry.Data.FileFormat() != iceberg.ParquetFile:
		e.warned("storage", "Only Parquet data files can be read: rewrite the table, or have its writer write Parquet.",
			"the head holds %s data files", entry.Data.FileFormat())
	default:
		e.passed("storage", "manifests and a data file were read")
	}
}

// listing checks the permission that hidden snapshots need.
func (e *examination) listing(ctx context.Context, look *nessie.Look) {
	if look == nil || look.State.ManifestList == "" {
		return
	}
	lister, ok := e.t.Storage.Within(ctx).(iceio.ListableIO)
	if !ok {
		return
	}
	folder := look.State.ManifestList[:strings.LastIndexByte(look.State.ManifestList, '/')+1]
	err := lister.WalkDir(folder+"snap-", func(string, fs.DirEntry, error) error { return fs.SkipAll })
	if err != nil {
		e.warned("listing", "Permit listing (s3:ListBucket) below the table: a snapshot that came with others in one commit of the REST catalog is found by listing only.",
			"%v", err)
		return
	}
	e.passed("listing", "%s can be listed", folder)
}

// What forgets a checkpoint: its place is lost with the process, or earlier.
var forgetful = map[string]bool{"memory": true, "lru": true, "ttlru": true, "noop": true}

// cache writes, reads and deletes a probe beside the checkpoint. It reports whether there is anything to read a checkpoint from.
func (e *examination) cache(ctx context.Context) bool {
	const name = "checkpoint cache"
	key, err := e.t.CheckpointKey()
	if errors.Is(err, nessie.ErrNoCheckpoints) {
		e.checks = append(e.checks, finding{Name: name, Result: checkSkipped, Found: err.Error()})
		return true
	}
	var kv cache.KV
	if err == nil {
		kv, err = e.t.Cache()
	}
	if err == nil {
		err = e.probe(ctx, kv, key+".probe")
	}
	switch {
	case e.t.cacheType == "":
		e.failed(name, "There is no such resource: set checkpoint_cache to the label of one, or give the file that has it by -r.", err)
	case err != nil:
		e.failed(name, "Check the cache resource "+e.t.Config.CheckpointCache+": it must take and keep values under keys such as "+key+".", err)
	case forgetful[e.t.cacheType]:
		e.warned(name, "Use nessie_durable_file, or a store outside the process.", "%s (%s) forgets the place when the process ends", e.t.Config.CheckpointCache, e.t.cacheType)
	case e.t.cacheType == "file":
		e.warned(name, "Use nessie_durable_file, which writes so that a crash leaves the old value or the new one.", "%s (file) can leave an empty value after a crash", e.t.Config.CheckpointCache)
	default:
		e.passed(name, "%s (%s) keeps what it is given", e.t.Config.CheckpointCache, e.t.cacheType)
	}
	return err == nil
}

func (e *examination) probe(ctx context.Context, kv cache.KV, key string) error {
	const value = "probe"
	if err := kv.Set(ctx, key, []byte(value)); err != nil {
		return err
	}
	got, err := kv.Get(ctx, key)
	if err == nil && string(got) != value {
		err = errors.New("another value comes back than the one that was written")
	}
	if errors.Is(err, service.ErrKeyNotFound) {
		err = errors.New("it does not keep what it is given")
	}
	return errors.Join(err, e.t.DeleteCheckpoint(ctx, key))
}

// checkpoint reads what is stored, and sees whether it is this table's.
func (e *examination) checkpoint(ctx context.Context, look *nessie.Look) {
	stored, key, err := loadCheckpoint(ctx, e.t)
	if err == nil && stored != nil && look != nil {
		if err := e.t.CheckCheckpoint(stored, look.Head); err != nil {
			e.failed("checkpoint", "Set a checkpoint_cache_key that no other table's input has; where the table was replaced on purpose, checkpoint delete begins anew.", err)
			return
		}
	}
	switch {
	case errors.Is(err, nessie.ErrNoCheckpoints):
	case err != nil:
		e.failed("checkpoint", "See checkpoint get; checkpoint set --force or checkpoint delete replaces it.", err)
	default:
		e.passed("checkpoint", "%s: %s", key, summary(stored))
	}
}

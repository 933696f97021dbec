// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// writeMetadata writes a metadata file beside the table's others and returns its location. Whole files count up from
// the previous one's name; truncated ones are all version 0, as Nessie names them.
func (w *Writer) writeMetadata(meta table.Metadata, previous string, form Form) (string, error) {
	body, err := json.Marshal(meta)
	if err != nil {
		return "", fmt.Errorf("encoding metadata: %w", err)
	}
	version := 0
	switch form {
	case Truncated:
		if body, err = truncate(body); err != nil {
			return "", err
		}
	case Whole:
		version = versionAfter(previous)
	}
	suffix := ".metadata.json"
	if meta.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault) == table.MetadataCompressionCodecGzip {
		if body, err = gzipped(body); err != nil {
			return "", err
		}
		suffix = ".gz" + suffix
	}
	location := fmt.Sprintf("%s/metadata/%05d-%s%s", strings.TrimSuffix(meta.Location(), "/"), version, uuid.NewString(), suffix)
	if err := w.fs.WriteFile(location, body); err != nil {
		return "", fmt.Errorf("writing metadata file %s: %w", location, err)
	}
	return location, nil
}

// truncate leaves of a metadata file what Nessie's REST endpoint writes: one snapshot without parent-snapshot-id, a
// snapshot log of one entry, the main ref, an empty metadata log; schemas, specs and last-sequence-number stay.
func truncate(body []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // snapshot ids exceed 2^53
	var meta map[string]any
	if err := dec.Decode(&meta); err != nil {
		return nil, fmt.Errorf("truncating metadata: %w", err)
	}
	current := meta["current-snapshot-id"]
	var snapshots, log []any
	for _, s := range list(meta["snapshots"]) {
		if snapshot, ok := s.(map[string]any); ok && snapshot["snapshot-id"] == current {
			delete(snapshot, "parent-snapshot-id")
			snapshots = append(snapshots, snapshot)
			log = append(log, map[string]any{"snapshot-id": current, "timestamp-ms": snapshot["timestamp-ms"]})
		}
	}
	refs := map[string]any{}
	if len(snapshots) > 0 {
		refs[table.MainBranch] = map[string]any{"snapshot-id": current, "type": "branch"}
	} else {
		meta["current-snapshot-id"] = json.Number("-1")
	}
	meta["snapshots"], meta["snapshot-log"], meta["metadata-log"], meta["refs"] = nonNil(snapshots), nonNil(log), []any{}, refs
	delete(meta, "statistics")
	delete(meta, "partition-statistics")
	return json.Marshal(meta)
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

func nonNil(items []any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

func gzipped(body []byte) ([]byte, error) {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write(body); err != nil {
		return nil, fmt.Errorf("compressing metadata: %w", err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("compressing metadata: %w", err)
	}
	return out.Bytes(), nil
}

// versionAfter reads the number that a metadata file's name starts with and adds one; 0 for a table's first file.
func versionAfter(previous string) int {
	number, _, _ := strings.Cut(path.Base(previous), "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n + 1
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// A bridge that removes rows names both its ends: the snapshot that it leads to
// may be an innocent append.
func TestRemovedRowsNameWhatRemovesThem(t *testing.T) {
	from, none := int64(4), int64(catalog.NoSnapshot)
	for name, test := range map[string]struct {
		err  RemovedRowsError
		says string
	}{
		"a snapshot": {
			RemovedRowsError{SnapshotID: 7, Kind: scan.KindDelete, Field: niFieldOnDelete},
			"snapshot 7 removes rows (delete), which messages of added rows cannot express: set on_delete: skip to go past such snapshots, or changes: changelog to be told of every change",
		},
		"a bridge": {
			RemovedRowsError{SnapshotID: 7, From: &from, Kind: scan.KindOverwrite, Field: niFieldOnOverwrite},
			"the difference from snapshot 4 to snapshot 7 removes rows (overwrite), which messages of added rows cannot express: set on_overwrite: added_rows or skip to go past such snapshots, or changes: changelog to be told of every change",
		},
		"a bridge from the empty table": {
			RemovedRowsError{SnapshotID: 7, From: &none, Kind: scan.KindDelete, Field: niFieldOnDelete},
			"the difference from the empty table to snapshot 7 removes rows (delete), which messages of added rows cannot express: set on_delete: skip to go past such snapshots, or changes: changelog to be told of every change",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.EqualError(t, &test.err, test.says) })
	}
}

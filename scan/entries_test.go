// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func TestEntriesAreWhatTheManifestsHold(t *testing.T) {
	for _, name := range []string{"events", "mor", "cow", "rest_mor"} {
		t.Run(name, func(t *testing.T) {
			c := openCorpus(t, name)
			for _, id := range c.HeadChain {
				s, ok := c.Snapshot(id)
				require.True(t, ok)
				manifests, err := Manifests(t.Context(), c.files, c.states[id])
				require.NoError(t, err)
				assert.Len(t, manifests, s.Manifests)
				entries, err := Entries(t.Context(), c.files, c.states[id], manifests...)
				require.NoError(t, err)
				added := map[string]int64{}
				for _, e := range entries {
					if e.Status == iceberg.EntryStatusADDED && e.Snapshot == id {
						added[e.Path()] = e.Data.Count()
						assert.True(t, e.Live())
					}
				}
				want := map[string]int64{}
				for _, f := range s.Files {
					if f.Status == "ADDED" {
						want[f.Path] = f.Records
					}
				}
				assert.Equal(t, want, added, "snapshot %d", id)
			}
		})
	}
}

func TestNoSnapshotHasNoManifests(t *testing.T) {
	manifests, err := Manifests(t.Context(), nil, catalog.State{SnapshotID: catalog.NoSnapshot})
	require.NoError(t, err)
	assert.Empty(t, manifests)
}

func TestAManifestListThatIsGoneIsNamed(t *testing.T) {
	c := openCorpus(t, "events")
	state := c.states[c.HeadChain[0]]
	c.files.Hide(state.ManifestList)
	_, err := Manifests(t.Context(), c.files, state)
	var missing *MissingFileError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, state.ManifestList, missing.Path)
}

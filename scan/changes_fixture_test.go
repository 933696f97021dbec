// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// handmade is a table whose manifests are written by hand, with states that no writer of ours makes: files that are live
// twice, delete files that are dropped, vectors in the place of position deletes.
type handmade struct {
	*fixture
	data    []handmadeData
	deletes []handmadeDelete
	count   int
}

type handmadeData struct {
	name     string
	file     iceberg.DataFile
	sequence int64
	ids      []int64
}

type handmadeDelete struct {
	file      iceberg.DataFile
	sequence  int64
	target    string // "" for equality deletes
	vector    bool
	positions []int64
	ids       []int64
}

// rows are the live rows, worked out from the spec's own words.
func (h *handmade) rows() []string {
	rows := []string{}
	for _, d := range h.data {
		for pos, id := range d.ids {
			if !h.isDeleted(d, int64(pos), id) {
				rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"n%d","cat":null}`, id, id%3))
			}
		}
	}
	return rows
}

func (h *handmade) isDeleted(d handmadeData, pos, id int64) bool {
	vector := slices.ContainsFunc(h.deletes, func(x handmadeDelete) bool {
		return x.vector && x.target == d.name && x.sequence >= d.sequence
	})
	return slices.ContainsFunc(h.deletes, func(x handmadeDelete) bool {
		switch {
		case x.target == "":
			return x.sequence > d.sequence && slices.Contains(x.ids, id)
		case x.target != d.name || x.sequence < d.sequence || x.vector != vector:
			return false
		}
		return slices.Contains(x.positions, pos)
	})
}

// save commits the present files as manifests of their own, of format version 3: earlier ones don't know vectors.
func (h *handmade) save() catalog.State {
	sequence := h.state.Sequence + 1
	id := 1000 + sequence
	var manifests []iceberg.ManifestFile
	for kind, content := range []iceberg.ManifestContent{iceberg.ManifestContentData, iceberg.ManifestContentDeletes} {
		if []int{len(h.data), len(h.deletes)}[kind] == 0 {
			continue // a manifest is never empty
		}
		var buf bytes.Buffer
		w, err := iceberg.NewManifestWriter(3, &buf, h.spec(0), h.meta.CurrentSchema(), id, iceberg.WithManifestWriterContent(content))
		require.NoError(h, err)
		add := func(file iceberg.DataFile, sequence int64) {
			b := iceberg.NewManifestEntryBuilder(iceberg.EntryStatusEXISTING, &id, file)
			require.NoError(h, w.Existing(b.SequenceNum(sequence).FileSequenceNum(sequence).Build()))
		}
		if kind == 0 {
			for _, d := range h.data {
				add(d.file, d.sequence)
			}
		} else {
			for _, d := range h.deletes {
				add(d.file, d.sequence)
			}
		}
		require.NoError(h, w.Close())
		path := h.path(fmt.Sprintf("m-%d-%d.avro", id, kind))
		require.NoError(h, os.WriteFile(path, buf.Bytes(), 0o600))
		m, err := w.ToManifestFile(path, int64(buf.Len()))
		require.NoError(h, err)
		manifests = append(manifests, m)
	}
	location := h.path(fmt.Sprintf("snap-%d.avro", id))
	var list bytes.Buffer
	require.NoError(h, iceberg.WriteManifestList(3, &list, id, nil, &sequence, 0, manifests))
	require.NoError(h, os.WriteFile(location, list.Bytes(), 0o600))
	h.state = catalog.State{SnapshotID: id, Sequence: sequence, ManifestList: location, SchemaID: 1, Operation: "overwrite", Records: -1, FormatVersion: 2}
	return h.state
}

func (h *handmade) name(kind string) string {
	h.count++
	return fmt.Sprintf("%s%d", kind, h.count)
}

func (h *handmade) addData(ids []int64) {
	name := h.name("d") + ".parquet"
	var rows []string
	for _, id := range ids {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "n%d"}`, id, id%3))
	}
	h.data = append(h.data, handmadeData{name, h.dataFile(name, 0, none, rows...), h.state.Sequence + 1, ids})
}

func (h *handmade) random(t *rapid.T) {
	ids := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 6)
	target := func() handmadeData { return rapid.SampledFrom(h.data).Draw(t, "target") }
	positions := func(d handmadeData) []int64 {
		picked := rapid.SliceOfNDistinct(rapid.Int64Range(0, int64(len(d.ids)-1)), 1, len(d.ids), rapid.ID).Draw(t, "positions")
		slices.Sort(picked)
		return picked
	}
	next := h.state.Sequence + 1
	what := rapid.SampledFrom([]string{"data", "again", "remove", "position", "vector", "equality", "drop", "rewrite"}).Draw(t, "what")
	switch {
	case what == "data" || len(h.data) == 0:
		h.addData(ids.Draw(t, "ids"))
	case what == "again":
		d := target()
		d.sequence = next
		h.data = append(h.data, d)
	case what == "remove":
		i := rapid.IntRange(0, len(h.data)-1).Draw(t, "i")
		h.data = slices.Delete(h.data, i, i+1)
	case what == "position":
		d, name := target(), h.name("p")+".parquet"
		at := positions(d)
		h.deletes = append(h.deletes, handmadeDelete{file: h.positionDeletes(name, 0, none, d.name, at...), sequence: next, target: d.name, positions: at})
	case what == "vector":
		d, name := target(), h.name("v")+".puffin"
		at := positions(d)
		h.deletes = slices.DeleteFunc(h.deletes, func(x handmadeDelete) bool { return x.vector && x.target == d.name })
		h.deletes = append(h.deletes, handmadeDelete{file: h.vector(name, d.name, at...), sequence: next, target: d.name, vector: true, positions: at})
	case what == "equality":
		gone := ids.Draw(t, "gone")
		h.deletes = append(h.deletes, handmadeDelete{file: h.equalityDeletes(h.name("e")+".parquet", 0, none, gone...), sequence: next, ids: gone})
	case what == "drop" && len(h.deletes) > 0:
		i := rapid.IntRange(0, len(h.deletes)-1).Draw(t, "i")
		h.deletes = slices.Delete(h.deletes, i, i+1)
	default: // a rewrite of everything that is live
		var left []int64
		for _, text := range h.rows() {
			var row struct{ ID int64 }
			require.NoError(t, json.Unmarshal([]byte(text), &row))
			left = append(left, row.ID)
		}
		h.data, h.deletes = nil, nil
		if len(left) > 0 {
			h.addData(rapid.Permutation(left).Draw(t, "order"))
		}
	}
}

func TestTheNetOfTheMessagesIsTheDifferenceOfHandMadeStates(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := &handmade{fixture: newFixture(t, "")}
		states, rows := []catalog.State{{SnapshotID: catalog.NoSnapshot, SchemaID: 1}}, [][]string{{}}
		for range rapid.IntRange(1, 7).Draw(r, "steps") {
			for range rapid.IntRange(1, 3).Draw(r, "changes") {
				h.random(r)
			}
			states, rows = append(states, h.save()), append(rows, h.rows())
		}
		for range 6 {
			i, j := rapid.IntRange(0, len(states)-1).Draw(r, "before"), rapid.IntRange(0, len(states)-1).Draw(r, "after")
			added, removed := net(rows[j], rows[i])
			step := Step{Way: WayBridge, Before: &states[i], After: states[j]}
			for _, keys := range [][]string{{}, {"id"}} {
				c := checkedChanges(r, h.source(), step, ChangeOptions{IdentifierFields: keys})
				require.Equal(r, [][]string{added, removed}, [][]string{c.rows(true), c.rows(false)})
				c.requireOrder(r)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const legacyValue = `{"lastAckedSnapshotID":"7315290186410392011","lastAckedSnapshotSequence":12,"branch":"main","namespace":"sales.eu","table":"orders"}`

func fullCheckpoint() *Checkpoint {
	records := int64(41_000)
	last := StateRef{
		SnapshotID: "7315290186410392011", Sequence: 12, TableUUID: "2f1b7c66-6b43-4f5e-9c54-0e6a3f0f6a01",
		ContentID: "b0f9c1de-58b1-4f3f-9d34-6a0fd0a4a3d2", CommitHash: "a4c1e7", CommitTimeMs: 1_700_000_000_123,
		MetadataLocation: "s3://lake/orders/metadata/00012-x.metadata.json", ManifestList: "s3://lake/orders/metadata/snap-12.avro",
		SchemaID: 3, Records: &records, ParentID: "9007199254740993", Operation: "append",
		TimestampMs: 1_700_000_000_000, FormatVersion: 2,
	}
	to := last
	to.SnapshotID, to.Sequence, to.ParentID, to.Records = "9223372036854775807", 13, last.SnapshotID, nil
	to.ManifestList, to.Manifests = "", []string{"s3://lake/orders/metadata/m0.avro", "s3://lake/orders/metadata/m1.avro"}
	return &Checkpoint{
		Last: last, Branch: "main", Namespace: "sales.eu", Table: "orders", Version: Version, Step: 40,
		Position: &Position{
			From: &last, To: last, Kind: "truncate", FoundBy: "metadata", Attempt: 1, Row: 0,
			Next: &Position{To: to, Kind: "table_scan", FoundBy: "log", PlanDigest: "d41d8c", Row: 8192},
		},
		Owner: &Owner{ID: "O1", Host: "worker-1", PID: 4711, StartMs: 1_700_000_001_000, Term: 1_700_000_002_000},
	}
}

func TestEncodedValuesAreStable(t *testing.T) {
	noSnapshot := at(0, 0)
	noSnapshot.Last.SnapshotID = ""
	first := at(0, 1)
	first.Stage, first.Last.SnapshotID, first.Position.From = StageFirst, "", nil
	for name, c := range map[string]*Checkpoint{
		"full": fullCheckpoint(), "no_snapshot": noSnapshot, "first_step": first,
		"claimed": Unclaimed("main", "sales.eu", "orders"),
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := Encode(c)
			require.NoError(t, err)
			var pretty bytes.Buffer
			require.NoError(t, json.Indent(&pretty, encoded, "", "  "))
			golden(t, "checkpoint_"+name+".json", append(pretty.Bytes(), '\n'))
			decoded, err := Decode(testKey, pretty.Bytes()) // formatted anew, still valid
			require.NoError(t, err)
			assert.Equal(t, c, decoded)
		})
	}
}

func TestAClaimDoesNotLookLikeATableWithoutSnapshot(t *testing.T) {
	encoded, err := Encode(Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "lastAcked")
	c, err := Decode(testKey, encoded)
	require.NoError(t, err)
	assert.False(t, c.Started())
	assert.False(t, c.Legacy())
}

func TestOldFormIsReadableAndStaysLegacyWhenClaimed(t *testing.T) {
	c, err := Decode(testKey, []byte(legacyValue))
	require.NoError(t, err)
	assert.True(t, c.Legacy())
	assert.True(t, c.Started())
	assert.Equal(t, 0, c.Version)
	assert.Equal(t, StateRef{SnapshotID: "7315290186410392011", Sequence: 12}, c.Last)
	require.NoError(t, c.Matches("main", "sales.eu", "orders"))
	require.EqualError(t, c.Matches("dev", "sales.eu", "orders"),
		`it belongs to branch "main", namespace "sales.eu", table "orders", not to branch "dev", namespace "sales.eu", table "orders"`)

	encoded, err := Encode(c)
	require.NoError(t, err)
	again, err := Decode(testKey, encoded)
	require.NoError(t, err)
	assert.True(t, again.Legacy())
	assert.Equal(t, c.Last, again.Last)
}

func TestDamagedValuesAreRefusedByReason(t *testing.T) {
	encoded, err := Encode(at(3, 5))
	require.NoError(t, err)
	valid := string(encoded)
	replace := func(old, with string) string {
		require.Contains(t, valid, old)
		return string(bytes.ReplaceAll(encoded, []byte(old), []byte(with)))
	}
	legacy := func(old, with string) string {
		require.Contains(t, legacyValue, old)
		return string(bytes.ReplaceAll([]byte(legacyValue), []byte(old), []byte(with)))
	}
	for name, tc := range map[string]struct{ value, reason string }{
		"empty":                {"", "it is empty"},
		"white space":          {" \n", "it is empty"},
		"garbage":              {"\x00\x01garbage", "it is no whole JSON object"},
		"null":                 {"null", "it is null"},
		"list":                 {"[1]", "it is no whole JSON object"},
		"empty object":         {"{}", "it has no version, and lacks branch"},
		"twice":                {valid + valid, "something follows the object"},
		"torn":                 {valid[:len(valid)/2], "it is no whole JSON object"},
		"flipped":              {replace("1003", "1002"), "its checksum is sha256:"},
		"checksum missing":     {replace(`,"checksum"`, `,"checksam"`), "it has a version but no checksum"},
		"version lost":         {replace(`"version"`, `"versiom"`), "it has no version, but fields that the old form does not have: checksum,"},
		"version newer":        {replace(`"version":1`, `"version":2`), "it has version 2, and this build reads versions up to 1: a newer release wrote it"},
		"version odd":          {replace(`"version":1`, `"version":1.5`), "its version 1.5 is unknown"},
		"version zero":         {replace(`"version":1`, `"version":0`), "its version 0 is unknown"},
		"version text":         {replace(`"version":1`, `"version":"1"`), "its version is no number"},
		"legacy id negative":   {legacy("7315290186410392011", "-1"), `"-1" is no snapshot id`},
		"legacy id too large":  {legacy("7315290186410392011", "9223372036854775808"), `"9223372036854775808" is no snapshot id`},
		"legacy id text":       {legacy("7315290186410392011", "abc"), `"abc" is no snapshot id`},
		"legacy id padded":     {legacy("7315290186410392011", "007"), `"007" is no snapshot id`},
		"legacy id number":     {legacy(`"7315290186410392011"`, "7315290186410392011"), "a field has the wrong type"},
		"legacy sequence":      {legacy(":12", ":-12"), "sequence number -12 is negative"},
		"legacy sequence huge": {legacy(":12", ":99999999999999999999"), "a field has the wrong type"},
		"legacy null":          {legacy(`"main"`, "null"), "lacks branch"},
		"legacy no table":      {legacy(`"orders"`, `""`), "branch, namespace or table is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Decode(testKey, []byte(tc.value))
			assert.Nil(t, c)
			var refused *ValueError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, testKey, refused.Key)
			assert.Contains(t, refused.Reason, tc.reason)
			assert.ErrorContains(t, err, `"some-key"`)
		})
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	negative := int64(-1)
	for name, damage := range map[string]func(*Checkpoint){
		"snapshot id":      func(c *Checkpoint) { c.Last.SnapshotID = "-5" },
		"parent id":        func(c *Checkpoint) { c.Position.To.ParentID = "x" },
		"from":             func(c *Checkpoint) { c.Position.From.Sequence = -1 },
		"records":          func(c *Checkpoint) { c.Last.Records = &negative },
		"row":              func(c *Checkpoint) { c.Position.Row = -1 },
		"attempt":          func(c *Checkpoint) { c.Position.Attempt = -1 },
		"step":             func(c *Checkpoint) { c.Step = -1 },
		"kind":             func(c *Checkpoint) { c.Position.Kind = "" },
		"next":             func(c *Checkpoint) { c.Position.Next = &Position{} },
		"stage":            func(c *Checkpoint) { c.Stage = "other" },
		"first of nothing": func(c *Checkpoint) { c.Stage, c.Position = StageFirst, nil },
		"table":            func(c *Checkpoint) { c.Table = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := at(3, 5)
			damage(c)
			_, err := Encode(c)
			require.ErrorContains(t, err, "encoding checkpoint: ")
		})
	}
}

func stateRefs() *rapid.Generator[StateRef] {
	return rapid.Custom(func(t *rapid.T) StateRef {
		id := rapid.Map(rapid.Int64Min(-1), FormatSnapshotID)
		s := StateRef{
			SnapshotID: id.Draw(t, "snapshot"), Sequence: rapid.Int64Min(0).Draw(t, "sequence"),
			TableUUID: rapid.String().Draw(t, "uuid"), ContentID: rapid.String().Draw(t, "content"),
			CommitHash: rapid.String().Draw(t, "hash"), CommitTimeMs: rapid.Int64().Draw(t, "time"),
			MetadataLocation: rapid.String().Draw(t, "metadata"), ManifestList: rapid.String().Draw(t, "list"),
			SchemaID: rapid.Int().Draw(t, "schema"), ParentID: id.Draw(t, "parent"),
			Operation: rapid.String().Draw(t, "operation"), TimestampMs: rapid.Int64().Draw(t, "timestamp"),
			FormatVersion: rapid.Int().Draw(t, "format"),
		}
		if manifests := rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "manifests"); len(manifests) > 0 {
			s.Manifests = manifests
		}
		if rapid.Bool().Draw(t, "counted") {
			records := rapid.Int64Min(0).Draw(t, "records")
			s.Records = &records
		}
		return s
	})
}

func positions(depth int) *rapid.Generator[*Position] {
	return rapid.Custom(func(t *rapid.T) *Position {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		p := &Position{
			To: stateRefs().Draw(t, "to"), Kind: rapid.StringN(1, 20, -1).Draw(t, "kind"),
			FoundBy: rapid.String().Draw(t, "found"), PlanDigest: rapid.String().Draw(t, "digest"),
			Attempt: rapid.Int64Min(0).Draw(t, "attempt"), Row: rapid.Int64Min(0).Draw(t, "row"),
		}
		if rapid.Bool().Draw(t, "hasFrom") {
			from := stateRefs().Draw(t, "from")
			p.From = &from
		}
		if depth > 0 {
			p.Next = positions(depth-1).Draw(t, "next")
		}
		return p
	})
}

func checkpoints() *rapid.Generator[*Checkpoint] {
	return rapid.Custom(func(t *rapid.T) *Checkpoint {
		name := rapid.StringN(1, 30, -1)
		c := &Checkpoint{
			Branch: name.Draw(t, "branch"), Namespace: name.Draw(t, "namespace"), Table: name.Draw(t, "table"),
			Version: Version, Last: stateRefs().Draw(t, "last"), Step: rapid.Int64Min(0).Draw(t, "step"),
			Position: positions(1).Draw(t, "position"),
		}
		if rapid.Bool().Draw(t, "owned") {
			c.Owner = &Owner{
				ID: rapid.String().Draw(t, "id"), Host: rapid.String().Draw(t, "host"), PID: rapid.Int().Draw(t, "pid"),
				StartMs: rapid.Int64().Draw(t, "start"), Term: rapid.Int64().Draw(t, "term"),
			}
		}
		return c
	})
}

func TestEveryCheckpointReadsBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := checkpoints().Draw(t, "checkpoint")
		encoded, err := Encode(c)
		require.NoError(t, err)
		decoded, err := Decode(testKey, encoded)
		require.NoError(t, err)
		require.Equal(t, c, decoded)
	})
}

func TestEveryTornPrefixIsRefused(t *testing.T) {
	for _, encode := range []func() ([]byte, error){
		func() ([]byte, error) { return Encode(fullCheckpoint()) },
		func() ([]byte, error) { return []byte(legacyValue), nil },
	} {
		encoded, err := encode()
		require.NoError(t, err)
		for n := range encoded {
			_, err := Decode(testKey, encoded[:n])
			require.Error(t, err, "%s", encoded[:n])
			// A file system that grew the file first fills with zeros.
			_, err = Decode(testKey, append(bytes.Clone(encoded[:n]), make([]byte, len(encoded)-n)...))
			require.Error(t, err)
		}
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	encoded, err := Encode(fullCheckpoint())
	require.NoError(t, err)
	for i := range encoded {
		for bit := range 8 {
			flipped := bytes.Clone(encoded)
			flipped[i] ^= 1 << bit
			_, err := Decode(testKey, flipped)
			require.Error(t, err, "%s", flipped)
		}
	}
}

func TestOrderGoesByStepThenAttemptThenRow(t *testing.T) {
	retried := at(3, 2)
	retried.Position.Attempt = 1
	ascending := []*Checkpoint{Unclaimed("main", "sales.eu", "orders"), at(0, 0), at(3, 0), at(3, 2), at(3, 9), retried, at(4, 0)}
	for i, a := range ascending {
		for j, b := range ascending {
			want := 0
			if i != j {
				want = int(math.Copysign(1, float64(i-j)))
			}
			assert.Equal(t, want, a.Order().Compare(b.Order()), "%d %d", i, j)
		}
	}
}

func TestSnapshotIDsKeepAll63Bits(t *testing.T) {
	for _, id := range []int64{-1, 0, 1, 1<<53 + 1, math.MaxInt64} {
		parsed, err := ParseSnapshotID(FormatSnapshotID(id))
		require.NoError(t, err)
		assert.Equal(t, id, parsed)
	}
}

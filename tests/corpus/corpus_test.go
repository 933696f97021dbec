// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func loadAll(t *testing.T) []*corpus.Expected {
	t.Helper()
	all, err := corpus.LoadAll()
	require.NoError(t, err)
	require.Len(t, all, 54)
	return all
}

func canonAll(t *testing.T, s *corpus.Schema, rows []json.RawMessage) []string {
	t.Helper()
	if len(rows) == 0 {
		return nil
	}
	require.NotNil(t, s)
	texts, err := corpus.CanonAll(s, rows)
	require.NoError(t, err)
	return texts
}

func TestEveryExpectedRowFitsItsSchema(t *testing.T) {
	for _, e := range loadAll(t) {
		t.Run(e.Name, func(t *testing.T) {
			for _, s := range e.Snapshots {
				canonAll(t, e.SnapshotSchema(s), s.Inserted)
				canonAll(t, e.SnapshotSchema(s), s.Deleted)
			}
			for _, c := range e.Commits {
				rows := canonAll(t, e.CommitSchema(c), c.Rows)
				canonAll(t, e.CommitSchema(c), c.Inserted)
				if c.Rows != nil {
					assert.Len(t, rows, int(c.RowCount))
				}
			}
		})
	}
}

func TestSnapshotsOfAnAddOnlyChainAddUpToTheHead(t *testing.T) {
	var names []string
	for _, e := range loadAll(t) {
		if !e.AddsOnly() {
			continue
		}
		names = append(names, e.Name)
		if len(e.Schemas) > 1 || e.Name == "evolve" || len(e.HeadChain) == 0 {
			continue // rows of older snapshots are in another schema than the head's
		}
		var sum []string
		for _, id := range e.HeadChain {
			s, ok := e.Snapshot(id)
			require.True(t, ok)
			sum = append(sum, canonAll(t, e.SnapshotSchema(s), s.Inserted)...)
		}
		assert.Empty(t, corpus.Diff(canonAll(t, e.CommitSchema(e.Head()), e.Head().Rows), sum), e.Name)
	}
	t.Log(names)
	assert.Subset(t, names, []string{"branches", "compacted", "evolve", "many", "mixed", "names_backslash", "rest_only", "types"})
	assert.NotContains(t, names, "rest_multi", "a snapshot that no metadata file has")
	assert.NotContains(t, names, "cow")
}

func TestCanonKnowsOnlyValues(t *testing.T) {
	var s corpus.Schema
	require.NoError(t, json.Unmarshal([]byte(`{"schema-id":0,"fields":[
		{"id":1,"name":"n","type":"long"},{"id":2,"name":"f","type":"float"},{"id":3,"name":"d","type":"double"},{"id":4,"name":"s","type":"string"},
		{"id":5,"name":"m","type":{"type":"map","key-id":7,"key":"string","value-id":8,"value":"int"}},
		{"id":6,"name":"l","type":{"type":"list","element-id":9,"element":{"type":"struct","fields":[{"id":10,"name":"x","type":"boolean"}]}}}]}`), &s))
	row := func(replace ...string) string {
		return strings.NewReplacer(replace...).Replace(`{"n":9007199254740993,"f":1.1,"d":45,"s":"é","m":{"a":1,"b":null},"l":[{"x":true},null]}`)
	}
	want, err := s.Canon([]byte(row()))
	require.NoError(t, err)

	for name, same := range map[string]string{
		"order of columns":       `{"l":[{"x":true},null],"m":{"b":null,"a":1},"s":"\u00e9","d":45,"f":1.1,"n":9007199254740993}`,
		"text of a float":        row(`"f":1.1`, `"f":1.100000023841858`, `"d":45`, `"d":4.5e1`),
		"a map as list of pairs": row(`{"a":1,"b":null}`, `[{"key":"b","value":null},{"key":"a","value":1}]`),
	} {
		got, err := s.Canon([]byte(same))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	for name, other := range map[string]string{
		"a long beyond a double":   row("9007199254740993", "9007199254740992"),
		"null for a value":         row("1.1", "null"),
		"a negative zero":          row("45", "-0"),
		"an empty map for entries": row(`{"a":1,"b":null}`, `{}`),
	} {
		got, err := s.Canon([]byte(other))
		require.NoError(t, err, name)
		assert.NotEqual(t, want, got, name)
	}
	for name, wrong := range map[string]string{
		"a missing column":    row(`"n":9007199254740993,`, ""),
		"an unknown column":   row(`"n"`, `"z":1,"n"`),
		"a string for long":   row("9007199254740993", `"9007199254740993"`),
		"a fraction in long":  row("9007199254740993", "1.5"),
		"a key that is twice": row(`{"a":1,"b":null}`, `[{"key":"a","value":1},{"key":"a","value":1}]`),
		"text after the row":  row() + "{}",
		"text as a float":     row("1.1", `"1.1"`),
	} {
		_, err := s.Canon([]byte(wrong))
		require.Error(t, err, name)
	}
	zero, err := s.Canon([]byte(row("45", "0")))
	require.NoError(t, err)
	minus, err := s.Canon([]byte(row("45", "-0.0")))
	require.NoError(t, err)
	assert.NotEqual(t, zero, minus)
}

func TestDiffCountsRows(t *testing.T) {
	assert.Empty(t, corpus.Diff([]string{"a", "b", "a"}, []string{"b", "a", "a"}))
	diff := corpus.Diff([]string{"a", "a", "b"}, []string{"a", "c"})
	assert.Contains(t, diff, "missing 1× a")
	assert.Contains(t, diff, "missing 1× b")
	assert.Contains(t, diff, "too many 1× c")
}

func TestFilesReadLocationsAndHideThem(t *testing.T) {
	files, err := corpus.NewFiles()
	require.NoError(t, err)
	e, err := corpus.Load("names_backslash")
	require.NoError(t, err)
	location := e.Head().MetadataLocation

	text, err := files.ReadFile(location)
	require.NoError(t, err)
	f, err := files.Open(location)
	require.NoError(t, err)
	again, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, text, again)
	assert.Equal(t, []string{location, location}, files.Opened())
	assert.Empty(t, files.Opened())

	var listed []string
	prefix := location[:strings.LastIndex(location, "/")+1] + "snap-"
	require.NoError(t, files.WalkDir(prefix, func(p string, _ fs.DirEntry, err error) error {
		listed = append(listed, p)
		return err
	}))
	assert.Len(t, listed, len(e.Snapshots))

	files.Hide(location)
	_, err = files.Open(location)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = files.Stat(location)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = files.ReadFile("s3://elsewhere/key")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = files.ReadFile("s3://bucket/../../etc/passwd")
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestS3ServesTheCorpusAndFailsOnRequest(t *testing.T) {
	s3, err := corpus.StartCorpusS3()
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() { require.NoError(t, s3.Close()) })
	e, err := corpus.Load("names_unicode")
	require.NoError(t, err)
	key := strings.TrimPrefix(e.Head().MetadataLocation, "s3://bucket/")

	get := func() (int, []byte, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s3.Endpoint, nil)
		require.NoError(t, err)
		request.URL.Path = "/bucket/" + key
		response, err := client.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, body, err
	}
	want, err := s3.Get(key)
	require.NoError(t, err)
	status, body, err := get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, want, body)
	assert.Equal(t, []corpus.S3Request{{Method: "GET", Key: key}}, s3.Requests())

	fail := func(fault corpus.Fault) {
		s3.Fail(func(r corpus.S3Request) *corpus.Fault {
			if r.Key == key {
				return &fault
			}
			return nil
		})
	}
	fail(corpus.Fault{Status: http.StatusServiceUnavailable})
	status, _, err = get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, status)

	fail(corpus.Fault{Cut: 10})
	_, body, err = get()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, want[:10], body)

	fail(corpus.Fault{Hangup: true})
	_, _, err = get()
	require.Error(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	fail(corpus.Fault{Block: ctx.Done()})
	cancel()
	status, _, err = get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)

	require.NoError(t, s3.Delete(key))
	status, _, err = get()
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, status)
}

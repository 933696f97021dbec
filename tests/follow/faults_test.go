// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// fault is what is wrong with one file, until it is put right.
type fault struct {
	says   string // beside the file's name
	inject func(t *testing.T, s *site, key string) (end func())
}

// answers lets the store fail whenever it is asked for the file.
func answers(f corpus.Fault) func(*testing.T, *site, string) func() {
	return func(t *testing.T, s *site, key string) func() {
		s.S3.Fail(func(r corpus.S3Request) *corpus.Fault {
			if r.Key == key {
				return &f
			}
			return nil
		})
		end := func() { s.S3.Fail(nil) }
		t.Cleanup(end)
		return end
	}
}

// damaged changes what the file holds.
func damaged(change func(whole []byte) []byte) func(*testing.T, *site, string) func() {
	return func(t *testing.T, s *site, key string) func() {
		whole, err := s.S3.Get(key)
		require.NoError(t, err)
		require.NoError(t, s.S3.Put(key, change(slices.Clone(whole))))
		end := func() { require.NoError(t, s.S3.Put(key, whole)) }
		t.Cleanup(end)
		return end
	}
}

var faults = map[string]fault{
	"is truncated":              {"", damaged(func(whole []byte) []byte { return whole[:len(whole)/2] })},
	"is answered with 403":      {"403", answers(corpus.Fault{Status: http.StatusForbidden})},
	"is answered with 429":      {"429", answers(corpus.Fault{Status: http.StatusTooManyRequests})},
	"is answered with 500":      {"500", answers(corpus.Fault{Status: http.StatusInternalServerError})},
	"is answered with 503":      {"503", answers(corpus.Fault{Status: http.StatusServiceUnavailable})},
	"is answered with a hangup": {"EOF", answers(corpus.Fault{Hangup: true})},
}

// A file that can't be read stops the binary with exit code 3 and one ERROR line that names it and the reason, behind
// all that comes before and again at the next run, and once it can be read the binary goes on there.
func TestAFileThatCannotBeReadKeepsThePlace(t *testing.T) {
	site := open(t)
	s := site.known.named(t, "tagged")
	chain := s.chain(s.Head().SnapshotID)
	for kind, key := range site.filesOf(t, s, chain[2]) {
		for name, f := range faults {
			t.Run(kind+" "+name, func(t *testing.T) {
				end := f.inject(t, site, key)
				p := site.rig(t, s.Ref, s.Key(), fields{"start_from": "earliest", "max_retries": 1}).program()
				behind, stands := s.after(t, catalog.NoSnapshot, chain[1]), fmt.Sprint(chain[1])
				if kind == "metadata file" {
					behind, stands = nil, ""
				}
				for _, want := range [][]due{behind, nil} {
					code, failed := p.run()
					require.Equal(t, 3, code, failed)
					require.Len(t, failed, 1)
					require.Contains(t, failed[0], key)
					require.Contains(t, failed[0], f.says)
					if name == "is truncated" {
						require.Regexp(t, kind+" s3://.* (is corrupt|can't be decoded)", failed[0])
					}
					requireRows(t, s, p.r, want, p.rows())
					if stands != "" {
						require.Equal(t, stands, *p.place().Last)
					} else {
						require.Nil(t, p.place().Last)
					}
				}
				end()
				code, failed := p.run()
				require.Equal(t, 0, code, failed)
				from := catalog.NoSnapshot
				if stands != "" {
					from = chain[1]
				}
				requireRows(t, s, p.r, s.after(t, from, s.Head().SnapshotID), p.rows())
			})
		}
	}
}

// filesOf finds, by looking over the shoulder of a run, the head's metadata file, and the manifest list, manifest and
// data file that a snapshot added.
func (s *site) filesOf(t *testing.T, e *story, snapshot int64) map[string]string {
	t.Helper()
	at := slices.IndexFunc(s.known.snaps[snapshot].Files, func(f corpus.File) bool { return f.Status == "ADDED" })
	files := map[string]string{
		"metadata file": key(e.Head().MetadataLocation),
		"data file":     key(s.known.snaps[snapshot].Files[at].Path),
	}
	s.S3.Requests()
	s.rig(t, e.Ref, e.Key(), fields{"start_from": "earliest", "read_parallelism": 1}).deliver()
	var before string
	for _, r := range s.S3.Requests() {
		switch {
		case strings.Contains(r.Key, fmt.Sprintf("/snap-%d-", snapshot)):
			files["manifest list"] = r.Key
		case r.Key == files["data file"] && files["manifest"] == "":
			files["manifest"] = before
		}
		if strings.HasSuffix(r.Key, ".avro") && !strings.Contains(r.Key, "/snap-") {
			before = r.Key
		}
	}
	require.Len(t, files, 4)
	return files
}

// SPDX-License-Identifier: Apache-2.0

// Package contract says what the project relies on of a Nessie server, as one suite of tests: real servers and the
// in-memory one must pass it alike. What the catalog client can ask goes through it; the rest is asked in plain HTTP.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Options say what a server can't.
type Options struct {
	// Old is a server of Nessie spec 2.0 (0.60.1): no relative references, keys in the old encoding, no Delete and Put of
	// one key in a commit.
	Old bool
}

// Run holds the server at baseURL to the contract. It makes branches and tags of its own and leaves the default branch
// alone; nobody else should write meanwhile.
func Run(t *testing.T, baseURL string, opts Options) {
	t.Helper()
	transport := &http.Transport{}
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: baseURL, Transport: transport})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		transport.CloseIdleConnections()
	})
	s := &suite{client: client, http: &http.Client{Transport: transport}, base: baseURL + "/api/v2", Options: opts}
	t.Run("Config", s.config)
	t.Run("References", s.references)
	t.Run("Commits", s.commits)
	t.Run("Contents", s.contents)
	t.Run("History", s.history)
	t.Run("Merges", s.merges)
	t.Run("Errors", s.errors)
}

type suite struct {
	Options
	client *catalog.Client
	http   *http.Client
	base   string // ends in /api/v2
	names  atomic.Int64
}

// name is one that the suite has not used on this server.
func (s *suite) name() string { return fmt.Sprintf("contract%d", s.names.Add(1)) }

const namespace = "ns"

// branch makes a branch with the namespace ns and nothing else.
func (s *suite) branch(t *testing.T) catalog.Reference {
	t.Helper()
	config, err := s.client.Config(t.Context())
	require.NoError(t, err)
	made, err := s.client.CreateReference(t.Context(), catalog.Branch, s.name(), catalog.Ref{Hash: config.NoAncestorHash})
	require.NoError(t, err)
	return s.commit(t, made, "namespace", put(catalog.Content{Type: catalog.ContentTypeNamespace}, namespace))
}

func (s *suite) branchAt(t *testing.T, hash string) catalog.Reference {
	t.Helper()
	made, err := s.client.CreateReference(t.Context(), catalog.Branch, s.name(), catalog.Ref{Hash: hash})
	require.NoError(t, err)
	return made
}

func (s *suite) commit(t *testing.T, on catalog.Reference, message string, ops ...catalog.Operation) catalog.Reference {
	t.Helper()
	after, err := s.client.Commit(t.Context(), on, message, ops)
	require.NoError(t, err)
	require.Equal(t, on.Name, after.Name)
	require.NotEqual(t, on.Hash, after.Hash)
	return after
}

// newTable puts a table at ns.name and gives its content with the id that it got.
func (s *suite) newTable(t *testing.T, on catalog.Reference, name string, snapshot int64) (catalog.Reference, catalog.Content) {
	t.Helper()
	after := s.commit(t, on, "create "+name, put(table(snapshot), namespace, name))
	return after, s.head(t, after.Ref(), namespace, name).Content
}

func (s *suite) head(t *testing.T, at catalog.Ref, key ...string) catalog.Head {
	t.Helper()
	head, err := s.client.Head(t.Context(), at, key)
	require.NoError(t, err)
	return head
}

func (s *suite) log(t *testing.T, q catalog.LogQuery) []catalog.Commit {
	t.Helper()
	var commits []catalog.Commit
	for c, err := range s.client.Log(t.Context(), q) {
		require.NoError(t, err)
		commits = append(commits, c)
	}
	return commits
}

func messages(commits []catalog.Commit) []string {
	var all []string
	for _, c := range commits {
		all = append(all, c.Message)
	}
	return all
}

// table is a table's content at a snapshot, without an id: a new one.
func table(snapshot int64) catalog.Content {
	return catalog.Content{
		Type: catalog.ContentTypeIceberg, MetadataLocation: fmt.Sprintf("s3://bucket/ns/metadata/%d.json", snapshot),
		SnapshotID: snapshot, SchemaID: 1, SpecID: 2, SortOrderID: 3,
	}
}

// at is a content at another snapshot.
func at(c catalog.Content, snapshot int64) catalog.Content {
	changed := table(snapshot)
	changed.ID = c.ID
	return changed
}

func put(c catalog.Content, key ...string) catalog.Operation {
	return catalog.Operation{Type: catalog.Put, Key: key, Content: c}
}

func remove(key ...string) catalog.Operation {
	return catalog.Operation{Type: catalog.Delete, Key: key}
}

// object is a JSON object, numbers as json.Number.
type object = map[string]any

// ask sends one plain request; the answer is nil where the body is empty. Path segments are already encoded.
func (s *suite) ask(t *testing.T, method, path string, query url.Values, body any) (int, object) {
	t.Helper()
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		sent = bytes.NewReader(text)
	}
	address := s.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, address, sent)
	require.NoError(t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.http.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	if len(text) == 0 {
		return response.StatusCode, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var answer object
	require.NoError(t, decoder.Decode(&answer), "%s %s: %s", method, path, text)
	return response.StatusCode, answer
}

// get is ask for what must succeed.
func (s *suite) get(t *testing.T, path string, query url.Values) object {
	t.Helper()
	status, answer := s.ask(t, http.MethodGet, path, query, nil)
	require.Equal(t, http.StatusOK, status, "%s: %v", path, answer)
	return answer
}

// tree is the path of a reference; the text is encoded here.
func tree(ref, rest string) string { return "/trees/" + url.PathEscape(ref) + rest }

// field walks into an answer: names, and numbers of list elements.
func field(t *testing.T, answer any, path string) any {
	t.Helper()
	for step := range strings.SplitSeq(path, ".") {
		switch value := answer.(type) {
		case object:
			answer = value[step]
		case []any:
			var i int
			_, err := fmt.Sscan(step, &i)
			require.NoError(t, err)
			require.Less(t, i, len(value), path)
			answer = value[i]
		default:
			require.Fail(t, "the answer holds no "+path)
		}
	}
	return answer
}

// logged gives the messages of a raw page of the log.
func logged(t *testing.T, page object) []string {
	t.Helper()
	entries, ok := page["logEntries"].([]any)
	require.True(t, ok, page)
	var all []string
	for _, e := range entries {
		all = append(all, field(t, e, "commitMeta.message").(string))
	}
	return all
}

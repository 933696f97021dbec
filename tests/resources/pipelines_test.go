// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// runs has a test for each pipeline.
var runs = map[string]func(*testing.T, *shop){
	"webhook.yaml":             runWebhook,
	"files_by_snapshot.yaml":   runFilesBySnapshot,
	"changelog_to_cache.yaml":  runChangelogToCache,
	"enrich_from_cache.yaml":   runEnrichFromCache,
	"changelog_to_files.yaml":  runChangelogToFiles,
	"changelog_to_sqlite.yaml": runChangelogToSQLite,
	"kafka.yaml":               runKafka,
	"fan_out.yaml":             runFanOut,
}

// elsewhere are pipelines that need a server, and share all but the dialect with one that is run here.
var elsewhere = map[string]string{"changelog_to_postgres.yaml": "changelog_to_sqlite.yaml"}

func TestPipelinesDoWhatTheySay(t *testing.T) {
	for _, name := range pipelines(t) {
		if elsewhere[name] != "" {
			continue
		}
		run, ok := runs[name]
		require.True(t, ok, "resources/pipelines/%s is run by no test", name)
		t.Run(name, func(t *testing.T) { run(t, newShop(t)) })
	}
}

// pipelines lists the pipeline files.
func pipelines(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(root + "/resources/pipelines/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_benthos_test.yaml") {
			names = append(names, name)
		}
	}
	require.Len(t, names, len(runs)+len(elsewhere))
	return names
}

func TestPipelinesLint(t *testing.T) {
	args := []string{"lint", "-t", "resources/templates/nessie_table.yaml"}
	for _, name := range pipelines(t) {
		args = append(args, "resources/pipelines/"+name)
	}
	got := execute(t, "", nil, append(args, "resources/parts/file_of_snapshot.yaml")...)
	assert.Equal(t, 0, got.code, got.stdout+got.stderr)
	got = execute(t, "", nil, "template", "lint", "./resources/templates/nessie_table.yaml")
	assert.Equal(t, 0, got.code, got.stdout+got.stderr)
}

func TestUnitTestsPass(t *testing.T) {
	got := execute(t, "", nil, "test", "./resources/...")
	assert.Equal(t, 0, got.code, got.stdout+got.stderr)
	for _, name := range pipelines(t) {
		if name != "fan_out.yaml" { // its processor is a part with tests of its own
			assert.Contains(t, got.stdout, "Test 'resources/pipelines/"+name+"' succeeded")
		}
	}
	assert.Contains(t, got.stdout, "Test 'resources/parts/file_of_snapshot.yaml' succeeded")
}

func runWebhook(t *testing.T, s *shop) {
	type post struct{ body, id string }
	got := make(chan post, 100)
	refused := false
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if strings.Contains(string(body), `"id":2`) && !refused {
			refused = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got <- post{string(body), r.Header.Get("X-Row-Id")}
	}))
	defer sink.Close()
	s.env = append(s.env, "WEBHOOK_URL="+sink.URL)
	first := s.commit(orders, nessietest.Append(`{"id":1,"item":"lamp"}`, `{"id":2,"item":"desk"}`))
	s.run("webhook.yaml")
	second := s.commit(orders, nessietest.Append(`{"id":3,"item":"chair"}`))
	s.run("webhook.yaml")
	close(got)
	var rows, ids []string
	for p := range got {
		var envelope struct {
			Row         json.RawMessage
			Table       string
			Snapshot    string
			CommittedAt string `json:"committed_at"`
		}
		require.NoError(t, json.Unmarshal([]byte(p.body), &envelope), p.body)
		assert.Equal(t, "sales.orders", envelope.Table)
		assert.Regexp(t, `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, envelope.CommittedAt)
		assert.Contains(t, p.id, "/"+envelope.Snapshot+"/")
		rows = append(rows, envelope.Snapshot+string(envelope.Row))
		ids = append(ids, p.id)
	}
	assert.Equal(t, []string{first + `{"id":1,"item":"lamp"}`, first + `{"id":2,"item":"desk"}`, second + `{"id":3,"item":"chair"}`}, rows)
	slices.Sort(ids)
	assert.Len(t, slices.Compact(ids), 3)
}

func runFilesBySnapshot(t *testing.T, s *shop) {
	first := s.commit(orders, nessietest.Append(`{"id":1,"item":"lamp"}`, `{"id":2,"item":"desk"}`))
	s.run("files_by_snapshot.yaml")
	second := s.commit(orders, nessietest.Append(`{"id":3,"item":"chair"}`))
	s.run("files_by_snapshot.yaml")
	s.run("files_by_snapshot.yaml")
	assert.Equal(t, map[string]string{
		"orders/000001-" + first + ".jsonl":  "{\"id\":1,\"item\":\"lamp\"}\n{\"id\":2,\"item\":\"desk\"}\n",
		"orders/000002-" + second + ".jsonl": "{\"id\":3,\"item\":\"chair\"}\n",
	}, filesBelow(t, filepath.Join(s.dir, "out")))
}

func runChangelogToCache(t *testing.T, s *shop) {
	s.commit(customers, nessietest.Append(`{"id":1,"name":"Ann"}`, `{"id":2,"name":"Bob"}`, `{"id":3,"name":"Cy"}`))
	s.run("changelog_to_cache.yaml")
	cached := func() map[string]string { return filesBelow(t, filepath.Join(s.dir, "customers")) }
	assert.Equal(t, map[string]string{
		"customer-1": `{"id":1,"name":"Ann"}`, "customer-2": `{"id":2,"name":"Bob"}`, "customer-3": `{"id":3,"name":"Cy"}`,
	}, cached())

	s.commit(customers, nessietest.Delete(withID(1)))
	s.commit(customers, nessietest.Overwrite(withID(3), `{"id":3,"name":"Cyd"}`))
	s.commit(customers, nessietest.Append(`{"id":4,"name":"Di"}`), nessietest.Compact())
	s.run("changelog_to_cache.yaml")
	assert.Equal(t, map[string]string{
		"customer-2": `{"id":2,"name":"Bob"}`, "customer-3": `{"id":3,"name":"Cyd"}`, "customer-4": `{"id":4,"name":"Di"}`,
	}, cached())
}

func runEnrichFromCache(t *testing.T, s *shop) {
	s.commit(customers, nessietest.Append(`{"id":2,"name":"Bob"}`))
	s.run("changelog_to_cache.yaml")
	got := s.runOn("{\"order\":11,\"customer_id\":2}\n{\"order\":12,\"customer_id\":9}\n", "enrich_from_cache.yaml", "-s", "logger.level=OFF")
	assert.ElementsMatch(t, []string{`{"customer":"Bob","customer_id":2,"order":11}`, `{"customer":null,"customer_id":9,"order":12}`},
		strings.Split(strings.TrimSpace(got), "\n"), "in any order, as many threads work")
}

func runChangelogToFiles(t *testing.T, s *shop) {
	s.commit(customers, nessietest.Append(`{"id":1,"name":"Ann"}`, `{"id":2,"name":"Bob"}`))
	s.run("changelog_to_files.yaml")
	s.commit(customers, nessietest.Overwrite(withID(2), `{"id":2,"name":"Rob"}`))
	s.commit(customers, nessietest.Delete(withID(1)))
	s.commit(customers, nessietest.Append(`{"id":5,"name":"Eve"}`))
	s.run("changelog_to_files.yaml")

	files := filesBelow(t, filepath.Join(s.dir, "out"))
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	require.Len(t, names, 4)
	table := map[string]int{}
	for _, name := range names {
		for line := range strings.Lines(files[name]) {
			var change struct {
				Op  string
				Row json.RawMessage
			}
			require.NoError(t, json.Unmarshal([]byte(line), &change))
			switch change.Op {
			case "delete", "update_before":
				table[string(change.Row)]--
			default:
				table[string(change.Row)]++
			}
			if table[string(change.Row)] == 0 {
				delete(table, string(change.Row))
			}
		}
	}
	assert.Equal(t, map[string]int{`{"id":2,"name":"Rob"}`: 1, `{"id":5,"name":"Eve"}`: 1}, table)
	assert.Equal(t, "{\"op\":\"update_before\",\"row\":{\"id\":2,\"name\":\"Bob\"}}\n{\"op\":\"update_after\",\"row\":{\"id\":2,\"name\":\"Rob\"}}\n", files[names[1]])
}

func runChangelogToSQLite(t *testing.T, s *shop) {
	file := filepath.Join(s.dir, "shop.db")
	s.env = append(s.env, "SQLITE_FILE="+file)
	rows := func() string { return s.ask(file, "SELECT id, name FROM customers ORDER BY id") }
	s.commit(customers, nessietest.Append(`{"id":1,"name":"Ann"}`, `{"id":2,"name":"Bob"}`, `{"id":3}`))
	s.run("changelog_to_sqlite.yaml")
	assert.JSONEq(t, `[{"id":1,"name":"Ann"},{"id":2,"name":"Bob"},{"id":3,"name":null}]`, rows())
	s.commit(customers, nessietest.Delete(withID(1)))
	s.commit(customers, nessietest.Overwrite(withID(3), `{"id":3,"name":"Cyd"}`))
	s.commit(customers, nessietest.Append(`{"id":4,"name":"D'Arcy"}`), nessietest.Compact())
	s.run("changelog_to_sqlite.yaml")
	assert.JSONEq(t, `[{"id":2,"name":"Bob"},{"id":3,"name":"Cyd"},{"id":4,"name":"D'Arcy"}]`, rows())
	s.recreate(customers, nessietest.Append(`{"id":7,"name":"Gus"}`))
	s.run("changelog_to_sqlite.yaml", "-s", "input.nessie.on_table_replaced=restart")
	assert.JSONEq(t, `[{"id":7,"name":"Gus"}]`, rows(), "what the table before it held is gone")

	text, err := os.ReadFile(filepath.Join(root, "resources", "pipelines", "changelog_to_sqlite.yaml"))
	require.NoError(t, err)
	deletes := regexp.MustCompile(`DELETE FROM customers WHERE id .*`).FindAllString(string(text), -1)
	require.Len(t, deletes, 1)
	plan := s.ask(file, "EXPLAIN QUERY PLAN "+strings.ReplaceAll(deletes[0], "?", "7"))
	assert.Contains(t, plan, "SEARCH customers USING INTEGER PRIMARY KEY", "a delete does not look at every row")
}

func runKafka(t *testing.T, s *shop) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "customers"))
	require.NoError(t, err)
	defer cluster.Close()
	s.env = append(s.env, "KAFKA_BROKERS="+cluster.ListenAddrs()[0])
	s.commit(customers, nessietest.Append(`{"id":1,"name":"Ann"}`, `{"id":2,"name":"Bob"}`))
	s.run("kafka.yaml")
	s.commit(customers, nessietest.Overwrite(withID(2), `{"id":2,"name":"Rob"}`))
	last := s.commit(customers, nessietest.Delete(withID(1)))
	s.run("kafka.yaml")

	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("customers"))
	require.NoError(t, err)
	defer client.Close()
	var records []*kgo.Record
	for len(records) < 4 {
		fetched := client.PollFetches(t.Context())
		require.NoError(t, fetched.Err())
		records = append(records, fetched.Records()...)
	}
	var got []string
	for _, r := range records {
		got = append(got, string(r.Key)+"="+string(r.Value))
	}
	assert.Equal(t, []string{`1={"id":1,"name":"Ann"}`, `2={"id":2,"name":"Bob"}`, `2={"id":2,"name":"Rob"}`, "1="}, got)
	assert.Nil(t, records[3].Value, "a tombstone")
	assert.Contains(t, records[3].Headers, kgo.RecordHeader{Key: "snapshot_id", Value: []byte(last)})
}

func runFanOut(t *testing.T, s *shop) {
	one := s.commit(orders, nessietest.Append(`{"id":1,"item":"lamp"}`))
	two := s.commit(customers, nessietest.Append(`{"id":1,"name":"Ann"}`))
	args := []string{"-t", "resources/templates/nessie_table.yaml", "-r", "resources/parts/file_of_snapshot.yaml"}
	s.run("fan_out.yaml", args...)
	three := s.commit(customers, nessietest.Overwrite(withID(1), `{"id":1,"name":"Anna"}`))
	s.run("fan_out.yaml", args...)
	assert.Equal(t, map[string]string{
		"sales/orders/000001-" + one + ".jsonl":      "{\"id\":1,\"item\":\"lamp\"}\n",
		"sales/customers/000001-" + two + ".jsonl":   "{\"id\":1,\"name\":\"Ann\"}\n",
		"sales/customers/000002-" + three + ".jsonl": "{\"id\":1,\"name\":\"Anna\"}\n",
	}, filesBelow(t, filepath.Join(s.dir, "out")))
}

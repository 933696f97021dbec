// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// declared are the input's metrics with their labels, as metrics.go declares them.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), root+"/metrics.go", nil, 0)
	require.NoError(t, err)
	found := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"NewCounter", "NewGauge", "NewTimer"}, method.Sel.Name) {
			return true
		}
		var words []string
		for _, arg := range call.Args {
			word, err := strconv.Unquote(arg.(*ast.BasicLit).Value)
			require.NoError(t, err)
			words = append(words, word)
		}
		found[words[0]] = words[1:]
		if method.Sel.Name == "NewTimer" { // a summary or a histogram
			found[words[0]+"_sum"], found[words[0]+"_count"] = words[1:], words[1:]
		}
		return true
	})
	require.NotEmpty(t, found)
	return found
}

// exported are the metrics that a running pipeline shows to Prometheus.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	s := newShop(t)
	s.commit(orders, nessietest.Append(`{"id":1,"item":"lamp"}`))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	path := filepath.Join(s.dir, "watched.yaml")
	config := "http: { address: " + address + " }\nmetrics: { prometheus: {} }\n" +
		"input: { nessie: { base_url: \"${NESSIE_URL}\", namespace: sales, table: orders, poll_interval: 50ms, incremental_by_snapshot: true,\n" +
		"  checkpoint_cache: progress, storage: { local_root: \"${LOCAL_ROOT}\" } } }\noutput: { drop: {} }\n" +
		"cache_resources: [ { label: progress, nessie_durable_file: { directory: \"${CHECKPOINT_DIR}\" } } ]\n"
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	cmd := exec.Command(binary, "run", path)
	cmd.Env = append(os.Environ(), s.env...)
	require.NoError(t, cmd.Start())
	defer func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait())
	}()
	// Some counters show a zero before anything runs.
	written, idle := regexp.MustCompile(`nessie_checkpoint_writes\{[^}]*\} [1-9]`), regexp.MustCompile(`nessie_polls\{[^}]*result="unchanged"[^}]*\} [1-9]`)
	var text string
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		text = string(body)
		return err == nil && written.MatchString(text) && idle.MatchString(text)
	}, 30*time.Second, 50*time.Millisecond)
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		if name := regexp.MustCompile(`^[a-z_]+`).FindString(line); name != "" {
			names[name] = true
		}
	}
	return names
}

var (
	metricName = regexp.MustCompile(`\b(?:nessie|input|output)_[a-z_]+\b`)
	selector   = regexp.MustCompile(`\b((?:nessie|input|output)_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`by \(([^)]*)\)`)
)

// checkQuery holds a query to names that one run exports, and to labels and label values that exist.
func checkQuery(t *testing.T, query string, declared map[string][]string, exported map[string]bool) {
	t.Helper()
	labels := []string{"table", "label", "path", "instance", "job"}
	for _, name := range metricName.FindAllString(query, -1) {
		assert.True(t, exported[name], "%s: no pipeline exports %s", query, name)
		labels = append(labels, declared[name]...)
	}
	for _, s := range selector.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			assert.Contains(t, append([]string{"label", "path"}, declared[s[1]]...), m[1], query)
			if !strings.HasPrefix(m[2], "$") {
				for value := range strings.SplitSeq(m[2], "|") {
					assert.True(t, inSource(t, value), "%s: no label has the value %q", query, value)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			assert.Contains(t, labels, strings.TrimSpace(label), query)
		}
	}
}

// inSource tells whether a word is a string constant of the input or of the cache.
func inSource(t *testing.T, word string) bool {
	t.Helper()
	for _, pattern := range []string{"/*.go", "/cache/*.go"} {
		paths, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if !strings.HasSuffix(path, "_test.go") && strings.Contains(string(text), strconv.Quote(word)) {
				return true
			}
		}
	}
	return false
}

func TestTheDashboardAsksForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(root + "/resources/grafana/rpk-nessie.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	ours, all := declared(t), exported(t)
	used, ids := map[string]bool{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		assert.False(t, ids[p.ID], "panel id %d is used twice", p.ID)
		ids[p.ID] = true
		assert.True(t, p.Type == "row" || len(p.Targets) > 0, p.Title)
		for _, target := range p.Targets {
			checkQuery(t, target.Expr, ours, all)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				used[strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")] = true
			}
		}
	}
	for name := range ours {
		if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			assert.True(t, used[name], "the dashboard does not show %s", name)
		}
	}
}

func TestAlertsAskForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(root + "/resources/prometheus/alerts.yaml")
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rules))
	ours, all := declared(t), exported(t)
	require.Len(t, rules.Groups, 1)
	for _, r := range rules.Groups[0].Rules {
		checkQuery(t, r.Expr, ours, all)
		assert.Regexp(t, `^Nessie[A-Z]\w+$`, r.Alert)
		assert.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		for _, doc := range regexp.MustCompile(`docs/[a-z_-]+\.md`).FindAllString(fmt.Sprint(r.Annotations), -1) {
			assert.FileExists(t, filepath.Join(root, doc))
		}
	}
}

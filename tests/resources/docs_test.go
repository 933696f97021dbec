// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages are all Markdown files for users, by path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "resources/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			found[name] = string(text)
		}
	}
	return found
}

var (
	code    = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	section = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	require.Contains(t, all, "docs/README.md")
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			_, err := os.Stat(filepath.Join(root, target))
			assert.NoError(t, err, "%s links to %s", name, m[1])
			if anchor != "" {
				assert.Contains(t, anchors(all[target]), anchor, "%s links to %s", name, m[1])
			}
		}
	}
}

// anchors are what GitHub makes of a page's headings.
func anchors(text string) (names []string) {
	for _, m := range section.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		names = append(names, kept)
	}
	return names
}

func TestPipelinesInTheDocumentationLint(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	linted := 0
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/reference") {
			continue // skeletons without values; their examples are linted with the specifications
		}
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "input:") {
				continue
			}
			path := filepath.Join(t.TempDir(), "pipeline.yaml")
			require.NoError(t, os.WriteFile(path, []byte(m[1]), 0o600))
			got := execute(t, "", nil, "lint", "--skip-env-var-check", path)
			assert.Equal(t, 0, got.code, "%s:\n%s%s", name, m[1], got.stdout+got.stderr)
			linted++
		}
	}
	assert.GreaterOrEqual(t, linted, 4)
}

// Files of streams may not hold resources, which the page on sizing says, and where they go instead.
func TestStreamsTakeResourcesFromAFileOfTheirOwn(t *testing.T) {
	page := pages(t)["docs/sizing.md"]
	block := regexp.MustCompile("(?ms)^```yaml\n# resources.yaml\n(.*?)^```$").FindStringSubmatch(page)
	require.NotNil(t, block)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	resources := write("resources.yaml", block[1])
	got := execute(t, "", nil, "lint", resources)
	assert.Equal(t, 0, got.code, got.stdout+got.stderr)

	const stream = "input: { generate: { count: 1, mapping: 'root = 1' } }\noutput: { drop: {} }\n"
	got = execute(t, "", nil, "streams", "-r", resources, write("orders.yaml", stream+block[1]))
	assert.NotEqual(t, 0, got.code)
	refusal := "field cache_resources not recognised"
	assert.Contains(t, got.stdout+got.stderr, refusal)
	assert.Contains(t, page, refusal)
}

// What the documentation shows as a build of one's own is the one that is built and run by a test.
func TestGoInTheDocumentationIsTheExampleModule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/example-module/main.go"))
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(text), "\npackage main\n")
	require.True(t, ok)
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	for _, name := range []string{"README.md", "docs/own-build.md"} {
		blocks := block.FindAllStringSubmatch(pages(t)[name], -1)
		require.Len(t, blocks, 1, name)
		assert.Equal(t, "package main\n"+program, blocks[0][1], name)
	}
}

func TestTheVariablesOfThePipelinesAreListed(t *testing.T) {
	variable := regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)`)
	used := map[string]bool{}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "resources"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		return err
	}))
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`").FindAllStringSubmatch(pages(t)["resources/README.md"], -1) {
		listed[m[1]] = true
	}
	require.Contains(t, used, "KAFKA_TOPIC")
	assert.Equal(t, used, listed)
}

func TestTroubleshootingQuotesMessagesThatExist(t *testing.T) {
	var source strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	}))
	// Names of fields and the like stand in the source as verbs of a format.
	all := regexp.MustCompile(`%[a-z]`).ReplaceAllString(source.String(), "%")
	own, _, ok := strings.Cut(pages(t)["docs/troubleshooting.md"], "\n## Messages of Benthos")
	require.True(t, ok)
	quoted := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(own, -1)
	require.GreaterOrEqual(t, len(quoted), 20)
	for _, m := range quoted {
		if m[1] == "connection refused" { // the system's
			continue
		}
		if !strings.Contains(all, m[1]) { // all would be long to print
			t.Errorf("no message says %q", m[1])
		}
	}
}

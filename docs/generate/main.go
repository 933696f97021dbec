// SPDX-License-Identifier: Apache-2.0

// Command generate writes the reference of components, a Markdown page each, from the specifications that a binary
// prints of itself:
//
//	rpk-nessie list --format json-full | go run ./docs/generate docs/reference
//
// Components that come with Benthos are left out. With -check nothing is written: pages that differ from what would be
// are named, and the exit code is 1.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a page is not up to date")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: rpk-nessie list --format json-full | go run ./docs/generate [-check] FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Stdin, namesIn(service.GlobalEnvironment()), flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate writes or checks the pages of all components in a schema but those that are known from elsewhere.
func generate(schema io.Reader, known map[string]bool, dir string, check bool) error {
	text, err := io.ReadAll(schema)
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	parsed, err := service.ConfigSchemaFromJSONV0(text)
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	if err := registerGlobally(text); err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	pages, err := pagesOf(parsed.Environment(), known)
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		return errors.New("the schema holds no component that Benthos does not have")
	}
	if check {
		return compare(pages, dir)
	}
	return write(pages, dir)
}

// pagesOf is the content of each page by its file name, with an index.
func pagesOf(env *service.Environment, known map[string]bool) (map[string][]byte, error) {
	pages, index := map[string][]byte{}, []component{}
	for c, view := range components(env) {
		if known[c.id()] {
			continue
		}
		page, summary, err := render(c, view)
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", c.id(), err)
		}
		c.summary = summary
		index = append(index, c)
		pages[c.file()] = page
	}
	if len(pages) > 0 {
		pages["README.md"] = renderIndex(index)
	}
	return pages, nil
}

func write(pages map[string][]byte, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	left, err := leftOver(pages, dir)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compare(pages map[string][]byte, dir string) error {
	stale, err := leftOver(pages, dir)
	if err != nil {
		return err
	}
	for name, page := range pages {
		if there, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(there, page) {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("not up to date in %s (make docs): %s", dir, strings.Join(stale, ", "))
	}
	return nil
}

// leftOver lists the pages in a folder that no component has any more.
func leftOver(pages map[string][]byte, dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if _, wanted := pages[e.Name()]; !wanted && strings.HasSuffix(e.Name(), ".md") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

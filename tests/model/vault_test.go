// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// vault keeps a second name for every file of a warehouse, so that whatever is
// deleted there can be put back.
type vault struct {
	rt    failer
	root  string
	kept  string
	files map[string]bool // relative paths
	// spoiled are the files that are there and damaged.
	spoiled map[string]bool
}

func newVault(rt failer, root, kept string) *vault {
	return &vault{rt: rt, root: root, kept: kept, files: map[string]bool{}, spoiled: map[string]bool{}}
}

// secure keeps the files that are new since the last call, and lists them.
func (v *vault) secure() []string {
	if v == nil {
		return nil
	}
	var found []string
	err := filepath.WalkDir(v.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(v.root, path)
		if err != nil || v.files[rel] {
			return err
		}
		copied := filepath.Join(v.kept, rel)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		if err := os.Link(path, copied); err != nil {
			return err
		}
		v.files[rel] = true
		found = append(found, rel)
		return nil
	})
	if err != nil {
		v.rt.Fatalf("keeping the warehouse's files: %v", err)
	}
	return found
}

func (v *vault) remove(rel string) {
	if err := os.Remove(filepath.Join(v.root, rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.rt.Fatalf("removing a file: %v", err)
	}
}

// spoil leaves the first half of a file.
func (v *vault) spoil(rel string) {
	whole, err := os.ReadFile(filepath.Join(v.kept, rel))
	check(v.rt, err)
	v.remove(rel)
	check(v.rt, os.WriteFile(filepath.Join(v.root, rel), whole[:len(whole)/2], 0o600))
	v.spoiled[rel] = true
}

func (v *vault) missing(rel string) bool {
	_, err := os.Stat(filepath.Join(v.root, rel))
	return err != nil
}

// lacks tells whether any file is missing.
func (v *vault) lacks() bool {
	for rel := range v.files {
		if v.missing(rel) {
			return true
		}
	}
	return false
}

// restore puts all files back, and says how many were missing.
func (v *vault) restore() int {
	restored := 0
	for rel := range v.spoiled {
		v.remove(rel)
	}
	clear(v.spoiled)
	for rel := range v.files {
		err := os.Link(filepath.Join(v.kept, rel), filepath.Join(v.root, rel))
		switch {
		case err == nil:
			restored++
		case !errors.Is(err, fs.ErrExist):
			v.rt.Fatalf("putting a file back: %v", err)
		}
	}
	return restored
}

// rel is the path in the vault of a location.
func (v *vault) rel(location string) string {
	rel, err := filepath.Rel(v.root, strings.TrimPrefix(location, "file://"))
	if err != nil {
		v.rt.Fatalf("location %s: %v", location, err)
	}
	return rel
}

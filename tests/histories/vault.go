// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Vault keeps a second name for every file of a warehouse, so that whatever is deleted there can be put back. A file is
// named by its path from the warehouse. A nil Vault keeps none.
type Vault struct {
	t       Failer
	root    string
	kept    string
	files   map[string]bool
	spoiled map[string]bool // that are there and damaged
}

// NewVault keeps the files of a folder in another beside it.
func NewVault(t Failer, warehouse string) *Vault {
	return &Vault{t: t, root: warehouse, kept: warehouse + "-kept", files: map[string]bool{}, spoiled: map[string]bool{}}
}

// Secure keeps the files that are new since the last call, and lists them.
func (v *Vault) Secure() []string {
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
		second := filepath.Join(v.kept, rel)
		if err := os.MkdirAll(filepath.Dir(second), 0o700); err != nil {
			return err
		}
		if err := os.Link(path, second); err != nil {
			return err
		}
		v.files[rel] = true
		found = append(found, rel)
		return nil
	})
	if err != nil {
		v.t.Fatalf("keeping the warehouse's files: %v", err)
	}
	return found
}

// Remove takes a file from the warehouse.
func (v *Vault) Remove(rel string) {
	if err := os.Remove(filepath.Join(v.root, rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.t.Fatalf("removing a file: %v", err)
	}
}

// Spoil leaves the first half of a file.
func (v *Vault) Spoil(rel string) {
	whole, err := os.ReadFile(filepath.Join(v.kept, rel))
	Check(v.t, err)
	v.Remove(rel)
	Check(v.t, os.WriteFile(filepath.Join(v.root, rel), whole[:len(whole)/2], 0o600))
	v.spoiled[rel] = true
}

// Spoiled are the files that are there and damaged.
func (v *Vault) Spoiled() []string { return slices.Collect(maps.Keys(v.spoiled)) }

// Misses tells whether a file is gone.
func (v *Vault) Misses(rel string) bool {
	_, err := os.Stat(filepath.Join(v.root, rel))
	return err != nil
}

// MissesAny tells whether any file is gone.
func (v *Vault) MissesAny() bool {
	for rel := range v.files {
		if v.Misses(rel) {
			return true
		}
	}
	return false
}

// Restore puts all files back, and says how many were gone.
func (v *Vault) Restore() (restored int) {
	for rel := range v.spoiled {
		v.Remove(rel)
	}
	clear(v.spoiled)
	for rel := range v.files {
		err := os.Link(filepath.Join(v.kept, rel), filepath.Join(v.root, rel))
		switch {
		case err == nil:
			restored++
		case !errors.Is(err, fs.ErrExist):
			v.t.Fatalf("putting a file back: %v", err)
		}
	}
	return restored
}

// Path is the path in the vault of a location.
func (v *Vault) Path(location string) string {
	rel, err := filepath.Rel(v.root, strings.TrimPrefix(location, "file://"))
	if err != nil {
		v.t.Fatalf("location %s: %v", location, err)
	}
	return rel
}

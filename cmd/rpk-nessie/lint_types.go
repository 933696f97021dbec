// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"
)

// typeLint adds to `lint` what Benthos's leaves to the start: a number or a boolean of a component that is none. Benthos has
// no rule for that, and where it meets one it asks no other rule of the component either.
type typeLint struct{ found bool }

// beforeLint prints what it finds as Benthos's lint, which comes next, prints the rest.
func (t *typeLint) beforeLint(c *cli.Context) error {
	if c.Command.Name != "lint" {
		return nil
	}
	types, err := componentTypes(schema())
	if err != nil {
		return err
	}
	targets := append(c.Args().Slice(), c.StringSlice(flagResources)...)
	for _, path := range configurations(append(targets, c.String(flagConfig))) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // Benthos's lint says it
		}
		replaced, err := replaceEnv(string(text), func(name string) (string, bool) { return os.Getenv(name), true })
		if err != nil {
			continue // the same
		}
		for _, w := range types.wrong(replaced) {
			t.found = true
			fmt.Fprintf(os.Stderr, "%s(%d,1) %s\n", path, w.line, w.what)
		}
	}
	return nil
}

// exitCode is that of a lint that found something.
func (t *typeLint) exitCode(code int) int {
	if t.found {
		return max(code, 1)
	}
	return code
}

// configurations are the YAML files that arguments of lint name: files, patterns, and folders with /... behind them.
func configurations(arguments []string) []string {
	var found []string
	for _, argument := range arguments {
		folder, below := strings.CutSuffix(argument, "...")
		if !below {
			paths, _ := service.Globs(service.OSFS(), argument) // Benthos's lint says what is wrong
			found = append(found, paths...)
			continue
		}
		_ = filepath.WalkDir(filepath.Clean(folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				found = append(found, path)
			}
			return err
		})
	}
	return slices.DeleteFunc(found, func(path string) bool { return !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) })
}

// fieldType is what the schema says of a field, as JSON.
type fieldType struct {
	Name     string      `json:"name"`
	Type     string      `json:"type"` // of a value, or the kind of component that stands here
	Kind     string      `json:"kind"` // scalar, array, 2darray or map
	Children []fieldType `json:"children"`
}

// schemaTypes are the fields of a configuration, and of components by kind and name.
type schemaTypes struct {
	fields     []fieldType
	components map[string]map[string]fieldType
}

func componentTypes(schema *service.ConfigSchema) (*schemaTypes, error) {
	text, err := schema.MarshalJSONV0()
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	s := &schemaTypes{components: map[string]map[string]fieldType{}}
	if err := json.Unmarshal(all["config"], &s.fields); err != nil {
		return nil, err
	}
	for kind, key := range map[string]string{
		"input": "inputs", "output": "outputs", "processor": "processors", "cache": "caches", "rate_limit": "rate-limits",
		"buffer": "buffers", "metrics": "metrics", "tracer": "tracers", "scanner": "scanners",
	} {
		var components []struct {
			Name   string    `json:"name"`
			Config fieldType `json:"config"`
		}
		if err := json.Unmarshal(all[key], &components); err != nil {
			return nil, fmt.Errorf("reading the schema's %s: %w", key, err)
		}
		s.components[kind] = map[string]fieldType{}
		for _, c := range components {
			s.components[kind][c.Name] = c.Config
		}
	}
	return s, nil
}

// wrongType is a value that can't stand in its field.
type wrongType struct {
	line int
	what string
}

// wrong lists the values of a configuration whose type is not their field's. What is no YAML is left to others.
func (s *schemaTypes) wrong(text string) []wrongType {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	var found []wrongType
	w := typeWalk{schemaTypes: s, report: func(f wrongType) { found = append(found, f) }}
	w.object(s.fields, document.Content[0])
	return found
}

// typeWalk goes through a configuration along its schema.
type typeWalk struct {
	*schemaTypes
	report func(wrongType)
	// inside a component: values of the configuration itself are looked at by Benthos.
	inside bool
}

func (w typeWalk) object(fields []fieldType, node *yaml.Node) {
	for key, value := range members(node) {
		if i := slices.IndexFunc(fields, func(f fieldType) bool { return f.Name == key }); i >= 0 {
			w.field(fields[i], value)
		}
	}
}

// field looks at a value, or at each element of a list or map of values.
func (w typeWalk) field(f fieldType, node *yaml.Node) {
	node = resolved(node)
	inner := f
	switch f.Kind {
	case "array", "2darray":
		inner.Kind = map[string]string{"array": "scalar", "2darray": "array"}[f.Kind]
		if node.Kind == yaml.SequenceNode {
			for _, element := range node.Content {
				w.field(inner, element)
			}
		}
		return
	case "map":
		inner.Kind = "scalar"
		for _, value := range members(node) {
			w.field(inner, value)
		}
		return
	}
	if named, ok := w.components[f.Type]; ok {
		w.component(f.Type, named, node)
		return
	}
	if len(f.Children) > 0 {
		w.object(f.Children, node)
		return
	}
	w.value(f, node)
}

func (w typeWalk) component(kind string, named map[string]fieldType, node *yaml.Node) {
	w.inside = true
	if node.Kind == yaml.ScalarNode && node.Value != "" && node.Tag != "!!null" {
		w.report(wrongType{node.Line, fmt.Sprintf("expected a component of the kind %s, got %q", kind, node.Value)})
	}
	for key, value := range members(node) {
		if f, ok := named[key]; ok {
			w.field(f, value)
		} else if key == "processors" && (kind == "input" || kind == "output") {
			w.field(fieldType{Type: "processor", Kind: "array"}, value)
		}
	}
}

// value decodes a scalar as Benthos does at the start.
func (w typeWalk) value(f fieldType, node *yaml.Node) {
	if !w.inside || node.Kind != yaml.ScalarNode {
		return
	}
	var err error
	var wanted string
	switch f.Type {
	case "int":
		wanted, err = "a whole number", node.Decode(new(int))
	case "float":
		wanted, err = "a number", node.Decode(new(float64))
	case "bool":
		wanted, err = "true or false", node.Decode(new(bool))
	}
	if err == nil {
		return
	}
	if node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		wanted += " without quotes"
	}
	w.report(wrongType{node.Line, fmt.Sprintf("field %s must be %s, got %q", f.Name, wanted, node.Value)})
}

// members are the keys of a mapping with their values, those that `<<` merges into it too.
func members(node *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		node := resolved(node)
		if node.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if key.Tag != "!!merge" {
				if !yield(key.Value, value) {
					return
				}
				continue
			}
			for merged, value := range members(value) {
				if !yield(merged, value) {
					return
				}
			}
		}
	}
}

func resolved(node *yaml.Node) *yaml.Node {
	if node.Alias != nil {
		return node.Alias
	}
	return node
}

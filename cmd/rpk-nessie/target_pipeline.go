// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"

	nessie "github.com/rpk-nessie/rpk-nessie"
)

// inspected is what a configuration holds that matters here. Nothing of it is started.
type inspected struct {
	inputs    []nessieInput
	resources []resource
	// cacheTypes is the type of each cache resource, by label.
	cacheTypes map[string]string
	templates  map[string]inputTemplate
}

// nessieInput is one `nessie` input, wherever it stands: at the root, in a broker, a resource, or what a template becomes.
type nessieInput struct {
	label, path string
	conf        *nessie.Config
}

// name is what --label calls the input: its label, or where it has none its place in the file.
func (n nessieInput) name() string {
	if n.label != "" {
		return n.label
	}
	return n.path
}

// resource is a cache or rate limit resource as YAML.
type resource struct{ kind, yaml string }

// inspectFiles reads a pipeline with its resource and template files. Each is linted as `run` does.
func inspectFiles(config string, resources, templates []string) (*inspected, error) {
	p := &inspected{cacheTypes: map[string]string{}, templates: map[string]inputTemplate{}}
	for path, err := range globs(templates) {
		if err != nil {
			return nil, err
		}
		if err := p.addTemplate(path); err != nil {
			return nil, fmt.Errorf("template %s: %w", path, err)
		}
	}
	if err := p.addFile(config); err != nil {
		return nil, err
	}
	for path, err := range globs(resources) {
		if err != nil {
			return nil, err
		}
		if err := p.addFile(path); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func globs(patterns []string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, pattern := range patterns {
			paths, err := filepath.Glob(pattern)
			if err == nil && len(paths) == 0 {
				err = fmt.Errorf("%s: %w", pattern, os.ErrNotExist)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, path := range paths {
				if !yield(path, nil) {
					return
				}
			}
		}
	}
}

func (p *inspected) addFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	replaced, err := replaceEnv(string(text), os.LookupEnv)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := lint(replaced); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := p.add(replaced); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lint refuses what `run` would.
func lint(text string) error {
	lints, err := schema().NewStreamConfigLinter().SetSkipEnvVarCheck(true).
		SetEnvVarLookupFunc(keepForms).LintYAML([]byte(text))
	if err != nil {
		return err
	}
	types, err := componentTypes(schema())
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range types.wrong(text) {
		errs = append(errs, fmt.Errorf("(%d,1) %s", w.line, w.what))
	}
	for _, l := range lints {
		errs = append(errs, errors.New(l.Error()))
	}
	return errors.Join(errs...)
}

func schema() *service.ConfigSchema {
	version, date := buildStamps()
	return configSchema(version, date)
}

// add takes what matters from a configuration whose environment variables are replaced.
func (p *inspected) add(text string) error {
	return schema().NewStreamConfigWalker().WalkComponentsYAML([]byte(text), p.visit("", ""))
}

// visit takes inputs and resources from a walk. Inputs that a template became are named after it: label and path are the
// template's.
func (p *inspected) visit(label, path string) func(*service.WalkedComponent) error {
	return func(w *service.WalkedComponent) error {
		in := nessieInput{label: w.Label, path: w.Path}
		if path != "" {
			in.path = path + strings.TrimPrefix(w.Path, "input")
			if in.label == "" && w.Path == "input" {
				in.label = label
			}
		}
		tmpl, isTemplate := p.templates[w.ComponentType+"/"+w.Name]
		switch {
		case isTemplate && w.ComponentType == "input":
			rendered, err := tmpl.render(w)
			if err != nil {
				return fmt.Errorf("%s: template %s: %w", in.name(), w.Name, err)
			}
			return schema().NewStreamConfigWalker().WalkComponentsAny(map[string]any{"input": rendered}, p.visit(in.label, in.path))
		case w.ComponentType == "input" && w.Name == "nessie":
			return p.addInput(in, w)
		case path == "" && strings.HasPrefix(w.Path, "cache_resources."):
			p.resources = append(p.resources, resource{"cache", w.ConfigYAML()})
			p.cacheTypes[w.Label] = w.Name
			return service.ErrSkipComponents
		case path == "" && strings.HasPrefix(w.Path, "rate_limit_resources."):
			p.resources = append(p.resources, resource{"rate_limit", w.ConfigYAML()})
			return service.ErrSkipComponents
		}
		return nil
	}
}

func (p *inspected) addInput(in nessieInput, w *service.WalkedComponent) error {
	fields, err := fieldsOf(w)
	if err != nil {
		return err
	}
	if in.conf, err = nessie.ParseInput(fields); err != nil {
		return fmt.Errorf("input %s: %w", in.name(), err)
	}
	p.inputs = append(p.inputs, in)
	return nil
}

// fieldsOf is the YAML below the component's own name.
func fieldsOf(w *service.WalkedComponent) (string, error) {
	var component map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(w.ConfigYAML()), &component); err != nil {
		return "", err
	}
	node, ok := component[w.Name]
	if !ok {
		return "{}", nil
	}
	text, err := yaml.Marshal(&node)
	return string(text), err
}

// choose picks the input with a name; "" will do where there is only one.
func (p *inspected) choose(name string) (nessieInput, error) {
	if name == "" && len(p.inputs) == 1 {
		return p.inputs[0], nil
	}
	if i := slices.IndexFunc(p.inputs, func(in nessieInput) bool { return in.name() == name }); i >= 0 && name != "" {
		return p.inputs[i], nil
	}
	if len(p.inputs) == 0 {
		return nessieInput{}, errors.New("the configuration has no nessie input: where a resource or a template makes it, give their files with -r and -t")
	}
	var b strings.Builder
	if name == "" {
		fmt.Fprintf(&b, "the configuration has %d nessie inputs: choose one with --label", len(p.inputs))
	} else {
		fmt.Fprintf(&b, "the configuration has no nessie input %q: choose one with --label", name)
	}
	for _, in := range p.inputs {
		fmt.Fprintf(&b, "\n  %s (%s on %s)", in.name(), in.conf.Key, in.conf.Ref)
	}
	return nessieInput{}, errors.New(b.String())
}

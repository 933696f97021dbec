// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"
)

// inputTemplate is a Benthos template, of which inputs are rendered to find the nessie inputs in them.
type inputTemplate struct {
	Name   string `yaml:"name"`
	Type   string `yaml:"type"`
	Fields []struct {
		Name    string `yaml:"name"`
		Default *any   `yaml:"default"`
	} `yaml:"fields"`
	Mapping string `yaml:"mapping"`

	mapping *bloblang.Executor
}

// addTemplate registers a template, so that configurations may use it, and keeps it for rendering.
func (p *inspected) addTemplate(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var t inputTemplate
	if err := yaml.Unmarshal(text, &t); err != nil {
		return err
	}
	if t.mapping, err = bloblang.GlobalEnvironment().Parse(t.Mapping); err != nil {
		return fmt.Errorf("mapping: %w", err)
	}
	if err := service.GlobalEnvironment().RegisterTemplateYAML(string(text)); err != nil {
		return err
	}
	p.templates[t.Type+"/"+t.Name] = t
	return nil
}

// render is the component that the template becomes.
func (t inputTemplate) render(w *service.WalkedComponent) (any, error) {
	text, err := fieldsOf(w)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return nil, err
	}
	for _, f := range t.Fields {
		if _, given := fields[f.Name]; !given && f.Default != nil {
			fields[f.Name] = *f.Default
		}
	}
	msg := service.NewMessage(nil)
	msg.SetStructuredMut(fields)
	msg.MetaSetMut("label", w.Label)
	rendered, err := msg.BloblangQuery(t.mapping)
	if err != nil {
		return nil, err
	}
	return rendered.AsStructured()
}

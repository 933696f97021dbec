// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const generated = "<!-- Written by docs/generate from the component's own specification. Do not edit: make docs. -->\n\n"

// render makes a component's page, and returns its summary beside it.
func render(c component, view *service.ConfigView) (page []byte, summary string, err error) {
	data, err := view.TemplateData()
	if err != nil {
		return nil, "", err
	}
	if data.Summary == "" {
		return nil, "", errors.New("it has no summary")
	}
	fields, err := fieldsOf(view)
	if err != nil {
		return nil, "", err
	}
	summary = markdown(data.Summary)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s# `%s` %s\n\n%s\n\nStatus: %s.\n", generated, c.name, c.kind, summary, data.Status)
	if text := markdown(data.Description); text != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.ReplaceAll(text, "### ", "## "))
	}
	fmt.Fprintf(&b, "\n## Configuration\n\n```yaml\n%s```\n", data.CommonConfigYAML)
	if data.AdvancedConfigYAML != data.CommonConfigYAML {
		fmt.Fprintf(&b, "\n<details><summary>With all fields</summary>\n\n```yaml\n%s```\n\n</details>\n", data.AdvancedConfigYAML)
	}
	if len(data.Examples) > 0 {
		b.WriteString("\n## Examples\n")
	}
	for _, e := range data.Examples {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n```yaml\n%s\n```\n", e.Title, markdown(e.Summary), strings.TrimSpace(e.Config))
	}
	b.WriteString("\n## Fields\n")
	for _, f := range data.Fields {
		if err := renderField(&b, f, fields[f.FullName]); err != nil {
			return nil, "", err
		}
	}
	if text := markdown(data.Footnotes); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	return b.Bytes(), summary, nil
}

func renderField(b *bytes.Buffer, f service.TemplateDataPluginField, spec fieldSpec) error {
	if spec.Description == "" {
		return fmt.Errorf("field %s has no description", f.FullName)
	}
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n\n", f.FullName, markdown(f.Description))
	for _, o := range f.AnnotatedOptions {
		fmt.Fprintf(b, "- `%s`: %s\n", o[0], markdown(o[1]))
	}
	if len(f.AnnotatedOptions) > 0 {
		b.WriteString("\n")
	}
	if len(f.Options) > 0 {
		fmt.Fprintf(b, "One of `%s`.\n\n", strings.Join(f.Options, "`, `"))
	}
	traits := []string{"Type: " + f.Type}
	switch {
	case f.DefaultMarshalled != "":
		traits = append(traits, "default: `"+f.DefaultMarshalled+"`")
	case spec.Optional || len(spec.Children) > 0:
		traits = append(traits, "optional")
	default:
		traits = append(traits, "required")
	}
	for _, trait := range []struct {
		name string
		has  bool
	}{{"advanced", spec.Advanced}, {"interpolated", f.IsInterpolated}, {"secret: never logged", f.IsSecret}} {
		if trait.has {
			traits = append(traits, trait.name)
		}
	}
	fmt.Fprintf(b, "%s.\n", strings.Join(traits, ", "))
	for i, example := range f.ExamplesMarshalled {
		if i == 0 {
			b.WriteString("\n```yaml\n")
		}
		b.WriteString(example)
		if i == len(f.ExamplesMarshalled)-1 {
			b.WriteString("```\n")
		} else {
			b.WriteString("# or\n")
		}
	}
	return nil
}

// fieldSpec is what Benthos's template data leaves out of a field.
type fieldSpec struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"`
	Description string      `json:"description"`
	Optional    bool        `json:"is_optional"`
	Advanced    bool        `json:"is_advanced"`
	Children    []fieldSpec `json:"children"`
}

// fieldsOf lists a component's fields by the full name that template data has.
func fieldsOf(view *service.ConfigView) (map[string]fieldSpec, error) {
	text, err := view.FormatJSON()
	if err != nil {
		return nil, err
	}
	var spec struct {
		Config fieldSpec `json:"config"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	fields := map[string]fieldSpec{}
	var walk func(path string, fs []fieldSpec)
	walk = func(path string, fs []fieldSpec) {
		for _, f := range fs {
			fields[path+f.Name] = f
			walk(path+f.Name+suffixes[f.Kind]+".", f.Children)
		}
	}
	walk(strings.TrimPrefix(suffixes[spec.Config.Kind]+".", "."), spec.Config.Children)
	return fields, nil
}

var suffixes = map[string]string{"array": "[]", "2darray": "[][]", "map": ".<name>"}

var asciidocLink = regexp.MustCompile(`(?:xref:|https?://)[^\s\[\]]+\[([^\]]*?)\^?\]`)

// markdown takes the AsciiDoc links out of texts that come from Benthos: they lead to pages of another site.
func markdown(text string) string {
	return strings.TrimSpace(asciidocLink.ReplaceAllString(text, "$1"))
}

func renderIndex(all []component) []byte {
	var b bytes.Buffer
	b.WriteString(generated + `# Reference

Every component that the ` + "`rpk-nessie`" + ` binary has beside those that
[Benthos](https://github.com/redpanda-data/benthos) ships as ` + "`pure` and `io`" + `. All of them are listed by ` +
		"`rpk-nessie list`" + `, and ` + "`rpk-nessie create nessie//file`" + ` prints a configuration with every field.
`)
	kind := ""
	for _, c := range all {
		if c.kind != kind {
			kind = c.kind
			fmt.Fprintf(&b, "\n## %s\n\n", heading(kind))
		}
		fmt.Fprintf(&b, "- [`%s`](%s): %s\n", c.name, c.file(), c.summary)
	}
	return b.Bytes()
}

func heading(kind string) string { return strings.ToUpper(kind[:1]) + kind[1:] + "s" }

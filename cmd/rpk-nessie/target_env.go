// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The forms ${NAME}, ${NAME:default}, ${NAME|base64decode} and the escaped ${{NAME}}, as configuration files have them.
// Benthos replaces them where it parses a whole pipeline, and offers no way to have them replaced alone.
var (
	envPattern     = regexp.MustCompile(`\${[0-9A-Za-z_.]+(:((\${[^}]+})|[^}])*)?(?:\|[0-9A-Za-z]+)?}`)
	escapedPattern = regexp.MustCompile(`\${({[0-9A-Za-z_.]+(:((\${[^}]+})|[^}])*)?})}`)
)

// replaceEnv puts the values of environment variables into a configuration file. A variable that is not set and has no
// default is an error; all of them are named in one.
func replaceEnv(text string, lookup func(string) (string, bool)) (string, error) {
	var failed error
	var missing []string
	replaced := envPattern.ReplaceAllStringFunc(text, func(form string) string {
		value, err := envValue(form[2:len(form)-1], lookup)
		if unset := new(unsetError); errors.As(err, &unset) {
			if !slices.Contains(missing, unset.name) {
				missing = append(missing, unset.name)
			}
		} else if err != nil && failed == nil {
			failed = err
		}
		return strings.ReplaceAll(value, "\n", `\n`)
	})
	switch {
	case len(missing) == 1:
		return "", fmt.Errorf("environment variable %s is not set", missing[0])
	case len(missing) > 1:
		return "", fmt.Errorf("environment variables %s are not set", strings.Join(missing, ", "))
	case failed != nil:
		return "", failed
	}
	return escapedPattern.ReplaceAllString(replaced, "$$$1"), nil
}

// unsetError is a variable that is not set and has no default.
type unsetError struct{ name string }

func (e *unsetError) Error() string { return "environment variable " + e.name + " is not set" }

// envValue is the value of what stands between the braces.
func envValue(form string, lookup func(string) (string, bool)) (string, error) {
	decode := ""
	if i := strings.LastIndexByte(form, '|'); i >= 0 {
		form, decode = form[:i], form[i+1:]
	}
	name, fallback, hasDefault := strings.Cut(form, ":")
	value, set := lookup(name)
	switch {
	case !set && !hasDefault:
		return "", &unsetError{name}
	case value == "" && hasDefault:
		value = fallback
	}
	switch decode {
	case "":
		return value, nil
	case "base64decode":
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return "", fmt.Errorf("decoding environment variable %s: %w", name, err)
		}
		return string(decoded), nil
	}
	return "", fmt.Errorf("environment variable %s: there is no decode function %q", name, decode)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// The forms ${NAME}, ${NAME:default}, ${NAME|base64decode} and the escaped ${{NAME}}, as configuration files have them.
// Benthos replaces them where it parses a whole pipeline, and offers no way to have them replaced alone.
var (
	envPattern     = regexp.MustCompile(`\${[0-9A-Za-z_.]+(:((\${[^}]+})|[^}])*)?(?:\|[0-9A-Za-z]+)?}`)
	escapedPattern = regexp.MustCompile(`\${({[0-9A-Za-z_.]+(:((\${[^}]+})|[^}])*)?})}`)
)

// replaceEnv puts the values of environment variables into a configuration file. A variable that is not set and has no
// default is an error that names it.
func replaceEnv(text string, lookup func(string) (string, bool)) (string, error) {
	var failed error
	replaced := envPattern.ReplaceAllStringFunc(text, func(form string) string {
		value, err := envValue(form[2:len(form)-1], lookup)
		if err != nil && failed == nil {
			failed = err
		}
		return strings.ReplaceAll(value, "\n", `\n`)
	})
	if failed != nil {
		return "", failed
	}
	return escapedPattern.ReplaceAllString(replaced, "$$$1"), nil
}

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
		return "", fmt.Errorf("environment variable %s is not set", name)
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

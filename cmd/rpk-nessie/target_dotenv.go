// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// setEnvFiles puts the variables of dotenv files into this process' environment, over what is there, as `run -e` does.
func setEnvFiles(patterns []string) error {
	for path, err := range globs(patterns) {
		if err != nil {
			return fmt.Errorf("reading an environment file: %w", err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading an environment file: %w", err)
		}
		vars, err := parseDotenv(string(text))
		if err != nil {
			return fmt.Errorf("reading environment file %s: %w", path, err)
		}
		for _, v := range vars {
			if err := os.Setenv(v.name, v.value); err != nil {
				return fmt.Errorf("setting %s of environment file %s: %w", v.name, path, err)
			}
		}
	}
	return nil
}

type variable struct{ name, value string }

// One thing of a dotenv file, with the blanks behind it. Benthos's parser knows these forms and can't be called from outside.
var (
	dotenvSkip = regexp.MustCompile(`^[ \t]*(#[^\n]*)?(\r?\n|$)`)
	dotenvName = regexp.MustCompile(`^([^= \n#]+)[ \t]*=[ \t]*`)
	// A value in triple quotes is as it stands, one in quotes has escapes, any other ends at a blank or #.
	dotenvValue = regexp.MustCompile(`^(?:"""((?s:.*?))"""|("(?:[^"\\\n]|\\.)*")|([^# \r\n]*))`)
)

// parseDotenv reads assignments in their order. Errors name the line.
func parseDotenv(text string) ([]variable, error) {
	var vars []variable
	for rest := text; rest != ""; {
		if skipped := dotenvSkip.FindString(rest); skipped != "" {
			rest = rest[len(skipped):]
			continue
		}
		wrong := func(what string) ([]variable, error) {
			return nil, fmt.Errorf("line %d: %s", 1+strings.Count(text[:len(text)-len(rest)], "\n"), what)
		}
		name := dotenvName.FindStringSubmatch(rest)
		if name == nil {
			return wrong("this is no NAME=value")
		}
		value := dotenvValue.FindStringSubmatch(rest[len(name[0]):])
		v := variable{name[1], value[1] + value[3]}
		if value[2] != "" {
			var err error
			if v.value, err = strconv.Unquote(value[2]); err != nil {
				return wrong("the quoted value of " + v.name + " can't be read")
			}
		}
		after := rest[len(name[0])+len(value[0]):]
		end := dotenvSkip.FindString(after)
		if end == "" && after != "" {
			return wrong("more follows the value of " + v.name + ": put it in quotes")
		}
		vars, rest = append(vars, v), after[len(end):]
	}
	return vars, nil
}

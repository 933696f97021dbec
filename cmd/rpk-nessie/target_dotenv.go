// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
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
		variables, err := parseDotenv(text)
		if err != nil {
			return fmt.Errorf("reading environment file %s: %w", path, err)
		}
		for name, value := range variables {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("setting %s of environment file %s: %w", name, path, err)
			}
		}
	}
	return nil
}

// parseDotenv reads assignments by Benthos's own parser, so that a file means the same here as to `run -e`. Below the first
// line Benthos's errors quote the file, whose values may be secrets.
func parseDotenv(text []byte) (map[string]string, error) {
	variables, err := service.ParseEnvFile(text)
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), "\n")
		_, what, _ = strings.Cut(what, ": ") // the line, which comes again
		return nil, fmt.Errorf("%s: it takes lines NAME=value, and double quotes around values with blanks or #", what)
	}
	return variables, nil
}

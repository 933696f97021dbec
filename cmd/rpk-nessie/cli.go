// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/urfave/cli/v2"
)

const (
	name             = "rpk-nessie"
	documentationURL = "https://github.com/rpk-nessie/rpk-nessie"
)

// Set by the linker: -X main.version=… -X main.dateBuilt=….
var version, dateBuilt string

// cliOptions name Benthos's command line after this product wherever Benthos lets itself be named, and add what is ours.
func cliOptions(failed *inputFailure, types *typeLint) []service.CLIOptFunc {
	version, date := buildStamps()
	cli.AppHelpTemplate = helpTemplate(cli.AppHelpTemplate)
	opts := []service.CLIOptFunc{
		service.CLIOptSetProductName(name),
		service.CLIOptSetBinaryName(name),
		service.CLIOptSetDocumentationURL(documentationURL),
		service.CLIOptSetVersion(version, date),
		service.CLIOptSetDefaultConfigPaths("/"+name+".yaml", "/etc/"+name+"/config.yaml", "/etc/"+name+".yaml"),
		service.CLIOptSetMainSchemaFrom(func() *service.ConfigSchema { return configSchema(version, date) }),
		service.CLIOptOnConfigParse(failed.install),
		service.CLIOptOnStreamStart(failed.watch),
		service.CLIOptCustomRunFlags(nil, types.beforeLint),
		service.CLIOptAddCommand(noStudio()),
	}
	for _, command := range commands() {
		refuseArguments(command)
		opts = append(opts, service.CLIOptAddCommand(command))
	}
	return opts
}

// commands are this program's own, beside Benthos's.
func commands() []*cli.Command {
	return []*cli.Command{
		demoCommand(), lineageCommand(), planCommand(), inspectCommand(), readCommand(), checkpointCommand(), doctorCommand(),
	}
}

// refuseArguments makes a command and those below it refuse arguments, unless its help names them. Flags behind an argument
// are arguments too.
func refuseArguments(command *cli.Command) {
	for _, sub := range command.Subcommands {
		refuseArguments(sub)
	}
	if len(command.Subcommands) > 0 || command.ArgsUsage != "" {
		return
	}
	command.Before = func(c *cli.Context) error {
		if !c.Args().Present() {
			return nil
		}
		return fmt.Errorf("%s takes flags and no arguments, got %q\nUsage: %[1]s [flags]; %[1]s --help lists them", c.Command.HelpName, c.Args().Slice())
	}
}

// configSchema is Benthos's configuration with the defaults that would name Benthos.
func configSchema(version, date string) *service.ConfigSchema {
	schema := service.GlobalEnvironment().FullConfigSchema(version, date)
	schema.SetFieldDefault(map[string]any{"@service": name}, "logger", "static_fields")
	schema.SetFieldDefault("/"+name, "http", "root_path")
	return schema
}

// noStudio takes the place of Benthos's `studio`, which sends pipelines to a service that is not ours. Benthos has no
// option to leave a command out.
func noStudio() *cli.Command {
	return &cli.Command{
		Name:   "studio",
		Hidden: true,
		Action: func(*cli.Context) error { return fmt.Errorf("%s has no studio command", name) },
	}
}

// helpTemplate says in the top-level help what this binary is; Benthos's text there is fixed, and its examples need
// components that are not in this build.
func helpTemplate(benthos string) string {
	const description = `
   Follows Apache Iceberg tables on Project Nessie and delivers their new rows to a pipeline.

     ` + name + ` demo
     ` + name + ` list inputs
     ` + name + ` create nessie//stdout > ./config.yaml
     ` + name + ` lint ./config.yaml
     ` + name + ` run ./config.yaml
     ` + name + ` run -r "./production/*.yaml" ./config.yaml`
	return strings.NewReplacer(
		`{{template "helpNameTemplate" .}}`, name+" - Iceberg tables on Nessie as streams - "+documentationURL,
		"\n   {{template \"descriptionTemplate\" .}}", description,
	).Replace(benthos)
}

// buildStamps are what the linker was told, or else what Go recorded.
func buildStamps() (string, string) {
	v, date := version, dateBuilt
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" && info.Main.Version != "(devel)" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && v == "" {
				v = s.Value
			}
			if s.Key == "vcs.time" && date == "" {
				date = s.Value
			}
		}
	}
	if v == "" {
		v = "unknown"
	}
	if date == "" {
		date = "unknown"
	}
	return v, date
}

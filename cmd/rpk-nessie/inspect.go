// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// inspection is what one `inspect` command looks at.
type inspection struct {
	*target
	at string // what --at says

	look  *nessie.Look
	state catalog.State
}

// lookAtTable reads the table as --at says.
func lookAtTable(ctx context.Context, i *inspection) (err error) {
	i.look, i.state, err = i.target.look(ctx, i.at)
	return err
}

// lookAtNothing is for what needs no table: references are there to be chosen from where the configured one does not exist.
func lookAtNothing(context.Context, *inspection) error { return nil }

const totalRowsWords = `total_rows are the rows of the snapshot's data files. Where it has delete files (merge-on-read), the table has
fewer: what they take is not subtracted. read delivers what is left.`

// inspections are the tables of `inspect`, by name.
var inspections = []struct {
	name, usage, description string

	look func(context.Context, *inspection) error
	show func(context.Context, *inspection) (*sheet, error)
}{
	{"snapshots", "the snapshots that lead to the state, newest first, and how each was found", totalRowsWords, lookAtTable, inspectSnapshots},
	{"history", "the commits of the reference that changed the table, newest first", "", lookAtTable, inspectHistory},
	{"refs", "every branch and tag, and what the table is there", "", lookAtNothing, inspectRefs},
	{"manifests", "the manifests of the state", "", lookAtTable, inspectManifests},
	{"entries", "every entry of the manifests, deleted ones too", "", lookAtTable, inspectEntries},
	{"files", "the data and delete files that the state holds", "", lookAtTable, inspectDataFiles},
	{"partitions", "rows and files by partition", "", lookAtTable, inspectPartitions},
	{"schemas", "the columns of every schema that the metadata file knows", "", lookAtTable, inspectSchemas},
}

func inspectCommand() *cli.Command {
	output := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formTable, Usage: "`FORM`: table, json or csv"}
	parent := &cli.Command{
		Name:   "inspect",
		Usage:  "Show a table's snapshots, commits, manifests, files, partitions or schemas at any snapshot, tag or commit",
		Action: subcommandsOnly,
	}
	for _, i := range inspections {
		parent.Subcommands = append(parent.Subcommands, &cli.Command{
			Name: i.name, Usage: "Show " + i.usage, Description: i.description,
			Flags: append(targetFlags(), output,
				&cli.StringFlag{Name: "at", Usage: "a snapshot id, branch, tag, name@hash or @hash, instead of the input's reference"},
				&cli.BoolFlag{Name: flagJSON, Usage: "the same as --output json"}),
			Action: func(c *cli.Context) error {
				return withTarget(c, func(ctx context.Context, t *target) error {
					in := &inspection{target: t, at: c.String("at")}
					if err := i.look(ctx, in); err != nil {
						return err
					}
					s, err := i.show(ctx, in)
					if err != nil {
						return err
					}
					return showSheet(c, s)
				})
			},
		})
	}
	parent.Subcommands = append(parent.Subcommands, &cli.Command{
		Name: "checkpoint", Usage: "Show the stored checkpoint",
		Flags: append(targetFlags(), output, &cli.BoolFlag{Name: flagJSON, Usage: "the same as --output json"}),
		Action: func(c *cli.Context) error {
			return withTarget(c, func(ctx context.Context, t *target) error {
				stored, _, err := loadCheckpoint(ctx, t)
				if err != nil {
					return err
				}
				return showSheet(c, checkpointSheet(stored))
			})
		},
	})
	return parent
}

// subcommandsOnly is what a command that only has subcommands does without one of them.
func subcommandsOnly(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowSubcommandHelp(c)
	}
	var names []string
	for _, sub := range c.Command.VisibleCommands() {
		if sub.Name != "help" {
			names = append(names, sub.Name)
		}
	}
	return fmt.Errorf("%s has no %q: there is %s", c.Command.HelpName, c.Args().First(), strings.Join(names, ", "))
}

func showSheet(c *cli.Context, s *sheet) error {
	form := c.String("output")
	if c.Bool(flagJSON) {
		form = formJSON
	}
	switch form {
	case formTable, formJSON, formCSV:
		return s.write(os.Stdout, form)
	}
	return fmt.Errorf("--output must be table, json or csv, not %q", form)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// inspection is what one `inspect` command looks at.
type inspection struct {
	*target
	look  *nessie.Look
	state catalog.State
}

// inspections are the tables of `inspect`, by name.
var inspections = []struct {
	name, usage string
	show        func(context.Context, *inspection) (*sheet, error)
}{
	{"snapshots", "the snapshots that lead to the state, newest first, and how each was found", inspectSnapshots},
	{"history", "the commits of the reference that changed the table, newest first", inspectHistory},
	{"refs", "every branch and tag, and what the table is there", inspectRefs},
	{"manifests", "the manifests of the state", inspectManifests},
	{"entries", "every entry of the manifests, deleted ones too", inspectEntries},
	{"files", "the data and delete files that the state holds", inspectDataFiles},
	{"partitions", "rows and files by partition", inspectPartitions},
	{"schemas", "the columns of every schema that the metadata file knows", inspectSchemas},
}

func inspectCommand() *cli.Command {
	output := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formTable, Usage: "`FORM`: table, json or csv"}
	parent := &cli.Command{
		Name:  "inspect",
		Usage: "Show a table's snapshots, commits, manifests, files, partitions or schemas at any snapshot, tag or commit",
	}
	for _, i := range inspections {
		parent.Subcommands = append(parent.Subcommands, &cli.Command{
			Name: i.name, Usage: "Show " + i.usage,
			Flags: append(targetFlags(), output,
				&cli.StringFlag{Name: "at", Usage: "a snapshot id, branch, tag, name@hash or @hash, instead of the input's reference"},
				&cli.BoolFlag{Name: flagJSON, Usage: "the same as --output json"}),
			Action: func(c *cli.Context) error {
				return withTarget(c, func(ctx context.Context, t *target) error {
					look, state, err := t.look(ctx, c.String("at"))
					if err != nil {
						return err
					}
					s, err := i.show(ctx, &inspection{t, look, state})
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

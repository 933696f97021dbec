// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func lineageCommand() *cli.Command {
	return &cli.Command{
		Name:  "lineage",
		Usage: "Show a table's history on a branch as a graph: commits, snapshots, how each was found, holes, resets, the checkpoint",
		Description: `Reads the branch's commits of the table and follows its snapshots from the head back, as the nessie
input does. ● is a snapshot that leads to the head, ○ one that no commit has as its own, ◍ one whose files
are gone, ✗ one that the head does not descend from, ◇ one on a reference beside, ? one that nothing proves
the head to descend from, ◌ no snapshot. Nothing is written. Times are in UTC; rows in all (total_rows in
JSON) are those of the data files: what delete files take is not subtracted.

  ` + name + ` lineage --config pipeline.yaml
  ` + name + ` lineage --config pipeline.yaml --also dev --html history.html`,
		Flags: append(targetFlags(),
			&cli.StringFlag{Name: "ref", Usage: "another branch or tag, or name@hash, than the input's"},
			&cli.StringSliceFlag{Name: "also", Usage: "draw the table's line on this branch, tag or @hash beside"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 100, Usage: "most commits to show; 0 shows all"},
			&cli.BoolFlag{Name: "manifests", Usage: "count rows and files in the manifests instead of taking the writers' summaries"},
			&cli.BoolFlag{Name: flagJSON, Usage: "print JSON"},
			&cli.StringFlag{Name: "svg", Usage: "write a picture to `FILE` (- is standard output)"},
			&cli.StringFlag{Name: "html", Usage: "write a page to `FILE` (- is standard output): nothing in it comes from elsewhere"},
		),
		Action: func(c *cli.Context) error {
			return withTarget(c, func(ctx context.Context, t *target) error { return runLineage(ctx, c, t) })
		},
	}
}

func runLineage(ctx context.Context, c *cli.Context, t *target) error {
	q := lineageQuery{ref: t.Config.Ref, limit: c.Int("limit"), manifests: c.Bool("manifests")}
	if q.limit < 0 {
		return fmt.Errorf("--limit must be 0, which shows all, or more, got %d", q.limit)
	}
	var err error
	if text := c.String("ref"); text != "" {
		if q.ref, err = catalog.ParseRef(text); err != nil {
			return err
		}
	}
	for _, text := range c.StringSlice("also") {
		ref, err := catalog.ParseRef(text)
		if err != nil {
			return err
		}
		q.beside = append(q.beside, ref)
	}
	g, err := collectLineage(ctx, t, q)
	if err != nil {
		return err
	}
	pictures := 0
	for flag, write := range map[string]func(io.Writer) error{"svg": g.writeSVG, "html": g.writeHTML} {
		if path := c.String(flag); path != "" {
			pictures++
			if err := writeFile(path, write); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Bool(flagJSON):
		return printJSON(os.Stdout, g)
	case pictures > 0:
		return nil
	}
	return g.print(os.Stdout, isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "")
}

// writeFile writes to a file, or for - to standard output.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(os.Stdout)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Close()
}

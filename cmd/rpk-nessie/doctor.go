// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "Check what a pipeline needs: server, credentials, branch, table, storage, checkpoint cache, clocks",
		Description: `Each check says what was found and, where it fails, what to change. A probe value is written to the
checkpoint cache, beside the checkpoint, and deleted. Exits 1 if a check fails.`,
		Flags: append(targetFlags(), &cli.BoolFlag{Name: flagJSON, Usage: "print JSON"}),
		Action: func(c *cli.Context) error {
			return withTarget(c, func(ctx context.Context, t *target) error {
				checks := examine(ctx, t)
				if err := showChecks(os.Stdout, checks, c.Bool(flagJSON)); err != nil {
					return err
				}
				for _, k := range checks {
					if k.Result == checkFailed {
						return cli.Exit("", 1)
					}
				}
				return nil
			})
		},
	}
}

// The results of a check.
const (
	checkPassed  = "ok"
	checkWarned  = "warning"
	checkFailed  = "failed"
	checkSkipped = "not checked"
)

// finding is one thing that was looked at.
type finding struct {
	Name   string `json:"check"`
	Result string `json:"result"`
	Found  string `json:"found"`
	// Advice says what to change; "" where nothing needs to be.
	Advice string `json:"advice,omitempty"`
}

func showChecks(w io.Writer, checks []finding, asJSON bool) error {
	if asJSON {
		return printJSON(w, checks)
	}
	for _, k := range checks {
		if _, err := fmt.Fprintf(w, "%-12s %-16s %s\n", k.Result, k.Name, k.Found); err != nil {
			return err
		}
		if k.Advice == "" {
			continue
		}
		for line := range strings.Lines(k.Advice) {
			if _, err := fmt.Fprintf(w, "%-12s %-16s -> %s\n", "", "", strings.TrimSuffix(line, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// examination runs the checks in order; what needs an earlier one that failed is not checked.
type examination struct {
	t      *target
	checks []finding
}

func examine(ctx context.Context, t *target) []finding {
	e := &examination{t: t}
	server := e.server(ctx)
	e.clock(ctx, server)
	reference := server && e.reference(ctx)
	e.skipUnless(server, "branch")
	look := e.table(ctx, reference)
	e.storage(ctx, look)
	e.listing(ctx, look)
	if e.cache(ctx) {
		e.checkpoint(ctx, look)
	} else {
		e.skipUnless(false, "checkpoint")
	}
	return e.checks
}

func (e *examination) passed(name, format string, args ...any) {
	e.checks = append(e.checks, finding{Name: name, Result: checkPassed, Found: fmt.Sprintf(format, args...)})
}

func (e *examination) warned(name, advice, format string, args ...any) {
	e.checks = append(e.checks, finding{Name: name, Result: checkWarned, Found: fmt.Sprintf(format, args...), Advice: advice})
}

func (e *examination) failed(name, advice string, err error) {
	e.checks = append(e.checks, finding{Name: name, Result: checkFailed, Found: err.Error(), Advice: advice})
}

// skipUnless notes that a check was left out where what it needs is not there.
func (e *examination) skipUnless(there bool, name string) {
	if !there {
		e.checks = append(e.checks, finding{Name: name, Result: checkSkipped, Found: "needs what failed before"})
	}
}

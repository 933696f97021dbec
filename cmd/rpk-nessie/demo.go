// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

// demoTimeout ends a demo that waits for rows which do not come.
const demoTimeout = 50 * time.Second

const exitInterrupted = 130

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "Follow a table on an in-memory Nessie, to see what the nessie input does",
		Description: `Starts a Nessie server in this process, writes an Iceberg table in a temporary folder, streams it to
the terminal through the nessie input, commits more snapshots meanwhile, stops and restarts the
pipeline, and checks that every row came once. It needs no other program.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "keep", Usage: "keep the temporary folder with the table and the checkpoint"},
		},
		Action: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := runDemo(ctx, newNarrator(os.Stdout), c.Bool("keep"))
			if ctx.Err() != nil {
				return cli.Exit("interrupted", exitInterrupted)
			}
			return err
		},
	}
}

// runDemo plays the demo and leaves nothing behind: no server, no pipeline, and no folder unless it is to be kept.
func runDemo(ctx context.Context, say *narrator, keep bool) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoTimeout, fmt.Errorf("the demo did not end within %v", demoTimeout))
	defer cancel()

	dir, err := os.MkdirTemp("", name+"-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() {
		if keep {
			say.line("Kept %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()

	say.title("An Iceberg table on a Nessie branch, followed snapshot by snapshot")
	say.step("Start a Nessie server inside this process")
	server, err := nessietest.Start(nessietest.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	say.line("Nessie API v2: %s/api/v2", server.URL)
	say.line("Warehouse:     %s", filepath.Join(dir, "warehouse"))

	orders, err := newOrders(ctx, server.URL, filepath.Join(dir, "warehouse"), say)
	if err != nil {
		return err
	}
	pipe := pipeline{
		baseURL: server.URL, warehouse: filepath.Join(dir, "warehouse"), checkpoints: filepath.Join(dir, "checkpoints"), say: say,
	}
	return play(ctx, say, orders, pipe)
}

// play is the demo's story.
func play(ctx context.Context, say *narrator, orders *orders, pipe pipeline) error {
	say.step("Write table %s with two snapshots", ordersKey)
	if err := orders.create(ctx, 3); err != nil {
		return err
	}
	if err := orders.append(ctx, 2); err != nil {
		return err
	}

	say.step("Run this pipeline")
	say.block(pipe.yaml())
	first, err := pipe.start()
	if err != nil {
		return err
	}
	defer func() { _ = first.stop() }()
	if err := first.await(ctx, orders); err != nil {
		return err
	}

	say.step("Commit more while it runs: rows, then a column and rows that use it")
	if err := orders.append(ctx, 4); err != nil {
		return err
	}
	if err := orders.addColumn(ctx, 2); err != nil {
		return err
	}
	if err := first.await(ctx, orders); err != nil {
		return err
	}

	say.step("Stop the pipeline, and commit while nobody reads")
	if err := first.stop(); err != nil {
		return err
	}
	say.line("The checkpoint stays at snapshot %s.", orders.current)
	stopped := len(orders.written)
	if err := orders.append(ctx, 3); err != nil {
		return err
	}

	say.step("Run the same pipeline again: it goes on from its checkpoint")
	second, err := pipe.start()
	if err != nil {
		return err
	}
	defer func() { _ = second.stop() }()
	if err := second.await(ctx, orders); err != nil {
		return err
	}
	if err := second.stop(); err != nil {
		return err
	}

	say.step("Compare what came with what was written")
	return check(say, orders.written, stopped, first.received(), second.received())
}

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
)

// demoTimeout ends a demo that waits for rows which do not come.
const demoTimeout = 50 * time.Second

// realDemoTimeout is the same for servers that may be far away.
const realDemoTimeout = 3 * time.Minute

const exitInterrupted = 130

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "Follow a table on an in-memory Nessie, to see what the nessie input does",
		Description: `Starts a Nessie server in this process, writes an Iceberg table in a temporary folder, streams it to
the terminal through the nessie input, commits more snapshots meanwhile, stops and restarts the
pipeline, and checks that every row came once. It needs no other program.

With --nessie and --warehouse it plays on a real Nessie server instead, on a branch and in a folder
of its own, which it removes afterwards.`,
		Flags: demoFlags(),
		Action: func(c *cli.Context) error {
			place, err := demoPlaceOf(c)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = runDemo(ctx, newNarrator(os.Stdout), place, c.Bool("keep"))
			if ctx.Err() != nil {
				return cli.Exit("interrupted", exitInterrupted)
			}
			return err
		},
	}
}

// runDemo plays the demo and leaves nothing behind: no server, no pipeline, no branch, and no folder unless it is to be kept.
func runDemo(ctx context.Context, say *narrator, place demoPlace, keep bool) (err error) {
	timeout := demoTimeout
	if place != (demoPlace{}) {
		timeout = realDemoTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the demo did not end within %v", timeout))
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
	var stage *venue
	if place == (demoPlace{}) {
		stage, err = inProcess(dir, say)
	} else {
		stage, err = place.open(ctx, say, keep)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.clear(ctx)) }()

	orders, err := newOrders(ctx, stage, say)
	if err != nil {
		return err
	}
	defer orders.close()
	return play(ctx, say, orders, pipeline{stage: stage, checkpoints: filepath.Join(dir, "checkpoints"), say: say})
}

// play is the demo's story.
func play(ctx context.Context, say *narrator, orders *orders, pipe pipeline) error {
	say.step("Write table %s with two snapshots", ordersKey)
	if err := orders.create(ctx, 3); err != nil {
		return pipe.stage.advise(err)
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

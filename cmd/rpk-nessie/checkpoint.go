// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

func checkpointCommand() *cli.Command {
	write := []cli.Flag{
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		&cli.BoolFlag{Name: "force", Usage: "also where it is refused, which the refusal says"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would be written, and write nothing"},
	}
	sub := func(name, args, usage, description string, flags []cli.Flag, run func(context.Context, *cli.Context, *target) error) *cli.Command {
		return &cli.Command{
			Name: name, ArgsUsage: args, Usage: usage, Description: description,
			Flags: append(targetFlags(), flags...),
			Action: func(c *cli.Context) error {
				return withTarget(c, func(ctx context.Context, t *target) error { return run(ctx, c, t) })
			},
		}
	}
	return &cli.Command{
		Name:   "checkpoint",
		Usage:  "Show, move or delete the checkpoint of a pipeline",
		Action: subcommandsOnly,
		Subcommands: []*cli.Command{
			sub("get", "", "Show the stored checkpoint", "",
				[]cli.Flag{&cli.BoolFlag{Name: flagJSON, Usage: "print the checkpoint as JSON"}}, getCheckpoint),
			sub("set", "SNAPSHOT", "Go on behind a snapshot: it and all before it count as delivered",
				`SNAPSHOT is a snapshot id on the head's line, or "none" for the table before its first snapshot. Rows between the
old and the new place are delivered again, or never: what is shown before says which. An input that still
runs on this checkpoint stops at its next write.`, write, setCheckpoint),
			sub("rewind", "SNAPSHOT", "Go back to an earlier snapshot: what came after it is delivered again",
				`Like set, but only to an ancestor of the checkpoint, so that no row is left out.`, write, rewindCheckpoint),
			sub("delete", "", "Delete the checkpoint: the next start is a first run", "", write, deleteCheckpoint),
		},
	}
}

func getCheckpoint(ctx context.Context, c *cli.Context, t *target) error {
	stored, key, err := loadCheckpoint(ctx, t)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		if stored == nil {
			_, err := fmt.Println("null")
			return err
		}
		encoded, err := cache.Encode(stored)
		if err != nil {
			return err
		}
		_, err = fmt.Println(string(encoded))
		return err
	}
	fmt.Printf("Key %s in cache %s (%s)\n", key, t.Config.CheckpointCache, t.cacheType)
	return checkpointSheet(stored).writeTable(os.Stdout)
}

func loadCheckpoint(ctx context.Context, t *target) (*cache.Checkpoint, string, error) {
	key, err := t.CheckpointKey()
	if err != nil {
		return nil, "", err
	}
	stored, err := t.Checkpoint(ctx)
	return stored, key, err
}

// checkpointSheet shows a checkpoint field by field.
func checkpointSheet(c *cache.Checkpoint) *sheet {
	s := &sheet{columns: []string{"field", "value"}}
	if c == nil {
		s.add("state", "absent: the next start is a first run")
		return s
	}
	if !c.Started() {
		s.add("state", "claimed, no start chosen: the next start is a first run")
	} else {
		s.add("snapshot", placeWords(c))
		s.add("sequence", c.Last.Sequence)
		s.add("step", c.Step)
		s.add("commit", c.Last.CommitHash)
		s.add("commit time", moment(c.Last.CommitTimeMs))
		s.add("rows in data files", orNil(deref(c.Last.Records), c.Last.Records != nil))
	}
	s.add("branch", c.Branch)
	s.add("table", c.Namespace+"."+c.Table)
	if uuid, content := c.Identity(); uuid != "" || content != "" {
		s.add("table uuid", uuid)
		s.add("content id", content)
	}
	if p := c.Position; p != nil {
		s.add("under way", fmt.Sprintf("%s to snapshot %s, %d rows acknowledged", p.Kind, p.To.SnapshotID, p.Row))
	}
	if c.Owner != nil {
		s.add("owner", c.Owner.String())
	}
	return s
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func placeWords(c *cache.Checkpoint) string {
	switch {
	case c.Stage == cache.StageFirst:
		return "none yet: the first step is under way"
	case c.Last.SnapshotID == "":
		return "none: the table before its first snapshot"
	}
	return c.Last.SnapshotID
}

// move is a change of the checkpoint before it is made.
type move struct {
	before   *cache.Checkpoint // nil: absent, or damaged
	damaged  error
	after    *cache.Checkpoint // nil: to be deleted
	warnings []string
	// refused says why only --force does it; "" where nothing is in the way.
	refused string
}

func setCheckpoint(ctx context.Context, c *cli.Context, t *target) error {
	return moveCheckpoint(ctx, c, t, func(*move) error { return nil }, func(m *move, p *placer) { p.judge(m) })
}

func rewindCheckpoint(ctx context.Context, c *cli.Context, t *target) error {
	return moveCheckpoint(ctx, c, t, placed, func(m *move, p *placer) {
		p.judge(m)
		if m.refused == "" && !p.again {
			m.refused = "this is no ancestor of the checkpoint's snapshot: use set to go there all the same"
		}
	})
}

func moveCheckpoint(ctx context.Context, c *cli.Context, t *target, fit func(*move) error, judge func(*move, *placer)) error {
	id, err := snapshotArgument(c)
	if err != nil {
		return err
	}
	look, err := t.Look(ctx, t.Config.Ref)
	if err != nil {
		return err
	}
	m, err := beginMove(ctx, t)
	if err != nil {
		return err
	}
	if unfit := fit(m); unfit != nil {
		return unfit
	}
	p := &placer{t: t, look: look, id: id}
	if err := p.find(ctx, m.before); err != nil {
		return err
	}
	m.after = t.CheckpointAt(p.state, p.commit, nextOrdinal(m.before))
	judge(m, p)
	return m.carryOut(ctx, c, t)
}

// placed refuses to go back from nowhere.
func placed(m *move) error {
	if m.damaged == nil && (m.before == nil || !m.before.Started()) {
		return errors.New("there is no checkpoint to go back from: the next start is a first run; set writes one")
	}
	return nil
}

func deleteCheckpoint(ctx context.Context, c *cli.Context, t *target) error {
	m, err := beginMove(ctx, t)
	if err != nil {
		return err
	}
	m.warnings = append(m.warnings, "The next start is a first run: it begins where start_snapshot_id or start_from says.")
	return m.carryOut(ctx, c, t)
}

func snapshotArgument(c *cli.Context) (int64, error) {
	arg := c.Args().First()
	switch {
	case c.Args().Len() != 1:
		return 0, fmt.Errorf("%s takes one argument, behind the flags: the id of a snapshot, as lineage shows them, or the word none for the table before its first snapshot", c.Command.HelpName)
	case arg == "none":
		return catalog.NoSnapshot, nil
	}
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is no snapshot id: lineage shows them; none is the table before its first snapshot", arg)
	}
	return id, nil
}

// beginMove reads what is stored. A value that can't be used may be replaced, by force.
func beginMove(ctx context.Context, t *target) (*move, error) {
	stored, _, err := loadCheckpoint(ctx, t)
	m := &move{before: stored}
	if damaged := new(cache.ValueError); errors.As(err, &damaged) {
		m.damaged, m.refused = err, "the stored value can't be used: "+damaged.Reason
		return m, nil
	}
	return m, err
}

// nextOrdinal is above the ordinal of everything that was stored or is under way.
func nextOrdinal(before *cache.Checkpoint) int64 {
	if before == nil || !before.Started() {
		return 0
	}
	if before.Position != nil {
		return before.Step + 2
	}
	return before.Step + 1
}

// carryOut shows the move, asks, and makes it.
func (m *move) carryOut(ctx context.Context, c *cli.Context, t *target) error {
	m.show(os.Stdout)
	if m.refused != "" && !c.Bool("force") {
		return fmt.Errorf("refused: %s; --force does it all the same", m.refused)
	}
	if c.Bool("dry-run") {
		_, err := fmt.Println("Nothing is written: --dry-run.")
		return err
	}
	if !c.Bool("yes") {
		if err := confirm(os.Stdin, os.Stderr); err != nil {
			return err
		}
	}
	if m.after == nil {
		key, err := t.CheckpointKey()
		if err != nil {
			return err
		}
		if err := t.DeleteCheckpoint(ctx, key); err != nil {
			return err
		}
		_, err = fmt.Println("Deleted.")
		return err
	}
	if err := m.write(ctx, t); err != nil {
		return err
	}
	_, err := fmt.Println("Written.")
	return err
}

func (m *move) show(w io.Writer) {
	if m.damaged != nil {
		fmt.Fprintf(w, "before  %v\n", m.damaged)
	} else {
		fmt.Fprintf(w, "before  %s\n", summary(m.before))
	}
	if m.after == nil {
		fmt.Fprintln(w, "after   absent")
	} else {
		fmt.Fprintf(w, "after   %s\n", summary(m.after))
	}
	if m.before != nil && m.before.Owner != nil {
		fmt.Fprintf(w, "An input that still runs on it stops at its next write: the last one was on %s.\n", m.before.Owner)
	}
	for _, warning := range m.warnings {
		fmt.Fprintln(w, warning)
	}
}

func summary(c *cache.Checkpoint) string {
	switch {
	case c == nil:
		return "absent"
	case !c.Started():
		return "claimed, no start chosen"
	}
	text := fmt.Sprintf("snapshot %s, step %d", placeWords(c), c.Step)
	if p := c.Position; p != nil {
		text += fmt.Sprintf(", under way: %s to snapshot %s, %d rows acknowledged", p.Kind, p.To.SnapshotID, p.Row)
	}
	return text
}

// confirm asks on a terminal; elsewhere only --yes will do.
func confirm(in *os.File, out io.Writer) error {
	if !isTerminal(in) {
		return errors.New("nobody is there to ask: --yes does it without asking")
	}
	fmt.Fprint(out, "Do it? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if strings.ToLower(strings.TrimSpace(answer)) != "y" {
		return errors.New("nothing was written")
	}
	return nil
}

// write claims the key, which stops an input that runs, and stores the new checkpoint.
func (m *move) write(ctx context.Context, t *target) error {
	store, err := t.CheckpointStore()
	if err != nil {
		return err
	}
	if m.damaged != nil {
		key, err := t.CheckpointKey()
		if err != nil {
			return err
		}
		if err := t.DeleteCheckpoint(ctx, key); err != nil {
			return err
		}
	}
	validated := m.before
	if validated == nil {
		validated = cache.Unclaimed(m.after.Branch, m.after.Namespace, m.after.Table)
	}
	claimed, err := store.Claim(ctx, validated)
	if err != nil {
		return err
	}
	var failed error
	writer := cache.NewWriter(store, claimed, cache.WriterConfig{
		Timeout: t.Config.WriteTimeout,
		OnError: func(err error) { failed = err },
	})
	ctx, cancel := context.WithTimeout(ctx, t.Config.WriteTimeout)
	defer cancel()
	put := writer.PutSync(ctx, m.after)
	closed := writer.Close(ctx)
	if err := errors.Join(put, closed); err != nil {
		return errors.Join(err, failed)
	}
	return nil
}

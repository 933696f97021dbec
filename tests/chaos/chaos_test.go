// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
	"github.com/rpk-nessie/rpk-nessie/tests/servers"
)

const (
	faulty   = 0.03 // share of the reader's requests that fail
	limit    = 500  // checkpoint_limit
	batch    = 50   // batch_rows
	restarts = 40   // kills between two restarts of Nessie
	patience = 5 * time.Minute
	// longestLife ends a life that stands still, as after a fault that is waited out for seconds.
	longestLife = 6 * time.Second
)

const pipeline = `
http: { enabled: false }
logger: { level: WARN }
input:
  nessie:
    base_url: %s
    namespace: shop
    table: orders
    poll_interval: 20ms
    request_timeout: 5s
    incremental_by_snapshot: true
    start_from: earliest
    on_lost_lineage: fail
    checkpoint_cache: progress
    checkpoint_cache_key: place
    checkpoint_limit: %d
    batch_rows: %d
    storage:
      aws_s3:
        endpoint: %s
        region: us-east-1
        force_path_style_urls: true
        credentials: { id: id, secret: secret }
pipeline:
  threads: 4 # batches overtake each other
  processors:
    - sleep: { duration: '${! if batch_index() == 0 { random_int(min: 0, max: 40) } else { 0 } }ms' }
output:
  file: { path: %q, codec: lines }
cache_resources:
  - label: progress
    nessie_durable_file: { directory: %q }
`

// field is all that takes part: real servers, proxies that fail in front of the binary, one that doesn't in front of the
// writer, and the binary's files.
type field struct {
	t      *testing.T
	rng    *rand.Rand
	s3     *corpus.S3
	nessie *servers.Nessie
	data   string // Nessie's database

	catalog, store, steady *proxy
	writer                 *writer
	config, checkpoints    string
	output                 *output
	log                    *os.File
	kills                  int
	reached                cache.Order // the newest checkpoint that was met on disk
}

func newField(t *testing.T) *field {
	f := &field{t: t, rng: rand.New(rand.NewPCG(*seed, 2)), data: t.TempDir(), reached: cache.Order{Step: -1}}
	var err error
	f.s3, err = corpus.StartS3()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.s3.Close()) })
	f.start()
	f.catalog, f.store, f.steady = newProxy(t, f.nessie.URL, faulty, *seed), newProxy(t, f.s3.Endpoint, faulty, *seed+1), newProxy(t, f.nessie.URL, 0, 0)
	f.writer = newWriter(t, f.steady.URL, f.s3.Endpoint)

	dir := t.TempDir()
	f.config, f.checkpoints = filepath.Join(dir, "pipeline.yaml"), filepath.Join(dir, "checkpoints")
	f.output = newOutput(t, filepath.Join(dir, "rows.jsonl"))
	yaml := fmt.Sprintf(pipeline, f.catalog.URL, limit, batch, f.store.URL, f.output.path, f.checkpoints)
	require.NoError(t, os.WriteFile(f.config, []byte(yaml), 0o600))
	f.log, err = os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.log.Close()) })
	return f
}

// start starts Nessie on its database.
func (f *field) start() {
	f.nessie = servers.Start(f.t, servers.Options{Settings: []string{
		"nessie.version.store.type=ROCKSDB", "nessie.version.store.persist.rocks.database-path=" + f.data,
	}})
}

// restart ends Nessie under the reader and starts it again elsewhere.
func (f *field) restart() {
	f.writer.quietly(func() {
		require.NoError(f.t, f.nessie.Stop())
		f.start()
		f.catalog.aim(f.t, f.nessie.URL)
		f.steady.aim(f.t, f.nessie.URL)
	})
}

// run starts the binary. It is killed at the latest when the context ends.
func (f *field) run(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, "run", f.config)
	cmd.Stdout, cmd.Stderr = f.log, f.log
	require.NoError(f.t, cmd.Start())
	return cmd
}

// size is how much the output file holds.
func (f *field) size() int64 {
	info, err := os.Stat(f.output.path)
	if err != nil {
		return 0 // not written yet
	}
	return info.Size()
}

// aMoment waits for the moment of the next kill: mostly some rows into the life of the binary, which may be none; at times
// some time, which may be over before there is any row. Meanwhile it looks at the checkpoint.
func (f *field) aMoment() {
	until, most := f.size()+f.rng.Int64N(10_000), longestLife
	if f.rng.IntN(4) == 0 {
		most = time.Duration(f.rng.Int64N(int64(time.Second)))
	}
	late := time.NewTimer(most)
	defer late.Stop()
	glance := time.NewTicker(time.Millisecond)
	defer glance.Stop()
	for n := 1; f.size() <= until; n++ {
		select {
		case <-glance.C:
			if n%20 == 0 {
				f.writer.read.Store(f.stands())
			}
		case <-late.C:
			return
		}
	}
}

// kill ends the binary as a power cut ends a process, and looks at what is left.
func (f *field) kill(cmd *exec.Cmd) {
	require.NoError(f.t, cmd.Process.Kill())
	_ = cmd.Wait() // tells of the signal
	require.Equal(f.t, -1, cmd.ProcessState.ExitCode(), "the binary ended by itself:\n%s", f.lastLines())
	f.kills++
	stands := f.stands()
	f.output.killed(stands)
	f.t.Logf("kill %d: the checkpoint stands behind %d rows of %d, %d came", f.kills, stands, f.writer.known(), f.output.whole)
}

// stands reads the checkpoint on disk, which is whole at every moment and never goes backwards. It gives the number of
// rows that it stands behind.
func (f *field) stands() int64 {
	value, err := os.ReadFile(filepath.Join(f.checkpoints, "place"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(f.t, err)
	c, err := cache.Decode("place", value)
	require.NoError(f.t, err, "a torn checkpoint")
	require.GreaterOrEqual(f.t, c.Order().Compare(f.reached), 0, "the checkpoint goes backwards: %+v after %+v", c.Order(), f.reached)
	f.reached = c.Order()
	rows := f.writer.upTo(c.Last.SnapshotID)
	if c.Position != nil {
		rows += c.Position.Row
	}
	return rows
}

func (f *field) lastLines() string {
	text, err := os.ReadFile(f.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

func TestKilledAtRandomUnderFaultsNothingIsLost(t *testing.T) {
	fmt.Printf("seed %d\n", *seed)
	f := newField(t)
	began := time.Now()

	writing, finish := context.WithCancel(t.Context())
	var committed sync.WaitGroup
	committed.Go(func() { f.writer.run(writing) })
	t.Cleanup(committed.Wait)
	t.Cleanup(finish)
	for n := range *kills {
		cmd := f.run(t.Context())
		if n%restarts == restarts/2 {
			f.restart()
		}
		f.aMoment()
		f.kill(cmd)
	}
	finish()
	committed.Wait()
	f.conclude()
	fmt.Println(f.summary(time.Since(began)))
}

// conclude lets the binary catch up without faults, and looks whether all is there.
func (f *field) conclude() {
	f.catalog.fail(0)
	f.store.fail(0)
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	cmd := f.run(ctx)
	glance := time.NewTicker(20 * time.Millisecond)
	defer glance.Stop()
	rows := f.writer.known()
	for f.output.whole < rows && ctx.Err() == nil {
		<-glance.C
		f.output.read()
	}
	require.Equal(f.t, rows, f.output.whole, "the next row is lost; the log ends with\n%s", f.lastLines())
	require.NoError(f.t, cmd.Process.Signal(os.Interrupt))
	require.NoError(f.t, cmd.Wait(), "an interrupt ends it well")
	f.output.read()
	o := f.output
	require.Len(f.t, o.seen, int(rows), "rows that nobody wrote")
	require.Equal(f.t, rows, f.stands(), "the last checkpoint stands behind the last row")
	assert.LessOrEqual(f.t, o.again, o.beyond, "again comes only what the checkpoint did not say yet")
}

// bound is how many rows come again at the most where the checkpoint is stored without delay: what may be in flight at
// each kill, and a batch that was on its way.
func (f *field) bound() int { return f.kills * (limit + batch) }

func (f *field) summary(took time.Duration) string {
	w, o := f.writer, f.output
	return strings.Join([]string{
		fmt.Sprintf("%d kills and %d restarts of Nessie in %v", f.kills, (f.kills+restarts/2)/restarts, took.Round(time.Second)),
		fmt.Sprintf("%d commits with %d snapshots: %d commits in the manner of Nessie's REST endpoint with %d hidden snapshots, %d merges", w.commits, len(w.snapshots)-1, w.truncated, w.hidden, w.merges),
		"faults: " + describe(f.catalog, f.store),
		fmt.Sprintf("%d rows committed, 0 lost; %d came again, of %d in flight at the kills (at most %d at one); the bound is %d; %d lines torn", w.known(), o.again, o.beyond, o.largest, f.bound(), o.torn),
	}, "\n")
}

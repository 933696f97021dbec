// SPDX-License-Identifier: Apache-2.0

// Package servers starts real servers for tests: Nessie, and the S3 server that the corpus lies in. A part that is not
// there fails the test, and the failure says how to fetch it.
package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// The versions that scripts/fetch-servers fetches. Old knows neither Iceberg REST nor relative references, and encodes
// keys in the old way.
const (
	Current = "0.99.0"
	Old     = "0.60.1"
)

// Options shape a Nessie server.
type Options struct {
	Version string // Current if empty

	// Corpus lets the server work on a copy of the corpus' database. Without it the server is empty and in memory.
	Corpus bool

	// S3 is the endpoint of an S3 server that holds corpus.Bucket: the server gets an Iceberg REST catalog with warehouse
	// s3://bucket/wh on it.
	S3 string

	// Settings are more of Nessie's settings, "name=value".
	Settings []string
}

// Nessie is a running server.
type Nessie struct {
	URL string // http://127.0.0.1:port, without /api/v2

	log    string // file
	folder string
	input  io.Closer // the process ends when this is closed, and so when the test's process dies
	ended  <-chan exit
}

// exit is how a process ended.
type exit struct{ err error }

// startTimeout is generous: two cores may start several servers beside a compiler.
const startTimeout = 2 * time.Minute

// StartNessie starts a server and waits until it answers. The caller stops it.
func StartNessie(opts Options) (*Nessie, error) {
	if opts.Version == "" {
		opts.Version = Current
	}
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	jar, err := findJar(opts.Version)
	if err != nil {
		return nil, err
	}
	n := &Nessie{}
	if n.folder, err = os.MkdirTemp("", "nessie-"); err != nil {
		return nil, fmt.Errorf("starting Nessie %s: %w", opts.Version, err)
	}
	n.log = filepath.Join(n.folder, "nessie.log")
	settings, err := opts.settings(n.folder)
	if err == nil {
		err = n.run(java, append(settings, "-jar", jar))
	}
	if err == nil {
		return n, nil
	}
	text, _ := os.ReadFile(n.log) // it may not have come so far
	return nil, errors.Join(fmt.Errorf("starting Nessie %s: %w\n%s", opts.Version, err, tail(string(text), 30)), n.Stop(), n.forget())
}

func (o Options) settings(folder string) ([]string, error) {
	all := []string{"quarkus.http.host=127.0.0.1", "quarkus.http.port=0", "quarkus.management.host=127.0.0.1", "quarkus.management.port=0"}
	if o.Corpus {
		root, err := corpus.Dir()
		if err != nil {
			return nil, err
		}
		database := filepath.Join(folder, "rocks")
		if err := os.CopyFS(database, os.DirFS(filepath.Join(root, "rocks"))); err != nil {
			return nil, fmt.Errorf("copying the corpus' database: %w", err)
		}
		all = append(all, "nessie.version.store.type=ROCKSDB", "nessie.version.store.persist.rocks.database-path="+database)
	} else {
		all = append(all, "nessie.version.store.type=IN_MEMORY")
	}
	if o.S3 != "" {
		const s3 = "nessie.catalog.service.s3.default-options."
		all = append(all,
			"nessie.catalog.default-warehouse=warehouse", "nessie.catalog.warehouses.warehouse.location=s3://"+corpus.Bucket+"/wh",
			s3+"endpoint="+o.S3+"/", s3+"path-style-access=true", s3+"region=us-east-1", s3+"request-signing-enabled=false",
			s3+"access-key=urn:nessie-secret:quarkus:store-secret.s3", "store-secret.s3.name=key", "store-secret.s3.secret=secret",
			"nessie.catalog.object-stores.health-check.enabled=false")
	}
	args := []string{"-Xmx512m"}
	for _, setting := range append(all, o.Settings...) {
		args = append(args, "-D"+setting)
	}
	return args, nil
}

// The shell ends the server when its own input ends. So no server outlives a test binary that panics or times out.
const guard = `exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{ cat <&3; kill $server; } >/dev/null 2>&1 &
watch=$!
wait $server
status=$?
kill $watch 2>/dev/null
exit $status`

var listening = regexp.MustCompile(`Listening on: (http://127\.0\.0\.1:\d+)`)

func (n *Nessie) run(java string, args []string) error {
	log, err := os.Create(n.log)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", guard, "sh", java}, args...)...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	output, written := io.Pipe()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, written), log
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	urls := make(chan string, 1)
	go announce(output, urls)
	ended := make(chan exit, 1)
	go func() {
		err := cmd.Wait()
		ended <- exit{errors.Join(err, written.Close(), log.Close())}
	}()
	n.input, n.ended = input, ended

	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	select {
	case n.URL = <-urls:
		return n.awaitConfig(ctx)
	case end := <-ended:
		n.input = nil
		return fmt.Errorf("it ended: %w", errors.Join(end.err, input.Close()))
	case <-ctx.Done():
		return fmt.Errorf("it listens nowhere: %w", ctx.Err())
	}
}

// announce finds the port that the server was given in what it prints, and reads on so that it never blocks.
func announce(output io.Reader, urls chan<- string) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case urls <- found[1]:
			default: // the management interface says the same later
			}
		}
	}
	_, _ = io.Copy(io.Discard, output)
}

func (n *Nessie) awaitConfig(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL+"/api/v2/config", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			if err := response.Body.Close(); err != nil {
				return err
			}
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("config answers %s", response.Status)
		}
		select {
		case <-retry.C:
		case end := <-n.ended:
			n.input = nil
			return fmt.Errorf("it ended: %w", errors.Join(end.err, err))
		case <-ctx.Done():
			return fmt.Errorf("it does not get ready: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// Stop ends the server and waits for its end. What it wrote is kept until the log is of no use any more.
func (n *Nessie) Stop() error {
	if n.input == nil {
		return nil
	}
	err := n.input.Close()
	n.input = nil
	<-n.ended // the exit status tells of the signal that ended it
	return err
}

func (n *Nessie) forget() error { return os.RemoveAll(n.folder) }

// Log is what the server printed so far.
func (n *Nessie) Log() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Start starts a server for one test. If the test fails the log file is kept and named.
func Start(t testing.TB, opts Options) *Nessie {
	t.Helper()
	n, err := StartNessie(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := n.Stop()
		if t.Failed() {
			t.Logf("the log of Nessie is in %s", n.log)
		} else {
			err = errors.Join(err, n.forget())
		}
		if err != nil {
			t.Errorf("stopping Nessie: %v", err)
		}
	})
	return n
}

func tail(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

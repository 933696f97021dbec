// SPDX-License-Identifier: Apache-2.0

//go:build unix

package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// Process is a server with a folder of its own, which outlives its runs. One goroutine at a time.
type Process struct {
	name    string
	command []string
	folder  string
	account *syscall.Credential // nil: as this process
	ready   func(context.Context) error

	input io.WriteCloser // see crashGuard
	ended <-chan exit
}

// crashGuard is guard, and kills the server at once when it is sent a line.
const crashGuard = `exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{ if read -r line <&3; then kill -9 $server; else kill $server; fi } >/dev/null 2>&1 &
watch=$!
wait $server
status=$?
kill $watch 2>/dev/null
exit $status`

// newFolder makes a server's folder, which goes with the test unless it failed.
func newFolder(t testing.TB, name string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what %s wrote is in %s", name, folder)
			return
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("forgetting %s: %v", name, err)
		}
	})
	return folder
}

// start runs the server for one test and waits until it is ready.
func (p *Process) start(t testing.TB) {
	t.Helper()
	t.Cleanup(p.Kill)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// patience is how long a server may take to get ready, and attempt how long one look at that may.
const (
	patience = 5 * time.Minute
	attempt  = 3 * time.Second
)

// Start runs the server, again too, and waits until it is ready.
func (p *Process) Start() error {
	if err := p.run(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		err := p.look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case end := <-p.ended:
			p.input = nil
			return fmt.Errorf("starting %s: it ended: %w\n%s", p.name, errors.Join(end.err, err), tail(p.Log(), 30))
		case <-ctx.Done():
			return fmt.Errorf("starting %s: it does not get ready: %w\n%s", p.name, errors.Join(ctx.Err(), err), tail(p.Log(), 30))
		}
	}
}

func (p *Process) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return p.ready(ctx)
}

func (p *Process) run() error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", crashGuard, "sh"}, p.command...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.folder, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.account}
	if p.input, err = cmd.StdinPipe(); err != nil {
		return errors.Join(err, log.Close())
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	ended := make(chan exit, 1)
	go func() {
		err := cmd.Wait()
		ended <- exit{errors.Join(err, log.Close())}
	}()
	p.ended = ended
	return nil
}

// Stop asks the server to end and waits for that.
func (p *Process) Stop() error {
	if p.input == nil {
		return nil
	}
	err := p.input.Close()
	p.input = nil
	<-p.ended // the exit status tells of the signal that ended it
	return err
}

// Kill ends the server at once, as a crash does.
func (p *Process) Kill() {
	if p.input == nil {
		return
	}
	_, _ = io.WriteString(p.input, "kill\n") // it may have ended by itself
	<-p.ended
	_ = p.input.Close()
	p.input = nil
}

// Restart kills the server and starts it again on what it had stored. What its processes held may need a moment to be
// free, so that it is tried again and again.
func (p *Process) Restart() error {
	p.Kill()
	deadline := time.Now().Add(patience)
	for {
		err := p.Start()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (p *Process) logFile() string { return filepath.Join(p.folder, "server.log") }

// Log is what the server printed so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// portOf is the port of an address.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// listens is ready when a connection is taken.
func listens(address string) func(context.Context) error {
	return answers(address, func(net.Conn) error { return nil })
}

// answers is ready when a conversation with the server goes well.
func answers(address string, talk func(net.Conn) error) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		if deadline, limited := ctx.Deadline(); limited {
			if err := conn.SetDeadline(deadline); err != nil {
				return err
			}
		}
		return talk(conn)
	}
}

// howToFetchConnectors is howToFetch for what only the binary's connectors are tested with.
const howToFetchConnectors = "run scripts/fetch-servers connectors in the repository (make connectors does)"

// fetched is a file that scripts/fetch-servers put into the cache folder.
func fetched(t testing.TB, parts ...string) string {
	t.Helper()
	cache, err := corpus.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(append([]string{cache}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: %s", path, howToFetchConnectors)
	}
	return path
}

// installed is a program of a Debian package.
func installed(t testing.TB, program, debian string, patterns ...string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are well formed
			return found[len(found)-1]
		}
	}
	t.Fatalf("%s is missing: sudo apt-get install %s, or as root %s", program, debian, howToFetchConnectors)
	return ""
}

// unprivileged is an account for servers that refuse to run as root, nil if this process is not root; the folder
// becomes that account's.
func unprivileged(t testing.TB, folder string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

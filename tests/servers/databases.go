// SPDX-License-Identifier: Apache-2.0

//go:build unix

package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rpk-nessie/rpk-nessie/tests/ports"
)

// Redis is a server that writes each change to disk before it answers.
type Redis struct {
	*Process
	URL string
}

// StartRedis starts a server for one test.
func StartRedis(t testing.TB) *Redis {
	t.Helper()
	program := installed(t, "redis-server", "redis-server")
	folder := newFolder(t, "redis")
	address := ports.Free(t)
	r := &Redis{URL: "redis://" + address}
	r.Process = &Process{name: "Redis", folder: folder, ready: redisAnswers(address), command: []string{
		program, "--bind", "127.0.0.1", "--port", portOf(address), "--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}}
	r.start(t)
	return r
}

// redisAnswers is ready when commands are taken: while Redis loads its data it takes connections only.
func redisAnswers(address string) func(context.Context) error {
	return answers(address, func(conn net.Conn) error {
		if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
			return err
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "+PONG") {
			err = errors.New(strings.TrimSpace(line))
		}
		return err
	})
}

// Postgres is a server with one database, postgres, and one user, follower.
type Postgres struct {
	*Process
	DSN string
}

// StartPostgres starts a server for one test.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	program := installed(t, "postgres", "postgresql", "/usr/lib/postgresql/*/bin/postgres")
	if resolved, err := filepath.EvalSymlinks(program); err == nil { // initdb looks for postgres beside itself
		program = resolved
	}
	folder := newFolder(t, "postgres")
	account := unprivileged(t, folder)
	data := filepath.Join(folder, "data")
	create := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "-U", "follower", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	create.Dir, create.SysProcAttr = folder, &syscall.SysProcAttr{Credential: account}
	if text, err := create.CombinedOutput(); err != nil {
		t.Fatalf("making PostgreSQL's database: %v\n%s", err, text)
	}
	address := ports.Free(t)
	p := &Postgres{DSN: fmt.Sprintf("postgres://follower@%s/postgres?sslmode=disable", address)}
	p.Process = &Process{name: "PostgreSQL", folder: folder, account: account, ready: postgresAnswers(address), command: []string{
		program, "-D", data, "-p", portOf(address), "-c", "listen_addresses=127.0.0.1", "-k", folder,
	}}
	p.start(t)
	return p
}

// postgresAnswers is ready when the server takes sessions: until then it answers a startup message with an error.
func postgresAnswers(address string) func(context.Context) error {
	startup := "\x00\x03\x00\x00user\x00follower\x00database\x00postgres\x00\x00"
	return answers(address, func(conn net.Conn) error {
		if _, err := conn.Write(append([]byte{0, 0, 0, byte(len(startup) + 4)}, startup...)); err != nil {
			return err
		}
		kind, err := bufio.NewReader(conn).ReadByte()
		if err == nil && kind != 'R' { // R: authentication
			err = fmt.Errorf("the server answers %q", kind)
		}
		return err
	})
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/ports"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

const secret = "s3cr3t-t0ken"

// failing is a configuration that cannot read.
type failing struct {
	// set changes the shop, the rig and the fields, by their names.
	set func(*shop, *rig, map[string]string)
	// stored is the checkpoint that must be untouched afterwards.
	stored string
}

var failures = map[string]failing{
	"unreachable URL": {set: func(s *shop, _ *rig, f map[string]string) { f["base_url"] = "http://" + ports.Free(s.t) }},
	"HTML answer": {set: func(s *shop, _ *rig, f map[string]string) {
		html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html><body>It works!</body></html>")
		}))
		s.t.Cleanup(html.Close)
		f["base_url"] = html.URL
	}},
	"unknown branch":    {set: func(_ *shop, _ *rig, f map[string]string) { f["branch"] = "mian" }},
	"unknown commit":    {set: func(_ *shop, _ *rig, f map[string]string) { f["branch"] = "main@" + strings.Repeat("ab", 32) }},
	"unknown namespace": {set: func(_ *shop, _ *rig, f map[string]string) { f["namespace"] = "shpo" }},
	"unknown table":     {set: func(_ *shop, _ *rig, f map[string]string) { f["table"] = "oders" }},
	"no credentials":    {set: func(s *shop, _ *rig, _ map[string]string) { s.refuse(http.StatusUnauthorized) }},
	"wrong credentials": {set: func(s *shop, _ *rig, f map[string]string) {
		s.refuse(http.StatusForbidden)
		f["auth"] = "{ bearer: " + secret + " }"
		f["headers"] = "{ X-Api-Key: " + secret + " }"
	}},
	"overloaded server":  {set: func(s *shop, _ *rig, _ map[string]string) { s.refuse(http.StatusServiceUnavailable) }},
	"empty checkpoint":   {stored: "", set: func(_ *shop, r *rig, _ map[string]string) { r.cache.put("place", "") }},
	"foreign checkpoint": {stored: `{"lastAckedSnapshotID":"1","lastAckedSnapshotSequence":1,"branch":"main","namespace":"shop","table":"customers"}`},
	"torn checkpoint":    {stored: `{"lastAckedSnapshotID":"1","lastAckedSnap`},
	"edited checkpoint":  {stored: `{"lastAckedSnapshotID":"1","lastAckedSnapshotSequence":1,"branch":"main","namespace":"shop","table":"orders","version":1,"schemaID":0,"step":1,"checksum":"sha256:00"}`},
	"newer checkpoint":   {stored: `{"lastAckedSnapshotID":"1","version":7}`},
	"cache that fails on read": {set: func(_ *shop, r *rig, _ map[string]string) {
		r.cache.fail(func() error { return errors.New("connection refused by the store") }, nil)
	}},
	"cache that fails on write": {set: func(_ *shop, r *rig, _ map[string]string) {
		r.cache.fail(nil, func() error { return errors.New("the store is read-only") })
	}},
	"unreachable start":     {set: func(_ *shop, _ *rig, f map[string]string) { f["start_snapshot_id"] = `"42"` }},
	"refused file location": {set: func(_ *shop, _ *rig, f map[string]string) { f["storage"] = "{ local_root: /nowhere/at/all }" }},
	"lost metadata file":    {set: func(s *shop, _ *rig, _ map[string]string) { s.remove("*/*/metadata/*.metadata.json") }},
	"lost data file":        {set: func(s *shop, _ *rig, _ map[string]string) { s.remove("*/*/data/*.parquet") }},
	"unknown column":        {set: func(_ *shop, _ *rig, f map[string]string) { f["columns"] = "[ prize ]" }},
}

// refuse lets the server answer every request with one status.
func (s *shop) refuse(status int) {
	s.Server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	})
}

func (s *shop) remove(pattern string) {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Warehouse, pattern))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, found)
	for _, path := range found {
		require.NoError(s.t, os.Remove(path))
	}
}

// prepare makes the failing shop, the rig and the fields of the input.
func (f failing) prepare(t *testing.T) (*shop, *rig, []string) {
	t.Helper()
	s, r := newShop(t), newRig(t)
	s.add(1)
	set := map[string]string{}
	if f.stored != "" {
		r.cache.put("place", f.stored)
	}
	if f.set != nil {
		f.set(s, r, set)
	}
	var fields []string
	for _, line := range s.increments() {
		name, _, _ := strings.Cut(line, ":")
		if value, ok := set[name]; ok {
			line = name + ": " + value
			delete(set, name)
		}
		fields = append(fields, line)
	}
	for name, value := range set {
		fields = append(fields, name+": "+value)
	}
	return s, r, fields
}

// masked is a text without what differs between runs.
func masked(s *shop, text string) string {
	text = strings.ReplaceAll(text, s.Warehouse, "WAREHOUSE")
	for pattern, by := range map[string]string{
		`http://127\.0\.0\.1:\d+`: "http://SERVER",
		`127\.0\.0\.1:\d+`:        "SERVER",
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`: "UUID",
		`\b\d{15,19}\b`: "SNAPSHOT",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	return text
}

func TestAFailingBoundedRunSaysSoOnceAndReports(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r, fields := f.prepare(t)
			before := r.cache.raw("place")
			l := r.run(fields)
			require.Len(t, l.reported(), 1)
			said := r.logs.at(slog.LevelError)
			require.Len(t, said, 1)
			assert.Equal(t, "Ending early: "+l.reported()[0].Error(), said[0])
			golden(t, filepath.Join("failures", strings.ReplaceAll(name, " ", "_")+".txt"), masked(s, said[0])+"\n")
			f.untouched(t, r, before)
		})
	}
}

// untouched: nothing was read, nothing was overwritten, no secret was logged.
func (f failing) untouched(t *testing.T, r *rig, before []byte) {
	t.Helper()
	assert.Empty(t, r.out.bodies())
	if before != nil {
		assert.Equal(t, string(before), string(r.cache.raw("place")), "the stored value is untouched")
		assert.Empty(t, r.cache.writes())
	}
	assert.NotContains(t, r.logs.String(), secret)
}

func TestAFailingInputRetriesWithGrowingWaits(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r, fields := f.prepare(t)
			before := r.cache.raw("place")
			l := r.start(append(fields, "poll_interval: 1ms"))
			r.eventually(func() bool { return r.numbers.of("input_connection_failed") >= 2 }, "two attempts to connect")
			code, body := l.ready()
			assert.Equal(t, http.StatusServiceUnavailable, code)
			assert.Contains(t, body, `"error":`)
			assert.NotContains(t, body, secret)
			l.stop()
			assert.Empty(t, l.reported(), "only a bounded run reports")
			said := r.logs.at(slog.LevelError)
			for _, line := range said {
				assert.True(t, strings.HasPrefix(line, "Failed to connect to nessie: "), line)
			}
			assert.Len(t, said, int(r.numbers.of("input_connection_failed")), "one line an attempt")
			f.untouched(t, r, before)
		})
	}
}

// What a running input meets is waited out, and it goes on where it was.
func TestARunningInputGoesOnOnceTheServerIsBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	l := r.start(s.increments("poll_interval: 1ms"))
	r.delivered(1)
	r.eventually(func() bool { code, _ := l.ready(); return code == http.StatusOK }, "ready")
	s.refuse(http.StatusServiceUnavailable)
	r.eventually(func() bool { return r.numbers.of("input_connection_lost") == 1 }, "the loss")
	r.eventually(func() bool { code, _ := l.ready(); return code == http.StatusServiceUnavailable }, "not ready")
	assert.True(t, r.logs.has("Reading stopped and keeps its place: "), r.logs)
	gets := 0
	r.cache.fail(func() error { gets++; return nil }, nil)
	s.Server.Intercept(nil)
	s.add(2)
	r.delivered(2)
	l.stop()
	assert.Equal(t, orders(1, 2), r.out.bodies())
	assert.Empty(t, l.reported())
}

func TestTheRightCredentialsAreSent(t *testing.T) {
	s := openShop(t, nessietest.Options{})
	s.create(nessietest.TableOptions{}, nessietest.Append(tables.Order(1)))
	s.Server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+secret && r.Header.Get("X-Api-Key") == "key" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	r := newRig(t)
	l := r.run(s.increments("auth: { bearer: "+secret+" }", "headers: { X-Api-Key: key }"))
	assert.Empty(t, l.reported())
	assert.Equal(t, orders(1), r.out.bodies())
	assert.NotContains(t, r.logs.String(), secret)
}

func TestATokenIsFetchedByClientCredentials(t *testing.T) {
	s := openShop(t, nessietest.Options{})
	s.create(nessietest.TableOptions{}, nessietest.Append(tables.Order(1)))
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if id, given, _ := r.BasicAuth(); id != "reader" || given != secret || r.FormValue("scope") != "catalog" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		fmt.Fprint(w, `{"access_token":"a token","token_type":"bearer","expires_in":300}`)
	}))
	t.Cleanup(login.Close)
	s.Server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer a token" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	auth := func(id string) string {
		return fmt.Sprintf("auth: { oauth2: { server_uri: %q, client_id: %s, client_secret: %s, scope: catalog } }", login.URL+"/token", id, secret)
	}
	r := newRig(t)
	l := r.run(s.increments(auth("stranger")))
	require.Len(t, l.reported(), 1)
	assert.ErrorContains(t, l.reported()[0], "POST "+login.URL+"/token: status 401 invalid_client")
	l = r.run(s.increments(auth("reader")))
	assert.Empty(t, l.reported())
	assert.Equal(t, orders(1), r.out.bodies())
	assert.NotContains(t, r.logs.String(), secret)
}

func TestAnInputWhoseKeyWasTakenStopsAndStaysStopped(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	old := r.start(s.increments("poll_interval: 1ms"))
	r.delivered(1)
	r.eventually(func() bool { return r.cache.place().Step == 1 && r.cache.place().Position == nil }, "the checkpoint")

	heir := newRig(t)
	heir.cache = r.cache
	now := heir.start(s.increments("poll_interval: 1ms"))
	heir.eventually(func() bool { return heir.numbers.of("nessie_polls", "result=unchanged") > 0 }, "the heir runs")
	s.add(2)
	r.eventually(func() bool {
		code, body := old.ready()
		return code == http.StatusServiceUnavailable && strings.Contains(body, "was taken over by another input")
	}, "the old input says so")
	heir.delivered(1)
	now.stop()
	assert.Equal(t, orders(2), heir.out.bodies())
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.True(t, r.logs.has(fmt.Sprintf(`the checkpoint under key "place" was taken over by another input (host %s, pid %d, started `, host, os.Getpid())), r.logs)
	stored := r.cache.raw("place")
	old.stop()
	assert.Equal(t, string(stored), string(r.cache.raw("place")), "the old one writes nothing any more")
}

func TestAnInputWithoutCheckpointsKeepsItsPlaceInMemory(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.add(1)
	r := newRig(t)
	l := r.start(s.fields("incremental_by_snapshot: true", "snapshot_checkpoints: false", "poll_interval: 1ms"))
	r.delivered(1)
	s.refuse(http.StatusServiceUnavailable)
	r.eventually(func() bool { return r.numbers.of("input_connection_lost") == 1 }, "the loss")
	s.Server.Intercept(nil)
	s.add(2)
	r.delivered(2)
	l.stop()
	assert.Equal(t, orders(1, 2), r.out.bodies())
	assert.Empty(t, r.cache.writes())
}

func TestACacheThatFailsOnWriteForAWhile(t *testing.T) {
	s := newShop(t)
	a := s.add(1)
	r := newRig(t)
	l := r.start(s.increments("poll_interval: 1ms"))
	r.eventually(func() bool { return r.cache.at(snapshotOf(a)) }, "the first checkpoint")
	r.cache.fail(nil, func() error { return errors.New("the store is full") })
	b := s.add(2)
	r.delivered(2)
	r.eventually(func() bool { return r.numbers.of("nessie_checkpoint_writes", "result=failed") > 0 }, "a failed write")
	assert.True(t, r.logs.has("Writing the checkpoint failed, trying again: "))
	r.cache.fail(nil, nil)
	l.stop()
	assert.True(t, r.cache.at(snapshotOf(b)), "closing tries once more")
}

func TestConnectAsksForGrowingWaits(t *testing.T) {
	tests := map[string]struct {
		interval string
		want     []time.Duration
	}{
		"from a second on":          {"1ms", []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9}},
		"from the poll interval on": {"10s", []time.Duration{10e9, 20e9, 40e9, 60e9, 60e9}},
		"never more than a minute":  {"1h", []time.Duration{60e9, 60e9}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.add(1)
			s.refuse(http.StatusServiceUnavailable)
			parsed, err := inputSpec().ParseYAML(strings.Join(s.fields("poll_interval: "+tc.interval), "\n"), nil)
			require.NoError(t, err)
			in, err := newInputFromConfig(parsed, service.MockResources())
			require.NoError(t, err)
			defer func() { assert.NoError(t, in.Close(t.Context())) }()
			attempt := func() time.Duration {
				backOff := &service.ErrBackOff{}
				require.ErrorAs(t, in.Connect(t.Context()), &backOff)
				return backOff.Wait
			}
			for i, want := range tc.want {
				assert.Equal(t, want, attempt(), "attempt %d", i+1)
			}
			s.Server.Intercept(nil)
			require.NoError(t, in.Connect(t.Context()))
		})
	}
}

func TestTLSSettingsAreUsedAndConnectionsClosed(t *testing.T) {
	s := newShop(t)
	s.add(1)
	secure := httptest.NewUnstartedServer(s.Server.Nessie)
	var open atomic.Int64
	secure.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	fields := func(tls string) []string {
		lines := s.increments("tls: " + tls)
		lines[0] = "base_url: " + secure.URL
		return lines
	}
	r := newRig(t)
	l := r.run(fields("{}"))
	require.Len(t, l.reported(), 1)
	assert.ErrorContains(t, l.reported()[0], "certificate")
	r.run(fields(fmt.Sprintf("{ root_cas: %q }", ca)))
	assert.Equal(t, orders(1), r.out.bodies())
	assert.Eventually(t, func() bool { return open.Load() == 0 }, patience, glance, "connections are closed with the input")
}

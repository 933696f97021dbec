// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	nessie "github.com/rpk-nessie/rpk-nessie"
	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// server checks URL, version and credentials with one request.
func (e *examination) server(ctx context.Context) bool {
	config, err := e.t.Client.Config(ctx)
	switch {
	case err == nil:
	case errors.Is(err, catalog.ErrUnauthorized):
		if e.t.Config.OAuth2 != nil {
			e.failed("server", "Check auth.oauth2: the client needs a token that this server accepts, with permission to read.", err)
			return false
		}
		e.failed("server", "Set auth.bearer to a token that this server accepts, with permission to read.", err)
		return false
	case errors.Is(err, catalog.ErrNotNessie):
		e.failed("server", "Set base_url to the root of a Nessie server, with what a proxy puts before /api/v2, such as http://nessie:19120.", err)
		return false
	default:
		e.failed("server", "Check that base_url names the right host and port, and that this machine reaches it; behind TLS, check tls.", err)
		return false
	}
	version := config.SpecVersion
	if version == "" {
		version = "older than 2.0.0"
	}
	e.passed("server", "%s, API v%d to v%d, specification %s", e.t.Config.BaseURL, config.MinAPIVersion, config.MaxAPIVersion, version)
	return true
}

// mostSkew is what clocks may differ by before it is worth a warning: commit times decide start_from and the lag.
const mostSkew = 5 * time.Second

// clock compares this machine's clock with the server's, as its HTTP answers tell it to the second.
func (e *examination) clock(ctx context.Context, server bool) {
	if e.skipUnless(server, "clock"); !server {
		return
	}
	began := time.Now()
	theirs, err := serverTime(ctx, e.t.Config)
	if err != nil {
		e.newestCommit(ctx, err)
		return
	}
	skew := theirs.Sub(began.Add(time.Since(began) / 2)).Round(time.Second)
	if skew.Abs() > mostSkew {
		e.warned("clock", "Synchronise the clocks (NTP): times in metrics and start_from compare the two.", "the server's clock is %v from this machine's", skew)
		return
	}
	e.passed("clock", "within %v of the server's", mostSkew)
}

// newestCommit compares clocks where answers have no date: no commit is made in the future.
func (e *examination) newestCommit(ctx context.Context, why error) {
	for c, err := range e.t.Client.Log(ctx, catalog.LogQuery{From: e.t.Config.Ref, PageSize: 1}) {
		if err != nil {
			break
		}
		if ahead := time.Until(c.Time).Round(time.Second); ahead > mostSkew {
			e.warned("clock", "Synchronise the clocks (NTP): times in metrics and start_from compare the two.", "the newest commit was made %v in this machine's future", ahead)
			return
		}
		e.passed("clock", "the newest commit is not in this machine's future (%v)", why)
		return
	}
	e.checks = append(e.checks, finding{Name: "clock", Result: checkSkipped, Found: "nothing tells the server's time: " + why.Error()})
}

func serverTime(ctx context.Context, conf *nessie.Config) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, conf.RequestTimeout)
	defer cancel()
	url := strings.TrimSuffix(strings.TrimSuffix(conf.BaseURL, "/"), "/api/v2") + "/api/v2/config"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return time.Time{}, err
	}
	transport := catalog.NewTransport(conf.TLS)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, errors.New("the server's answers have no date")
	}
	return at.Add(500 * time.Millisecond), nil // the header is cut to seconds
}

func (e *examination) reference(ctx context.Context) bool {
	ref := e.t.Config.Ref
	if ref.Name == "" {
		e.passed("branch", "commit %s, fixed", ref)
		return true
	}
	found, err := e.t.Client.Reference(ctx, ref.Name)
	switch {
	case errors.Is(err, catalog.ErrUnauthorized):
		e.failed("branch", "The credentials lack permission to read this branch.", err)
	case err != nil:
		e.failed("branch", "Set branch to one that exists: inspect refs lists them.", err)
	case ref.Hash != "":
		e.passed("branch", "%s %s, fixed at %s", strings.ToLower(found.Type), ref.Name, shortHash(ref.Hash))
	default:
		e.passed("branch", "%s %s at %s", strings.ToLower(found.Type), ref.Name, shortHash(found.Hash))
	}
	return err == nil
}

// table reads the head and its metadata file, which is the first thing that needs storage.
func (e *examination) table(ctx context.Context, reference bool) *nessie.Look {
	if !reference {
		e.skipUnless(false, "table")
		return nil
	}
	head, err := e.t.Client.Head(ctx, e.t.Config.Ref, e.t.Config.Key)
	if err != nil {
		e.failed("table", "Set namespace and table to one that exists on the branch.", err)
		return nil
	}
	e.passed("table", "%s, content %s", e.t.Config.Key, head.Content.ID)
	look, err := e.t.Look(ctx, head.Reference.Ref())
	if err != nil {
		e.failed("metadata file", storageAdvice(err, head.Content.MetadataLocation), err)
		return nil
	}
	current := "no snapshot"
	if !look.State.Empty() {
		current = fmt.Sprintf("snapshot %d", look.State.SnapshotID)
	}
	e.passed("metadata file", "format version %d, %s", look.Table.Meta.Version(), current)
	if err := e.t.CheckColumns(ctx, look); err != nil {
		e.failed("columns", "Set columns, query and identifier_fields to columns that the table has: inspect schemas lists them.", err)
	} else {
		e.passed("columns", "the table has those that the settings name")
	}
	return look
}

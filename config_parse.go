// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/lineage"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// Config is a parsed and checked configuration of the input.
type Config struct {
	BaseURL      string
	Ref          catalog.Ref
	Key          catalog.Key
	Namespace    string // as metadata shows it
	Columns      []string
	Query        *scan.Query // nil: every row
	PollInterval time.Duration
	Incremental  bool

	Checkpoints     bool
	CheckpointCache string
	CheckpointKey   string // "" until derived
	CheckpointLimit int
	WriteTimeout    time.Duration

	Lineage     lineage.Policy
	Changes     string
	OnOverwrite string
	OnDelete    string
	// IdentifierFields is nil where the schema's own count.
	IdentifierFields []string
	DeletePayload    scan.Payload

	Format      scan.Format
	RowOrdinals bool
	BatchRows   int
	BatchBytes  int64
	Parallelism int
	Memory      int64
	Batching    service.BatchPolicy

	Bearer         string
	OAuth2         *catalog.OAuth2Config // nil without
	TLS            *tls.Config
	Headers        map[string]string
	RequestTimeout time.Duration
	MaxRetries     int
	RateLimit      string
	Storage        catalog.StorageConfig
}

// Bounded tells whether the input reads what is there and ends.
func (c *Config) Bounded() bool { return c.PollInterval == 0 }

// Changelog tells whether every change of a row is delivered.
func (c *Config) Changelog() bool { return c.Changes == changesChangelog }

// fieldReader reads fields and keeps the first error, so that parsing reads as
// a list of fields.
type fieldReader struct {
	conf *service.ParsedConfig
	err  error
}

func (r *fieldReader) fail(err error) {
	if r.err == nil && err != nil {
		r.err = err
	}
}

func (r *fieldReader) str(path ...string) string {
	if !r.conf.Contains(path...) {
		return ""
	}
	v, err := r.conf.FieldString(path...)
	r.fail(err)
	r.check(v, path)
	return v
}

// check asks the field's check of a value that could be read.
func (r *fieldReader) check(v any, path []string) {
	if r.err == nil {
		r.fail(check(strings.Join(path, "."), v))
	}
}

func (r *fieldReader) boolean(path ...string) bool {
	if !r.conf.Contains(path...) {
		return false
	}
	v, err := r.conf.FieldBool(path...)
	r.fail(err)
	return v
}

func (r *fieldReader) integer(path ...string) int {
	v, err := r.conf.FieldInt(path...)
	r.fail(err)
	r.check(v, path)
	return v
}

func (r *fieldReader) list(path ...string) []string {
	v, err := r.conf.FieldStringList(path...)
	r.fail(err)
	return v
}

func (r *fieldReader) duration(path ...string) time.Duration {
	d, _ := time.ParseDuration(r.str(path...)) // checked
	return d
}

func (r *fieldReader) size(path ...string) int64 {
	v, _ := parseSize(r.str(path...)) // checked
	return v
}

func (r *fieldReader) snapshotID(path ...string) *int64 {
	text := r.str(path...)
	if id, ok := parseSnapshotID(text); ok {
		return &id
	}
	return nil // not set, or refused
}

// parseConfig reads and checks a configuration. Its errors name the field.
func parseConfig(conf *service.ParsedConfig) (*Config, error) {
	r := &fieldReader{conf: conf}
	c := &Config{
		BaseURL:         r.str(niFieldBaseURL),
		PollInterval:    r.duration(niFieldPollInterval),
		Incremental:     r.boolean(niFieldIncremental),
		Checkpoints:     r.boolean(niFieldCheckpoints),
		CheckpointCache: r.str(niFieldCache),
		CheckpointKey:   r.str(niFieldCacheKey),
		CheckpointLimit: r.integer(niFieldLimit),
		WriteTimeout:    r.duration(niFieldWriteTimeout),
		Changes:         r.str(niFieldChanges),
		DeletePayload:   scan.Payload(r.str(niFieldDeletePayload)),
		OnOverwrite:     r.str(niFieldOnOverwrite),
		OnDelete:        r.str(niFieldOnDelete),
		Format:          scan.Format(r.str(niFieldFormat)),
		RowOrdinals:     r.boolean(niFieldRowOrdinals),
		BatchRows:       r.integer(niFieldBatchRows),
		BatchBytes:      r.size(niFieldBatchBytes),
		Parallelism:     r.integer(niFieldParallelism),
		Memory:          r.size(niFieldMemory),
		Bearer:          r.str(niFieldAuth, niFieldAuthBearer),
		RequestTimeout:  r.duration(niFieldRequestTimeout),
		MaxRetries:      r.integer(niFieldMaxRetries),
		RateLimit:       r.str(niFieldRateLimit),
	}
	if c.Parallelism == 0 {
		c.Parallelism = runtime.GOMAXPROCS(0)
	}
	c.parseTable(r)
	c.parseLineage(r)
	c.parseConnection(r)
	if r.err != nil {
		return nil, r.err
	}
	all, err := conf.FieldAny()
	if err != nil {
		return nil, err
	}
	if complaints := combinations(all); len(complaints) > 0 {
		return nil, errors.New(complaints[0])
	}
	return c, nil
}

func (c *Config) parseTable(r *fieldReader) {
	c.Columns = r.list(niFieldColumns)
	if identifiers := r.list(niFieldIdentifiers); len(identifiers) > 0 {
		c.IdentifierFields = identifiers
	}
	query, ref, namespace, table := r.str(niFieldQuery), r.str(niFieldBranch), r.str(niFieldNamespace), r.str(niFieldTable)
	if r.err != nil {
		return
	}
	if query != "" {
		c.Query, r.err = scan.ParseQuery(query)
	}
	var err error
	c.Ref, err = catalog.ParseRef(ref)
	r.fail(err)
	levels, err := catalog.ParseNamespace(namespace)
	r.fail(err)
	c.Namespace = catalog.Key(levels).String()
	c.Key = append(catalog.Key(levels), table)
}

func (c *Config) parseLineage(r *fieldReader) {
	c.Lineage.Changelog = c.Changelog()
	c.Lineage.OnLost = lineage.OnLost(r.str(niFieldOnLostLineage))
	if c.Lineage.OnLost == "" {
		c.Lineage.OnLost = c.lostByDefault()
	}
	c.Lineage.OnReplaced = lineage.OnReplaced(r.str(niFieldOnReplaced))
	c.Lineage.StartSnapshotID = r.snapshotID(niFieldStartSnapshot)
	c.Lineage.EndSnapshotID = r.snapshotID(niFieldEndSnapshot)
	from := r.str(niFieldStartFrom)
	if at, ok := parseMoment(from); ok {
		c.Lineage.StartTime = &at
		return
	}
	c.Lineage.StartFrom = lineage.StartFrom(from)
}

func (c *Config) lostByDefault() lineage.OnLost {
	if c.Changelog() {
		return onLostBridge
	}
	return onLostStart
}

func (c *Config) parseConnection(r *fieldReader) {
	var err error
	if c.Headers, err = r.conf.FieldStringMap(niFieldHeaders); err != nil {
		r.fail(err)
	}
	r.fail(catalog.CheckHeaders(c.Headers))
	if c.TLS, err = r.conf.FieldTLS(niFieldTLS); err != nil {
		r.fail(err)
	}
	if c.Batching, err = r.conf.FieldBatchPolicy(niFieldBatching); err != nil {
		r.fail(err)
	}
	r.fail(batchPolicy(niFieldBatching, map[string]any{"period": c.Batching.Period}))
	if oauth2 := []string{niFieldAuth, niFieldAuthOAuth2}; r.conf.Contains(oauth2...) {
		in := func(name string) []string { return append(oauth2[:2:2], name) }
		c.OAuth2 = &catalog.OAuth2Config{
			ServerURI: r.str(in(oauth2FieldServer)...), ClientID: r.str(in(oauth2FieldID)...), ClientSecret: r.str(in(oauth2FieldSecret)...),
			Scope: r.str(in(oauth2FieldScope)...), TLS: c.TLS, Timeout: c.RequestTimeout,
		}
		if *c.OAuth2 == (catalog.OAuth2Config{TLS: c.TLS, Timeout: c.RequestTimeout}) {
			c.OAuth2 = nil // printed by create, and not filled in
		} else if err := c.OAuth2.Check(); err != nil {
			r.fail(fmt.Errorf("field %s.%s.%w", niFieldAuth, niFieldAuthOAuth2, err))
		}
	}
	if r.conf.Contains(niFieldStorage) {
		object, err := r.conf.FieldAny(niFieldStorage)
		r.fail(err)
		fields, _ := object.(map[string]any)
		c.Storage = storageOf(fields)
		if r.err == nil {
			r.fail(storage(niFieldStorage, fields))
		}
	}
	c.Storage.Timeout, c.Storage.MaxAttempts = c.RequestTimeout, c.MaxRetries+1
}

// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
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
	return v
}

func (r *fieldReader) boolean(path ...string) bool {
	if !r.conf.Contains(path...) {
		return false
	}
	v, err := r.conf.FieldBool(path...)
	r.fail(err)
	return v
}

func (r *fieldReader) positive(atLeast int, path ...string) int {
	v, err := r.conf.FieldInt(path...)
	r.fail(err)
	if v < atLeast {
		r.fail(fmt.Errorf("field %s must be at least %d, got %d", strings.Join(path, "."), atLeast, v))
	}
	return v
}

func (r *fieldReader) duration(atLeast time.Duration, path ...string) time.Duration {
	v, err := r.conf.FieldDuration(path...)
	r.fail(err)
	if v < atLeast {
		r.fail(fmt.Errorf("field %s must be at least %v, got %v", strings.Join(path, "."), atLeast, v))
	}
	return v
}

func (r *fieldReader) size(path ...string) int64 {
	text := r.str(path...)
	v, err := humanize.ParseBytes(text)
	if err != nil || v == 0 || v > 1<<62 {
		r.fail(fmt.Errorf("field %s must be a size such as 8MiB, got %q", strings.Join(path, "."), text))
		return 0
	}
	return int64(v)
}

// parseConfig reads and checks a configuration. Its errors name the field.
func parseConfig(conf *service.ParsedConfig) (*Config, error) {
	r := &fieldReader{conf: conf}
	c := &Config{
		BaseURL:         r.str(niFieldBaseURL),
		PollInterval:    r.duration(0, niFieldPollInterval),
		Incremental:     r.boolean(niFieldIncremental),
		Checkpoints:     r.boolean(niFieldCheckpoints),
		CheckpointCache: r.str(niFieldCache),
		CheckpointKey:   r.str(niFieldCacheKey),
		CheckpointLimit: r.positive(1, niFieldLimit),
		WriteTimeout:    r.duration(time.Millisecond, niFieldWriteTimeout),
		Changes:         r.str(niFieldChanges),
		DeletePayload:   scan.Payload(r.str(niFieldDeletePayload)),
		OnOverwrite:     r.str(niFieldOnOverwrite),
		OnDelete:        r.str(niFieldOnDelete),
		Format:          scan.Format(r.str(niFieldFormat)),
		RowOrdinals:     r.boolean(niFieldRowOrdinals),
		BatchRows:       r.positive(1, niFieldBatchRows),
		BatchBytes:      r.size(niFieldBatchBytes),
		Parallelism:     r.positive(0, niFieldParallelism),
		Memory:          r.size(niFieldMemory),
		Bearer:          r.str(niFieldAuth, niFieldAuthBearer),
		RequestTimeout:  r.duration(time.Millisecond, niFieldRequestTimeout),
		MaxRetries:      r.positive(0, niFieldMaxRetries),
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
	return c, c.check()
}

func (c *Config) parseTable(r *fieldReader) {
	var err error
	if c.Columns, err = r.conf.FieldStringList(niFieldColumns); err != nil {
		r.fail(err)
	}
	if query := r.str(niFieldQuery); query != "" {
		if c.Query, err = scan.ParseQuery(query); err != nil {
			r.fail(fmt.Errorf("field %s: %w", niFieldQuery, err))
		}
	}
	if c.Ref, err = catalog.ParseRef(r.str(niFieldBranch)); err != nil {
		r.fail(fmt.Errorf("field %s: %w", niFieldBranch, err))
	}
	identifiers, err := r.conf.FieldStringList(niFieldIdentifiers)
	if err != nil {
		r.fail(err)
	}
	if len(identifiers) > 0 {
		c.IdentifierFields = identifiers
	}
	levels, err := catalog.ParseNamespace(r.str(niFieldNamespace))
	if err != nil {
		r.fail(fmt.Errorf("field %s: %w", niFieldNamespace, err))
	}
	table := r.str(niFieldTable)
	if table == "" {
		r.fail(fmt.Errorf("field %s must not be empty", niFieldTable))
	}
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
	switch from := r.str(niFieldStartFrom); from {
	case startFromTableScan, startFromEarliest, startFromLatest:
		c.Lineage.StartFrom = lineage.StartFrom(from)
	default:
		c.Lineage.StartTime = r.moment(niFieldStartFrom)
	}
}

func (c *Config) lostByDefault() lineage.OnLost {
	if c.Changelog() {
		return onLostBridge
	}
	return onLostStart
}

// snapshotID reads an optional snapshot id. Ids are strings in a
// configuration, because YAML numbers lose digits beyond 2^53.
func (r *fieldReader) snapshotID(field string) *int64 {
	text := r.str(field)
	if text == "" {
		return nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 || text[0] == '+' {
		r.fail(fmt.Errorf("field %s must be a snapshot id, an unsigned integer of at most 19 digits in a string, got %q", field, text))
		return nil
	}
	return &id
}

// moment reads an ISO time; without a zone it is UTC.
func (r *fieldReader) moment(field string) *time.Time {
	text := r.str(field)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
			return &t
		}
	}
	r.fail(fmt.Errorf("field %s must be %s, %s, %s, or a time such as 2026-01-31T00:00:00Z, got %q",
		field, startFromTableScan, startFromEarliest, startFromLatest, text))
	return nil
}

func (c *Config) parseConnection(r *fieldReader) {
	var err error
	if c.Headers, err = r.conf.FieldStringMap(niFieldHeaders); err != nil {
		r.fail(err)
	}
	if c.TLS, err = r.conf.FieldTLS(niFieldTLS); err != nil {
		r.fail(err)
	}
	if c.Batching, err = r.conf.FieldBatchPolicy(niFieldBatching); err != nil {
		r.fail(err)
	}
	s3 := func(path ...string) []string { return append([]string{niFieldStorage, niFieldStorageS3}, path...) }
	c.Storage = catalog.StorageConfig{
		LocalRoot: r.str(niFieldStorage, niFieldStorageLocal),
		S3: catalog.S3Config{
			Region:          r.str(s3(s3FieldRegion)...),
			Endpoint:        r.str(s3(s3FieldEndpoint)...),
			ForcePathStyle:  r.boolean(s3(s3FieldPathStyle)...),
			Profile:         r.str(s3(s3FieldCredentials, s3FieldProfile)...),
			AccessKeyID:     r.str(s3(s3FieldCredentials, s3FieldID)...),
			SecretAccessKey: r.str(s3(s3FieldCredentials, s3FieldSecret)...),
			SessionToken:    r.str(s3(s3FieldCredentials, s3FieldToken)...),
			FromEC2Role:     r.boolean(s3(s3FieldCredentials, s3FieldEC2Role)...),
			Role:            r.str(s3(s3FieldCredentials, s3FieldRole)...),
			RoleExternalID:  r.str(s3(s3FieldCredentials, s3FieldExternalID)...),
		},
	}
}

// check refuses combinations, like the lint rule does, for configurations that
// were never linted.
func (c *Config) check() error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("field %s must be an http or https URL", niFieldBaseURL)
	case u.User != nil:
		return fmt.Errorf("field %s must not hold user information: use %s", niFieldBaseURL, niFieldAuth)
	case c.Incremental && c.Query != nil:
		return fmt.Errorf("field %s can't be combined with %s: true", niFieldQuery, niFieldIncremental)
	case !c.Incremental && c.onlyIncremental() != "":
		return fmt.Errorf("field %s needs %s: true", c.onlyIncremental(), niFieldIncremental)
	case c.Incremental && c.Checkpoints && c.CheckpointCache == "":
		return fmt.Errorf("field %s is required: name a cache resource, or set %s: false to keep progress only as long as the process lives", niFieldCache, niFieldCheckpoints)
	case c.Incremental && !c.Checkpoints && c.CheckpointCache != "":
		return fmt.Errorf("field %s has no effect with %s: false", niFieldCache, niFieldCheckpoints)
	case !c.Batching.IsNoop() && c.Format != formatJSON:
		return errors.New("field batching needs format: json")
	case c.RowOrdinals && c.Format != formatJSON:
		return fmt.Errorf("field %s needs %s: %s", niFieldRowOrdinals, niFieldFormat, formatJSON)
	}
	return c.checkChanges()
}

// checkChanges refuses what would break a changelog's law, or has no meaning
// without one.
func (c *Config) checkChanges() error {
	lost := c.Lineage.OnLost
	switch {
	case !c.Changelog() && (c.IdentifierFields != nil || c.DeletePayload != scan.PayloadRow):
		return fmt.Errorf("fields %s and %s need %s: %s", niFieldIdentifiers, niFieldDeletePayload, niFieldChanges, changesChangelog)
	case !c.Changelog():
		return nil
	case lost == onLostStart || lost == onLostAncestor:
		return fmt.Errorf("field %s must be %s, %s or %s with %s: %s: %s leaves changes out",
			niFieldOnLostLineage, onLostBridge, onLostTableScan, onLostFail, niFieldChanges, changesChangelog, lost)
	case c.OnOverwrite != onRemovedFail || c.OnDelete != onRemovedFail:
		return fmt.Errorf("fields %s and %s have no place with %s: %s, which tells every change", niFieldOnOverwrite, niFieldOnDelete, niFieldChanges, changesChangelog)
	case c.IdentifierFields != nil && c.Format != formatJSON:
		return fmt.Errorf("field %s needs %s: %s, as pairs of updates are messages of their own", niFieldIdentifiers, niFieldFormat, formatJSON)
	case !c.Batching.IsNoop():
		return fmt.Errorf("field %s has no place with %s: %s, as it would part what belongs together: use %s and %s", niFieldBatching, niFieldChanges, changesChangelog, niFieldBatchRows, niFieldBatchBytes)
	}
	return nil
}

// onlyIncremental names a field that is set and means something only with
// incremental reading; "" where there is none.
func (c *Config) onlyIncremental() string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{niFieldCache, c.CheckpointCache != ""},
		{niFieldCacheKey, c.CheckpointKey != ""},
		{niFieldCheckpoints, !c.Checkpoints},
		{niFieldStartSnapshot, c.Lineage.StartSnapshotID != nil},
		{niFieldEndSnapshot, c.Lineage.EndSnapshotID != nil},
		{niFieldStartFrom, c.Lineage.StartFrom != startFromTableScan || c.Lineage.StartTime != nil},
		{niFieldChanges, c.Changelog()},
		{niFieldOnLostLineage, c.Lineage.OnLost != c.lostByDefault()},
		{niFieldOnReplaced, c.Lineage.OnReplaced != onReplacedFail},
		{niFieldOnOverwrite, c.OnOverwrite != onRemovedFail},
		{niFieldOnDelete, c.OnDelete != onRemovedFail},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}

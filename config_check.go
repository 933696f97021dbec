// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/redpanda-data/benthos/v4/public/bloblang"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/scan"
)

// valueCheck says whether a value can stand in a field. The value is a string
// or an int, as the field's type is; for a map it is a map[string]any.
type valueCheck func(field string, value any) error

// valueChecks hold what a value must be by itself, by the path of its field.
// The constructor and lint ask the same ones. Their errors name the field.
var valueChecks = map[string]valueCheck{
	niFieldBaseURL:        baseURL,
	niFieldBranch:         parsed(func(s string) error { _, err := catalog.ParseRef(s); return err }),
	niFieldNamespace:      parsed(func(s string) error { _, err := catalog.ParseNamespace(s); return err }),
	niFieldTable:          notEmpty,
	niFieldQuery:          optional(parsed(func(s string) error { _, err := scan.ParseQuery(s); return err })),
	niFieldPollInterval:   durationFrom(0),
	niFieldWriteTimeout:   durationFrom(time.Millisecond),
	niFieldRequestTimeout: durationFrom(time.Millisecond),
	niFieldStartSnapshot:  optional(snapshotID),
	niFieldEndSnapshot:    optional(snapshotID),
	niFieldStartFrom:      startFrom,
	niFieldCacheKey:       printable,
	niFieldLimit:          atLeast(1),
	niFieldBatchRows:      atLeast(1),
	niFieldParallelism:    atLeast(0),
	niFieldMaxRetries:     atLeast(0),
	niFieldBatchBytes:     size,
	niFieldMemory:         size,
	niFieldHeaders:        headers,
	niFieldAuth:           auth,
	niFieldBatching:       batchPolicy,
	niFieldStorage:        storage,

	// Lint knows the options of these by itself.
	niFieldChanges:       oneOf(changesAppend, changesChangelog),
	niFieldDeletePayload: oneOf(string(scan.PayloadRow), string(scan.PayloadKey)),
	niFieldOnOverwrite:   oneOf(onRemovedFail, onRemovedSkip, onRemovedAddedRows),
	niFieldOnDelete:      oneOf(onRemovedFail, onRemovedSkip),
	niFieldOnLostLineage: oneOf("", onLostStart, onLostAncestor, onLostBridge, onLostTableScan, onLostFail),
	niFieldOnReplaced:    oneOf(onReplacedFail, onReplacedRestart),
	niFieldFormat:        oneOf(formatJSON, formatNDJSON, formatArrow),
}

// check asks the field's check, if there is one.
func check(field string, value any) error {
	if c, ok := valueChecks[field]; ok {
		return c(field, value)
	}
	return nil
}

// lintMethod is the Bloblang method through which lint rules ask valueChecks.
const lintMethod = "nessie_lint"

// registerLintMethod must come before the specs are made, which parse their
// rules.
func registerLintMethod() {
	spec := bloblang.NewPluginSpec().
		Deprecated(). // it is for the lint rules here, and nobody need find it in the documentation
		Description("Lints the value of a field of the `nessie` input, or with an empty name all its fields together.").
		Param(bloblang.NewStringParam("field"))
	bloblang.MustRegisterMethodV2(lintMethod, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		field, err := args.GetString("field")
		if err != nil {
			return nil, err
		}
		if field == "" {
			return func(all any) (any, error) { return lintCombinations(all), nil }, nil
		}
		return func(value any) (any, error) { return lintValue(field, value), nil }, nil
	})
}

// lintValue lists what is wrong with a value. It passes the empty string: that
// is what `lint --skip-env-var-check` puts in the place of a variable that is
// not set.
func lintValue(field string, value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return nil
		}
	case int64:
		value = int(v)
	}
	if err := check(field, value); err != nil {
		return []any{err.Error()}
	}
	return nil
}

func lintCombinations(all any) []any {
	var lints []any
	for _, complaint := range combinations(all) {
		lints = append(lints, complaint)
	}
	return lints
}

// combinationsRule is the lint rule of the input as a whole.
const combinationsRule = "root = this." + lintMethod + `("")`

// valueRule is the lint rule of a field that has a check. Benthos asks it for
// the scalars of a map too, which say nothing by themselves.
func valueRule(field string) string {
	switch field {
	case niFieldAuth, niFieldHeaders, niFieldBatching, niFieldStorage:
		return fmt.Sprintf(`root = if this.type() == "object" { this.%s(%q) }`, lintMethod, field)
	}
	return fmt.Sprintf("root = this.%s(%q)", lintMethod, field)
}

func baseURL(_ string, value any) error {
	if err := catalog.CheckBaseURL(value.(string)); err != nil {
		return fmt.Errorf("field %w", err)
	}
	return nil
}

// parsed is a check by what a parser says.
func parsed(parse func(string) error) valueCheck {
	return func(field string, value any) error {
		if err := parse(value.(string)); err != nil {
			return fmt.Errorf("field %s: %w", field, err)
		}
		return nil
	}
}

// optional passes what is not set.
func optional(c valueCheck) valueCheck {
	return func(field string, value any) error {
		if value == "" {
			return nil
		}
		return c(field, value)
	}
}

func notEmpty(field string, value any) error {
	if value == "" {
		return fmt.Errorf("field %s must not be empty", field)
	}
	return nil
}

// printable refuses what no cache need take for a key, and no log shows.
func printable(field string, value any) error {
	if at := strings.IndexFunc(value.(string), unicode.IsControl); at >= 0 {
		return fmt.Errorf("field %s must not hold control characters, got %q", field, value)
	}
	return nil
}

func oneOf(options ...string) valueCheck {
	return func(field string, value any) error {
		if !slices.Contains(options, value.(string)) {
			return fmt.Errorf("field %s can't be %q: it is one of %s", field, value, strings.TrimPrefix(strings.Join(options, ", "), ", "))
		}
		return nil
	}
}

func atLeast(least int) valueCheck {
	return func(field string, value any) error {
		if v, ok := value.(int); ok && v < least {
			return fmt.Errorf("field %s must be at least %d, got %d", field, least, v)
		}
		return nil
	}
}

func durationFrom(least time.Duration) valueCheck {
	return func(field string, value any) error {
		d, err := time.ParseDuration(value.(string))
		switch {
		case err != nil:
			return fmt.Errorf("field %s must be a duration such as 10s, got %q", field, value)
		case d < least:
			return fmt.Errorf("field %s must be at least %v, got %v", field, least, d)
		}
		return nil
	}
}

func size(field string, value any) error {
	if _, ok := parseSize(value.(string)); !ok {
		return fmt.Errorf("field %s must be a size such as 8MiB, got %q", field, value)
	}
	return nil
}

func parseSize(text string) (int64, bool) {
	v, err := humanize.ParseBytes(text)
	return int64(v), err == nil && v > 0 && v <= 1<<62
}

func snapshotID(field string, value any) error {
	if _, ok := parseSnapshotID(value.(string)); !ok {
		return fmt.Errorf("field %s must be a snapshot id, an unsigned integer of at most 19 digits in a string, got %q", field, value)
	}
	return nil
}

// parseSnapshotID reads a snapshot id. Ids are strings in a configuration,
// because YAML numbers lose digits beyond 2^53.
func parseSnapshotID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id >= 0 && text[0] != '+'
}

func startFrom(field string, value any) error {
	words := []string{startFromTableScan, startFromEarliest, startFromLatest}
	if slices.Contains(words, value.(string)) {
		return nil
	}
	if _, ok := parseMoment(value.(string)); !ok {
		return fmt.Errorf("field %s must be %s, or a time such as 2026-01-31T00:00:00Z, got %q", field, strings.Join(words, ", "), value)
	}
	return nil
}

// parseMoment reads an ISO time; without a zone it is UTC.
func parseMoment(text string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func headers(field string, value any) error {
	given := map[string]string{}
	for name, v := range value.(map[string]any) {
		given[name], _ = v.(string)
	}
	if err := catalog.CheckHeaders(given); err != nil {
		return fmt.Errorf("field %s: %w", field, err)
	}
	return nil
}

// batchPolicy checks what Benthos itself does not.
func batchPolicy(field string, value any) error {
	period, _ := value.(map[string]any)["period"].(string)
	if period == "" {
		return nil
	}
	return durationFrom(0)(field+".period", period)
}

func storage(_ string, value any) error {
	if gcs := section(value.(map[string]any)).section(niFieldStorageGCS); gcs != nil && gcs.str(gcsFieldType) == "" {
		return fmt.Errorf("field %s.%s.%s can't be empty: it is one of %s", niFieldStorage, niFieldStorageGCS, gcsFieldType, strings.Join(catalog.GCSCredentials, ", "))
	}
	s, err := catalog.NewStorage(storageOf(value.(map[string]any)))
	if err != nil {
		return fmt.Errorf("field %w", err)
	}
	return s.Close()
}

// auth checks what is there; lint says itself what is missing, and what is
// empty may come from a variable that is not set.
func auth(_ string, value any) error {
	oauth2, given := value.(map[string]any)[niFieldAuthOAuth2].(map[string]any)
	if !given || section(oauth2).str(oauth2FieldServer) == "" {
		return nil
	}
	err := catalog.OAuth2Config{ServerURI: section(oauth2).str(oauth2FieldServer), ClientID: "set", ClientSecret: "set"}.Check()
	if err != nil {
		return fmt.Errorf("field %s.%s.%w", niFieldAuth, niFieldAuthOAuth2, err)
	}
	return nil
}

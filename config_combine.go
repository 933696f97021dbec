// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"fmt"

	"github.com/rpk-nessie/rpk-nessie/scan"
)

// incrementalFields mean something only with incremental reading, each with
// the default by which it counts as not set.
var incrementalFields = []struct {
	name     string
	standard any
}{
	{niFieldCache, ""},
	{niFieldCacheKey, ""},
	{niFieldWriteTimeout, defaultWriteTimeout},
	{niFieldChanges, changesAppend},
	{niFieldEndSnapshot, ""},
	{niFieldOnDelete, onRemovedFail},
	{niFieldOnLostLineage, ""},
	{niFieldOnOverwrite, onRemovedFail},
	{niFieldOnReplaced, onReplacedFail},
	{niFieldCheckpoints, true},
	{niFieldStartFrom, startFromTableScan},
	{niFieldStartSnapshot, ""},
}

// combinations lists what is wrong with fields beside each other. It is asked
// by the constructor and by lint, with all fields of the input, those that are
// not set at their defaults.
func combinations(fields any) []string {
	object, _ := fields.(map[string]any)
	all := section(object)
	var complaints []string
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			complaints = append(complaints, fmt.Sprintf(format, args...))
		}
	}
	incremental, json := all.boolean(niFieldIncremental), all.str(niFieldFormat) == formatJSON
	for _, f := range incrementalFields {
		refuse(!incremental && all[f.name] != f.standard, "field %s needs %s: true", f.name, niFieldIncremental)
	}
	cached := all.str(niFieldCache) != ""
	refuse(incremental && all.str(niFieldQuery) != "", "field %s can't be combined with %s: true", niFieldQuery, niFieldIncremental)
	refuse(incremental && all.boolean(niFieldCheckpoints) && !cached,
		"field %s is required: name a cache resource, or set %s: false to keep progress only as long as the process lives", niFieldCache, niFieldCheckpoints)
	refuse(incremental && !all.boolean(niFieldCheckpoints) && cached, "field %s has no effect with %s: false", niFieldCache, niFieldCheckpoints)
	refuse(!json && hasBatching(all), "field %s needs %s: %s", niFieldBatching, niFieldFormat, formatJSON)
	refuse(!json && all.boolean(niFieldRowOrdinals), "field %s needs %s: %s", niFieldRowOrdinals, niFieldFormat, formatJSON)

	auth := all.section(niFieldAuth)
	oauth2 := auth.section(niFieldAuthOAuth2)
	fetched := oauth2.str(oauth2FieldServer) != "" || oauth2.str(oauth2FieldID) != "" || oauth2.str(oauth2FieldSecret) != ""
	refuse(auth.str(niFieldAuthBearer) != "" && fetched, "field %s holds both %s and %s: use one of them", niFieldAuth, niFieldAuthBearer, niFieldAuthOAuth2)

	identified := len(all.list(niFieldIdentifiers)) > 0
	if all.str(niFieldChanges) != changesChangelog {
		refuse(identified || all.str(niFieldDeletePayload) != string(scan.PayloadRow),
			"fields %s and %s need %s: %s", niFieldIdentifiers, niFieldDeletePayload, niFieldChanges, changesChangelog)
		return complaints
	}
	// What would break a changelog's law.
	lost := all.str(niFieldOnLostLineage)
	refuse(lost == onLostStart || lost == onLostAncestor, "field %s must be %s, %s or %s with %s: %s: %s leaves changes out",
		niFieldOnLostLineage, onLostBridge, onLostTableScan, onLostFail, niFieldChanges, changesChangelog, lost)
	refuse(all.str(niFieldOnOverwrite) != onRemovedFail || all.str(niFieldOnDelete) != onRemovedFail,
		"fields %s and %s have no place with %s: %s, which tells every change", niFieldOnOverwrite, niFieldOnDelete, niFieldChanges, changesChangelog)
	refuse(identified && !json, "field %s needs %s: %s, as pairs of updates are messages of their own", niFieldIdentifiers, niFieldFormat, formatJSON)
	refuse(hasBatching(all), "field %s has no place with %s: %s, as it would part what belongs together: use %s and %s",
		niFieldBatching, niFieldChanges, changesChangelog, niFieldBatchRows, niFieldBatchBytes)
	return complaints
}

// hasBatching tells whether there is a batching policy that does something.
func hasBatching(all section) bool {
	policy := all.section(niFieldBatching)
	return policy.number("count") > 0 || policy.number("byte_size") > 0 || policy.str("period") != "" ||
		policy.str("check") != "" || len(policy.list("processors")) > 0
}

// section is an object of a configuration, whose parts may be missing.
type section map[string]any

func (s section) section(name string) section {
	inner, _ := s[name].(map[string]any)
	return inner
}

func (s section) str(name string) string {
	text, _ := s[name].(string)
	return text
}

func (s section) boolean(name string) bool {
	yes, _ := s[name].(bool)
	return yes
}

func (s section) list(name string) []any {
	l, _ := s[name].([]any)
	return l
}

func (s section) number(name string) int {
	switch n := s[name].(type) {
	case int:
		return n
	case int64:
		return int(n)
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// scene is something to measure on tables that it makes itself.
type scene struct {
	name   string
	what   string
	rounds int // at most; 0: as many as were asked for
	// needsBinary says that it runs rpk-nessie itself.
	needsBinary bool
	run         func(context.Context, settings) (measured, error)
}

var scenes = []scene{
	{"small-files", "2,000 small files against their rows in one file, on a store that takes 20 ms a request", 0, false, smallFiles},
	{"one-file", "ndjson to drop of events10's rows in one file of 16 row groups, against its eight files", 0, false, oneFile},
	{"planning", "planning the one new file of a table of 10,000 manifests", 0, false, planning},
	{"changes", "what the change of one row costs in a file of a million, against reading the file", 0, false, rowChanges},
	{"idle", "CPU of the binary with poll_interval 1s, in percent of one core", 1, true, idle},
}

// settings are what a scene may need.
type settings struct {
	cache  string // the folder that bench/prepare filled
	binary string // rpk-nessie
}

func sceneNamed(name string) (scene, bool) {
	i := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
	if i < 0 {
		return scene{}, false
	}
	return scenes[i], true
}

// value is one number of a scene, in the order in which it is reported.
type value struct {
	What   string  `json:"what"`
	Number float64 `json:"number"`
	Unit   string  `json:"unit,omitempty"`
}

func milliseconds(what string, d time.Duration) value {
	return value{what, float64(d) / float64(time.Millisecond), "ms"}
}

// reportScene prints a scene's numbers over its rounds.
func (r *reporter) scene(s scene, rounds []run) {
	r.printf("\n### %s\n\nWhat it times: %s.\n\n| | median | least to most |\n|---|---|---|\n", s.name, s.what)
	for i, v := range rounds[0].Values {
		spread := spreadOf(rounds, func(one run) float64 { return one.Values[i].Number })
		r.printf("| %s | %s | %s to %s |\n", v.What, inUnit(spread.median, v.Unit), inUnit(spread.least, v.Unit), inUnit(spread.most, v.Unit))
	}
	r.printf("| others' share of the machine | %.0f %% | |\n", 100*spreadOf(rounds, other).median)
}

func inUnit(n float64, unit string) string {
	text := fmt.Sprintf("%.2f", n)
	if n >= 100 || n == float64(int64(n)) {
		text = fmt.Sprintf("%.0f", n)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

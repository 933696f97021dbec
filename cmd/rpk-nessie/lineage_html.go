// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed lineage.html.tmpl
var lineagePage string

// writeHTML writes the graph as one page that loads nothing.
func (g *graph) writeHTML(w io.Writer) error {
	t, err := template.New("lineage").Parse(lineagePage)
	if err != nil {
		return err
	}
	return t.Execute(w, newPage(g))
}

// page is what the page shows.
type page struct {
	Graph     *graph
	Style     template.CSS
	RailWidth int
	Key       []keyEntry
	Rows      []pageRow
	End       string
	CountedBy string
}

type keyEntry struct{ Class, Words string }

type pageRow struct {
	Edges, Node                         template.HTML // made of numbers and fixed names alone
	ID, Operation, Delta, Time, Message string
	Facts                               string
	Names, Notes                        []string
	Checkpoint                          bool
}

var keyOfPage = []keyEntry{
	{"ancestor", "leads to the head"},
	{"hidden", "no commit has it as its own"},
	{"gone", "its files are gone"},
	{"beside", "on a reference beside"},
	{"abandoned", "the head does not descend from it"},
	{"unproved", "nothing proves that the head descends from it"},
	{"none", "no snapshot"},
	{"checkpoint", "checkpoint"},
}

func newPage(g *graph) page {
	p := page{Graph: g, Style: pictureStyle, RailWidth: laneX(g.lanes-1) + laneMargin, End: g.End.words(), CountedBy: "the writers' summaries say"}
	by := map[string]bool{}
	used := map[string]bool{}
	for _, r := range g.Rows {
		used[r.state()] = true
		used["checkpoint"] = used["checkpoint"] || r.Checkpoint
		made := pageRow{
			Edges: template.HTML(r.lane.edges("100%")), Node: template.HTML(r.node()), //nolint:gosec // see pageRow
			ID: r.shortID(), Operation: r.operation(), Time: r.Time.String(), Names: r.Names, Notes: r.Notes, Checkpoint: r.Checkpoint,
		}
		made.Message = r.subject()
		made.Delta, made.Facts = r.delta(), r.facts()
		if r.Snapshot != nil {
			by[r.Snapshot.Counts.By] = true
		}
		p.Rows = append(p.Rows, made)
	}
	if by["manifests"] {
		p.CountedBy = "counted in the manifests"
		if by["summary"] {
			p.CountedBy = "the writers' summaries say, counted in the manifests where those say nothing"
		}
	}
	for _, k := range keyOfPage {
		if used[k.Class] {
			p.Key = append(p.Key, k)
		}
	}
	return p
}

// Words is the checkpoint for the page.
func (m *mark) Words() string { return m.words() }

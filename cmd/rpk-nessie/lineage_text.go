// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// symbols of rows by state.
var symbols = map[string]string{
	"ancestor": "●", "abandoned": "✗", "beside": "◇", "unproved": "?", "hidden": "○", "gone": "◍", "none": "◌",
}

// graphPrinter draws a graph with lines of text, as git log --graph does.
type graphPrinter struct {
	w      io.Writer
	g      *graph
	colour bool
	err    error
}

func (g *graph) print(w io.Writer, colour bool) error {
	p := &graphPrinter{w: w, g: g, colour: colour}
	p.line("", fmt.Sprintf("%s on %s at %s", p.paint(text.Bold, g.Table), g.Reference, shortHash(g.Commit)))
	if g.Checkpoint != nil {
		p.line("", "checkpoint "+g.Checkpoint.words())
	}
	p.line("", "")
	for _, r := range g.Rows {
		p.row(r)
	}
	p.line("~ ", g.End.words())
	return p.err
}

func (p *graphPrinter) line(rail, content string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(rail+content, " "))
	}
}

func (p *graphPrinter) paint(c text.Color, s string) string {
	if !p.colour {
		return s
	}
	return text.Colors{c}.Sprint(s)
}

func (p *graphPrinter) row(r *row) {
	l := r.lane
	if len(l.joins) > 0 {
		p.line(p.bend(l, l.joins, l.above, "╯", "├", "╰"), "")
	}
	head := fmt.Sprintf("%s  %s  %s", p.paint(text.FgYellow, r.shortID()), r.Time, r.operation())
	if d := r.delta(); d != "" {
		head += "  " + p.paint(text.FgGreen, d)
	}
	var marks []string
	marks = append(marks, r.Names...)
	if r.Checkpoint {
		marks = append(marks, "checkpoint")
	}
	if len(marks) > 0 {
		head += "  " + p.paint(text.FgCyan, "← "+strings.Join(marks, ", "))
	}
	p.line(p.rail(l, symbols[r.state()]), head)
	below := p.railBelow(l)
	if len(l.opens) > 0 {
		p.line(p.bend(l, l.opens, l.below, "╮", "├", "╰"), "")
	}
	if facts := r.facts(); facts != "" {
		p.line(below, "  "+facts)
	}
	if subject := r.subject(); subject != "" {
		p.line(below, "  "+subject)
	}
	for _, note := range r.Notes {
		p.line(below, "  "+p.paint(text.FgRed, "! "+printable(note)))
	}
}

// rail is the graph's part of a row's first line.
func (p *graphPrinter) rail(l lanePosition, symbol string) string {
	return p.cells(func(lane int) string {
		switch {
		case lane == l.at:
			return symbol + " "
		case slices.Contains(l.through, lane):
			return "│ "
		}
		return "  "
	})
}

// railBelow is the graph's part of a row's other lines.
func (p *graphPrinter) railBelow(l lanePosition) string {
	return p.cells(func(lane int) string {
		if (lane == l.at && l.below) || slices.Contains(l.through, lane) || slices.Contains(l.opens, lane) {
			return "│ "
		}
		return "  "
	})
}

// bend is a line of the graph in which lanes part from the row's or end in it.
func (p *graphPrinter) bend(l lanePosition, lanes []int, goesOn bool, corner, tee, start string) string {
	lowest, highest := slices.Min(lanes), slices.Max(lanes)
	lowest, highest = min(lowest, l.at), max(highest, l.at)
	return p.cells(func(lane int) string {
		inside := lane >= lowest && lane < highest
		fill := " "
		if inside {
			fill = "─"
		}
		switch {
		case lane == l.at && goesOn:
			return tee + fill
		case lane == l.at:
			return start + fill
		case slices.Contains(lanes, lane) && slices.Contains(l.through, lane):
			return "┤" + fill
		case slices.Contains(lanes, lane) && inside:
			return map[string]string{"╯": "┴", "╮": "┬"}[corner] + fill
		case slices.Contains(lanes, lane):
			return corner + fill
		case slices.Contains(l.through, lane) && inside:
			return "┼" + fill
		case slices.Contains(l.through, lane):
			return "│" + fill
		case inside && lane > lowest:
			return "─" + fill
		}
		return " " + fill
	})
}

func (p *graphPrinter) cells(cell func(lane int) string) string {
	var b strings.Builder
	for lane := range p.g.lanes {
		b.WriteString(cell(lane))
	}
	return b.String() + " "
}

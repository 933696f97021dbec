// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// The measures of a drawn graph, in pixels.
const (
	laneWidth  = 20
	laneMargin = 14 // before the first lane's middle
	nodeY      = 18 // of a node in its row
	lineHeight = 18
	rowPadding = 14
	svgWidth   = 960
	svgTop     = 64
	textWidth  = 8 // a wide guess of a character's
	titleWidth = 11
	fewColumns = 40 // of text, however many lanes there are
)

func laneX(lane int) int { return laneMargin + lane*laneWidth }

// pictureStyle colours pictures and pages, for light and dark.
const pictureStyle = `
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2024; --soft: #5b6470; --rule: #d9dee4; --line: #7c8896;
  --good: #1f7a4d; --bad: #b3261e; --calm: #2b62b8; --card: #f6f8fa; --hole: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e8ebee; --soft: #9aa5b1; --rule: #2c333a; --line: #75818e;
  --good: #5fce94; --bad: #ff8a80; --calm: #8ab4f8; --card: #1c2126; --hole: #e2b45c; } }
.edge { stroke: var(--line); stroke-width: 2; fill: none; }
.node { stroke-width: 2; stroke: var(--calm); fill: var(--calm); }
.node.checkpoint { fill: var(--good); }
.node.hidden { fill: var(--paper); }
.node.abandoned { stroke: var(--bad); fill: var(--paper); }
.node.beside { stroke: var(--line); fill: var(--line); }
.node.gone { fill: var(--paper); stroke-dasharray: 3 2; }
.node.unproved { stroke: var(--hole); fill: var(--paper); }
.node.none { stroke: var(--line); fill: var(--paper); }
.node.checkpoint { stroke: var(--good); }
`

// edges draws what of the graph lies in one row. bottom is the row's lower edge, a number or "100%".
func (l lanePosition) edges(bottom string) string {
	var b strings.Builder
	straight := func(lane int, from, to string) {
		fmt.Fprintf(&b, `<line class="edge" x1="%d" y1="%s" x2="%d" y2="%s"/>`, laneX(lane), from, laneX(lane), to)
	}
	x, node := laneX(l.at), fmt.Sprint(nodeY)
	for _, lane := range l.through {
		straight(lane, "0", bottom)
	}
	if l.above {
		straight(l.at, "0", node)
	}
	if l.below {
		straight(l.at, node, bottom)
	}
	for _, lane := range l.joins {
		fmt.Fprintf(&b, `<path class="edge" d="M %d 0 C %d %d %d 4 %d %d"/>`, laneX(lane), laneX(lane), nodeY, x, x, nodeY)
	}
	const turned = nodeY + 22
	for _, lane := range l.opens {
		fmt.Fprintf(&b, `<path class="edge" d="M %d %d C %d %d %d %d %d %d"/>`, x, nodeY, x, turned-4, laneX(lane), nodeY+2, laneX(lane), turned)
		straight(lane, fmt.Sprint(turned), bottom)
	}
	return b.String()
}

// node draws the row's own mark.
func (r *row) node() string {
	state := r.state()
	class := state
	if r.Checkpoint {
		class += " checkpoint"
	}
	x := laneX(r.lane.at)
	if state == string(lineAbandoned) {
		return fmt.Sprintf(`<g class="node %s"><circle cx="%d" cy="%d" r="6"/><path d="M %d %d l 6 6 m 0 -6 l -6 6"/></g>`, class, x, nodeY, x-3, nodeY-3)
	}
	return fmt.Sprintf(`<circle class="node %s" cx="%d" cy="%d" r="6"/>`, class, x, nodeY)
}

// svgLine is one line of text in a picture.
type svgLine struct{ class, text string }

func (r *row) svgLines(columns int) []svgLine {
	head := fmt.Sprintf("%s  %s  %s", r.shortID(), r.Time, r.operation())
	if d := r.delta(); d != "" {
		head += "  " + d
	}
	if len(r.Names) > 0 {
		head += "  ← " + strings.Join(r.Names, "  ← ")
	}
	if r.Checkpoint {
		head += "  ← checkpoint"
	}
	lines := wrapped("head", head, columns)
	if facts := r.facts(); facts != "" {
		lines = append(lines, wrapped("soft", facts, columns)...)
	}
	if subject := r.subject(); subject != "" {
		lines = append(lines, wrapped("soft", subject, columns)...)
	}
	for _, note := range r.Notes {
		lines = append(lines, wrapped("note", note, columns)...)
	}
	return lines
}

// wrapped breaks a text into lines of so many characters: at spaces, and within what is longer than a line, such as a path.
func wrapped(class, text string, columns int) []svgLine {
	var lines []svgLine
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines = append(lines, svgLine{class, line})
			line = "  " + word
		} else if line != "" {
			line += " " + word
		} else {
			line = word
		}
		for utf8.RuneCountInString(line) > columns {
			letters := []rune(line)
			lines = append(lines, svgLine{class, string(letters[:columns])})
			line = "  " + string(letters[columns:])
		}
	}
	return append(lines, svgLine{class, line})
}

// shortened leaves out the middle of a text that is longer than a line.
func shortened(text string, columns int) string {
	letters := []rune(text)
	if len(letters) <= columns {
		return text
	}
	half := (columns - 1) / 2
	return string(letters[:half]) + "…" + string(letters[len(letters)-half:])
}

// writeSVG writes the graph as one picture.
func (g *graph) writeSVG(w io.Writer) error {
	textX := laneX(g.lanes-1) + laneWidth
	width := max(svgWidth, textX+fewColumns*textWidth)
	columns := (width - textX) / textWidth
	var body bytes.Buffer
	y := svgTop
	lines := func(lines []svgLine) {
		for i, l := range lines {
			fmt.Fprintf(&body, `<text class="%s" x="%d" y="%d" xml:space="preserve">%s</text>`, l.class, textX, y+nodeY+5+i*lineHeight, html.EscapeString(printable(l.text)))
		}
	}
	subtitle := wrapped("soft", g.subtitle(), (width-14)/textWidth)
	for i, l := range subtitle {
		fmt.Fprintf(&body, `<text class="%s" x="14" y="%d" xml:space="preserve">%s</text>`+"\n", l.class, 50+i*lineHeight, html.EscapeString(printable(l.text)))
	}
	y += (len(subtitle) - 1) * lineHeight
	for _, r := range g.Rows {
		text := r.svgLines(columns)
		height := nodeY + len(text)*lineHeight + rowPadding
		fmt.Fprintf(&body, `<g transform="translate(0 %d)">%s%s</g>`, y, r.lane.edges(fmt.Sprint(height)), r.node())
		lines(text)
		body.WriteByte('\n')
		y += height
	}
	class := "soft"
	if g.End.Kind == endHole {
		class = "hole"
	}
	last := wrapped(class, g.End.words(), columns)
	lines(last)
	y += nodeY + len(last)*lineHeight + rowPadding
	title := fmt.Sprintf("%s on %s at %s", g.Table, g.Reference, shortHash(g.Commit))
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>%stext { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--ink); }
text.title { font-size: 17px; font-weight: 600; } text.head { font-weight: 600; } text.soft { fill: var(--soft); }
text.note { fill: var(--bad); } text.hole { fill: var(--hole); } rect.paper { fill: var(--paper); }</style>
<rect class="paper" width="%d" height="%d"/>
<text class="title" x="14" y="28">%s</text>
%s</svg>
`, width, y, width, y, html.EscapeString(printable(title)), pictureStyle, width, y, html.EscapeString(shortened(title, (width-14)/titleWidth)), body.String())
	return err
}

func (g *graph) subtitle() string {
	if g.Checkpoint == nil {
		return plural(int64(len(g.Rows)), "commit") + " and snapshots, newest first"
	}
	return "checkpoint " + g.Checkpoint.words()
}

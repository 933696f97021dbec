// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// narrator tells the demo's story: numbered steps, indented lines, colour only on a terminal. It is safe for
// concurrent use, as rows arrive while the story goes on.
type narrator struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	steps  int
}

func newNarrator(out *os.File) *narrator {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &narrator{out: out, colour: terminal && os.Getenv("NO_COLOR") == ""}
}

func (n *narrator) title(text string) { n.print(bold, "", text) }

func (n *narrator) step(format string, args ...any) {
	n.mu.Lock()
	n.steps++
	number := n.steps
	n.mu.Unlock()
	n.print(bold, "\n", fmt.Sprintf("%d. %s", number, fmt.Sprintf(format, args...)))
}

func (n *narrator) line(format string, args ...any) { n.print("", "   ", fmt.Sprintf(format, args...)) }

func (n *narrator) row(snapshot, operation, body string) {
	n.print(green, "   ", fmt.Sprintf("row         snapshot %s %s %s", snapshot, operation, body))
}

func (n *narrator) checkpoint(text string) { n.print(yellow, "   ", "checkpoint  "+text) }

func (n *narrator) block(text string) {
	var indented strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "     " + line
		}
		indented.WriteString(line)
	}
	n.print(faint, "\n", indented.String())
}

const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (n *narrator) print(colour, indent, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.colour && colour != "" {
		text = colour + text + reset
	}
	fmt.Fprintln(n.out, indent+text)
}

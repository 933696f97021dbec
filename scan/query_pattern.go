// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"unicode/utf8"
)

// pattern is a LIKE pattern: pieces of text with wildcards between them. There is no escape character unless the query
// names one.
type pattern struct {
	parts []patternPart
	// prefix is the text before the first wildcard. exact: there is no wildcard; open: one % follows the prefix, and
	// nothing else.
	prefix      string
	exact, open bool
}

// patternPart is text, or one wildcard where text is empty.
type patternPart struct {
	text string
	many bool // %; otherwise _
}

func newPattern(text, escape string) (p pattern, ok bool) {
	var run strings.Builder
	flush := func() {
		if run.Len() > 0 {
			p.parts = append(p.parts, patternPart{text: run.String()})
			run.Reset()
		}
	}
	for rest := text; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		char := rest[:size]
		rest = rest[size:]
		switch {
		case escape != "" && char == escape:
			_, size = utf8.DecodeRuneInString(rest)
			char = rest[:size]
			if char != "%" && char != "_" && char != escape {
				return p, false
			}
			rest = rest[size:]
			run.WriteString(char)
		case char == "%" || char == "_":
			flush()
			p.parts = append(p.parts, patternPart{many: char == "%"})
		default:
			run.WriteString(char)
		}
	}
	flush()
	wild := p.parts
	if len(p.parts) > 0 {
		if p.prefix = p.parts[0].text; p.prefix != "" {
			wild = wild[1:]
		}
	}
	p.exact = len(wild) == 0
	p.open = len(wild) == 1 && wild[0].many
	return p, true
}

// matches compares by characters; a byte that is part of none counts as one.
func (p pattern) matches(s string) bool {
	parts := p.parts
	var afterMany []patternPart // where to try again, one character further into retry
	var retry string
	again := false
	for len(parts) > 0 || s != "" {
		if len(parts) > 0 {
			part := parts[0]
			switch {
			case part.text != "" && strings.HasPrefix(s, part.text):
				parts, s = parts[1:], s[len(part.text):]
				continue
			case part.text == "" && part.many:
				parts = parts[1:]
				afterMany, retry, again = parts, s, true
				continue
			case part.text == "" && s != "":
				_, size := utf8.DecodeRuneInString(s)
				parts, s = parts[1:], s[size:]
				continue
			}
		}
		if !again || retry == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(retry)
		retry = retry[size:]
		parts, s = afterMany, retry
	}
	return true
}

// span is the values that begin with the prefix, or are it where there is no wildcard: all that match and, unless the
// pattern is exact or open, others.
func (p pattern) span() valueRange[string] {
	if p.exact {
		return valueRange[string]{low: &p.prefix, high: &p.prefix}
	}
	s := valueRange[string]{low: &p.prefix}
	if next, ok := successor(p.prefix); ok {
		s.high, s.openHigh = &next, true
	}
	return s
}

// successor is the first text, in byte order, after all that begin with a prefix; !ok where there is none.
func successor(prefix string) (string, bool) {
	b := []byte(prefix)
	for len(b) > 0 {
		if last := len(b) - 1; b[last] < 0xFF {
			b[last]++
			return string(b), true
		}
		b = b[:len(b)-1]
	}
	return "", false
}

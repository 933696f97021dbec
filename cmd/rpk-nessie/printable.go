// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"unicode"
)

// printable shows the control characters of a text as what they are, where a terminal would obey them and XML has no
// place for them. Whoever may commit chooses messages, and whoever may write files their names.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return '\u2400' + r
		case r == '\u007f':
			return '\u2421'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufffe', r == '\uffff':
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

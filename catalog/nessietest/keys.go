// SPDX-License-Identifier: Apache-2.0

package nessietest

import (
	"slices"
	"strings"
)

type keyJSON struct {
	Elements []string `json:"elements"`
}

// display is a key as messages show it.
func display(key []string) string { return strings.Join(key, ".") }

// legacyKey is a key in the old encoding, where a dot inside an element is a group separator. Filters see it.
func legacyKey(key []string) string {
	elements := make([]string, len(key))
	for i, e := range key {
		elements[i] = strings.ReplaceAll(e, ".", "\x1d")
	}
	return strings.Join(elements, ".")
}

// parseKey reads a key out of a path or a query, once percent-decoded: the old encoding, and from spec 2.1 on the one
// that a dot in front announces, where an asterisk escapes what follows it.
func (n *Nessie) parseKey(text string) ([]string, error) {
	if strings.HasPrefix(text, ".") && !n.oldAPI {
		return parseEscapedKey(text[1:])
	}
	elements := strings.Split(strings.TrimSuffix(text, "."), ".")
	for i, e := range elements {
		elements[i] = strings.NewReplacer("\x1d", ".", "\x00", ".").Replace(e)
	}
	if slices.Contains(elements, "") {
		if n.oldAPI {
			return nil, badRequest("Content key '%s' must not contain an empty element", text)
		}
		return nil, unreadable()
	}
	return elements, nil
}

var escapes = map[byte]byte{'.': '.', '*': '*', '{': '/', '}': '\\', '[': '%'}

func parseEscapedKey(text string) ([]string, error) {
	var elements []string
	var element strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '.':
			elements = append(elements, element.String())
			element.Reset()
		case '*':
			i++
			var literal byte
			if i < len(text) {
				literal = escapes[text[i]]
			}
			if literal == 0 {
				return nil, unreadable()
			}
			element.WriteByte(literal)
		default:
			element.WriteByte(text[i])
		}
	}
	elements = append(elements, element.String())
	if slices.Contains(elements, "") {
		return nil, unreadable()
	}
	return elements, nil
}

func (k keyJSON) validate() error {
	if len(k.Elements) == 0 {
		return badRequest("Content key must not be empty")
	}
	for _, e := range k.Elements {
		if e == "" || strings.ContainsFunc(e, func(r rune) bool { return r < 0x20 }) {
			return badRequest("Content key %q must not contain an empty element or control characters", k.Elements)
		}
	}
	return nil
}

func hasPrefix(key, prefix []string) bool {
	return len(key) >= len(prefix) && slices.Equal(key[:len(prefix)], prefix)
}

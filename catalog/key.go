// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ParseNamespace reads the levels of a namespace, joined by dots. A level that holds a dot is quoted, and a quote
// inside quotes is doubled: a."b.c" has the levels a and b.c. The rest is taken verbatim, spaces too.
func ParseNamespace(s string) ([]string, error) {
	var levels []string
	for rest := s; ; {
		level, after, err := cutLevel(rest)
		if err != nil {
			return nil, fmt.Errorf("parsing namespace %q: %w", s, err)
		}
		levels = append(levels, level)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	if err := Key(levels).Validate(); err != nil {
		return nil, fmt.Errorf("parsing namespace %q: %w", s, err)
	}
	return levels, nil
}

// cutLevel takes the first level off s; what it leaves is empty or begins with the dot before the next level.
func cutLevel(s string) (level, after string, err error) {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexByte(s, '.'); end >= 0 {
			return s[:end], s[end:], nil
		}
		return s, "", nil
	}
	var b strings.Builder
	for rest := s[1:]; ; {
		text, after, closed := strings.Cut(rest, `"`)
		b.WriteString(text)
		switch {
		case !closed:
			return "", "", errors.New("a quote is not closed")
		case strings.HasPrefix(after, `"`):
			b.WriteByte('"')
			rest = after[1:]
		case after == "" || after[0] == '.':
			return b.String(), after, nil
		default:
			return "", "", errors.New("a closing quote must be followed by a dot or the end")
		}
	}
}

// String is the key for people: dotted, with quotes as ParseNamespace reads them where they are needed.
func (k Key) String() string {
	levels := make([]string, len(k))
	for i, level := range k {
		if level == "" || strings.ContainsRune(level, '.') || strings.HasPrefix(level, `"`) {
			level = `"` + strings.ReplaceAll(level, `"`, `""`) + `"`
		}
		levels[i] = level
	}
	return strings.Join(levels, ".")
}

// Namespace is all but the last element: the levels that the table lies in. It is empty for a table at the root.
func (k Key) Namespace() Key {
	if len(k) == 0 {
		return nil
	}
	return k[:len(k)-1]
}

// Name is the last element.
func (k Key) Name() string {
	if len(k) == 0 {
		return ""
	}
	return k[len(k)-1]
}

// Equal says whether both keys name the same content.
func (k Key) Equal(other Key) bool { return slices.Equal(k, other) }

// Validate refuses what no Nessie accepts as a key: no element, an empty one, a lone dot, control characters. Servers
// answer some of these with an empty 404, which would look like a wrong base URL.
func (k Key) Validate() error {
	if len(k) == 0 {
		return errors.New("the key is empty")
	}
	for _, element := range k {
		switch {
		case element == "":
			return errors.New("an element is empty")
		case element == ".":
			return errors.New("an element can't be a lone dot")
		case strings.ContainsFunc(element, func(r rune) bool { return r < 0x20 }):
			return fmt.Errorf("element %q holds a control character", element)
		}
	}
	return nil
}

// Nessie spec 2.2.0 gave keys in paths an escaping that survives servers which refuse encoded slashes, backslashes,
// percent signs and control characters. It is announced by a dot in front.
var escapeElement = strings.NewReplacer(".", "*.", "*", "**", "/", "*{", `\`, "*}", "%", "*[")

// Before that a dot inside an element was the group separator, and everything else was left to percent-encoding.
var separateElement = strings.NewReplacer(".", "\x1d")

// plain says that every server reads the elements, joined by dots, as they are.
func (k Key) plain() bool {
	return !slices.ContainsFunc(k, func(e string) bool { return strings.ContainsAny(e, `./\%`) })
}

// encode gives the key as one string for a path or a query, not percent-encoded yet.
func (k Key) encode(escapes bool) string {
	if k.plain() {
		return strings.Join(k, ".")
	}
	lead, replacer := "", separateElement
	if escapes {
		lead, replacer = ".", escapeElement
	}
	elements := make([]string, len(k))
	for i, element := range k {
		elements[i] = replacer.Replace(element)
	}
	return lead + strings.Join(elements, ".")
}

// encodeKey asks the server for its spec version where the encoding depends on it.
func (c *Client) encodeKey(ctx context.Context, key Key) (string, error) {
	if err := key.Validate(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	if key.plain() {
		return key.encode(false), nil
	}
	config, err := c.Config(ctx)
	if err != nil {
		return "", err
	}
	return key.encode(config.escapesKeys()), nil
}

func pathSegment(s string) string { return "/" + url.PathEscape(s) }

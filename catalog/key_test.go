// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeyEncoding(t *testing.T) {
	tests := []struct {
		name       string
		key        Key
		since, old string // percent-encoded, from spec 2.2.0 on and before it
	}{
		{"plain", Key{"demo", "t"}, "demo.t", "demo.t"},
		{"at the root", Key{"t"}, "t", "t"},
		{"nested", Key{"a", "b", "nested"}, "a.b.nested", "a.b.nested"},
		{"space", Key{"demo", "with space"}, "demo.with%20space", "demo.with%20space"},
		{"star alone", Key{"demo", "star*name"}, "demo.star%2Aname", "demo.star%2Aname"},
		{"unicode", Key{"demo", "Ünï"}, "demo.%C3%9Cn%C3%AF", "demo.%C3%9Cn%C3%AF"},
		{"dot", Key{"demo", "dot.name"}, ".demo.dot%2A.name", "demo.dot%1Dname"},
		{"slash", Key{"demo", "a/b"}, ".demo.a%2A%7Bb", "demo.a%2Fb"},
		{"backslash", Key{"demo", `back\slash`}, ".demo.back%2A%7Dslash", "demo.back%5Cslash"},
		{"percent", Key{"demo", "pct%41"}, ".demo.pct%2A%5B41", "demo.pct%2541"},
		{"dot in the namespace, star in the name", Key{"d.x", "t*"}, ".d%2A.x.t%2A%2A", "d%1Dx.t%2A"},
		{"two dots", Key{"demo", ".."}, ".demo.%2A.%2A.", "demo.%1D%1D"},
		{"query characters", Key{"demo", "?q#f;x"}, "demo.%3Fq%23f%3Bx", "demo.%3Fq%23f%3Bx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.since, url.PathEscape(test.key.encode(true)))
			assert.Equal(t, test.old, url.PathEscape(test.key.encode(false)))
			assert.Equal(t, test.since == test.old, test.key.plain())
		})
	}
}

func TestSpecVersionDecidesTheEncoding(t *testing.T) {
	for version, want := range map[string]bool{
		"": false, "2.0.0": false, "2.1.3": false, "2.2.0": true, "2.2": true, "2.10.0": true, "3.0.0": true, "1.9.0": false, "new": false,
	} {
		assert.Equal(t, want, ServerConfig{SpecVersion: version}.escapesKeys(), version)
	}
}

func TestParseNamespace(t *testing.T) {
	for given, want := range map[string][]string{
		"a":             {"a"},
		"a.b":           {"a", "b"},
		`a."b.c"`:       {"a", "b.c"},
		`"b.c".d`:       {"b.c", "d"},
		`"say ""hi""."`: {`say "hi".`},
		`a"b.c`:         {`a"b`, "c"},
		" a . b ":       {" a ", " b "},
		`"a"`:           {"a"},
		"Ünï.日本":        {"Ünï", "日本"},
		`back\slash`:    {`back\slash`},
	} {
		got, err := ParseNamespace(given)
		require.NoError(t, err, given)
		assert.Equal(t, want, got, given)
	}
}

func TestParseNamespaceErrors(t *testing.T) {
	for given, want := range map[string]string{
		"":       "an element is empty",
		".":      "an element is empty",
		"a.":     "an element is empty",
		".a":     "an element is empty",
		"a..b":   "an element is empty",
		`a.""`:   "an element is empty",
		`"a`:     "a quote is not closed",
		`a."b""`: "a quote is not closed",
		`"a"b`:   "must be followed by a dot or the end",
		`"."`:    "lone dot",
		"a\tb":   "control character",
	} {
		_, err := ParseNamespace(given)
		require.ErrorContains(t, err, want, given)
	}
}

func drawKey(t *rapid.T) Key {
	element := rapid.StringMatching(`[a-zÜ日"*.\\/%' ]{1,6}`).Filter(func(s string) bool { return s != "." })
	return rapid.SliceOfN(element, 1, 4).Draw(t, "key")
}

func TestKeyReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := drawKey(t)
		got, err := ParseNamespace(key.String())
		require.NoError(t, err)
		assert.Equal(t, key, Key(got))
	})
}

func TestEncodingTellsKeysApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := drawKey(t), drawKey(t)
		for _, escapes := range []bool{true, false} {
			assert.Equal(t, one.Equal(other), one.encode(escapes) == other.encode(escapes))
		}
	})
}

func TestKeyThatNoServerAcceptsIsRefusedHere(t *testing.T) {
	c := newClient(t, ClientConfig{BaseURL: "http://localhost:1"})
	for _, key := range []Key{nil, {}, {""}, {"a", ""}, {"a", "."}, {"a", "x\x1dy"}, {"a", "x\ny"}} {
		_, err := c.Head(t.Context(), Ref{Name: "main"}, key)
		require.ErrorIs(t, err, ErrBadRequest, key)
	}
}

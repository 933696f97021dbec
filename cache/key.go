// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// longestKey is the length of key beyond which its end becomes a hash. File
// systems take 255 bytes, and caches add prefixes and suffixes of their own.
const longestKey = 100

// DeriveKey returns the cache key of a table: a file name on every system,
// also where case is ignored, made of lower-case letters, digits, and "-_.=".
// For example
//
//	http-nessie-19120==main==sales.eu==orders
//
// Different tables have different keys. base is the server's URL, with or
// without /api/v2; spellings of the same server have one key. namespace is a
// list of levels.
func DeriveKey(base, branch string, namespace []string, table string) (string, error) {
	server, err := serverPart(base)
	if err != nil {
		return "", err
	}
	levels := make([]string, len(namespace))
	for i, level := range namespace {
		levels[i] = escape(level, "-_")
	}
	// An escape is "=" and two hex digits, so "==" can only be a separator.
	key := strings.Join([]string{server, escape(branch, "-_."), strings.Join(levels, "."), escape(table, "-_")}, "==")
	if len(key) <= longestKey {
		return key, nil
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:16])
	start := key[:longestKey-len("=h")-len(hash)]
	if cut := strings.IndexByte(start[len(start)-2:], '='); cut >= 0 {
		start = strings.TrimRight(start[:len(start)-2+cut], "=") // no half escape, no separator
	}
	// "h" is no hex digit, so no key that is not hashed holds "=h".
	return start + "=h" + hash, nil
}

// serverPart writes scheme, host, port and path as scheme-host-port=2fpath.
// The scheme holds no "-", the port no "=", the host no "/": no two servers
// are written alike.
func serverPart(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("deriving the checkpoint key from the server's URL: %w", err)
	}
	if u.Hostname() == "" {
		return "", fmt.Errorf("deriving the checkpoint key: the server's URL %q names no host", u.Redacted())
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	path = strings.TrimRight(strings.TrimSuffix(path, "/api/v2"), "/")
	host := escape(strings.ToLower(u.Hostname()), "-.")
	return escape(scheme, "") + "-" + host + "-" + port + escape(path, "-_."), nil
}

// escape keeps lower-case letters, digits and the bytes of keep, and writes
// every other byte as "=" and its two hex digits.
func escape(s, keep string) string {
	var out strings.Builder
	for i := range len(s) {
		b := s[i]
		if b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || strings.IndexByte(keep, b) >= 0 {
			out.WriteByte(b)
			continue
		}
		fmt.Fprintf(&out, "=%02x", b)
	}
	return out.String()
}

// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDerivedKeysAreReadable(t *testing.T) {
	for _, tc := range []struct {
		base, branch string
		namespace    []string
		table, want  string
	}{
		{"http://nessie:19120", "main", []string{"sales", "eu"}, "web_orders", "http-nessie-19120==main==sales.eu==web_orders"},
		{"http://nessie:19120/api/v2/", "main", []string{"sales", "eu"}, "web_orders", "http-nessie-19120==main==sales.eu==web_orders"},
		{"HTTPS://Nessie.Example.com", "v1.0", []string{"a.b"}, "T", "https-nessie.example.com-443==v1.0==a=2eb===54"},
		{"https://h/some-path/api/v2", "main@ab/c", []string{"ü"}, "x y", "https-h-443=2fsome-path==main=40ab=2fc===c3=bc==x=20y"},
		{"http://[::1]:80/", "main", []string{"a"}, "b", "http-=3a=3a1-80==main==a==b"},
	} {
		key, err := DeriveKey(tc.base, tc.branch, tc.namespace, tc.table)
		require.NoError(t, err)
		assert.Equal(t, tc.want, key)
	}
}

func TestLongKeysEndInAHash(t *testing.T) {
	long, err := DeriveKey("http://nessie:19120", "main", []string{"sales"}, strings.Repeat("orders_", 20))
	require.NoError(t, err)
	assert.Len(t, long, 100)
	assert.Regexp(t, `^http-nessie-19120==main==sales==orders_.*=h[0-9a-f]{32}$`, long)
	other, err := DeriveKey("http://nessie:19120", "main", []string{"sales"}, strings.Repeat("orders_", 21))
	require.NoError(t, err)
	assert.NotEqual(t, long, other)
}

func TestAServerWithoutHostIsRefused(t *testing.T) {
	for _, base := range []string{"", "nessie", "http://", "http://a b"} {
		_, err := DeriveKey(base, "main", []string{"a"}, "b")
		require.Error(t, err, base)
	}
}

func TestDifferentTablesHaveDifferentKeys(t *testing.T) {
	type table struct {
		base, branch, namespace, table string
	}
	safe := regexp.MustCompile(`^[a-z0-9][-_.=a-z0-9]{0,98}[-_=a-z0-9]$`)
	seen := map[string]table{}
	name := rapid.StringOf(rapid.RuneFrom([]rune("aAfh019=-_./:é "))).Filter(func(s string) bool { return s != "" })
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SliceOfN(name, 1, 3).Draw(t, "namespace")
		in := table{
			base: rapid.SampledFrom([]string{
				"http://a:1", "http://a:11", "https://a:1", "http://a-1:1", "http://a:1/b", "http://a:1/b/main", "http://a.b:1",
			}).Draw(t, "base"),
			branch: name.Draw(t, "branch"), namespace: strings.Join(levels, "\x00"), table: name.Draw(t, "table"),
		}
		key, err := DeriveKey(in.base, in.branch, levels, in.table)
		require.NoError(t, err)
		require.Regexp(t, safe, key)
		if other, ok := seen[key]; ok {
			require.Equal(t, other, in, "both have key %s", key)
		}
		seen[key] = in
	})
}

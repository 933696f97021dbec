// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	namedTest = regexp.MustCompile("\\[`(Test\\w+)`\\]\\(\\.\\./([\\w./-]+_test\\.go)\\)")
	anyTest   = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// Every guarantee names the tests that hold it, and each of them is in the file that it is said to be in.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	text := pages(t)["docs/guarantees.md"]
	named := namedTest.FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, named)
	assert.Len(t, anyTest.FindAllString(text, -1), len(named), "a test is named without a link to its file")
	for _, m := range named {
		file, err := os.ReadFile(filepath.Join(root, m[2]))
		if assert.NoError(t, err) {
			assert.Contains(t, string(file), "\nfunc "+m[1]+"(t *testing.T)", m[2])
		}
	}
	sections := regexp.MustCompile(`(?m)^## .*$`).Split(text, -1)[1:]
	for _, s := range sections[:len(sections)-1] {
		assert.Contains(t, s, "*Limits*: ")
		assert.Regexp(t, `\*Held by\*: \[`, s)
	}
}

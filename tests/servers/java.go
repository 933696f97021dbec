// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

const oldestJava = 21

// howToFetch ends every complaint about a missing part.
const howToFetch = "run scripts/fetch-servers in the repository (make test does)"

var findJava = sync.OnceValues(func() (string, error) {
	cache, err := corpus.CacheDir()
	if err != nil {
		return "", err
	}
	candidates := []string{filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")}
	if onPath, err := exec.LookPath("java"); err == nil {
		candidates = append(candidates, onPath)
	}
	for _, pattern := range []string{"/usr/lib/jvm/*/bin/java", "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		candidates = append(candidates, found...)
	}
	candidates = append(candidates, filepath.Join(cache, "jdk", "bin", "java"))
	for _, java := range candidates {
		if filepath.IsAbs(java) && javaVersion(java) >= oldestJava {
			return java, nil
		}
	}
	return "", fmt.Errorf("no Java %d or later was found: %s", oldestJava, howToFetch)
})

var versionLine = regexp.MustCompile(`version "(\d+)`)

// javaVersion is the major version, 0 if it does not run.
func javaVersion(java string) int {
	text, err := exec.CommandContext(context.Background(), java, "-version").CombinedOutput()
	if err != nil {
		return 0
	}
	found := versionLine.FindSubmatch(text)
	if found == nil {
		return 0
	}
	version, _ := strconv.Atoi(string(found[1])) // digits; too many of them are no version
	return version
}

func findJar(version string) (string, error) {
	cache, err := corpus.CacheDir()
	if err != nil {
		return "", err
	}
	jar := filepath.Join(cache, "nessie", "nessie-quarkus-"+version+"-runner.jar")
	if _, err := os.Stat(jar); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no Nessie %s at %s: %s", version, jar, howToFetch)
	} else if err != nil {
		return "", err
	}
	return jar, nil
}

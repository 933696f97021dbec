// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func durable(t *testing.T) (*durableFile, string) {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "a", "b")
	d, err := newDurableFile(directory)
	require.NoError(t, err)
	return d, directory
}

// files returns the names in a directory.
func files(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestBenthosCacheContractThroughResources(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "checkpoints")
	builder := service.NewResourceBuilder()
	require.NoError(t, builder.AddCacheYAML(fmt.Sprintf("label: place\nnessie_durable_file:\n  directory: %q\n", directory)))
	resources, stop, err := builder.Build()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop(context.Background())) }()

	ctx, ttl := t.Context(), time.Nanosecond
	require.NoError(t, resources.AccessCache(ctx, "place", func(c service.Cache) {
		_, err := c.Get(ctx, "k")
		require.ErrorIs(t, err, service.ErrKeyNotFound)
		require.NoError(t, c.Delete(ctx, "k"), "absent")
		require.NoError(t, c.Add(ctx, "k", []byte("one"), &ttl))
		require.ErrorIs(t, c.Add(ctx, "k", []byte("two"), nil), service.ErrKeyAlreadyExists)
		value, err := c.Get(ctx, "k")
		require.NoError(t, err)
		assert.Equal(t, "one", string(value))
		require.NoError(t, c.Set(ctx, "k", []byte("three"), &ttl))
		value, err = c.Get(ctx, "k")
		require.NoError(t, err)
		assert.Equal(t, "three", string(value))
		require.NoError(t, c.Set(ctx, "empty", nil, nil))
		value, err = c.Get(ctx, "empty")
		require.NoError(t, err)
		assert.Empty(t, value)
		require.NoError(t, c.Delete(ctx, "k"))
		_, err = c.Get(ctx, "k")
		require.ErrorIs(t, err, service.ErrKeyNotFound)
	}))
	assert.Equal(t, []string{"empty"}, files(t, directory))

	s := NewStore(Resource(resources, "place"), testKey, NewOwner())
	claimed, err := s.Claim(ctx, Unclaimed("main", "sales.eu", "orders"))
	require.NoError(t, err)
	loaded, err := s.Load(ctx)
	require.NoError(t, err)
	assert.Equal(t, claimed, loaded)
}

func TestConfigurationIsLinted(t *testing.T) {
	for config, want := range map[string]string{
		"nessie_durable_file: {}":                            "field directory is required",
		"nessie_durable_file: { directory: '' }":             "directory must not be empty",
		"nessie_durable_file: { directory: ' ' }":            "directory must not be empty",
		"nessie_durable_file: { directory: /x, folder: /y }": "field folder not recognised",
	} {
		err := service.NewResourceBuilder().AddCacheYAML("label: place\n" + config)
		require.ErrorContains(t, err, want, config)
	}
}

func TestADirectoryThatCannotBeMadeFailsTheConstructor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, directory := range []string{file, filepath.Join(file, "below")} {
		_, err := newDurableFile(directory)
		require.ErrorContains(t, err, fmt.Sprintf("creating directory %q: ", directory))
		builder := service.NewResourceBuilder()
		require.NoError(t, builder.AddCacheYAML(fmt.Sprintf("label: place\nnessie_durable_file:\n  directory: %q\n", directory)))
		resources, stop, err := builder.Build()
		require.NoError(t, err, "Benthos makes a resource when it is used first")
		_, err = Resource(resources, "place").Get(t.Context(), "k")
		require.ErrorContains(t, err, fmt.Sprintf("creating directory %q: ", directory))
		require.NoError(t, stop(context.Background()))
	}
	_, err := newDurableFile(" ")
	require.EqualError(t, err, "directory must not be empty")
}

func TestTemporaryFilesOfACrashAreRemovedAndNothingElse(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{temporaryPrefix + "123" + temporarySuffix, "other.tmp", ".hidden", "key"} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte("torn"), 0o600))
	}
	_, err := newDurableFile(directory)
	require.NoError(t, err)
	assert.Equal(t, []string{".hidden", "key", "other.tmp"}, files(t, directory))
}

func TestKeysThatAreNoPlainFileNameAreRefused(t *testing.T) {
	d, directory := durable(t)
	for _, key := range []string{
		"", ".", "..", "../up", "a/b", `a\b`, "/etc/passwd", "a\x00b", "a\nb", "trailing.", "trailing ",
		temporaryPrefix + "1" + temporarySuffix, strings.ToUpper(temporaryPrefix) + "1", strings.Repeat("x", longestFileName+1),
	} {
		want := fmt.Sprintf("key %q is refused: ", key)
		_, err := d.Get(t.Context(), key)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, d.Set(t.Context(), key, nil, nil), want)
		require.ErrorContains(t, d.Add(t.Context(), key, nil, nil), want)
		require.ErrorContains(t, d.Delete(t.Context(), key), want)
	}
	assert.Empty(t, files(t, directory))

	long, err := DeriveKey("https://nessie.example.com/x", "Ünï/ç@0123", []string{"a.b", "C"}, strings.Repeat("T", 300))
	require.NoError(t, err)
	require.NoError(t, d.Set(t.Context(), long, []byte("v"), nil), "derived keys are fine")
}

func TestAMissingDirectoryIsNotAnAbsentKey(t *testing.T) {
	d, directory := durable(t)
	require.NoError(t, os.RemoveAll(directory))
	_, err := d.Get(t.Context(), "k")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, service.ErrKeyNotFound)
	require.ErrorContains(t, d.Set(t.Context(), "k", nil, nil), `writing key "k": `)
}

func TestFailuresNameTheKey(t *testing.T) {
	d, directory := durable(t)
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "k", "full"), 0o700))
	_, err := d.Get(t.Context(), "k")
	require.ErrorContains(t, err, `reading key "k": `)
	require.ErrorContains(t, d.Set(t.Context(), "k", nil, nil), `writing key "k": `)
	require.ErrorContains(t, d.Delete(t.Context(), "k"), `deleting key "k": `)
	assert.Equal(t, []string{"k"}, files(t, directory), "no temporary file is left")
}

func TestAnEndedContextDoesNothing(t *testing.T) {
	d, directory := durable(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Set(ctx, "k", nil, nil), context.Canceled)
	require.ErrorIs(t, d.Add(ctx, "k", nil, nil), context.Canceled)
	assert.Empty(t, files(t, directory))
}

func TestReadersSeeWholeValuesWhileWritersAndStartsGoOn(t *testing.T) {
	d, directory := durable(t)
	value := func(writer, n int) []byte {
		return []byte(strings.Repeat(fmt.Sprintf("%d-%d ", writer, n), 2000))
	}
	require.NoError(t, d.Set(t.Context(), "k", value(0, 0), nil))
	var writing atomic.Int32
	var writers, others sync.WaitGroup
	for writer := range 3 {
		writing.Add(1)
		writers.Go(func() {
			defer writing.Add(-1)
			for n := range 50 {
				assert.NoError(t, d.Set(t.Context(), "k", value(writer, n), nil))
			}
		})
	}
	others.Go(func() {
		for writing.Load() > 0 {
			got, err := d.Get(t.Context(), "k")
			if !assert.NoError(t, err) {
				return
			}
			first, _, _ := strings.Cut(string(got), " ")
			assert.Equal(t, strings.Repeat(first+" ", 2000), string(got), "torn")
		}
	})
	others.Go(func() { // another process that starts removes temporary files
		for writing.Load() > 0 {
			_, err := newDurableFile(directory)
			assert.NoError(t, err)
		}
	})
	writers.Wait()
	others.Wait()
	assert.Equal(t, []string{"k"}, files(t, directory))
}

func TestOnlyOneOfManyAddsWins(t *testing.T) {
	d, directory := durable(t)
	for round := range 20 {
		key := fmt.Sprint("k", round)
		var won atomic.Int32
		var adds sync.WaitGroup
		for range 8 {
			adds.Go(func() {
				switch err := d.Add(t.Context(), key, []byte("v"), nil); err {
				case nil:
					won.Add(1)
				default:
					assert.ErrorIs(t, err, service.ErrKeyAlreadyExists)
				}
			})
		}
		adds.Wait()
		assert.EqualValues(t, 1, won.Load())
	}
	assert.Len(t, files(t, directory), 20)
}

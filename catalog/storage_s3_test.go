// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// startS3 serves an empty bucket and answers a storage that reads it and tries each request once.
func startS3(t *testing.T, count func(int64)) (*corpus.S3, *Storage) {
	t.Helper()
	server, err := corpus.StartS3()
	require.NoError(t, err)
	s := newStorage(t, StorageConfig{OnBytes: count, S3: S3Config{
		Endpoint: server.Endpoint, AccessKeyID: "k", SecretAccessKey: "very-secret", MaxAttempts: 1,
	}})
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, server.Close())
	})
	return server, s
}

func newStorage(t *testing.T, cfg StorageConfig) *Storage {
	t.Helper()
	s, err := NewStorage(cfg)
	require.NoError(t, err)
	return s
}

// someBytes are n bytes of which no two places look the same.
func someBytes(n int) []byte {
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "%08d,", b.Len())
	}
	return b.Bytes()[:n]
}

func readAll(t *testing.T, fsys iceio.IO, location string) []byte {
	t.Helper()
	f, err := fsys.Open(location)
	require.NoError(t, err)
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return content
}

func TestS3ReadsKeysAsTheyAre(t *testing.T) {
	server, s := startS3(t, nil)
	for _, key := range []string{
		"wh/plain.avro", "wh/a b/c d.avro", "wh/100%/x%41%2Fy.avro", `wh/back\slash.avro`, "wh/q?x=1&y#frag.avro",
		"wh/größe/日本.avro", "wh/plus+semi;colon:at@.avro", "wh/star*'quote\".avro", "wh/dots..avro", "wh/..dots/x.avro", "wh/a b/%20.parquet",
	} {
		content := someBytes(len(key))
		require.NoError(t, server.Put(key, content))
		for _, scheme := range []string{"s3", "s3a", "s3n", "S3"} {
			location := scheme + "://bucket/" + key
			assert.Equal(t, content, readAll(t, s.FS(), location), location)
		}
		location := "s3://bucket/" + key
		whole, err := s.FS().(iceio.ReadFileIO).ReadFile(location)
		require.NoError(t, err, location)
		assert.Equal(t, content, whole, location)
		info, err := s.FS().(iceio.StatIO).Stat(location)
		require.NoError(t, err, location)
		assert.Equal(t, int64(len(content)), info.Size(), location)
		listed, err := s.FS().(prefixLister).ListPrefix(location[:len(location)-3])
		require.NoError(t, err, location)
		assert.Equal(t, []string{location}, listed)
	}
}

func TestS3WalksAFolder(t *testing.T) {
	server, s := startS3(t, nil)
	for _, key := range []string{"wh/t/a.avro", "wh/t/b/c.avro", "wh/tt/d.avro"} {
		require.NoError(t, server.Put(key, []byte("x")))
	}
	var visited []string
	require.NoError(t, s.FS().(iceio.ListableIO).WalkDir("s3://bucket/wh/t", func(location string, entry fs.DirEntry, err error) error {
		visited = append(visited, fmt.Sprint(location, " ", entry.IsDir()))
		return err
	}))
	assert.Equal(t, []string{"s3://bucket/wh/t true", "s3://bucket/wh/t/a.avro false", "s3://bucket/wh/t/b/c.avro false"}, visited)
}

func TestS3OpensParquetWithOneRequestForItsTail(t *testing.T) {
	var bytesRead atomic.Int64
	server, s := startS3(t, func(n int64) { bytesRead.Add(n) })
	content := someBytes(200_000)
	require.NoError(t, server.Put("f.parquet", content))
	f, err := s.FS().Open("s3://bucket/f.parquet")
	require.NoError(t, err)

	footer := make([]byte, 1000)
	n, err := f.ReadAt(footer, 199_000)
	require.NoError(t, err)
	assert.Equal(t, content[199_000:], footer[:n])
	assert.Len(t, server.Requests(), 1)
	assert.Equal(t, int64(tailBytes), bytesRead.Load())

	column := make([]byte, 5000)
	_, err = f.ReadAt(column, 100)
	require.NoError(t, err)
	assert.Equal(t, content[100:5100], column)
	assert.Equal(t, []corpus.S3Request{{Method: "GET", Key: "f.parquet", Query: "x-id=GetObject", Range: "bytes=100-5099"}}, server.Requests())

	across := make([]byte, 100_000)
	n, err = f.ReadAt(across, 150_000)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, content[150_000:], across[:n])

	at, err := f.Seek(-100_000, io.SeekEnd)
	require.NoError(t, err)
	assert.Equal(t, int64(100_000), at)
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, content[100_000:], rest)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, content, all)
	_, err = f.ReadAt(column, 200_000)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, f.Close())
}

func TestS3OpensFilesSmallerThanTheTail(t *testing.T) {
	server, s := startS3(t, nil)
	for _, size := range []int{0, 1, 100, tailBytes - 1, tailBytes, tailBytes + 1} {
		content := someBytes(size)
		require.NoError(t, server.Put("f.parquet", content))
		require.NoError(t, server.Put("f.avro", content))
		assert.Len(t, readAll(t, s.FS(), "s3://bucket/f.parquet"), size)
		assert.Len(t, readAll(t, s.FS(), "s3://bucket/f.avro"), size)
		prefix, err := readPrefix(t.Context(), s.FS(), "s3://bucket/f.avro", 50)
		require.NoError(t, err)
		assert.Len(t, prefix, min(size, 50))
	}
}

func TestAnAnswerSaysWhichPartOfAnObjectItHolds(t *testing.T) {
	seven, unknown := int64(7), int64(-1)
	for _, c := range []struct {
		name         string
		length       *int64
		contentRange string
		want         part
		refused      string
	}{
		{"all of it", &seven, "", part{n: 7, size: 7}, ""},
		{"a part", &seven, "bytes 5-11/20", part{off: 5, n: 7, size: 20}, ""},
		{"one byte", nil, "bytes 5-5/6", part{off: 5, n: 1, size: 6}, ""},
		{"the only byte", nil, "bytes 0-0/1", part{n: 1, size: 1}, ""},
		{"a part in chunks", &unknown, "bytes 5-11/20", part{off: 5, n: 7, size: 20}, ""},
		{"in chunks", &unknown, "", part{}, "does not say how long the object is"},
		{"without headers", nil, "", part{}, "does not say how long the object is"},
		{"a part of what is as long as one likes", &seven, "bytes 5-11/*", part{}, `Content-Range "bytes 5-11/*"`},
		{"a part behind the end", &seven, "bytes 5-11/11", part{}, `Content-Range "bytes 5-11/11"`},
		{"nonsense", &seven, "rows 5", part{}, `Content-Range "rows 5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := part{body: http.NoBody}.as(c.length, c.contentRange)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			got.body = nil
			assert.Equal(t, c.want, got)
		})
	}
}

func TestS3GoesOnWhereABodyWasCut(t *testing.T) {
	var bytesRead atomic.Int64
	server, s := startS3(t, func(n int64) { bytesRead.Add(n) })
	content := someBytes(50_000)
	require.NoError(t, server.Put("f.avro", content))
	require.NoError(t, server.Put("f.parquet", append(content, content...)))
	server.Fail(func(corpus.S3Request) *corpus.Fault { return &corpus.Fault{Cut: 20_000} })

	assert.Equal(t, content, readAll(t, s.FS(), "s3://bucket/f.avro"))
	var ranges []string
	for _, r := range server.Requests() {
		ranges = append(ranges, r.Range)
	}
	assert.Equal(t, []string{"", "bytes=20000-49999", "bytes=40000-49999"}, ranges)
	assert.Equal(t, int64(50_000), bytesRead.Load(), "no byte is counted twice")

	f, err := s.FS().Open("s3://bucket/f.parquet")
	require.NoError(t, err)
	column := make([]byte, 30_000)
	_, err = f.ReadAt(column, 1000)
	require.NoError(t, err)
	assert.Equal(t, content[1000:31_000], column)
	require.NoError(t, f.Close())
	whole, err := s.FS().(iceio.ReadFileIO).ReadFile("s3://bucket/f.avro")
	require.NoError(t, err)
	assert.Equal(t, content, whole)
}

func TestABodyThatNeverGoesOnFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		var told []error
		all := reads{count: func(int64) {}, attempts: 4, retried: func(_ string, err error) { told = append(told, err) }}
		r := &resumable{ctx: t.Context(), end: 10, reads: all, open: func(off int64) (io.ReadCloser, error) {
			opened++
			assert.Zero(t, off)
			return io.NopCloser(strings.NewReader("")), nil
		}}
		_, err := io.ReadAll(r)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, 4, opened)
		assert.Len(t, told, 3)

		ctx, cancel := context.WithCancel(t.Context())
		r = &resumable{ctx: ctx, end: 10, reads: all, open: func(int64) (io.ReadCloser, error) {
			cancel()
			return io.NopCloser(strings.NewReader("")), nil
		}}
		_, err = io.ReadAll(r)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// stalling is an object store that says nothing more at some of its requests, and lets them hang until the test ends.
type stalling struct {
	*httptest.Server
	requests atomic.Int64
}

// newStalling serves the content; stall says of the nth request (from 1) after how many bytes of its body it stops, and
// whether it does.
func newStalling(t *testing.T, content []byte, stall func(n int64) (after int, stalls bool)) *stalling {
	t.Helper()
	s := &stalling{}
	ended := make(chan struct{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, stalls := stall(s.requests.Add(1))
		if !stalls {
			http.ServeContent(w, r, "f", time.Time{}, bytes.NewReader(content))
			return
		}
		if after >= 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content[:after])
			w.(http.Flusher).Flush()
		}
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(ended)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

const shortWhile = 50 * time.Millisecond

func TestS3AsksAgainWhereAStoreStalls(t *testing.T) {
	content := someBytes(100_000)
	tests := map[string]struct {
		stall func(n int64) (int, bool)
		told  string
	}{
		"before the headers": {func(n int64) (int, bool) { return -1, n == 1 }, "S3 at http://"},
		"amid the body":      {func(n int64) (int, bool) { return 40_000, n == 1 }, "s3://bucket/f.avro"},
		"at first, and again later": {func(n int64) (int, bool) {
			return map[int64]int{1: -1, 2: 10}[n], n <= 2
		}, "s3://bucket/f.avro"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := newStalling(t, content, tc.stall)
			var mu sync.Mutex
			var told []string
			s := newStorage(t, StorageConfig{
				S3:      S3Config{Endpoint: server.URL, AccessKeyID: "k", SecretAccessKey: "very-secret"},
				Timeout: shortWhile, MaxAttempts: 3,
				OnRetry: func(location string, err error) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, location+" "+err.Error())
				},
			})
			t.Cleanup(func() { assert.NoError(t, s.Close()) })
			assert.Equal(t, content, readAll(t, s.FS(), "s3://bucket/f.avro"))
			mu.Lock()
			defer mu.Unlock()
			require.NotEmpty(t, told)
			assert.Contains(t, strings.Join(told, "\n"), tc.told)
			assert.NotContains(t, strings.Join(told, "\n"), "very-secret")
		})
	}
}

func TestS3GivesUpOnAStoreThatStalls(t *testing.T) {
	for name, after := range map[string]int{"before the headers": -1, "amid the body": 0} {
		t.Run(name, func(t *testing.T) {
			server := newStalling(t, someBytes(1000), func(int64) (int, bool) { return after, true })
			s := newStorage(t, StorageConfig{
				S3: S3Config{Endpoint: server.URL, AccessKeyID: "k", SecretAccessKey: "s"}, Timeout: shortWhile, MaxAttempts: 2,
			})
			t.Cleanup(func() { assert.NoError(t, s.Close()) })
			_, err := s.FS().(iceio.ReadFileIO).ReadFile("s3://bucket/f.avro")
			require.ErrorContains(t, err, "s3://bucket/f.avro")
			require.ErrorContains(t, err, "timeout")
			assert.Equal(t, int64(2), server.requests.Load())
		})
	}
}

func TestS3KeepsItsConnection(t *testing.T) {
	var connections atomic.Int64
	content := someBytes(100_000)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "f", time.Time{}, bytes.NewReader(content))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := newStorage(t, StorageConfig{S3: S3Config{Endpoint: server.URL, AccessKeyID: "k", SecretAccessKey: "s"}})
	for range 5 {
		f, err := s.FS().Open("s3://bucket/f.parquet")
		require.NoError(t, err)
		_, err = f.ReadAt(make([]byte, 10_000), 5)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = readPrefix(t.Context(), s.FS(), "s3://bucket/f.avro", 1000)
		require.NoError(t, err)
		f, err = s.FS().Open("s3://bucket/f.avro")
		require.NoError(t, err)
		_, err = io.ReadFull(f, make([]byte, 90_000))
		require.NoError(t, err)
		require.NoError(t, f.Close(), "the little that is left is read to its end")
	}
	assert.Equal(t, int64(1), connections.Load())
	require.NoError(t, s.Close())
}

func TestS3TellsMissingFromRefused(t *testing.T) {
	server, s := startS3(t, nil)
	const location = "s3://bucket/wh/none.avro"
	open := func(location string) error { _, err := s.FS().Open(location); return err }
	stat := func() error { _, err := s.FS().(iceio.StatIO).Stat(location); return err }
	header := func() error { _, err := ReadListHeader(t.Context(), s.FS(), location); return err }
	load := func() error { _, err := LoadTable(t.Context(), s.FS(), location, ""); return err }
	for _, err := range []error{open(location), open("s3://bucket/none.parquet"), stat(), header(), load()} {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	assert.ErrorContains(t, load(), location)
	require.NotErrorIs(t, open("s3://no-such-bucket/x.avro"), fs.ErrNotExist, "a wrong bucket must not make every file look expired")
	assert.ErrorContains(t, open("s3://no-such-bucket/x.avro"), server.Endpoint)

	server.Fail(func(corpus.S3Request) *corpus.Fault { return &corpus.Fault{Status: http.StatusForbidden} })
	for _, err := range []error{open(location), stat(), header(), load()} {
		require.ErrorIs(t, err, fs.ErrPermission)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "403")
		require.NotContains(t, err.Error(), "very-secret")
	}
	server.Fail(func(corpus.S3Request) *corpus.Fault { return &corpus.Fault{Status: http.StatusServiceUnavailable} })
	for _, err := range []error{open(location), stat(), header(), load()} {
		require.ErrorContains(t, err, "503")
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestS3ReadsEndWithTheirContext(t *testing.T) {
	server, s := startS3(t, nil)
	require.NoError(t, server.Put("f.avro", someBytes(100)))
	ctx, cancel := context.WithCancel(t.Context())
	server.Fail(func(corpus.S3Request) *corpus.Fault { cancel(); return &corpus.Fault{Block: make(chan struct{})} })
	_, err := LoadTable(ctx, s.FS(), "s3://bucket/f.avro", "")
	require.ErrorIs(t, err, context.Canceled)
	server.Fail(nil)
	assert.Len(t, readAll(t, s.FS(), "s3://bucket/f.avro"), 100, "others go on")
}

// signer answers every request as a missing object and remembers who asked.
func signer(t *testing.T) (endpoint string, credential func() string) {
	t.Helper()
	var last atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err == nil && r.Form.Get("Action") == "AssumeRole" {
			assert.Equal(t, "arn:aws:iam::1:role/reader", r.Form.Get("RoleArn"))
			assert.Equal(t, "outside", r.Form.Get("ExternalId"))
			_, _ = io.WriteString(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>assumed</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
			return
		}
		last.Store(r.Header.Get("Authorization") + " token=" + r.Header.Get("X-Amz-Security-Token"))
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { return last.Load().(string) }
}

func TestS3SignsAsConfigured(t *testing.T) {
	endpoint, credential := signer(t)
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("[profile other]\naws_access_key_id=of-profile\naws_secret_access_key=s\nregion=eu-north-1\n"), 0o600))
	t.Setenv("AWS_CONFIG_FILE", config)
	t.Setenv("AWS_ENDPOINT_URL_STS", endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", "of-environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_REGION", "")
	for name, test := range map[string]struct {
		cfg  S3Config
		want []string
	}{
		"static":      {S3Config{AccessKeyID: "of-config", SecretAccessKey: "s", SessionToken: "tok"}, []string{"of-config/", "us-east-1", "token=tok"}},
		"environment": {S3Config{Region: "eu-west-3"}, []string{"of-environment/", "eu-west-3"}},
		"role":        {S3Config{Role: "arn:aws:iam::1:role/reader", RoleExternalID: "outside"}, []string{"assumed/", "token=t"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Endpoint = endpoint
			s := newStorage(t, StorageConfig{S3: test.cfg})
			_, err := s.FS().Open("s3://bucket/x.avro")
			require.ErrorIs(t, err, fs.ErrNotExist)
			for _, want := range test.want {
				assert.Contains(t, credential(), want)
			}
			require.NoError(t, s.Close())
		})
	}
	t.Run("profile", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		s := newStorage(t, StorageConfig{S3: S3Config{Endpoint: endpoint, Profile: "other"}})
		_, err := s.FS().Open("s3://bucket/x.avro")
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.Contains(t, credential(), "of-profile/")
		assert.Contains(t, credential(), "eu-north-1")
		require.NoError(t, s.Close())
	})
	t.Run("no region", func(t *testing.T) {
		s := newStorage(t, StorageConfig{})
		_, err := s.FS().Open("s3://bucket/x.avro")
		require.ErrorContains(t, err, "storage.aws_s3.region")
	})
}

func TestS3PutsTheBucketWhereItCanBe(t *testing.T) {
	for _, test := range []struct {
		cfg  S3Config
		want bool
	}{
		{S3Config{}, false},
		{S3Config{ForcePathStyle: true}, true},
		{S3Config{Endpoint: "http://127.0.0.1:9000"}, true},
		{S3Config{Endpoint: "http://[::1]:9000"}, true},
		{S3Config{Endpoint: "http://localhost:9000"}, true},
		{S3Config{Endpoint: "http://minio:9000"}, true},
		{S3Config{Endpoint: "https://s3.example.com"}, false},
		{S3Config{Endpoint: "https://s3.example.com", ForcePathStyle: true}, true},
	} {
		assert.Equal(t, test.want, test.cfg.pathStyle(), test.cfg.Endpoint)
	}
}

func TestS3ConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]S3Config{
		"id and secret go together":         {AccessKeyID: "k"},
		"token needs id":                    {SessionToken: "t"},
		"exclude each other":                {AccessKeyID: "k", SecretAccessKey: "s", FromEC2Role: true},
		"role_external_id needs role":       {RoleExternalID: "x"},
		"not an http or https URL":          {Endpoint: "localhost:9000"},
		"belongs into storage.aws_s3.crede": {Endpoint: "http://user:secret@localhost"},
	} {
		_, err := NewStorage(StorageConfig{S3: cfg})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "user:secret")
	}
}

// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// S3 is an S3 server in this process, on a free port of 127.0.0.1. It takes any credentials and wants path-style
// addresses. It is safe for concurrent use.
type S3 struct {
	Endpoint string // http://127.0.0.1:port

	backend *s3mem.Backend
	server  *http.Server
	served  chan struct{}

	mu       sync.Mutex
	requests []S3Request
	fault    func(S3Request) *Fault
}

// S3Request is one request as it came in. Key is empty for requests on the bucket.
type S3Request struct {
	Method string
	Key    string
	Query  string
	Range  string
}

// Fault is what happens to a request instead of, or around, its right answer. The zero Fault changes nothing.
type Fault struct {
	Status int             // answer with this status and nothing else
	Delay  time.Duration   // wait first; ends early when the client goes away
	Block  <-chan struct{} // wait until it is closed or the client goes away
	Cut    int64           // break the connection after this many bytes of the body; 0 = never
	Hangup bool            // break the connection before any answer
}

// StartS3 serves an empty bucket named Bucket. The caller closes it.
func StartS3() (*S3, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		return nil, fmt.Errorf("starting the S3 server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the S3 server: %w", err)
	}
	s := &S3{Endpoint: "http://" + listener.Addr().String(), backend: backend, served: make(chan struct{})}
	s.server = &http.Server{
		Handler:           s.intercept(gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // always ErrServerClosed: Close is the one way out
	}()
	return s, nil
}

// StartCorpusS3 serves the objects of the corpus. The caller closes it.
func StartCorpusS3() (*S3, error) {
	s, err := StartS3()
	if err != nil {
		return nil, err
	}
	err = readArchive("s3.tar.gz", func(r io.Reader) error {
		return eachFile(r, func(name string, body io.Reader) error {
			content, err := io.ReadAll(body)
			if err != nil {
				return err
			}
			return s.Put(strings.TrimPrefix(name, "s3/"), content)
		})
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close stops the server and waits until it has stopped.
func (s *S3) Close() error {
	err := s.server.Close()
	<-s.served
	return err
}

// Put stores an object, past the counters and faults.
func (s *S3) Put(key string, content []byte) error {
	_, err := s.backend.PutObject(Bucket, key, map[string]string{}, strings.NewReader(string(content)), int64(len(content)), nil)
	return err
}

// Get reads an object, past the counters and faults.
func (s *S3) Get(key string) ([]byte, error) {
	object, err := s.backend.GetObject(Bucket, key, nil)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(object.Contents)
	return content, errors.Join(err, object.Contents.Close())
}

// Delete removes an object, past the counters and faults. One that is not there is no error.
func (s *S3) Delete(key string) error {
	_, err := s.backend.DeleteObject(Bucket, key)
	return err
}

// Requests lists what was asked since the last call.
func (s *S3) Requests() []S3Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Fail asks fault about every request from now on; where it answers nil, and after Fail(nil), requests are served as
// they should be. It is called from many goroutines at once, and what it answers is read after it returned.
func (s *S3) Fail(fault func(S3Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *S3) intercept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := S3Request{
			Method: r.Method, Query: r.URL.RawQuery, Range: r.Header.Get("Range"),
			Key: strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+Bucket), "/"),
		}
		s.mu.Lock()
		s.requests = append(s.requests, request)
		decide := s.fault
		s.mu.Unlock()
		var fault *Fault
		if decide != nil {
			fault = decide(request)
		}
		if fault == nil {
			fault = &Fault{}
		}
		fault.serve(w, r, next)
	})
}

func (f *Fault) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	}
	if f.Block != nil {
		select {
		case <-f.Block:
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Hangup:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		w.WriteHeader(f.Status)
	case f.Cut > 0:
		next.ServeHTTP(&cutWriter{ResponseWriter: w, left: f.Cut}, r)
	default:
		next.ServeHTTP(w, r)
	}
}

// cutWriter breaks the connection once it let through as many bytes as it may.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) <= c.left {
		c.left -= int64(len(p))
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

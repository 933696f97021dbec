// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // writes the tables
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

const (
	smallFileCount = 2000
	smallFileRows  = 50
	roundTrip      = 20 * time.Millisecond
)

// distantShop is an in-memory Nessie and S3 server with two tables of the same rows: ns.small has many files, ns.large one.
// They are written to one S3 server and read from another before it, which knows Range headers as stores do.
type distantShop struct {
	nessie  *nessietest.Server
	s3      *corpus.S3
	front   *httptest.Server
	objects map[string][]byte // of s3 by path, once all are written
	asked   atomic.Int64
}

// askedPath answers what the store has done so far, without being a request.
const askedPath = "/so-far"

// shopWork is what a distantShop has done so far.
type shopWork struct {
	Requests int64         `json:"requests"`
	CPU      time.Duration `json:"cpu"`
}

// ServeHTTP answers GET and HEAD of objects after a round trip.
func (s *distantShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == askedPath {
		_ = json.NewEncoder(w).Encode(shopWork{Requests: s.asked.Load(), CPU: ownCPU()})
		return
	}
	s.asked.Add(1)
	time.Sleep(roundTrip)
	body, ok := s.objects[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), bytes.NewReader(body))
}

// shopAddress is where the servers of a distantShop are.
type shopAddress struct {
	Nessie string `json:"nessie"`
	Store  string `json:"store"`
}

// keepShop opens a distantShop, tells its address in a line of JSON, and keeps it open until in ends.
func keepShop(ctx context.Context, in io.Reader, out io.Writer) error {
	shop, err := openDistantShop(ctx)
	if err != nil {
		return err
	}
	defer shop.close()
	// Writing the tables took more than keeping them does. From here on its garbage is not collected: the reader would pay
	// with the cores that it shares with the store, as it does not where a store is another machine.
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	if err := json.NewEncoder(out).Encode(shopAddress{Nessie: shop.nessie.URL, Store: shop.front.URL}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func openDistantShop(ctx context.Context) (shop *distantShop, err error) {
	shop = &distantShop{}
	defer func() {
		if err != nil {
			shop.close()
		}
	}()
	if shop.s3, err = corpus.StartS3(); err != nil {
		return shop, err
	}
	if shop.nessie, err = nessietest.Start(nessietest.Options{}); err != nil {
		return shop, err
	}
	client, err := catalog.NewClient(catalog.ClientConfig{BaseURL: shop.nessie.URL})
	if err != nil {
		return shop, err
	}
	defer client.Close()
	w, err := nessietest.NewWriter(ctx, nessietest.WriterConfig{
		Catalog: client, Warehouse: "s3://" + corpus.Bucket + "/bench",
		Storage: map[string]string{
			"s3.endpoint": shop.s3.Endpoint, "s3.region": "us-east-1", "s3.access-key-id": "id", "s3.secret-access-key": "secret",
		},
	})
	if err != nil {
		return shop, err
	}
	if err := fillDistantShop(ctx, w); err != nil {
		return shop, err
	}
	if shop.objects, err = shop.written(); err != nil {
		return shop, err
	}
	shop.front = httptest.NewServer(shop)
	return shop, nil
}

func fillDistantShop(ctx context.Context, w *nessietest.Writer) error {
	p := iceberg.PrimitiveTypes
	field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	schema := iceberg.NewSchema(0, field(1, "id", p.Int64), field(2, "user", p.String), field(3, "kind", p.String), field(4, "price", p.Float64), field(5, "note", p.String))
	var all []string
	var groups [][]string
	for i := range smallFileCount * smallFileRows {
		all = append(all, fmt.Sprintf(`{"id":%d,"user":"user%d","kind":"kind%d","price":%d.25,"note":"the %d. note, of some length"}`, i, i*7919%10007, i%8, i%1000, i))
	}
	for i := range smallFileCount {
		groups = append(groups, all[i*smallFileRows:(i+1)*smallFileRows])
	}
	if _, err := w.Create(ctx, catalog.Key{"ns", "large"}, schema, nessietest.TableOptions{}, nessietest.AppendFiles(all)); err != nil {
		return err
	}
	_, err := w.Create(ctx, catalog.Key{"ns", "small"}, schema, nessietest.TableOptions{}, nessietest.AppendFiles(groups...))
	return err
}

// written answers all objects by the path of their address.
func (s *distantShop) written() (map[string][]byte, error) {
	storage, err := catalog.NewStorage(catalog.StorageConfig{S3: catalog.S3Config{Endpoint: s.s3.Endpoint, AccessKeyID: "id", SecretAccessKey: "secret"}})
	if err != nil {
		return nil, err
	}
	bucket := "s3://" + corpus.Bucket
	objects := map[string][]byte{}
	err = storage.FS().(iceio.ListableIO).WalkDir(bucket, func(location string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key := strings.TrimPrefix(location, bucket+"/")
		objects["/"+corpus.Bucket+"/"+key], err = s.s3.Get(key)
		return err
	})
	return objects, errors.Join(err, storage.Close())
}

func (s *distantShop) close() {
	if s.front != nil {
		s.front.Close()
	}
	if s.nessie != nil {
		s.nessie.Close()
	}
	if s.s3 != nil {
		_ = s.s3.Close()
	}
}

// startShop keeps a distantShop in a process of its own, as a real store is, so that neither its garbage nor its memory are
// the reader's.
func startShop(ctx context.Context) (at shopAddress, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return at, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "keep-shop")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return at, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return at, nil, err
	}
	if err := cmd.Start(); err != nil {
		return at, nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return at, nil, errors.Join(fmt.Errorf("starting the store: %w", err), stop())
	}
	return at, stop, nil
}

// ownCPU is how long this process has worked, without its children; 0 where nothing tells.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// work is what the store has done.
func (at shopAddress) work(ctx context.Context) (w shopWork, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Store+askedPath, nil)
	if err != nil {
		return w, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return w, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	return w, json.NewDecoder(answer.Body).Decode(&w)
}

// reading is what it took to read a table.
type reading struct {
	wall     time.Duration
	cpu      time.Duration // without the store's
	storeCPU time.Duration
	requests int64
}

// read runs the whole pipeline over one of the tables.
func (at shopAddress) read(ctx context.Context, table string) (r reading, err error) {
	config := fmt.Sprintf(`
input:
  nessie:
    base_url: %s
    namespace: ns
    table: %s
    poll_interval: 0s
    storage:
      aws_s3: {endpoint: %q, region: us-east-1, force_path_style_urls: true, credentials: {id: id, secret: secret}}
`, at.Nessie, table, at.Store)
	before, err := at.work(ctx)
	if err != nil {
		return r, err
	}
	start, cpu := time.Now(), ownCPU()
	if err := stream(ctx, config+dropOutput(""), service.GlobalEnvironment()); err != nil {
		return r, err
	}
	r.wall, r.cpu = time.Since(start), ownCPU()-cpu
	after, err := at.work(ctx)
	r.storeCPU, r.requests = after.CPU-before.CPU, after.Requests-before.Requests
	return r, err
}

// smallFiles times both tables in turn. The store is another process of the same machine and takes part of its CPU.
func smallFiles(ctx context.Context, _ settings) (m measured, err error) {
	at, stop, err := startShop(ctx)
	if err != nil {
		return measured{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	large, err := at.read(ctx, "large")
	if err != nil {
		return measured{}, err
	}
	small, err := at.read(ctx, "small")
	if err != nil {
		return measured{}, err
	}
	if large.requests == 0 || small.requests < smallFileCount {
		return measured{}, errors.New("the files were not read from the store")
	}
	return measured{
		Rows: smallFileCount * smallFileRows, Seconds: (large.wall + small.wall).Seconds(),
		Values: []value{
			milliseconds("one file", large.wall), milliseconds("2,000 files", small.wall),
			{"2,000 files against one", float64(small.wall) / float64(large.wall), "times"},
			milliseconds("CPU for 2,000 files", small.cpu), milliseconds("the store's CPU meanwhile", small.storeCPU),
			{"requests for one file", float64(large.requests), ""},
			{"requests for 2,000 files", float64(small.requests), ""},
		},
	}, nil
}

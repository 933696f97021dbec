// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"
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
	nessie *nessietest.Server
	s3     *corpus.S3
	front  *httptest.Server
	asked  atomic.Int64
}

// askedPath answers how many requests there were, without being one.
const askedPath = "/requests-so-far"

// ServeHTTP answers GET and HEAD of objects after a round trip.
func (s *distantShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == askedPath {
		_, _ = fmt.Fprint(w, s.asked.Load())
		return
	}
	s.asked.Add(1)
	time.Sleep(roundTrip)
	key := strings.TrimPrefix(r.URL.Path, "/"+corpus.Bucket+"/")
	body, err := s.s3.Get(key)
	if err != nil {
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
	debug.FreeOSMemory() // writing the tables took more than keeping them does
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

// asked is how many requests the store has got.
func (at shopAddress) asked(ctx context.Context) (n int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Store+askedPath, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	_, err = fmt.Fscan(answer.Body, &n)
	return n, err
}

// read runs the whole pipeline over one of the tables.
func (at shopAddress) read(ctx context.Context, table string) (took time.Duration, requests int64, err error) {
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
	before, err := at.asked(ctx)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := stream(ctx, config+dropOutput(""), service.GlobalEnvironment()); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	after, err := at.asked(ctx)
	return took, after - before, err
}

// smallFiles times both tables in turn. The store is another process of the same machine and takes part of its CPU.
func smallFiles(ctx context.Context, _ settings) (m measured, err error) {
	at, stop, err := startShop(ctx)
	if err != nil {
		return measured{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	large, largeAsked, err := at.read(ctx, "large")
	if err != nil {
		return measured{}, err
	}
	small, smallAsked, err := at.read(ctx, "small")
	if err != nil {
		return measured{}, err
	}
	if largeAsked == 0 || smallAsked < smallFileCount {
		return measured{}, errors.New("the files were not read from the store")
	}
	return measured{
		Rows: smallFileCount * smallFileRows, Seconds: (large + small).Seconds(),
		Values: []value{
			milliseconds("one file", large), milliseconds("2,000 files", small),
			{"2,000 files against one", float64(small) / float64(large), "times"},
			{"requests for one file", float64(largeAsked), ""},
			{"requests for 2,000 files", float64(smallAsked), ""},
		},
	}, nil
}

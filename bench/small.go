// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// ServeHTTP answers GET and HEAD of objects after a round trip.
func (s *distantShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// read runs the whole pipeline over one of the tables.
func (s *distantShop) read(ctx context.Context, table string) (took time.Duration, requests int64, err error) {
	config := fmt.Sprintf(`
input:
  nessie:
    base_url: %s
    namespace: ns
    table: %s
    poll_interval: 0s
    storage:
      aws_s3: {endpoint: %q, region: us-east-1, force_path_style_urls: true, credentials: {id: id, secret: secret}}
`, s.nessie.URL, table, s.front.URL)
	before, start := s.asked.Load(), time.Now()
	err = stream(ctx, config+dropOutput(""), service.GlobalEnvironment())
	return time.Since(start), s.asked.Load() - before, err
}

// smallFiles times both tables in turn. The servers run in this process and take part of its CPU, from both alike.
func smallFiles(ctx context.Context, _ settings) (measured, error) {
	shop, err := openDistantShop(ctx)
	if err != nil {
		return measured{}, err
	}
	defer shop.close()
	large, largeAsked, err := shop.read(ctx, "large")
	if err != nil {
		return measured{}, err
	}
	small, smallAsked, err := shop.read(ctx, "small")
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
